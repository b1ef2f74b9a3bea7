"""The marker of a date: there exactly while the date is judged and merged."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.archive.compaction.compact_day import compact_day
from gateway.archive.location import ArchiveLocation
from gateway.archive.night_record import NO_NIGHT, NOT_JUDGED, DateRecord, Night, night_path
from gateway.archive.retention import remove_days
from gateway.archive.storage import LocalStorage
from gateway.reconcile.nights.chain import read_chain, write_night
from gateway.reconcile.nights.marker import mark, marker_path, newest_marked
from tests.archive.compaction.days import merged_here, write_day
from tests.archive.samples import DAY

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


@pytest.mark.parametrize("kept", [(), (1,)])
def test_records_of_nights_that_a_marker_names_and_nobody_has_are_errors(
    tmp_path: Path, kept: tuple[int, ...]
) -> None:
    storage = LocalStorage(tmp_path)
    write_day(ArchiveLocation(tmp_path))
    compacted(tmp_path)
    for number in range(1, 5):
        judged(tmp_path, number=number)
    mark(storage, DAY)
    assert read_chain(storage, None, marked=newest_marked(storage)).last == 4
    for number in {*range(1, 5)} - {*kept}:
        (tmp_path / night_path(number)).unlink()

    chain = read_chain(storage, None, marked=newest_marked(storage))

    (finding,) = chain.findings
    first = len(kept) + 1
    assert (finding.rule, finding.place) == ("missing-night", f"_nights/{first}.json")
    assert finding.text == f"the records of nights {first} to 4 are missing"
    assert (chain.newest, chain.last) == (NO_NIGHT, 4)  # the next one is the fifth
    judged(tmp_path, number=5)
    assert read_chain(storage, None, marked=newest_marked(storage)).findings == (finding,)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"night": "x"}', b'{"night": true}'])
def test_a_damaged_marker_names_no_night(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / marker_path(DAY)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)

    assert newest_marked(LocalStorage(tmp_path)) == 0
