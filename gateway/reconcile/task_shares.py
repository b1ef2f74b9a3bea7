"""The share done of the current step of a Spark job: its completed tasks, polled in a thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Final

from py4j.protocol import Py4JError
from pyspark import StatusTracker
from pyspark.sql import SparkSession

from gateway.terminal.progress import ShowStep

_POLL_SECONDS: Final = 1.0


@contextmanager
def task_shares(spark: SparkSession, show_step: ShowStep) -> Iterator[ShowStep]:
    """A `show_step` whose steps get the share of their Spark tasks that are completed."""
    tracker, stopping = spark.sparkContext.statusTracker(), Event()
    current = ""  # set by the thread of the job, and read by the polling one

    def show(text: str, share: float | None = None, /) -> None:
        nonlocal current
        current = text
        show_step(text, share)

    def poll() -> None:
        with suppress(Py4JError, OSError):  # Spark has stopped
            while not stopping.wait(_POLL_SECONDS):
                share = active_share(tracker)
                if share is not None and current:
                    show_step(current, share)

    thread = Thread(target=poll, name="task-shares", daemon=True)
    thread.start()
    try:
        yield show
    finally:
        stopping.set()
        thread.join()


def active_share(tracker: StatusTracker) -> float | None:
    """Return the share of completed tasks of all active jobs; None without a known task."""
    jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    total = sum(stage.numTasks for stage in stages if stage)
    return sum(stage.numCompletedTasks for stage in stages if stage) / total if total else None
