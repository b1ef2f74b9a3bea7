"""The reconciliation of one date in a micro-batch, up to the watermark.

It uses the transforms of the nightly job, and appends only rows that changed since the previous
batch. A repeated batch replaces its earlier output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gateway.errors import ReconcileError
from gateway.reconcile.classify import tables
from gateway.reconcile.classify.evidence import (
    Scope,
    classify_copies,
    detailed_exceptions,
    from_digests,
)
from gateway.reconcile.findings import Finding, Weight
from gateway.reconcile.follow import tables as follow_tables
from gateway.reconcile.follow.state import FollowedDay
from gateway.reconcile.input.inputs import Inputs, find_inputs
from gateway.reconcile.progress import ShowStep
from gateway.reconcile.report.text import Row
from gateway.reconcile.session import spark_error_line

_MAX_LINES: Final = 20  # printed for a batch
_EXPECTED_RULES: Final = ("open-journal", "missing-digest")  # while the archive is being written
_DAMAGED: Final = "unreadable-file"
_MAX_BATCH_FOLDERS: Final = 60  # of the minutes of a date; then one batch replaces them all
_UNPRINTED_CLASSES: Final = ("in flight",)  # written to the table only


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """The archive to follow, and the options; the watermark lags by `late` seconds."""

    root: Path
    output: Path
    master: str = "local[*]"
    late: int = 300
    margin: int = 6  # hours after a date in which its rows may still arrive
    strict: bool = False
    every: float = 15.0  # seconds between two batches
    once: bool = False  # stop after the existing files


@dataclass(slots=True)
class DayReconciler:
    """Reconciles the dates of one batch, and collects damaged files in `damaged`.

    Mutable: owned by the thread of the batch.
    """

    spark: SparkSession
    options: FollowOptions
    number: int
    show_step: ShowStep
    print_line: ShowStep  # for new exceptions
    last: Mapping[str, int]  # gateway -> its newest row, microseconds
    damaged: list[Finding]
    outdated: list[Path] = field(default_factory=list)  # folders to remove after the commit

    def reconcile(self, day: date, inputs: Inputs, *, sealed: bool) -> FollowedDay:
        """Reconcile a date; in a sealed date no copy is in flight.

        Repeats without the file when a file is damaged, or removed by a compaction.

        Raises:
            ReconcileError: Spark failed, and no file is the cause.
        """
        self.show_step(f"batch {self.number}: reconciling {day}")
        usable = self._without_damaged(inputs)
        if not usable.day:
            return FollowedDay(day, findings=_reportable(usable.findings), answered=False)
        try:
            routes = self._reconcile(day, usable, sealed=sealed)
        except (PySparkException, Py4JError, FileNotFoundError) as fault:
            readable = find_inputs(self.options.root, day, self.options.margin, every_page=True)
            if _paths(readable) == _paths(usable):
                reason = spark_error_line(fault)
                raise ReconcileError(f"spark: the batch failed: {reason}") from fault
            known = {*inputs.findings, *self.damaged}
            found = [each for each in readable.findings if each.rule == _DAMAGED]
            self.damaged += [each for each in found if each not in known]
            return self.reconcile(day, readable, sealed=sealed)
        finally:
            self.spark.catalog.clearCache()
        return FollowedDay(day, routes, _reportable(usable.findings))

    def _without_damaged(self, inputs: Inputs) -> Inputs:
        """Leave out the files with a damaged page, and add a finding for each."""
        root = self.options.root
        known = {root / each.place: each for each in self.damaged}
        found = [known[each.path] for each in inputs.all if each.path in known]
        day, before, after = (
            [each for each in group if each.path not in known]
            for group in (inputs.day, inputs.before, inputs.after)
        )
        return replace(
            inputs, day=day, before=before, after=after, findings=[*inputs.findings, *found]
        )

    def _reconcile(self, day: date, inputs: Inputs, *, sealed: bool) -> Sequence[Row]:
        """Append the changed rows of the date; return its counts by route."""
        spark, options = self.spark, self.options
        evidence = from_digests(spark, Scope(day, options.margin, options.late), inputs)
        since = follow_tables.open_since(spark, {} if sealed else self._watermark())
        classes = classify_copies(evidence, since, options.late)
        classes = follow_tables.before_watermark(classes, since).persist()
        self._append_exceptions(day, detailed_exceptions(evidence, classes).localCheckpoint())
        counts = tables.tallied(classes)
        if evidence.tallies is not None:
            counts = counts.unionByName(evidence.tallies)
        return self._append_minutes(day, counts)

    def _watermark(self) -> dict[str, datetime]:
        """Return by gateway the time of receipt up to which an absent outcome is missing."""
        late = timedelta(seconds=self.options.late)
        newest = {name: datetime.fromtimestamp(at / 1e6, UTC) for name, at in self.last.items()}
        return {name: at - late for name, at in newest.items()}

    def _append_exceptions(self, day: date, now: DataFrame) -> None:
        folder = self.options.output / "exceptions" / f"date={day}"
        before = follow_tables.exceptions_before(self.spark, folder, self.number, now)
        changed = follow_tables.changed_exceptions(now, before).localCheckpoint()
        self._append(changed, folder)
        self._print(follow_tables.grouped(changed))

    def _append_minutes(self, day: date, now: DataFrame) -> Sequence[Row]:
        folder = self.options.output / "minutes" / f"date={day}"
        summed = follow_tables.summed(now).persist()
        before = follow_tables.minutes_before(self.spark, folder, self.number, summed)
        older = [each for each in folder.glob("batch=*") if each.name != f"batch={self.number}"]
        if len(older) < _MAX_BATCH_FOLDERS:
            self._append(follow_tables.changed_minutes(summed, before).localCheckpoint(), folder)
        else:
            self._append(summed, folder)
            self.outdated += older
        return list(tables.per_route(summed).toArrow().to_pylist())

    def _append(self, changed: DataFrame, folder: Path) -> None:
        """Write the rows of this batch, replacing those of an interrupted attempt."""
        path = folder / f"batch={self.number}"
        if path.exists() or not changed.isEmpty():
            changed.write.mode("overwrite").parquet(str(path.resolve()))

    def _print(self, groups: DataFrame) -> None:
        printed = groups.where(~F.col("class").isin(*_UNPRINTED_CLASSES))
        found = printed.limit(_MAX_LINES + 1).toArrow().to_pylist()
        for row in found[:_MAX_LINES]:
            self.print_line(_line(row))
        if len(found) > _MAX_LINES:
            self.print_line(f"... and more; {self.options.output / 'exceptions'} has all")


def _line(row: Row) -> str:
    since = row["since"]
    at = f"{since:%Y-%m-%d %H:%M}" if isinstance(since, datetime) else "?"
    return f"{at} {row['route'] or '-'} -> {row['target'] or '-'}: {row['copies']} {row['class']}"


def _paths(inputs: Inputs) -> set[Path]:
    return {each.path for each in inputs.all}


def _reportable(findings: Sequence[Finding]) -> list[Finding]:
    """Leave out warnings that are normal while the archive is being written."""
    return [
        each
        for each in findings
        if each.weight is Weight.ERROR or not each.rule.startswith(_EXPECTED_RULES)
    ]
