"""Retired writers, by file."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.archive.heads import WriterHead, write_head
from gateway.archive.storage import LocalStorage
from gateway.errors import ArchiveError
from gateway.night.archive.retired import retire, retirements


def test_a_retired_writer_is_read_back_with_its_last_journal(tmp_path: Path) -> None:
    write_head(tmp_path, WriterHead("one", "one", 5, open="one-1-000001"), b"key")
    storage = LocalStorage(tmp_path)

    retire(storage, "one", "the plant is closed", 7, b"key")

    found = retirements(storage, b"key")
    assert {writer: each.journal for writer, each in found.items()} == {"one": "one-1-000001"}
    assert retirements(storage, b"other") == {}
    (tmp_path / "_retired" / "one.json").write_bytes(b"[]")
    assert retirements(storage, b"key") == {}


@pytest.mark.parametrize(("writer", "why"), [("two", "gone"), ("one", " ")])
def test_an_unknown_writer_or_no_reason_is_refused(tmp_path: Path, writer: str, why: str) -> None:
    write_head(tmp_path, WriterHead("one", "one", 5))

    with pytest.raises(ArchiveError):
        retire(LocalStorage(tmp_path), writer, why, 7, None)
