"""Python functions on executors: tables read by tasks, partitions written.

Executors open the archive through `gateway.archive.storage`, so local folders, S3 and HDFS are
read in one way, and Spark needs no file system of its own for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import open_storage
from gateway.night.archive.parquet import encoded
from gateway.night.archive.segments.tables import schema_of

Task = TypeVar("Task")
Item = TypeVar("Item")
Row: TypeAlias = Mapping[str, Any]
Columns: TypeAlias = Mapping[str, str]  # as in `gateway.archive.schema`
Run: TypeAlias = Callable[[Task], Iterator[pa.Table]]

_TASKS_PER_CORE: Final = 4
_TASK_BYTES: Final = 4 << 20
_BATCH_ROWS: Final = 10_000
PARTITION_ROWS: Final = 200_000  # of a shuffle
_TYPES: Final[Columns] = {
    "int32": "int",
    "int64": "bigint",
    "list": "array<string>",
    "counts": "array<bigint>",
    "map": "map<string,string>",
}  # Spark's names of types, where they differ


def spark_schema(columns: Columns) -> str:
    """Return the Spark schema of `columns`, as DDL."""
    return ", ".join(f"`{name}` {_TYPES.get(kind, kind)}" for name, kind in columns.items())


def divided(spark: SparkSession, items: Sequence[Item], sizes: Sequence[int]) -> list[list[Item]]:
    """Divide files of an archive, with their bytes, among tasks that keep all executors busy.

    A task of a few megabytes costs less than another start of its Python.
    """
    cores = spark.sparkContext.defaultParallelism
    number = min(max(cores, sum(sizes) // _TASK_BYTES), _TASKS_PER_CORE * cores)
    return list(batches(items, sizes, number))


def batches(items: Sequence[Item], sizes: Sequence[int], number: int) -> Iterator[list[Item]]:
    """Divide `items` into at most `number` lists of about the same size."""
    limit = max(sum(sizes) / max(number, 1), 1)
    batch: list[Item] = []
    size = 0
    for item, own in zip(items, sizes, strict=True):
        batch.append(item)
        size += own
        if size >= limit:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def collect(
    spark: SparkSession, columns: Columns, tasks: Sequence[Task], run: Run[Task]
) -> pa.Table:
    """Return the rows of `read_tasks` in this process; without tasks there is no Spark job."""
    if not tasks:
        return schema_of(columns).empty_table()
    return read_tasks(spark, columns, tasks, run).toArrow()


def read_tasks(
    spark: SparkSession, columns: Columns, tasks: Sequence[Task], run: Run[Task]
) -> DataFrame:
    """Return the rows of the tables that `run` makes on executors, with a partition for each task.

    `run` and `tasks` are pickled; the tables have `columns`.
    """

    def read(numbers: pa.Table) -> Iterator[pa.Table]:
        for number in numbers["id"].to_pylist():
            yield from run(tasks[number])

    return map_tables(spark.range(0, len(tasks), 1, max(len(tasks), 1)), columns, read)


def map_tables(frame: DataFrame, columns: Columns, run: Run[pa.Table]) -> DataFrame:
    """Return the rows of the tables that `run` makes on executors of each partition of `frame`."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if found := list(batches):
            for table in run(pa.Table.from_batches(found)):
                yield from table.to_batches()

    return frame.mapInArrow(read, spark_schema(columns))


def tables_of(columns: Columns, rows: Iterable[Row]) -> Iterator[pa.Table]:
    """Yield `rows` as tables of `columns`; a row has null in those that it lacks."""
    remaining = iter(rows)
    while part := list(islice(remaining, _BATCH_ROWS)):
        yield pa.Table.from_pylist(part, schema_of(columns))


def write_parts(
    frame: DataFrame, location: ArchiveLocation, folder: Path, schema: pa.Schema
) -> None:
    """Write each partition of `frame` on executors as a file of `folder`, at least one.

    A repeated task replaces its file.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        number = context.partitionId() if context else 0
        tables = [pa.Table.from_batches([each]).cast(schema) for each in batches if each.num_rows]
        if tables or not number:
            path = folder / f"part-{number:05}.parquet"
            table = pa.concat_tables([schema.empty_table(), *tables])
            open_storage(location).put(path, encoded(table))
        yield from ()

    frame.mapInArrow(run, "rows bigint").toArrow()
