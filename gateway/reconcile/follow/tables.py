"""What a micro-batch adds to the tables of a followed date; DataFrames to a DataFrame.

Both tables are only appended to, in one folder a batch. The newest row of a copy, and of a minute
of a way, is the one that counts; nothing is said again that has not changed.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from gateway.reconcile.classify.transforms import KEY, TALLIES, WAY
from gateway.reconcile.input.reading import read

WITHDRAWN: Final = "withdrawn"  # in place of a class: what was an exception is none any more
_MINUTE_OF_WAY: Final = (*WAY, "minute")
_SAID: Final = ("class", "marked")  # what makes an exception another one when it changes


def open_since(spark: SparkSession, watermark: dict[str, datetime]) -> DataFrame:
    """For each gateway, since when a copy may still be under way."""
    return spark.createDataFrame(list(watermark.items()), "gateway string, open_since timestamp")


def settled(classes: DataFrame, since: DataFrame) -> DataFrame:
    """The copies that the watermark of their gateway has passed."""
    known = classes.join(F.broadcast(since), on="gateway", how="left")
    under_way = F.coalesce(F.col("received_time") > F.col("open_since"), F.lit(False))
    return known.where(~under_way).drop("open_since")


def exceptions_before(spark: SparkSession, folder: Path, batch: int, like: DataFrame) -> DataFrame:
    """The exceptions of a date as the batches before `batch` left them."""
    newest = _newest(_appended(spark, folder, batch, like), KEY)
    return newest.where(F.col("class") != WITHDRAWN)


def minutes_before(spark: SparkSession, folder: Path, batch: int, like: DataFrame) -> DataFrame:
    """The counts of a date by way and minute as the batches before `batch` left them."""
    return _newest(_appended(spark, folder, batch, like), _MINUTE_OF_WAY)


def changed_exceptions(now: DataFrame, before: DataFrame) -> DataFrame:
    """The exceptions that are new or of another class, and those that are withdrawn."""
    withdrawn = before.join(now.select(*KEY), on=list(KEY), how="left_anti")
    merged = now.unionByName(withdrawn.withColumn("class", F.lit(WITHDRAWN)))
    return merged.join(before.select(*KEY, *_SAID), on=[*KEY, *_SAID], how="left_anti")


def summed(tallies: DataFrame) -> DataFrame:
    """One row a way and minute: what is joined and what digests prove may share one."""
    sums = [F.sum(F.col(f"`{name}`")).alias(name) for name in TALLIES]
    return tallies.groupBy(*_MINUTE_OF_WAY).agg(*sums)


def changed_minutes(now: DataFrame, before: DataFrame) -> DataFrame:
    """The `summed` minutes whose counts are new or others; of one without a copy left, zeros."""
    nothing = [F.lit(0).cast("long").alias(name) for name in TALLIES]
    counted = summed(now.unionByName(before.select(*_MINUTE_OF_WAY, *nothing)))
    return counted.join(before, on=[*_MINUTE_OF_WAY, *TALLIES], how="left_anti")


def groups(changed: DataFrame) -> DataFrame:
    """What is new of each route, target and class, since which minute of receipt."""
    first = F.date_trunc("minute", F.min("received_time")).alias("since")
    found = changed.groupBy("route", "target", "class").agg(first, F.count("*").alias("copies"))
    return found.orderBy("since", "route", "target", "class")


def _appended(spark: SparkSession, folder: Path, batch: int, like: DataFrame) -> DataFrame:
    """The rows of the batches before `batch`; a later one is of a run that did not end."""
    schema = T.StructType([*like.schema, T.StructField("batch", T.LongType())])
    if not any(folder.glob("batch=*")):
        return spark.createDataFrame([], schema)
    return read(spark, [folder], schema).where(F.col("batch") < batch)


def _newest(rows: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    latest = Window.partitionBy(*keys).orderBy(F.desc("batch"))
    ranked = rows.withColumn("place", F.row_number().over(latest))
    return ranked.where("place = 1").drop("place", "batch")
