"""The day as it happens: a streaming query over the files that land, judged batch by batch.

The stream is one of files, not of rows: a file that cannot be read is then a finding of the batch
it came in, and never the end of the query.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Event
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from gateway.errors import GatewayError, ReconcileError
from gateway.reconcile.follow.batch import Clock, judge_batch
from gateway.reconcile.follow.judge import Following
from gateway.reconcile.follow.state import (
    STATE,
    SUMMARY,
    Followed,
    State,
    read_state,
    replace_file,
    summary,
)
from gateway.reconcile.input.reading import escaped
from gateway.reconcile.progress import Say
from gateway.reconcile.report.text import CLEAN, NO_ANSWER, Report
from gateway.reconcile.session import spark_session

_FILES: Final = "path string, modificationTime timestamp, length long, content binary"
_LOOK: Final = 1  # seconds between two looks whether to stop
_PLAIN: Final = {"spark.sql.codegen.wholeStage": "false"}  # compiling costs more than few rows
_KEPT: Final = 7  # dates of a run the summary has
_CHECKPOINT: Final = "checkpoint"


@dataclass(slots=True)
class Follower:
    """Mutable: it gathers, over the batches of one run, the dates that were open in it."""

    terms: Following
    say: Say
    tell: Say
    clock: Clock = lambda: datetime.now(UTC)
    state: State | None = None
    seen: dict[date, Followed] = field(default_factory=dict)  # the newest
    worst: int | None = None  # status of the dates before those
    fault: GatewayError | OSError | None = None  # Spark would tell it as its own

    def take(self, spark: SparkSession, files: DataFrame, number: int) -> None:
        """Judge one micro-batch."""
        try:
            landed = sorted({_below(row["path"]) for row in files.collect()})
            self._keep(
                judge_batch(spark, self.terms, number, landed, self.say, self.tell, self.clock)
            )
            replace_file(self.terms.output / SUMMARY, self.summary())
        except (GatewayError, OSError) as fault:
            self.fault = fault
            raise

    def resume(self) -> None:
        """Take over what the last run left."""
        state = read_state(self.terms.output)
        if state is None:
            return
        if not (self.terms.output / _CHECKPOINT).exists():
            raise ReconcileError(
                f"{self.terms.output}: {STATE} is there and {_CHECKPOINT} is not; remove the"
                " folder to start afresh"
            )
        still_open = [each for each in state.days if each.day >= state.open_from]
        self._keep(replace(state, days=still_open))

    def reports(self) -> list[Report]:
        """The newest dates that were open in this run, oldest first."""
        terms = self.terms
        return [
            each.report(terms.root, strict=terms.strict) for _, each in sorted(self.seen.items())
        ]

    def status(self) -> int:
        """The exit status: of every date that was open in this run and has an answer, the worst."""
        answers = [each.status for each in self.reports() if each.answered]
        known = answers if self.worst is None else [*answers, self.worst]
        return max(known, default=NO_ANSWER)

    def summary(self) -> str:
        return summary(self.terms.root, self.state, self.reports(), self.status())

    def _keep(self, state: State) -> None:
        self.state = state
        self.seen.update((each.day, each) for each in state.days)
        for day in sorted(self.seen)[:-_KEPT]:
            report = self.seen.pop(day).report(self.terms.root, strict=self.terms.strict)
            if report.answered:
                self.worst = max(self.worst or CLEAN, report.status)


def follow(follower: Follower, stopping: Event) -> None:
    """Judge what has landed and what lands, until `stopping` is set or, once, all is judged.

    Raises:
        ReconcileError: Spark does not start, the query fails, or another run follows the archive.
    """
    terms = follower.terms
    terms.output.mkdir(parents=True, exist_ok=True)
    with _alone(terms.output):
        follower.resume()
        follower.say(f"starting Spark on {terms.master}")
        with spark_session(terms.master, _PLAIN, short=terms.once) as spark:
            try:
                query = _start(spark, follower)
                _wait(query, stopping)
            except (PySparkException, Py4JError) as fault:
                if follower.fault is not None:
                    raise follower.fault from fault
                reason = (str(fault).splitlines() or [type(fault).__name__])[0]
                raise ReconcileError(f"spark: the query failed: {reason}") from fault


def _start(spark: SparkSession, follower: Follower) -> StreamingQuery:
    terms = follower.terms
    files = (
        spark.readStream.format("binaryFile")
        .schema(_FILES)
        .option("ignoreMissingFiles", "true")  # a compaction may be quicker
        .load(f"{escaped(terms.root)}/date=*/hour=*/*")
        .select("path")  # so that no content is read
    )
    writer = files.writeStream.option(
        "checkpointLocation", str((terms.output / _CHECKPOINT).resolve())
    ).foreachBatch(lambda batch, number: follower.take(spark, batch, number))
    if terms.once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{terms.every} seconds").start()


def _wait(query: StreamingQuery, stopping: Event) -> None:
    """Return when the query has ended, or `stopping` is set and no batch is under way."""
    try:
        while not query.awaitTermination(_LOOK):
            if stopping.is_set() and not query.status["isTriggerActive"]:
                return
    finally:
        query.stop()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as fault:
            raise ReconcileError(
                f"{folder}: another --follow is at work there; stop it, or give another --output"
            ) from fault
        yield


def _below(place: str) -> Path:
    """A file as Spark names it, below the archive: its date, its hour and its own name."""
    return Path(*place.rsplit("/", 3)[1:])
