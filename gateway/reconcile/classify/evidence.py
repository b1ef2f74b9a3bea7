"""Selection of the rows to classify: all rows, or the rows of copies that id sets do not prove."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gateway.archive.intervals import Intervals, count, from_ids
from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import open_storage
from gateway.reconcile.classify import order, taps, transforms
from gateway.reconcile.classify.transforms import on_date
from gateway.reconcile.input.executors import collect, map_tables, read_tasks, tasks_of
from gateway.reconcile.input.inputs import (
    Inputs,
    batches,
    day_range,
    hours_around,
    microseconds,
)
from gateway.reconcile.input.row_reader import IdKey, SegmentFile, Selection, read_rows
from gateway.reconcile.input.survey import (
    BLOCK_COLUMNS,
    SURVEY_COLUMNS,
    TARGET,
    EvaluationTask,
    Survey,
    merged,
    run_blocks,
    run_evaluation,
    run_survey,
    survey_tasks,
)
from gateway.reconcile.schema import JOIN_ROWS

_SECOND: Final = 1_000_000
_PARTITION_BYTES: Final = 8 << 20  # of archive files for one partition of a shuffle
PARTITION_ROWS: Final = 200_000
_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_MAX_WANTED: Final = 200_000  # exceptions whose ids select rows in the tasks of executors
_MAX_DETAILED: Final = 400_000  # rows to join with their texts; more are read again for exceptions


@dataclass(frozen=True, slots=True)
class Scope:
    """The date to reconcile, and the limits of its classes.

    Units: seconds for `late`, else microseconds.
    """

    location: ArchiveLocation
    day: date
    late: int
    spooled_since: int  # receipt; a copy received before is not in the spool any more
    open_since: Mapping[str, int] = field(default_factory=dict)  # writer -> first recent receipt
    full: bool = False  # join all rows


@dataclass(frozen=True, slots=True)
class ReadTask:
    """The segments that one task reads."""

    location: ArchiveLocation
    files: Sequence[SegmentFile]
    selection: Selection


def survey(spark: SparkSession, scope: Scope, inputs: Inputs) -> Survey:
    """Find the gaps and the taps, and unless `full` the copies that id sets prove."""
    location, day, number = scope.location, scope.day, tasks_of(spark, inputs.size)
    tasks = survey_tasks(location, day, inputs.all, number, full=scope.full)
    seen = collect(spark, SURVEY_COLUMNS, tasks, run_survey)
    found = merged(seen)
    if scope.full:
        return found
    evaluation = partial(run_evaluation, EvaluationTask(location, day, scope.late, found.tapped))
    blocks = read_tasks(spark, BLOCK_COLUMNS, tasks, run_blocks).repartition(number, *TARGET)
    proven = map_tables(blocks, SURVEY_COLUMNS, evaluation).toArrow()
    return merged(pa.concat_tables([seen, proven]))


def joined(spark: SparkSession, scope: Scope, inputs: Inputs, found: Survey) -> Joined | None:
    """Return the copies of the date that are not proven; None when all are."""
    tasks = tasks_to_join(scope, inputs, found, tasks_of(spark, inputs.size))
    if not tasks:
        return None
    wanted = tasks[0].selection.wanted
    # A copy has mostly two rows.
    number = inputs.rows if wanted is None else 2 * sum(map(count, wanted.values()))
    own = inputs.size // _PARTITION_BYTES if wanted is None else number // PARTITION_ROWS
    partitions = max(spark.sparkContext.defaultParallelism, own)
    spark.conf.set(_PARTITIONS, str(partitions))
    frame = read_tasks(spark, JOIN_ROWS, tasks, run_read)
    detailed = number <= _MAX_DETAILED
    classes = classified(frame, scope, tapped=bool(found.taps), detailed=detailed)
    return Joined(spark, tasks, classes, detailed=detailed)


def tasks_to_join(scope: Scope, inputs: Inputs, found: Survey, number: int) -> list[ReadTask]:
    """Return at most `number` tasks that read the rows to join; none when all are proven."""
    wanted = None if scope.full else found.wanted()
    selection = Selection(
        microseconds(scope.day, -24),
        day_range(scope.day)[1],
        hours_around(scope.day),
        found.taps,
        wanted,
        scope.open_since,
    )
    sizes = {each.path: each.size for each in inputs.all}
    files = [SegmentFile(path) for path in sizes]
    if wanted is not None:
        files = [each for each in found.files() if each.path in sizes] if wanted else []
    parts = batches(files, [sizes[each.path] for each in files], number)
    return [ReadTask(scope.location, part, selection) for part in parts]


@dataclass(frozen=True, slots=True)
class Joined:
    """The classes of the joined copies, and the tasks that read their rows."""

    spark: SparkSession
    tasks: Sequence[ReadTask]
    classes: DataFrame
    detailed: bool = False  # `classes` has the details

    def exceptions(self, number: int) -> DataFrame:
        """Return the exceptions with their details; there are `number` of them.

        Without details their rows are read again: the texts of all copies would have to be sorted.
        """
        found = transforms.exceptions(self.classes)
        if self.detailed:
            return transforms.described(found)
        tasks = self.tasks
        if number <= _MAX_WANTED:
            wanted = ids_of(found.select(*transforms.COPY_KEYS).toArrow())
            tasks = [
                replace(task, selection=replace(task.selection, wanted=wanted)) for task in tasks
            ]
        rows = read_tasks(self.spark, JOIN_ROWS, tasks, run_read)
        detailed = found.join(transforms.details(rows), list(transforms.COPY_KEYS), "left")
        return transforms.described(detailed)


def ids_of(copies: pa.Table) -> dict[IdKey, Intervals]:
    """Return the ids of `copies`, a table of COPY_KEYS."""
    keys = ["gateway", "route", "target", "run"]
    groups = copies.group_by(keys, use_threads=False).aggregate([("counter", "list")])
    lists = groups["counter_list"]
    return {
        (key["gateway"], key["route"], key["target"], key["run"]): from_ids(ids.values.to_numpy())
        for key, ids in zip(groups.select(keys).to_pylist(), lists, strict=True)
    }


def run_read(task: ReadTask) -> Iterator[pa.Table]:
    """Yield the selected rows of the segments of a task."""
    storage = open_storage(task.location)
    for file in task.files:
        yield from read_rows(storage, file, task.selection)


def classified(rows: DataFrame, scope: Scope, *, tapped: bool, detailed: bool = False) -> DataFrame:
    """Return the class of every copy of the date in `rows`, with its details when `detailed`."""
    own = on_date(F.col("received_time"), scope.day)
    assigned = taps.assign_by_content(rows) if tapped else rows
    copies = transforms.copies(assigned, tapped=tapped, detailed=detailed).persist()
    classes = transforms.classified(copies, scope.late * _SECOND, scope.spooled_since)
    blocks, disordered = order.mark_out_of_order(classes, own)
    found = transforms.mark_disordered(blocks, disordered)
    return (transforms.drop_known_sightings(found) if tapped else found).where(own)
