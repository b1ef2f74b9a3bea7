"""The marker of a date: there exactly while the date is judged and merged."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import LocalStorage
from gateway.night.archive.compaction.compact_day import compact_day
from gateway.night.archive.night_record import NOT_JUDGED, DateRecord, Night
from gateway.night.archive.retention import remove_days
from gateway.night.reconcile.nights.chain import write_night
from gateway.night.reconcile.nights.marker import forged_markers, mark, marker_path
from tests.archive.samples import DAY
from tests.night.archive.compaction.days import merged_here, write_day

NIGHT = Night(12, "mac-of-11", 0, str(DAY + timedelta(days=1)), 7)
SETTLED = DateRecord(str(DAY), "e", 4, 0, 0, settled=True)


def silent(_text: str, _share: float | None = None) -> None:
    return None


def judged(root: Path, record: DateRecord = SETTLED, number: int = 12) -> None:
    write_night(LocalStorage(root), replace(NIGHT, n=number, dates=(record,)), None)


def compacted(root: Path) -> None:
    compact_day(ArchiveLocation(root), DAY, merged_here, silent)


def test_a_date_has_its_marker_once_it_is_judged_and_merged(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    write_day(ArchiveLocation(tmp_path))
    assert mark(storage, DAY) is None
    judged(tmp_path)
    assert mark(storage, DAY) is None
    compacted(tmp_path)
    judged(tmp_path, replace(SETTLED, date="2026-03-15"), 13)

    assert mark(storage, DAY) == marker_path(DAY)

    facts = json.loads((tmp_path / "_done" / f"date={DAY}" / "done.json").read_bytes())
    files = facts.pop("files")
    assert len(facts.pop("mac")) == 64
    assert facts == {
        "version": 1, "date": str(DAY), "night": 12, "status": 0, "verdict": "clean",
        "in_flight": 0,
    }  # fmt: skip
    assert files == sorted(
        f"date={DAY}/hour={hour}/merged-1-000{hour - 11}.parquet" for hour in (11, 12)
    )
    assert all((tmp_path / each).is_file() for each in files)


@pytest.mark.parametrize(
    ("record", "verdict"),
    [
        pytest.param(replace(SETTLED, status=1), "not clean", id="breach"),
        pytest.param(replace(SETTLED, status=3), "clean with gaps or unproven cuts", id="gaps"),
        pytest.param(replace(SETTLED, in_flight=2, settled=False), "clean", id="in-flight"),
        pytest.param(replace(SETTLED, status=2, settled=False), None, id="no-answer"),
        pytest.param(replace(SETTLED, status=NOT_JUDGED, settled=False), None, id="not-judged"),
        pytest.param(replace(SETTLED, settled=False), None, id="waits-for-a-night"),
    ],
)
def test_the_newest_night_that_knows_the_date_decides(
    tmp_path: Path, record: DateRecord, verdict: str | None
) -> None:
    storage = LocalStorage(tmp_path)
    write_day(ArchiveLocation(tmp_path))
    compacted(tmp_path)
    judged(tmp_path)
    assert mark(storage, DAY)

    judged(tmp_path, record, 13)
    path = mark(storage, DAY)

    content = storage.read(marker_path(DAY))
    assert (path is None) == (content is None) == (verdict is None)
    if content is not None:
        assert (json.loads(content)["verdict"], json.loads(content)["night"]) == (verdict, 13)


def test_a_late_segment_takes_the_marker_away(tmp_path: Path) -> None:
    location, storage = ArchiveLocation(tmp_path), LocalStorage(tmp_path)
    write_day(location)
    compacted(tmp_path)
    judged(tmp_path)
    assert mark(storage, DAY)
    write_day(location, gateways=["late"])

    assert mark(storage, DAY) is None
    assert storage.read(marker_path(DAY)) is None
    compacted(tmp_path)
    assert mark(storage, DAY)


def test_a_forgotten_date_has_no_marker(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    write_day(ArchiveLocation(tmp_path))
    compacted(tmp_path)
    judged(tmp_path)
    mark(storage, DAY)

    remove_days(storage, DAY + timedelta(days=1))

    assert storage.read(marker_path(DAY)) is None


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param({}, id="of-its-night"),
        pytest.param({"mac": "0" * 64}, id="another-digest"),
        pytest.param({"night": 4_000_000}, id="a-night-to-come"),
        pytest.param({"night": 1}, id="a-night-of-another-date"),
        pytest.param({"night": "../x"}, id="no-number"),
        pytest.param([], id="no-object"),
    ],
)
def test_a_marker_that_no_record_bears_out_is_an_error(tmp_path: Path, forge: object) -> None:
    storage = LocalStorage(tmp_path)
    write_day(ArchiveLocation(tmp_path))
    compacted(tmp_path)
    judged(tmp_path, replace(SETTLED, date="2026-03-11"), 1)
    judged(tmp_path)
    mark(storage, DAY)
    path = tmp_path / marker_path(DAY)
    facts = json.loads(path.read_bytes())
    path.write_text(json.dumps(facts | forge if isinstance(forge, dict) else forge))

    found = [(each.rule, each.place) for each in forged_markers(storage)]

    assert found == ([("forged-marker", marker_path(DAY).as_posix())] if forge != {} else [])
