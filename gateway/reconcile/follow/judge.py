"""One date as a micro-batch judges it: the night's transforms, as far as a watermark has come.

Only what changed since the batch before is appended; a batch that is run again replaces what it
wrote.
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
from gateway.reconcile.classify.evidence import Question, by_digests, exceptions_of, told
from gateway.reconcile.findings import Finding, Weight
from gateway.reconcile.follow import tables as follow_tables
from gateway.reconcile.follow.state import Followed
from gateway.reconcile.input.inputs import Inputs, find_inputs
from gateway.reconcile.progress import Say
from gateway.reconcile.report.text import Row

_LINES: Final = 20  # groups of a batch that are told one by one
_USUAL: Final = ("open-journal", "missing-digest")  # of an archive that is being written
_DAMAGED: Final = "unreadable-file"
_FOLDERS: Final = 60  # batches of minutes of a date that are read, before one holds them all
_QUIET: Final = ("in flight",)  # a class that is listed and not told


@dataclass(frozen=True, slots=True)
class Following:
    """What is followed and how; `late` is in seconds and is what the watermark waits, too."""

    root: Path
    output: Path
    master: str = "local[*]"
    late: int = 300
    margin: int = 6  # hours after a date in which its rows may still come
    strict: bool = False
    every: float = 15.0  # seconds between two looks at the folder
    once: bool = False  # stop when everything that has landed is judged


@dataclass(slots=True)
class Judge:
    """Mutable, for the dates of one batch: `damaged` grows by what Spark stumbles over."""

    spark: SparkSession
    terms: Following
    number: int
    say: Say  # hears the steps
    tell: Say  # hears what is new
    last: Mapping[str, int]  # gateway -> its newest row, microseconds
    damaged: list[Finding]
    outdated: list[Path] = field(default_factory=list)  # folders to remove after the commit

    def judge(self, day: date, inputs: Inputs, *, sealed: bool) -> Followed:
        """The date as it stands; of one that is sealed, no copy is under way any more.

        When a file turns out to be damaged, or a compaction has replaced it, without that file.

        Raises:
            ReconcileError: Spark failed, and no file is to blame.
        """
        self.say(f"batch {self.number}: judging {day}")
        usable = self._without_damaged(inputs)
        if not usable.day:
            return Followed(day, findings=_worth_telling(usable.findings), answered=False)
        try:
            routes = self._judge(day, usable, sealed=sealed)
        except (PySparkException, Py4JError, FileNotFoundError) as fault:
            whole = find_inputs(self.terms.root, day, self.terms.margin, whole=True)
            if _paths(whole) == _paths(usable):
                reason = (str(fault).splitlines() or [type(fault).__name__])[0]
                raise ReconcileError(f"spark: the batch failed: {reason}") from fault
            known = {*inputs.findings, *self.damaged}
            found = [each for each in whole.findings if each.rule == _DAMAGED]
            self.damaged += [each for each in found if each not in known]
            return self.judge(day, whole, sealed=sealed)
        finally:
            self.spark.catalog.clearCache()
        return Followed(day, routes, _worth_telling(usable.findings))

    def _without_damaged(self, inputs: Inputs) -> Inputs:
        """The files without those that have a damaged page, and a finding for each."""
        root = self.terms.root
        known = {root / each.place: each for each in self.damaged}
        found = [known[each.path] for each in inputs.all if each.path in known]
        day, before, after = (
            [each for each in group if each.path not in known]
            for group in (inputs.day, inputs.before, inputs.after)
        )
        return replace(
            inputs, day=day, before=before, after=after, findings=[*inputs.findings, *found]
        )

    def _judge(self, day: date, inputs: Inputs, *, sealed: bool) -> Sequence[Row]:
        """Append what changed of the date; its counts by route."""
        spark, terms = self.spark, self.terms
        evidence = by_digests(spark, Question(day, terms.margin, terms.late), inputs)
        since = follow_tables.open_since(spark, {} if sealed else self._watermark())
        classes = follow_tables.settled(told(evidence, since, terms.late), since).persist()
        self._append_exceptions(day, exceptions_of(evidence, classes).localCheckpoint())
        counts = tables.tallied(classes)
        if evidence.tallies is not None:
            counts = counts.unionByName(evidence.tallies)
        return self._append_minutes(day, counts)

    def _watermark(self) -> dict[str, datetime]:
        """By gateway, the time of receipt up to which every end has come or is missing."""
        patience = timedelta(seconds=self.terms.late)
        newest = {name: datetime.fromtimestamp(at / 1e6, UTC) for name, at in self.last.items()}
        return {name: at - patience for name, at in newest.items()}

    def _append_exceptions(self, day: date, now: DataFrame) -> None:
        folder = self.terms.output / "exceptions" / f"date={day}"
        before = follow_tables.exceptions_before(self.spark, folder, self.number, now)
        changed = follow_tables.changed_exceptions(now, before).localCheckpoint()
        self._append(changed, folder)
        self._tell(follow_tables.groups(changed))

    def _append_minutes(self, day: date, now: DataFrame) -> Sequence[Row]:
        folder = self.terms.output / "minutes" / f"date={day}"
        summed = follow_tables.summed(now).persist()
        before = follow_tables.minutes_before(self.spark, folder, self.number, summed)
        older = [each for each in folder.glob("batch=*") if each.name != f"batch={self.number}"]
        if len(older) < _FOLDERS:
            self._append(follow_tables.changed_minutes(summed, before).localCheckpoint(), folder)
        else:
            self._append(summed, folder)
            self.outdated += older
        return list(tables.per_route(summed).toArrow().to_pylist())

    def _append(self, changed: DataFrame, folder: Path) -> None:
        """Write the rows as this batch's, replacing what it wrote before a kill."""
        place = folder / f"batch={self.number}"
        if place.exists() or not changed.isEmpty():
            changed.write.mode("overwrite").parquet(str(place.resolve()))

    def _tell(self, groups: DataFrame) -> None:
        found = groups.where(~F.col("class").isin(*_QUIET)).limit(_LINES + 1).toArrow().to_pylist()
        for row in found[:_LINES]:
            self.tell(_line(row))
        if len(found) > _LINES:
            self.tell(f"... and more; {self.terms.output / 'exceptions'} has all")


def _line(row: Row) -> str:
    since = row["since"]
    at = f"{since:%Y-%m-%d %H:%M}" if isinstance(since, datetime) else "?"
    return f"{at} {row['route'] or '-'} -> {row['target'] or '-'}: {row['copies']} {row['class']}"


def _paths(inputs: Inputs) -> set[Path]:
    return {each.path for each in inputs.all}


def _worth_telling(findings: Sequence[Finding]) -> list[Finding]:
    """Without what is usual while the archive is being written."""
    return [
        each for each in findings if each.weight is Weight.ERROR or not each.rule.startswith(_USUAL)
    ]
