"""The rows that a micro-batch appends to the tables of a date: DataFrame transforms.

Both tables have a folder for each batch. The newest row of a copy, and of a target's minute, is
the valid one; unchanged rows are not repeated.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from gateway.reconcile.classify.transforms import COPY_KEYS, TALLIES, TARGET_KEYS
from gateway.reconcile.input.reading import read

WITHDRAWN: Final = "withdrawn"  # in place of a class: the copy is no exception any more
_MINUTE_KEYS: Final = (*TARGET_KEYS, "minute")
_COMPARED: Final = ("class", "marked")  # a change in these columns is a new row


def open_since(spark: SparkSession, watermark: dict[str, datetime]) -> DataFrame:
    """Return, for each gateway, the time from which a copy may be in flight."""
    return spark.createDataFrame(list(watermark.items()), "gateway string, open_since timestamp")


def before_watermark(classes: DataFrame, since: DataFrame) -> DataFrame:
    """Keep the copies that the watermark of their gateway has passed."""
    joined = classes.join(F.broadcast(since), on="gateway", how="left")
    in_flight = F.coalesce(F.col("received_time") > F.col("open_since"), F.lit(False))
    return joined.where(~in_flight).drop("open_since")


def exceptions_before(spark: SparkSession, folder: Path, batch: int, like: DataFrame) -> DataFrame:
    """Return the exceptions of a date after the batches before `batch`."""
    newest = _newest(_appended(spark, folder, batch, like), COPY_KEYS)
    return newest.where(F.col("class") != WITHDRAWN)


def minutes_before(spark: SparkSession, folder: Path, batch: int, like: DataFrame) -> DataFrame:
    """Return the counts of a date by target and minute after the batches before `batch`."""
    return _newest(_appended(spark, folder, batch, like), _MINUTE_KEYS)


def changed_exceptions(now: DataFrame, before: DataFrame) -> DataFrame:
    """Return the exceptions that are new or have another class, and the withdrawn ones."""
    withdrawn = before.join(now.select(*COPY_KEYS), on=list(COPY_KEYS), how="left_anti")
    merged = now.unionByName(withdrawn.withColumn("class", F.lit(WITHDRAWN)))
    return merged.join(
        before.select(*COPY_KEYS, *_COMPARED), on=[*COPY_KEYS, *_COMPARED], how="left_anti"
    )


def summed(tallies: DataFrame) -> DataFrame:
    """Sum up to one row for each target and minute: rows and digests may share a minute."""
    sums = [F.sum(F.col(f"`{name}`")).alias(name) for name in TALLIES]
    return tallies.groupBy(*_MINUTE_KEYS).agg(*sums)


def changed_minutes(now: DataFrame, before: DataFrame) -> DataFrame:
    """Return the minutes with new or changed counts; zeros for a minute without copies now."""
    zeros = [F.lit(0).cast("long").alias(name) for name in TALLIES]
    counted = summed(now.unionByName(before.select(*_MINUTE_KEYS, *zeros)))
    return counted.join(before, on=[*_MINUTE_KEYS, *TALLIES], how="left_anti")


def grouped(changed: DataFrame) -> DataFrame:
    """Count the changed exceptions by route, target and class, with the first minute of receipt."""
    first = F.date_trunc("minute", F.min("received_time")).alias("since")
    found = changed.groupBy("route", "target", "class").agg(first, F.count("*").alias("copies"))
    return found.orderBy("since", "route", "target", "class")


def _appended(spark: SparkSession, folder: Path, batch: int, like: DataFrame) -> DataFrame:
    """Return the rows of the batches before `batch`; a later one was not committed."""
    schema = T.StructType([*like.schema, T.StructField("batch", T.LongType())])
    if not any(folder.glob("batch=*")):
        return spark.createDataFrame([], schema)
    return read(spark, [folder], schema).where(F.col("batch") < batch)


def _newest(rows: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    latest = Window.partitionBy(*keys).orderBy(F.desc("batch"))
    ranked = rows.withColumn("rank", F.row_number().over(latest))
    return ranked.where("rank = 1").drop("rank", "batch")
