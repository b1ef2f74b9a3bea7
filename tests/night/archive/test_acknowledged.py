"""An acknowledged finding stays listed, and counts in no verdict; another text is a new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.archive.findings import Weight, error
from gateway.archive.storage import LocalStorage
from gateway.errors import ArchiveError
from gateway.night.archive.acknowledged import acknowledge, with_acknowledged
from gateway.night.archive.night_record import Night, night_path

LOST = error("missing-journal", "_seals/a-1-000005.json", "journals of a, 000005, have no seal")
MORE = error("missing-journal", LOST.place, "journals of a, 000005 to 000006, have no seal")
OTHER = error("silent-writer", "_heads/b.json", "b wrote nothing")


def night(root: Path, key: bytes | None = None) -> LocalStorage:
    storage = LocalStorage(root)
    record = Night(1, "", 0, "2026-03-15", 7, findings=(LOST, OTHER)).signed(key)
    storage.put(night_path(1), record.to_json())
    return storage


@pytest.mark.parametrize("key", [None, b"key"])
def test_an_acknowledged_finding_is_a_warning_with_its_reason(
    tmp_path: Path, key: bytes | None
) -> None:
    storage = night(tmp_path, key)

    assert acknowledge(storage, LOST.rule, LOST.place, "the disk burnt", 5, key) == [LOST]

    lost, more, other = with_acknowledged(storage, [LOST, MORE, OTHER], key)
    assert (lost.weight, lost.rule, lost.place) == (Weight.WARNING, LOST.rule, LOST.place)
    assert lost.text == f"{LOST.text} (acknowledged: the disk burnt)"
    assert [more, other] == [MORE, OTHER]


@pytest.mark.parametrize("content", [b"", b"{}", None])
def test_a_damaged_or_forged_statement_acknowledges_nothing(
    tmp_path: Path, content: bytes | None
) -> None:
    storage = night(tmp_path, b"key")
    acknowledge(storage, LOST.rule, LOST.place, "the disk burnt", 5, b"key")
    if content is not None:
        (path,) = (tmp_path / "_acknowledged").iterdir()
        path.write_bytes(content)

    assert with_acknowledged(storage, [LOST], b"key" if content is not None else b"other") == [LOST]


@pytest.mark.parametrize(
    ("rule", "place", "why", "text"),
    [
        (
            "missing-journal",
            "elsewhere",
            "x",
            "found no 'missing-journal' at 'elsewhere'",
        ),
        (LOST.rule, LOST.place, " ", "--why: is empty"),
        (
            "missing-segment",
            "date=2026-03-15/hour=07/g-1-1-0.parquet",
            "x",
            "; a finding of a date cannot be acknowledged: the date keeps its status$",
        ),
    ],
)
def test_only_a_finding_of_the_last_night_can_be_acknowledged(
    tmp_path: Path, rule: str, place: str, why: str, text: str
) -> None:
    with pytest.raises(ArchiveError, match=text):
        acknowledge(night(tmp_path), rule, place, why, 5, None)


def test_an_archive_without_a_night_has_nothing_to_acknowledge(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="no night has judged"):
        acknowledge(LocalStorage(tmp_path), "r", "p", "x", 5, None)
