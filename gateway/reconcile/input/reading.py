"""Archive files as DataFrames: rows, digests and name pairs of exactly the given files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from gateway.reconcile.input import executor_tasks
from gateway.reconcile.input.executor_tasks import Record
from gateway.reconcile.input.footers import Segment
from gateway.reconcile.input.spark_paths import literal_path
from gateway.reconcile.schema import DIGEST_ROWS, PAIR_ROWS, ROWS

_MAX_RANGES: Final = 200  # ranges of minutes in a filter on files; past it one range for all
_MINUTE: Final = timedelta(minutes=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PARTITION_BYTES: Final = 8 << 20  # of archive files for one partition of a shuffle
_PATH_PARTS: Final = 3  # date, hour and file, which identify a segment
_BLOCK: Final = T.StructField("block", T.LongType())
_PAIRS_OF_BLOCKS: Final = T.StructType([*PAIR_ROWS, _BLOCK])

DIGEST_WITH_FILE: Final = T.StructType(
    [*DIGEST_ROWS, T.StructField("file", T.StringType()), T.StructField("forced", T.BooleanType())]
)
PAIR_WITH_FILE: Final = T.StructType([*PAIR_ROWS, T.StructField("file", T.StringType()), _BLOCK])


def read(spark: SparkSession, paths: Sequence[Path], schema: T.StructType = ROWS) -> DataFrame:
    """Read the rows of the files; without files, return an empty DataFrame."""
    if not paths:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*(literal_path(path.resolve()) for path in paths))


def set_shuffle_partitions(spark: SparkSession, size: int) -> None:
    """Divide the next shuffles into partitions that suit `size` bytes of archive files."""
    cores = spark.sparkContext.defaultParallelism
    spark.conf.set("spark.sql.shuffle.partitions", max(cores, size // _PARTITION_BYTES))


def read_digests(spark: SparkSession, segments: Sequence[Segment]) -> DataFrame:
    """Read the digest rows of `segments`, each with the path of its segment in `file`.

    A segment without a digest gets one computed from its rows, with `forced` true.
    """
    own = {each.digest: each.path for each in segments if each.digest is not None}
    stored = _with_segment(spark, own, DIGEST_ROWS).withColumn("forced", F.lit(False))
    without = [each.path for each in segments if each.digest is None]
    computed = map_files(spark, without, executor_tasks.digest_rows, DIGEST_WITH_FILE)
    return stored.select(DIGEST_WITH_FILE.names).unionByName(computed)


def read_pairs(spark: SparkSession, segments: Sequence[Segment]) -> DataFrame:
    """Read the name pairs of `segments`, with file and block; missing ones are computed."""
    own = {each.pairs: each.path for each in segments if each.pairs is not None}
    stored = _with_segment(spark, own, _PAIRS_OF_BLOCKS)
    stored = stored.withColumn("block", F.coalesce("block", F.lit(0)))  # null in a segment's pairs
    without = [each.path for each in segments if each.pairs is None]
    computed = map_files(spark, without, executor_tasks.pair_rows, PAIR_WITH_FILE)
    return stored.select(PAIR_WITH_FILE.names).unionByName(computed)


def _with_segment(spark: SparkSession, own: Mapping[Path, Path], schema: T.StructType) -> DataFrame:
    """Read digests or pairs; `own` maps their files to the segments for the column `file`."""
    if not own:
        return spark.createDataFrame([], schema).withColumn("file", F.lit(""))
    key = F.substring_index(F.col("_metadata.file_path"), "/", -_PATH_PARTS)
    segments = {"/".join(file.parts[-_PATH_PARTS:]): str(path) for file, path in own.items()}
    keys = spark.createDataFrame(list(segments.items()), "key string, file string")
    rows = read(spark, list(own), schema).withColumn("key", key)
    return rows.join(F.broadcast(keys), on="key").drop("key")


def map_files(
    spark: SparkSession,
    paths: Sequence[Path],
    task: Callable[[Iterable[str]], Iterator[Record]],
    schema: T.StructType,
) -> DataFrame:
    """Return the rows that `task` makes of `paths` on executors, with a few files in each task."""
    if not paths:
        return spark.createDataFrame([], schema)
    tasks = min(len(paths), 4 * spark.sparkContext.defaultParallelism)
    files = spark.sparkContext.parallelize([str(path.resolve()) for path in paths], tasks)
    return spark.createDataFrame(files.mapPartitions(task), schema)


def distinct_minutes(frame: DataFrame, minute: str) -> list[datetime]:
    """Return the distinct minutes of a column, in UTC.

    They are collected as numbers: PySpark converts a timestamp to this machine's time zone, where
    two minutes become one when its clock is set back.
    """
    micros = frame.select(F.unix_micros(minute).alias("at")).distinct().collect()
    return [_EPOCH + timedelta(microseconds=row["at"]) for row in micros]


def in_minutes(minutes: Sequence[datetime]) -> Column:
    """Return a filter that keeps all rows of the minutes, and lets Spark skip other files.

    It may keep rows of other minutes, too.
    """
    ranges = _ranges(sorted(minutes))
    if len(ranges) > _MAX_RANGES:
        ranges = [(ranges[0][0], ranges[-1][1])]
    return _in_ranges(ranges, "received") | (
        F.col("received").isNull() & _in_ranges(ranges, "time")
    )


def _in_ranges(ranges: Sequence[tuple[datetime, datetime]], name: str) -> Column:
    at = F.col(name)
    found = F.lit(False)
    for start, end in ranges:
        found |= (at >= F.lit(start)) & (at < F.lit(end))
    return found


def _ranges(minutes: Sequence[datetime]) -> list[tuple[datetime, datetime]]:
    """Merge adjacent minutes."""
    ranges: list[tuple[datetime, datetime]] = []
    for start in minutes:
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], start + _MINUTE)
        else:
            ranges.append((start, start + _MINUTE))
    return ranges
