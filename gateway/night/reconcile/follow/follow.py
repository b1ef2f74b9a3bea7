"""Reconciliation through the day: a streaming query over new files, evaluated in micro-batches.

The stream contains file names, not rows: a file that cannot be read is a finding of its batch and
does not end the query.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from shutil import rmtree
from threading import Event
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from gateway.archive.durable import replace_text
from gateway.archive.layout import day_of, days
from gateway.archive.storage import LocalStorage
from gateway.clock import Clock, moment, now
from gateway.errors import GatewayError, ReconcileError
from gateway.night.archive.archive_lock import exclusive
from gateway.night.reconcile.follow.day import DayReconciler, FollowOptions
from gateway.night.reconcile.follow.new_files import is_near, last_rows, too_late, touched
from gateway.night.reconcile.follow.state import (
    STATE,
    FollowedDay,
    FollowState,
    advanced,
    first_date,
    read_state,
    sealed_until,
    write_state,
)
from gateway.night.reconcile.input.inputs import list_inputs
from gateway.night.reconcile.report.report import BREACH, CLEAN, GAPS, NO_ANSWER, Report
from gateway.night.reconcile.report.summary import SUMMARY, VERSION, content_of, members
from gateway.night.reconcile.root_cause import spark_faults
from gateway.night.reconcile.session import spark_session
from gateway.terminal.progress import ShowStep

_FILES: Final = "path string, modificationTime timestamp, length long, content binary"
_PATTERN_CHARACTERS: Final = re.compile(r"([\\{}\[\]*?])")  # that Spark's file source reads
_STOP_POLL_INTERVAL: Final = 1  # seconds
_MAX_LATE: Final = 100  # findings about late files, the newest
_MAX_DAYS: Final = 7  # of a run in the summary
_CHECKPOINT: Final = "checkpoint"
_GRAVITY: Final = (CLEAN, GAPS, BREACH, NO_ANSWER)  # exit statuses, the worst last


@dataclass(slots=True)
class Follower:
    """One run of `--follow`: the dates that were open in it, as its last batch left them.

    Mutable: owned by the thread of the streaming query.
    """

    options: FollowOptions
    show_step: ShowStep
    print_line: ShowStep
    clock: Clock = now
    state: FollowState | None = None
    days: dict[date, FollowedDay] = field(default_factory=dict)  # the newest
    earlier: set[int] = field(default_factory=set)  # exit statuses of the dates before them
    fault: GatewayError | OSError | None = None  # else Spark reports it as its own error

    def take(self, spark: SparkSession, files: DataFrame, number: int) -> None:
        """Reconcile one micro-batch; skip one that is committed already."""
        try:
            landed = sorted({Path(*row["path"].rsplit("/", 3)[1:]) for row in files.collect()})
            if self.state is None or self.state.batch < number:
                self._keep(self._reconcile(spark, number, landed))
            replace_text(self.options.output / SUMMARY, self.summary())
        except (GatewayError, OSError) as fault:
            self.fault = fault
            raise

    def resume(self) -> None:
        """Load the state of the last run.

        Raises:
            ReconcileError: the state cannot be read, or the checkpoint is absent.
        """
        state = read_state(self.options.output)
        if state is None:
            return
        if not (self.options.output / _CHECKPOINT).exists():
            raise ReconcileError(
                f"{self.options.output}: {STATE} is present and {_CHECKPOINT} is absent; remove"
                " the folder to start again"
            )
        still_open = [each for each in state.days if each.day >= state.open_from]
        self._keep(replace(state, days=still_open))

    def reports(self) -> list[Report]:
        """Return reports of the newest dates that were open in this run, oldest first."""
        return [self._report(each) for _, each in sorted(self.days.items())]

    def status(self) -> int:
        """Return the worst exit status of the dates that were open in this run."""
        answers = {each.status for each in self.reports() if each.answered}
        return max(self.earlier | answers, key=_GRAVITY.index, default=NO_ANSWER)

    def summary(self) -> str:
        """Return the dates as JSON for scripts; times are ISO 8601 in UTC."""
        state = self.state
        last = state.last.items() if state is not None else ()
        content = {
            "version": VERSION,
            "archive": str(self.options.root),
            "status": self.status(),
            "batch": state.batch if state is not None else None,
            "newest": {name: moment(at) for name, at in last},
            "findings": state.late if state is not None else (),
            "dates": list(map(content_of, self.reports())),
        }
        return json.dumps(content, indent=2, default=members) + "\n"

    def _reconcile(self, spark: SparkSession, number: int, landed: Sequence[Path]) -> FollowState:
        """Reconcile the open dates that `landed` files changed, and commit.

        The rules for order, taps and late outcomes need more than the rows of one batch. A date
        with new files is therefore reconciled as a whole, by its id sets, until the watermark has
        passed it: then it is sealed.
        """
        options, at = self.options, self.clock()
        known = days(options.root)
        state = self.state or FollowState(number - 1, first_date(known, day_of(at)))
        self.show_step(f"batch {number}: checking {len(landed)} new files")
        opened = [day for day in known if day >= state.open_from]
        storage = LocalStorage(options.root.resolve())
        inputs = {day: list_inputs(storage, day) for day in opened}
        last = advanced(state.last, last_rows(storage, landed), at)
        open_from = sealed_until(last, state.open_from)
        reconciler = DayReconciler(
            spark, options, number, self.print_line, last, at, list(state.damaged)
        )
        results = {each.day: each for each in state.days}
        changed = {day for day in opened if day < open_from or day not in results}
        for day in sorted(changed | (touched(landed) & {*opened})):
            self.show_step(f"batch {number}: reconciling {day}")
            results[day] = reconciler.reconcile(day, inputs[day], sealed=day < open_from)
        late = list(too_late(landed, state.open_from)) if self.state else []
        known_findings = {finding for each in state.days for finding in each.findings}
        found = [finding for day in opened for finding in results[day].findings]
        for finding in [*late, *(each for each in found if each not in known_findings)]:
            self.print_line(str(finding))
        state = FollowState(
            number,
            open_from,
            last,
            [results[day] for day in opened],
            [each for each in reconciler.damaged if is_near(each, open_from)],
            [*state.late, *late][-_MAX_LATE:],
        )
        self.show_step(f"batch {number}: committing")
        write_state(options.output, state)
        for folder in reconciler.outdated:
            rmtree(folder, ignore_errors=True)
        return state

    def _keep(self, state: FollowState) -> None:
        self.state = state
        self.days.update((each.day, each) for each in state.days)
        for day in sorted(self.days)[:-_MAX_DAYS]:
            report = self._report(self.days.pop(day))
            if report.answered:
                self.earlier.add(report.status)

    def _report(self, day: FollowedDay) -> Report:
        return day.report(self.options.root, strict=self.options.strict)


def follow(follower: Follower, stopping: Event) -> None:
    """Reconcile existing and new files until `stopping` is set; with `once`, existing files only.

    Raises:
        ReconcileError: Spark does not start, the query fails, or another run uses the output.
    """
    options = follower.options
    options.output.mkdir(parents=True, exist_ok=True)
    conflict = "another --follow uses this folder; stop it, or give another --output"
    with exclusive(options.output / "lock", conflict):
        follower.resume()
        follower.show_step(f"starting Spark on {options.master}")
        with spark_session(options.master, short=options.once) as spark:
            try:
                with spark_faults("the query"):
                    _wait(_start(spark, follower), stopping)
            except ReconcileError as fault:
                raise follower.fault or fault from fault.__cause__


def _start(spark: SparkSession, follower: Follower) -> StreamingQuery:
    options = follower.options
    root = _PATTERN_CHARACTERS.sub(r"\\\1", str(options.root.resolve()))
    files = (
        spark.readStream.format("binaryFile")
        .schema(_FILES)
        .option("ignoreMissingFiles", "true")  # a compaction may remove files meanwhile
        .load(f"{root}/date=*/hour=*/*")
        .select("path")  # the content is not read
    )
    writer = files.writeStream.option(
        "checkpointLocation", str((options.output / _CHECKPOINT).resolve())
    ).foreachBatch(lambda batch, number: follower.take(spark, batch, number))
    if options.once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{options.every} seconds").start()


def _wait(query: StreamingQuery, stopping: Event) -> None:
    """Return when the query has ended, or `stopping` is set and no batch is running."""
    try:
        while not query.awaitTermination(_STOP_POLL_INTERVAL):
            if stopping.is_set() and not query.status["isTriggerActive"]:
                return
    finally:
        query.stop()
