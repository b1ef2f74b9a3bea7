"""Tampering that an audit planted: each was called clean once."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from gateway.archive.findings import Weight
from gateway.archive.layout import HOUR, journal_folder
from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import LocalStorage
from gateway.night.archive.compaction.compact_day import compact_day
from gateway.night.archive.segments.convert import convert
from gateway.night.archive.verification.verify import verify_day
from tests.archive.samples import DAY
from tests.night.archive.compaction.days import merged_here
from tests.night.reconcile.archive_faults import (
    cut_at_a_record,
    damage_a_record,
    segments,
)
from tests.night.reconcile.tampering import (
    MIDNIGHT,
    MINUTE,
    NEXT_MIDNIGHT,
    Archive,
    Plan,
    Span,
    memory_folder,
    plan_of,
    write,
    write_chain,
)
from tests.night.reconcile.test_tampering import DAY_AFTER, verified

SPANS = [
    Span(MIDNIGHT - HOUR, MIDNIGHT - MINUTE, MIDNIGHT - HOUR, "roll"),
    Span(MIDNIGHT - MINUTE, MIDNIGHT, MIDNIGHT - HOUR, "roll"),
    *(
        Span(MIDNIGHT + hour * HOUR, MIDNIGHT + (hour + 6) * HOUR, MIDNIGHT - HOUR, "roll")
        for hour in range(0, 24, 6)
    ),
    Span(NEXT_MIDNIGHT, NEXT_MIDNIGHT + MINUTE, MIDNIGHT - HOUR, "stop"),
]


@pytest.fixture(scope="module")
def written() -> Iterator[Archive]:
    """Two gateways without a fault; each has rows in every quarter of the day."""
    rng = random.Random(9)  # noqa: S311  # a test's traffic
    gateways = {"east": SPANS, "west": SPANS}
    plan = plan_of(rng, gateways, messages=200, faults=0)  # some in each hour of both
    with memory_folder() as folder:
        made = Archive(folder / "archive", None, plan, gateways)
        write(made, rng)
        assert errors(made) == set()
        assert {path.parent.name for path in segments(made)} > {"hour=00", "hour=18"}
        yield made


@pytest.fixture
def archive(written: Archive) -> Iterator[Archive]:
    with memory_folder() as folder:
        shutil.copytree(written.root, folder / "archive")
        yield replace(written, root=folder / "archive")


def errors(archive: Archive) -> set[str]:
    found = verified(archive).findings
    return {each.rule for each in found if each.weight is Weight.ERROR}


def keeping_its_time(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    was, table = path.stat(), pq.read_table(path, partitioning=None)
    pq.write_table(change(table), path)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def without(leg: str) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.filter(pc.not_equal(table["leg"], leg))


def test_case_2_ends_deleted_with_the_time_of_the_file_kept(archive: Archive) -> None:
    (path, *_) = segments(archive)

    keeping_its_time(path, without("delivered"))

    assert errors(archive) == {"changed-segment"}


def test_case_3_a_segment_under_a_second_name(archive: Archive) -> None:
    (path, *_) = segments(archive)
    shutil.copy(path, path.with_name("second-1-000000-0000.parquet"))

    found = [each for each in verified(archive).findings if each.weight is Weight.ERROR]

    assert [each.rule for each in found] == ["unsealed-segment"]
    assert f"a copy of {path.relative_to(archive.root)}" in found[0].text


def test_case_5_a_segment_gone(archive: Archive) -> None:
    (path, *_) = segments(archive)
    path.unlink()

    assert errors(archive) == {"missing-segment"}


@pytest.mark.parametrize("with_seals", [True, False])
def test_case_5_everything_after_an_hour_gone(archive: Archive, *, with_seals: bool) -> None:
    for path in segments(archive):
        if int(path.parent.name[-2:]) >= 18:
            path.unlink()
    if not with_seals:
        shutil.rmtree(archive.root / "_seals" / "date=2026-03-15")
        for path in archive.root.glob(f"_seals/date={DAY}/*-000005.json"):
            path.unlink()
        shutil.rmtree(archive.root / ".journal")

    lost = {"open-chain", "missing-seal"}  # the head states the last one
    assert errors(archive) == ({"missing-segment"} if with_seals else lost)


@pytest.mark.parametrize("legs", [["received"], ["delivered"], ["received", "delivered"]])
def test_case_5_a_leg_gone(archive: Archive, legs: list[str]) -> None:
    for path in segments(archive):
        for leg in legs:
            keeping_its_time(path, without(leg))

    assert errors(archive) == {"changed-segment"}


def test_case_5_rows_a_day_off_their_folder(archive: Archive) -> None:
    (archive.root / f"date={DAY}").rename(archive.root / "date=2026-03-12")

    assert errors(archive) == {"missing-segment"}
    other = verify_day(LocalStorage(archive.root), DAY.replace(day=12), today=DAY_AFTER)
    assert not other.complete


def test_case_6_a_compaction_makes_no_loss_invisible(archive: Archive) -> None:
    lost, changed, copied, *_ = segments(archive)
    lost.unlink()
    keeping_its_time(changed, without("delivered"))
    shutil.copy(copied, copied.with_name("second-1-000000-0000.parquet"))
    before = errors(archive)

    done = compact_day(ArchiveLocation(archive.root), DAY, merged_here, lambda _: None)

    assert {each.rule for each in done.findings} == before
    assert errors(archive) == before == {"missing-segment", "changed-segment", "unsealed-segment"}


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [(cut_at_a_record, "torn-journal"), (damage_a_record, "damaged-journal")],
    ids=["cut-at-a-record-boundary", "damaged-record"],
)
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_case_7_acknowledged_rows_lost_in_a_journal(
    tmp_path: Path, spoil: Callable[[Path], None], rule: str, end: str
) -> None:
    spans = [*SPANS[:2], Span(MIDNIGHT, MIDNIGHT + 6 * HOUR, MIDNIGHT - HOUR, end)]
    rows = plan_of(random.Random(3), {"east": SPANS[:3]}, 90, 0).rows["east"]  # noqa: S311
    archive = Archive(tmp_path, None, Plan(), {})
    *_, last = write_chain(archive, "east", spans, rows, random.Random(1))  # noqa: S311

    spoil(last)
    for path in sorted(journal_folder(tmp_path).glob("*.open")):
        convert(tmp_path, path)

    assert rule in errors(archive)


@pytest.mark.parametrize("later", [0, 7], ids=["one-run", "two-runs"])
def test_case_13_two_gateways_of_one_name(archive: Archive, tmp_path: Path, later: int) -> None:
    other = Archive(tmp_path / "_other", None, archive.plan, archive.gateways)
    own = [Span(each.opened, each.closed, each.start + later, each.end) for each in SPANS[1:4]]
    rows = archive.plan.rows["west"]
    for path in write_chain(other, "east", own, rows, random.Random(1)):  # noqa: S311
        convert(other.root, path)
    for folder in ("_seals", f"date={DAY}"):
        shutil.copytree(other.root / folder, archive.root / folder, dirs_exist_ok=True)

    assert errors(archive) & {"forked-chain", "changed-segment"}
