from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.archive.layout import digest_path, journal_path, segments
from gateway.archive.segments.parquet import SCHEMA
from gateway.reconcile.findings import Weight
from gateway.reconcile.input.inputs import find_inputs
from tests.archive.samples import DAY, NOON, START, archive, delivered, received

HOUR = 3_600_000_000


def first(root: Path) -> Path:
    return segments(root, DAY)[0]


def cut(root: Path) -> None:
    path = first(root)
    path.write_bytes(path.read_bytes()[:-20])


def empty(root: Path) -> None:
    first(root).write_bytes(b"")


def text(root: Path) -> None:
    first(root).write_text("a,b\n1,2\n")


def foreign(root: Path) -> None:
    pq.write_table(pa.table({"colour": ["red"]}), first(root))


def retyped(root: Path) -> None:
    table = pq.read_table(first(root), partitioning=None)
    place = SCHEMA.get_field_index("size")
    pq.write_table(table.set_column(place, "size", table["size"].cast(pa.string())), first(root))


def older(root: Path) -> None:
    table = pq.read_table(first(root), partitioning=None)
    pq.write_table(table.drop_columns(["headers", "rule"]), first(root))


def rowless(root: Path) -> None:
    pq.write_table(SCHEMA.empty_table(), first(root))


def stray(root: Path) -> None:
    (first(root).parent.parent / "hour=25").mkdir()


def damaged(root: Path) -> None:
    journal_path(root, "edge", START, 9).with_suffix(".damaged").touch()


def waiting(root: Path) -> None:
    journal_path(root, "edge", START, 9).touch()


def later(root: Path) -> None:
    journal_path(root, "edge", START + 48 * HOUR, 0).touch()


def gap(root: Path) -> None:
    archive(root, received([7], time=NOON + 2 * HOUR), start=START + 1)


def undigested(root: Path) -> None:
    digest_path(root, first(root)).unlink()


def redigested(root: Path) -> None:
    digest_path(root, first(root)).write_text("no Parquet")


def rewritten(root: Path) -> None:
    digest = digest_path(root, first(root))
    os.utime(digest, ns=(0, 0))  # the segment was written after it


ERROR, WARNING = Weight.ERROR, Weight.WARNING
CASES = [
    pytest.param(cut, ERROR, "unreadable-file", "is no complete Parquet file", id="truncated"),
    pytest.param(empty, ERROR, "empty-file", "no content", id="empty"),
    pytest.param(text, ERROR, "unreadable-file", "is no complete Parquet file", id="no-parquet"),
    pytest.param(foreign, ERROR, "foreign-file", "no column gateway", id="foreign"),
    pytest.param(retyped, ERROR, "foreign-file", "another type in column size", id="retyped"),
    pytest.param(older, WARNING, "older-schema", "no column rule, headers", id="older"),
    pytest.param(rowless, WARNING, "empty-file", "no rows", id="rowless"),
    pytest.param(stray, ERROR, "foreign-file", "not in the folder of an hour", id="stray"),
    pytest.param(damaged, ERROR, "damaged-journal", "could not be read", id="damaged-journal"),
    pytest.param(waiting, WARNING, "open-journal", "not converted yet", id="open-journal"),
    pytest.param(
        undigested, WARNING, "missing-digest", "rows of its segment are read", id="no-digest"
    ),
    pytest.param(redigested, WARNING, "unreadable-digest", "cannot be read", id="bad-digest"),
    pytest.param(rewritten, WARNING, "stale-digest", "other rows", id="stale-digest"),
    pytest.param(gap, WARNING, "missing-hour", "hour 13: idle, or lost", id="missing-hour"),
]


@pytest.mark.parametrize(("spoil", "weight", "rule", "reason"), CASES)
def test_every_fault_is_a_finding_with_its_place(
    tmp_path: Path, spoil: Callable[[Path], None], weight: Weight, rule: str, reason: str
) -> None:
    archive(tmp_path, received([1]), delivered([1]))
    spoil(tmp_path)

    inputs = find_inputs(tmp_path, DAY, 6)

    (finding,) = inputs.findings
    assert (finding.weight, finding.rule) == (weight, rule)
    assert reason in finding.text
    assert not Path(finding.place).is_absolute()
    bad = weight is ERROR and rule in ("unreadable-file", "empty-file", "foreign-file")
    assert len(inputs.day) == (0 if bad and spoil is not stray else len(segments(tmp_path, DAY)))


def test_a_digest_without_its_segment_is_an_error(tmp_path: Path) -> None:
    archive(tmp_path, received([1]))
    archive(tmp_path, received([2]), start=START + 1)
    segments(tmp_path, DAY)[0].unlink()

    (finding,) = find_inputs(tmp_path, DAY, 6).findings

    assert (finding.weight, finding.rule) == (ERROR, "lost-segment")
    assert finding.place.startswith("_digests/")


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        pytest.param([(0, 60), (30, 90)], ["same-name"], id="at-the-same-time"),
        pytest.param([(0, 60), (60, 90)], [], id="a-restart"),
        pytest.param([(0, 60), (61, 90), (91, 95)], [], id="two-restarts"),
        pytest.param([(0, 90), (30, 40), (50, 60)], ["same-name"] * 2, id="one-that-never-ended"),
    ],
)
def test_two_gateways_with_one_name_are_found(
    tmp_path: Path, times: list[tuple[int, int]], expected: list[str]
) -> None:
    for number, (start, end) in enumerate(times):
        rows = [received([at], time=NOON + at * 1_000_000) for at in (start, end)]
        archive(tmp_path, *rows, start=START + number)

    findings = find_inputs(tmp_path, DAY, 6).findings

    assert [finding.rule for finding in findings] == expected
    assert all("'edge'" in finding.text for finding in findings)


def test_a_journal_of_a_later_start_holds_nothing_of_the_day(tmp_path: Path) -> None:
    archive(tmp_path, received([1]))
    later(tmp_path)

    assert find_inputs(tmp_path, DAY, 6).findings == []


def test_the_hours_before_and_after_the_day_are_read(tmp_path: Path) -> None:
    times = [NOON - 13 * HOUR, NOON - 15 * HOUR, NOON, NOON + 13 * HOUR, NOON + 15 * HOUR]
    archive(tmp_path, *[received([1], time=time) for time in times])

    inputs = find_inputs(tmp_path, DAY, 2)

    assert [len(inputs.before), len(inputs.day), len(inputs.after)] == [1, 1, 1]
    assert inputs.after[0].path.parent.parent.name == f"date={DAY + timedelta(days=1)}"


def test_only_a_check_of_every_page_finds_a_damaged_page(tmp_path: Path) -> None:
    archive(tmp_path, received(range(500)))
    path = first(tmp_path)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0xFF
    written = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))  # as silent disk corruption does

    assert find_inputs(tmp_path, DAY, 6).findings == []
    (finding,) = find_inputs(tmp_path, DAY, 6, every_page=True).findings
    assert "a page is damaged" in finding.text
