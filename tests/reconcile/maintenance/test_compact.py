"""Every row counts exactly once, wherever a compaction stops."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gateway.archive.layout import DIGESTS, segments
from gateway.errors import ReconcileError
from gateway.reconcile.input.inputs import find_inputs
from gateway.reconcile.job import Job, reconcile
from gateway.reconcile.maintenance.compact import compact
from tests.archive.samples import DAY
from tests.reconcile.night import FEW_HOURS, LATE, model, night

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


TWO_HOURS = (11, 12)


class Crash(BaseException):
    """Stands for the end of the process: no code catches it."""


def silent(_: str) -> None:
    return None


def stops_at(number: int) -> Callable[[str], None]:
    steps: list[str] = []

    def show_step(step: str) -> None:
        steps.append(step)
        if len(steps) == number:
            raise Crash(step)

    return show_step


def rows(root: Path) -> Counter[tuple[object, ...]]:
    """The rows of the date that count."""
    columns = ["gateway", "route", "leg", "target", "id", "time", "hash", "name", "targets"]
    return Counter(
        tuple(map(repr, row.values()))
        for each in find_inputs(root, DAY, 0).day
        for row in pq.read_table(each.path, columns=columns, partitioning=None).to_pylist()
    )


def files(root: Path) -> list[str]:
    return sorted(each.path.parent.name for each in find_inputs(root, DAY, 0).day)


@pytest.mark.parametrize("full", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_compacted_date_gives_the_same_classes(tmp_path: Path, *, full: bool) -> None:
    root = tmp_path / "archive"
    made = night(5, hours=FEW_HOURS)
    made.write(root)
    before = rows(root)
    small = len(segments(root, DAY))

    done = compact(root, DAY, silent)

    assert (done.segments, done.rows, len(done.tables)) == (small, before.total(), 1)
    assert rows(root) == before
    assert files(root) == ["day"]
    assert segments(root, DAY) == []
    assert not list(root.glob("_compacting/*"))

    report = reconcile(Job(root, DAY, tmp_path / "night", full=full, late=LATE), silent)

    found = pq.read_table(tmp_path / "night" / "exceptions", partitioning=None).to_pylist()
    keys = ("gateway", "route", "target", "id")
    assert {tuple(row[key] for key in keys): row["class"] for row in found} == model(made)
    assert {finding.rule for finding in report.findings} <= {"missing-hour"}


def test_late_segments_join_a_compacted_date_and_nothing_is_done_twice(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    night(5, messages=60, hours=TWO_HOURS).write(root)
    compact(root, DAY, silent)
    for path in root.glob("date=*/_manifest.json"):
        assert path.stat().st_size
    late = night(6, messages=60, hours=TWO_HOURS)
    late.rows = {(f"{gateway}-2", *rest): own for (gateway, *rest), own in late.rows.items()}  # type: ignore[misc]  # a tuple of the same shape
    late.write(root)
    before = rows(root)

    again = compact(root, DAY, silent)
    last = compact(root, DAY, silent)

    assert rows(root) == before
    assert again.tables == ("day/0002-0000.parquet",)
    assert (last.segments, last.tables) == (0, ())
    assert files(root) == ["day", "day"]


@pytest.mark.parametrize(
    "number", [2, 4, 6, *(pytest.param(n, marks=pytest.mark.nightly) for n in (1, 3, 5, 7))]
)
def test_a_crash_at_any_step_leaves_every_row_once(tmp_path: Path, number: int) -> None:
    root = tmp_path / "archive"
    night(7, messages=60, hours=TWO_HOURS).write(root)
    before = rows(root)

    with pytest.raises(Crash):
        compact(root, DAY, stops_at(number))

    assert rows(root) == before
    compact(root, DAY, silent)
    assert rows(root) == before
    assert files(root) == ["day"]
    assert {each.rule for each in find_inputs(root, DAY, 6).findings} <= {"missing-hour"}
    assert len(list((root / DIGESTS / f"date={DAY}").glob("*/*"))) == 1


def test_an_unreadable_segment_stays_and_is_reported(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    night(8, messages=60, hours=TWO_HOURS).write(root)
    bad = segments(root, DAY)[0]
    bad.write_text("no Parquet")

    done = compact(root, DAY, silent)

    assert [finding.rule for finding in done.findings] == ["unreadable-file"]
    assert segments(root, DAY) == [bad]


@pytest.mark.parametrize("step", ["starting Spark", "comparing"])
def test_a_segment_removed_during_a_compaction_costs_its_own_rows(
    tmp_path: Path, step: str
) -> None:
    root = tmp_path / "archive"
    night(9, messages=60, hours=TWO_HOURS).write(root)
    going, *staying = segments(root, DAY)
    before = rows(root)

    def show_step(text: str) -> None:
        if text.startswith(step):
            going.unlink(missing_ok=True)

    done = compact(root, DAY, show_step)

    place = str(going.relative_to(root))
    assert [(each.rule, each.place) for each in done.findings] == [("vanished-file", place)]
    assert (done.segments, files(root)) == (len(staying), ["day"])
    assert rows(root) < before
    assert rows(root).total() == done.rows


def test_a_day_removed_during_a_compaction_is_reported(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    night(9, messages=60, hours=TWO_HOURS).write(root)
    listed = segments(root, DAY)

    def show_step(text: str) -> None:
        if text == "committing":
            shutil.rmtree(root / f"date={DAY}")

    done = compact(root, DAY, show_step)

    assert (done.segments, done.tables) == (0, ())
    assert [each.rule for each in done.findings] == ["vanished-file"] * len(listed)
    assert not (root / "_compacting").exists()


def test_one_compaction_at_a_time(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    night(8, messages=10, hours=TWO_HOURS).write(root)

    def show_step(_: str) -> None:
        with pytest.raises(ReconcileError, match="another compaction is running"):
            compact(root, DAY, silent)

    assert compact(root, DAY, show_step).segments
