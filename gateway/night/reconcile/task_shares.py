"""The share done of the current step of a Spark job: its completed tasks, polled in a thread.

A job for which no executor is free waits for ever, and only the log of Spark says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import monotonic
from typing import Final

from py4j.protocol import Py4JError
from pyspark import StatusTracker
from pyspark.sql import SparkSession

from gateway.terminal.progress import ShowStep

_POLL_SECONDS: Final = 1.0
_PATIENCE: Final = 15.0  # seconds in which a cluster starts executors
_WAITS: Final = "no executor has taken a task: see the workers, and their memory, at {}"


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
        busy = monotonic()  # the last time at which an executor had taken a task
        with suppress(Py4JError, OSError):  # Spark has stopped
            while not stopping.wait(_POLL_SECONDS):
                share, is_running = progress_of(tracker)
                if share is None or share or is_running:
                    busy = monotonic()
                if share is not None and current:
                    waits = monotonic() - busy > _PATIENCE
                    why = f"; {_WAITS.format(spark.sparkContext.master)}" if waits else ""
                    show_step(current + why, share)

    thread = Thread(target=poll, name="task-shares", daemon=True)
    thread.start()
    try:
        yield show
    finally:
        stopping.set()
        thread.join()


def progress_of(tracker: StatusTracker) -> tuple[float | None, bool]:
    """Return the share of completed tasks of all active jobs; None without a known task.

    Beside it, whether an executor runs one of them.
    """
    jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
    found = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    stages = [stage for stage in found if stage]
    total = sum(stage.numTasks for stage in stages)
    share = sum(stage.numCompletedTasks for stage in stages) / total if total else None
    return share, any(stage.numActiveTasks for stage in stages)
