"""Selection of the rows to classify: all rows, or the rows of copies that id sets do not prove."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gateway.archive.intervals import Intervals, count, from_ids
from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import open_storage
from gateway.reconcile.classify import order, taps, transforms
from gateway.reconcile.classify.transforms import on_date
from gateway.reconcile.input.executors import Collect, collect_here, read_tasks
from gateway.reconcile.input.inputs import (
    Inputs,
    batches,
    day_range,
    hours_around,
    microseconds,
    verify_around,
)
from gateway.reconcile.input.row_reader import IdKey, SegmentFile, Selection, read_rows
from gateway.reconcile.input.survey import (
    SURVEY_COLUMNS,
    Survey,
    SurveyTask,
    merged,
    row_tasks,
    run_survey,
    set_tasks,
)
from gateway.reconcile.schema import JOIN_ROWS, spark_schema

_SECOND: Final = 1_000_000
_TASKS_PER_CORE: Final = 4
_PARTITION_BYTES: Final = 8 << 20  # of archive files for one partition of a shuffle
_PARTITION_ROWS: Final = 200_000
_FEW_ROWS: Final = 30_000  # to join; with more, tasks of Python and compiled plans pay off
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
    open_since: Mapping[str, int] = field(default_factory=dict)  # gateway -> first recent receipt
    full: bool = False  # join all rows


@dataclass(frozen=True, slots=True)
class ReadTask:
    """The segments that one task reads."""

    location: ArchiveLocation
    files: Sequence[SegmentFile]
    selection: Selection


def survey(scope: Scope, inputs: Inputs, collect: Collect, tasks: int = 1) -> Survey:
    """Find the gaps and the taps, and unless `full` the copies that id sets prove.

    `collect` runs at most `tasks` tasks.
    """
    segments = inputs.all
    tasks = min(len(segments), tasks)
    if scope.full:
        return _surveyed(collect, row_tasks(scope.location, scope.day, segments, tasks))
    whole = SurveyTask(scope.location, scope.day, segments, segments, late=scope.late)
    found = _surveyed(collect, set_tasks(tasks, whole))
    if not found.taps:
        return found
    # A tap sees the messages of every gateway, so the other gateways need to know it, too.
    return _surveyed(collect, set_tasks(tasks, replace(whole, tapped=found.tapped)))


def _surveyed(collect: Collect, tasks: Sequence[SurveyTask]) -> Survey:
    return merged(collect(SURVEY_COLUMNS, tasks, run_survey))


def tasks_of(spark: SparkSession) -> int:
    """Return the number of tasks that keep all executors busy."""
    return _TASKS_PER_CORE * spark.sparkContext.defaultParallelism


@dataclass(frozen=True, slots=True)
class Gathered:
    """The survey of a date, its verified inputs, and the rows to join, or executors read them."""

    inputs: Inputs
    found: Survey
    rows: pa.Table | None = None  # of JOIN_ROWS


def gather(
    scope: Scope, inputs: Inputs, key: bytes | None, collect: Collect, tasks: int = 1
) -> Gathered:
    """Survey the segments, and verify those of other days that it needs by their seals and `key`.

    Raises:
        OSError: the archive cannot be read.
    """
    found = survey(scope, inputs, collect, tasks)
    return Gathered(verify_around(scope.location, inputs, found.near, key), found)


def gather_here(scope: Scope, inputs: Inputs, key: bytes | None) -> Gathered:
    """Do the same in this process, without Spark; read the rows to join, too, where they are few.

    Raises:
        ArchiveError: a segment cannot be read.
        OSError: the archive cannot be read.
    """
    gathered = gather(scope, inputs, key, collect_here)
    wanted = None if scope.full else gathered.found.wanted()
    if _number_of_rows(gathered.inputs, wanted) > _FEW_ROWS:
        return gathered
    tasks = tasks_to_join(scope, gathered.inputs, gathered.found, 1)
    return replace(gathered, rows=collect_here(JOIN_ROWS, tasks, run_read))


def _number_of_rows(inputs: Inputs, wanted: Mapping[IdKey, Intervals] | None) -> int:
    """Return about how many rows are to join; a copy has mostly two."""
    return inputs.rows if wanted is None else 2 * sum(map(count, wanted.values()))


def joined(spark: SparkSession, scope: Scope, gathered: Gathered) -> Joined | None:
    """Return the copies of the date that are not proven; None when all are."""
    inputs, found = gathered.inputs, gathered.found
    tasks = tasks_to_join(scope, inputs, found, tasks_of(spark))
    if not tasks:
        return None
    wanted = tasks[0].selection.wanted
    number = _number_of_rows(inputs, wanted)
    own = inputs.size // _PARTITION_BYTES if wanted is None else number // _PARTITION_ROWS
    partitions = max(spark.sparkContext.defaultParallelism, own)
    for name, value in {**plan_settings(number), _PARTITIONS: str(partitions)}.items():
        spark.conf.set(name, value)
    frame = (
        read_tasks(spark, JOIN_ROWS, tasks, run_read)
        if gathered.rows is None
        else spark.createDataFrame(gathered.rows, spark_schema(JOIN_ROWS))
    )
    detailed = number <= _MAX_DETAILED
    classes = classified(frame, scope, tapped=bool(found.taps), detailed=detailed)
    return Joined(spark, tasks, classes, detailed=detailed)


def plan_settings(rows: int) -> dict[str, str]:
    """Return the settings of Spark with which a join of `rows` compiles its plan, or does not."""
    compiles = rows > _FEW_ROWS
    return {
        "spark.sql.codegen.wholeStage": str(compiles).lower(),
        "spark.sql.codegen.factoryMode": "FALLBACK" if compiles else "NO_CODEGEN",
    }


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
