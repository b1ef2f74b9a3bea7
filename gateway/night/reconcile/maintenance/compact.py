"""Compaction on Spark: its executors merge the segments of the hours of a date.

Executors reach the archive through `gateway.archive.storage`, local or remote, like the gateway.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from gateway.archive.location import ArchiveLocation
from gateway.archive.signed_json import StoredDigest
from gateway.errors import ArchiveError, ReconcileError
from gateway.night.archive.archive_lock import archive_lock
from gateway.night.archive.compaction.compact_day import CompactionReport, compact_day
from gateway.night.archive.compaction.merge import MergeResult, MergeTask, merge
from gateway.night.reconcile.input.executors import collect
from gateway.night.reconcile.input.inputs import hashed_by
from gateway.night.reconcile.root_cause import spark_faults
from gateway.night.reconcile.task_shares import task_shares
from gateway.terminal.progress import ShowStep

_RESULT: Final = {"result": "binary"}  # a pickled MergeResult


def compact(  # the archive, its key, and the means
    start_spark: Callable[[], SparkSession],
    location: ArchiveLocation,
    day: date,
    show_step: ShowStep,
    *,
    key: bytes | None = None,
    size: int = 200,
) -> CompactionReport:
    """Compact `day` into merged segments of about `size` MB; see `compact_day`.

    `start_spark` is called only when there is something to merge.

    Raises:
        ReconcileError: another compaction is running, Spark failed, or the merged rows differ from
            the others; the archive is unchanged.
    """

    def run_tasks(tasks: Sequence[MergeTask]) -> list[MergeResult]:
        spark = start_spark()
        with task_shares(spark, show_step) as shown:
            shown(f"writing {len(tasks)} merged segments")
            rows = collect(spark, _RESULT, tasks, _merged)
        check_held()  # before the commit
        return [pickle.loads(each.as_py()) for each in rows["result"]]  # noqa: S301  # `_merged` wrote it

    def hash_files(files: Mapping[Path, int]) -> Mapping[Path, StoredDigest]:
        return hashed_by(start_spark(), location)(files)

    try:
        with spark_faults("the compaction"), archive_lock(location) as check_held:
            return compact_day(
                location,
                day,
                run_tasks,
                show_step,
                key=key,
                size=size << 20,
                hash_files=hash_files,
            )
    except (ArchiveError, OSError) as fault:
        raise ReconcileError(f"archive {location}: {fault}") from fault


def _merged(task: MergeTask) -> Iterator[pa.Table]:
    """Merge on an executor; yield the result."""
    yield pa.table({"result": pa.array([pickle.dumps(merge(task))], pa.binary())})
