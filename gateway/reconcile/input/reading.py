"""Archive files as DataFrames: rows, digests, pairs; exactly those files, whatever their names."""

from __future__ import annotations

import re
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
from gateway.reconcile.schema import DIGEST_ROWS, PAIR_ROWS, ROWS

_GLOB: Final = re.compile(r"([\\{}\[\]*?])")
_RANGES: Final = 200  # ranges of minutes that are pushed down to the files; past it one for all
_MINUTE: Final = timedelta(minutes=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PARTITION: Final = 8 << 20  # bytes of archive for one partition of a shuffle
_PARTS: Final = 3  # of a path: date, hour and file, which no two segments share
_BLOCK: Final = T.StructField("block", T.LongType())
_PAIRS_OF_BLOCKS: Final = T.StructType([*PAIR_ROWS, _BLOCK])

DIGESTED: Final = T.StructType(
    [*DIGEST_ROWS, T.StructField("file", T.StringType()), T.StructField("forced", T.BooleanType())]
)
PAIRED: Final = T.StructType([*PAIR_ROWS, T.StructField("file", T.StringType()), _BLOCK])


def read(spark: SparkSession, paths: Sequence[Path], schema: T.StructType = ROWS) -> DataFrame:
    """The rows of these files; of none, an empty frame."""
    if not paths:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*map(escaped, paths))


def escaped(path: Path) -> str:
    """The path as Spark takes it, for which some characters are a pattern's."""
    return literal(str(path.resolve()))


def literal(text: str) -> str:
    """A path or URL as Spark takes it, so that it means that one place."""
    return _GLOB.sub(r"\\\1", text)


def expect(spark: SparkSession, size: int) -> None:
    """Cut what is shuffled from now on into as many parts as `size` bytes of archive need."""
    cores = spark.sparkContext.defaultParallelism
    spark.conf.set("spark.sql.shuffle.partitions", max(cores, size // _PARTITION))


def read_digests(spark: SparkSession, segments: Sequence[Segment]) -> DataFrame:
    """Digest rows with the segment they are of in `file`; `forced` where it has none of its own."""
    own = {each.digest: each.path for each in segments if each.digest is not None}
    stored = _beside(spark, own, DIGEST_ROWS).withColumn("forced", F.lit(False))
    bare = [each.path for each in segments if each.digest is None]
    made = each_file(spark, bare, executor_tasks.digest_rows, DIGESTED)
    return stored.select(DIGESTED.names).unionByName(made)


def read_pairs(spark: SparkSession, segments: Sequence[Segment]) -> DataFrame:
    """Name pairs, with file and block; those of segments that keep none are made of their rows."""
    own = {each.pairs: each.path for each in segments if each.pairs is not None}
    stored = _beside(spark, own, _PAIRS_OF_BLOCKS)
    stored = stored.withColumn("block", F.coalesce("block", F.lit(0)))  # of segments: one each
    bare = [each.path for each in segments if each.pairs is None]
    made = each_file(spark, bare, executor_tasks.pair_rows, PAIRED)
    return stored.select(PAIRED.names).unionByName(made)


def _beside(spark: SparkSession, own: Mapping[Path, Path], schema: T.StructType) -> DataFrame:
    """The rows of files beside segments, with the segment of each as `file`."""
    if not own:
        return spark.createDataFrame([], schema).withColumn("file", F.lit(""))
    place = F.substring_index(F.col("_metadata.file_path"), "/", -_PARTS)
    names = {"/".join(beside.parts[-_PARTS:]): str(path) for beside, path in own.items()}
    found = spark.createDataFrame(list(names.items()), "place string, file string")
    there = read(spark, list(own), schema).withColumn("place", place)
    return there.join(F.broadcast(found), on="place").drop("place")


def each_file(
    spark: SparkSession,
    paths: Sequence[Path],
    work: Callable[[Iterable[str]], Iterator[Record]],
    schema: T.StructType,
) -> DataFrame:
    """What executors make of `paths`, a few files a task."""
    if not paths:
        return spark.createDataFrame([], schema)
    parts = min(len(paths), 4 * spark.sparkContext.defaultParallelism)
    given = spark.sparkContext.parallelize([str(path.resolve()) for path in paths], parts)
    return spark.createDataFrame(given.mapPartitions(work), schema)


def distinct_minutes(frame: DataFrame, minute: str) -> list[datetime]:
    """The minutes in a column, in UTC.

    They are fetched as numbers: a time that Spark hands to Python is of this machine's zone, and of
    two that differ where its clock is set back one is lost.
    """
    micros = frame.select(F.unix_micros(minute).alias("at")).distinct().collect()
    return [_EPOCH + timedelta(microseconds=row["at"]) for row in micros]


def near(minutes: Sequence[datetime]) -> Column:
    """A condition on rows that holds for all of these minutes, and that files can be skipped by."""
    ranges = _ranges(sorted(minutes))
    if len(ranges) > _RANGES:
        ranges = [(ranges[0][0], ranges[-1][1])]
    return _any(ranges, "received") | (F.col("received").isNull() & _any(ranges, "time"))


def _any(ranges: Sequence[tuple[datetime, datetime]], name: str) -> Column:
    at = F.col(name)
    found = F.lit(False)
    for start, end in ranges:
        found |= (at >= F.lit(start)) & (at < F.lit(end))
    return found


def _ranges(minutes: Sequence[datetime]) -> list[tuple[datetime, datetime]]:
    ranges: list[tuple[datetime, datetime]] = []
    for start in minutes:
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], start + _MINUTE)
        else:
            ranges.append((start, start + _MINUTE))
    return ranges
