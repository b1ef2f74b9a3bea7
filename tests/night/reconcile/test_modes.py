"""Id sets, the join of all rows and the model give the same classes, in few Spark jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from gateway.archive.storage import LocalStorage
from gateway.night.archive.open_archive import open_archive
from gateway.night.reconcile.job import Job, reconcile
from gateway.night.reconcile.report.report import Report
from gateway.night.reconcile.report.result_folder import ResultFolder
from gateway.night.reconcile.report.rows import Row
from tests.archive.samples import DAY, NOON
from tests.archived import segments
from tests.night.reconcile.night import EDGE_HOURS, FEW_HOURS, HOURS, LATE, Copy, model, night

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

MAX_JOBS = 10  # of Spark, for a night
NIGHTLY = [(1, FEW_HOURS), (2, HOURS), *((seed, HOURS) for seed in range(10, 30))]


def silent(_text: str, _share: float | None = None) -> None:
    return None


@dataclass(frozen=True)
class Result:
    """A report with its exceptions, and the number of jobs that made them."""

    report: Report
    classes: dict[Copy, str]
    rows: list[Row]
    jobs: int


def run(spark: SparkSession, root: Path, *, full: bool) -> Result:
    output = root.with_name(f"full-{full}")
    group = f"{root} {full}"
    spark.sparkContext.setJobGroup(group, "a night")
    job = Job(output, full=full, late=LATE, now=NOON)
    report = reconcile(open_archive(root), DAY, job, silent)
    jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
    listed = pq.read_table(output / f"date={DAY}" / "exceptions", partitioning=None).to_pylist()
    found = {
        (row["gateway"], row["route"], row["target"], row["id"]): row["class"] for row in listed
    }
    ordered = sorted(listed, key=lambda row: (row["class"], row["id"], row["target"]))
    return Result(report, found, ordered, jobs)


@pytest.mark.nightly
@pytest.mark.parametrize(("seed", "hours"), NIGHTLY)
def test_both_modes_find_the_classes_of_the_model(
    spark: SparkSession, tmp_path: Path, seed: int, hours: Sequence[int]
) -> None:
    root = tmp_path / "archive"
    made = night(seed, hours=hours)
    made.write(root)

    by_sets, by_row = (run(spark, root, full=full) for full in (False, True))

    assert by_sets.classes == by_row.classes == model(made)
    assert by_sets.rows == by_row.rows
    assert_equal_reports(by_sets.report, by_row.report)
    assert by_sets.report.verdict == by_row.report.verdict


@pytest.mark.nightly
@pytest.mark.parametrize("full", [False, True])
def test_executors_read_and_hash_every_file_with_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, full: bool
) -> None:
    root = tmp_path / "archive"
    made = night(1, hours=EDGE_HOURS)
    made.write(root)
    changed = segments(root, DAY)[0]
    with changed.open("ab") as file:
        file.write(b"!")
    opened: list[Path] = []

    def watched(function: Callable[[LocalStorage, Path], Any]) -> Callable[..., Any]:
        def run(storage: LocalStorage, path: Path) -> Any:  # noqa: ANN401  # of two functions
            opened.append(path)
            return function(storage, path)

        return run

    monkeypatch.setattr(LocalStorage, "open", watched(LocalStorage.open))
    monkeypatch.setattr(LocalStorage, "read", watched(LocalStorage.read))
    found = run(spark, root, full=full)

    archived = [path for path in opened if not path.parts[0].startswith(".new-")]  # the results
    assert {path.suffix for path in archived} == {".json"}
    evidence = [*(root / "_seals").rglob("*.json"), *(root / "_heads").rglob("*.json")]
    assert {root / path for path in archived if (root / path).exists()} == set(evidence)
    (finding,) = [each for each in found.report.findings if each.rule == "changed-segment"]
    assert finding.place == str(changed.relative_to(root))
    assert found.jobs <= MAX_JOBS


@pytest.mark.nightly
def test_both_modes_agree_and_a_failed_run_changes_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "archive"
    made = night(1, hours=EDGE_HOURS)
    made.write(root)

    by_row = run(spark, root, full=True)
    by_sets = run(spark, root, full=False)

    assert by_sets.classes == by_row.classes == model(made)
    assert by_sets.rows == by_row.rows
    assert_equal_reports(by_sets.report, by_row.report)
    assert not by_row.report.findings
    assert not by_sets.report.findings
    assert max(by_sets.jobs, by_row.jobs) <= MAX_JOBS

    output = root.with_name("full-True") / f"date={DAY}"
    before = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    write = ResultFolder.write

    def fails_at_the_last(results: ResultFolder, name: str, table: object) -> None:
        if name == "names":
            raise OSError("the disk is full")
        write(results, name, table)

    monkeypatch.setattr(ResultFolder, "write", fails_at_the_last)
    with pytest.raises(OSError, match="the disk is full"):
        run(spark, root, full=True)
    assert {path: path.read_bytes() for path in output.rglob("*") if path.is_file()} == before


def assert_equal_reports(by_sets: Report, by_row: Report) -> None:
    assert by_sets.routes == by_row.routes
    assert by_sets.gateways == by_row.gateways
    assert by_sets.hours == by_row.hours
    assert by_sets.whole_day == by_row.whole_day
    assert any(row["timed"] for row in by_sets.whole_day)
    assert by_sets.proof["copies"] != 0
    assert by_row.proof["copies"] == 0
