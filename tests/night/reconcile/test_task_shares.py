"""The share done of a Spark job, while it runs."""

from __future__ import annotations

from threading import Event
from time import monotonic

import pytest
from pyspark.sql import SparkSession

from gateway.night.reconcile import task_shares as module
from gateway.night.reconcile.task_shares import progress_of, task_shares
from tests.waiting import PATIENCE

pytestmark = pytest.mark.spark


def test_the_step_of_a_running_job_gets_its_share(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)
    shares: list[tuple[str, float]] = []
    seen = Event()

    def show_step(text: str, share: float | None = None) -> None:
        if share is not None:
            shares.append((text, share))
            seen.set()

    with task_shares(spark, show_step) as shown:
        shown("joining")
        end = monotonic() + PATIENCE
        while not seen.is_set() and monotonic() < end:
            spark.range(0, 8, 1, 8).write.format("noop").mode("overwrite").save()

    assert {text for text, _ in shares} == {"joining"}
    assert all(0 <= share <= 1 for _, share in shares)

    end = monotonic() + PATIENCE
    while progress_of(spark.sparkContext.statusTracker())[0] is not None and monotonic() < end:
        pass
    assert progress_of(spark.sparkContext.statusTracker())[0] is None
