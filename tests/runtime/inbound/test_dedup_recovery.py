"""Recovery of identities from the journals of the last run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.archive.journal.records import MAGIC, Cell, Rows, pack
from gateway.archive.layout import journal_path
from gateway.runtime.inbound.dedup import Identity
from gateway.runtime.inbound.dedup_recovery import recover

HASH = bytes(range(16))
COLUMNS: dict[str, list[Cell]] = {"name": ["a/b"], "origin_id": ["ID:1"], "hash": [HASH]}
ROWS = Rows(1, {"leg": "received", "endpoint": "plant"}, COLUMNS)


@pytest.mark.parametrize(
    ("magic", "identities"),
    [
        pytest.param(MAGIC, {"plant": [("a/b", "ID:1", HASH)]}, id="ours"),
        pytest.param(b"GWJRNL\0\4", {}, id="of-a-later-version"),
    ],
)
def test_a_journal_of_a_later_version_is_skipped(
    tmp_path: Path, magic: bytes, identities: dict[str, list[Identity]]
) -> None:
    path = journal_path(tmp_path, "edge", 0, 0)
    path.parent.mkdir(parents=True)
    path.write_bytes(magic + pack([ROWS]))

    assert recover(tmp_path, "edge", {}).identities == identities
