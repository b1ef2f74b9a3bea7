"""The share done of the current step of a Spark job: its completed tasks, polled in a thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Final

from py4j.protocol import Py4JError
from pyspark import SparkContext, StatusTracker
from pyspark.sql import SparkSession

from gateway.terminal.progress import ShowStep

_POLL_SECONDS: Final = 1.0


@contextmanager
def task_shares(spark: SparkSession, show_step: ShowStep) -> Iterator[ShowStep]:
    """A `show_step` whose steps get the share of their Spark tasks that are completed."""
    watcher = _Watcher(spark.sparkContext, show_step)
    thread = Thread(target=watcher.run, name="task-shares", daemon=True)
    thread.start()
    try:
        yield watcher.show_step
    finally:
        watcher.stopping.set()
        thread.join()


@dataclass(slots=True)
class _Watcher:
    """Polls the active Spark jobs.

    Mutable: `text` is set by the thread of the job and read by the polling thread.
    """

    context: SparkContext
    shown: ShowStep
    text: str = ""
    stopping: Event = field(default_factory=Event)

    def show_step(self, text: str, share: float | None = None, /) -> None:
        self.text = text
        self.shown(text, share)

    def run(self) -> None:
        tracker = self.context.statusTracker()
        try:
            while not self.stopping.wait(_POLL_SECONDS):
                share = active_share(tracker)
                if share is not None and self.text:
                    self.shown(self.text, share)
        except (Py4JError, OSError):
            return  # Spark has stopped


def active_share(tracker: StatusTracker) -> float | None:
    """Return the share of completed tasks of all active jobs; None without a known task."""
    done = total = 0
    for job in tracker.getActiveJobsIds():
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else ():
            tasks = tracker.getStageInfo(stage)
            if tasks is not None:
                done += tasks.numCompletedTasks
                total += tasks.numTasks
    return done / total if total else None
