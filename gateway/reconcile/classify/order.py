"""Who overtook whom: deliveries of one name against the order of receipt; DataFrames to one.

A delivery is out of order when it was made earlier than that of a message with a smaller id and
the same gateway, route, target and name at the source.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from gateway.archive.schema import Leg
from gateway.reconcile.classify.transforms import KEY


def stream() -> Column:
    """What is to keep its order: the deliveries of a way whose messages have one source name."""
    target = F.coalesce("target", F.lit(""))
    return F.xxhash64("gateway", "route", target, F.coalesce("source_name", "name"))


def overtaking() -> Column:
    """Whether a copy's first delivery was before that of an earlier copy of its stream."""
    before = Window.partitionBy("stream").orderBy("id").rowsBetween(Window.unboundedPreceding, -1)
    return F.coalesce(F.max("first_time").over(before) > F.col("first_time"), F.lit(False))


def overtakers(found: DataFrame) -> DataFrame:
    """The copies of `found` that were delivered out of order."""
    delivered = found.where(F.col("first_time").isNotNull())
    told = delivered.select(*KEY, "received_time", overtaking().alias("overtook"))
    return told.where("overtook").drop("overtook")


def crossing(pairs: DataFrame) -> DataFrame:
    """Streams with the files of those blocks of rows whose order their bounds do not prove.

    `pairs` has a row for each name and block, with the file the block is in. Two blocks are in
    order when one ends, by id and by time, before the other begins.
    """
    blocks = (
        pairs.where(F.col("leg") == Leg.DELIVERED.value)
        .withColumn("stream", stream())
        .groupBy("stream", "file", "block")
        .agg(
            F.min("first_id").alias("first_id"),
            F.max("last_id").alias("last_id"),
            F.min("first_time").alias("first_time"),
            F.max("last_time").alias("last_time"),
        )
        .localCheckpoint()
    )
    doubtful = _marked_after_earlier(blocks).where("crosses").select("stream").distinct()
    few = blocks.join(doubtful, on="stream", how="left_semi")
    return (
        _marked_before_later(_marked_after_earlier(few)).where("crosses").select("stream", "file")
    )


def _marked_after_earlier(blocks: DataFrame) -> DataFrame:
    """Adds `crosses`: the block begins before an earlier one has ended."""
    order = Window.partitionBy("stream").orderBy("first_id", "file", "block")
    earlier = order.rowsBetween(Window.unboundedPreceding, -1)
    crosses = (F.max("last_id").over(earlier) >= F.col("first_id")) | (
        F.max("last_time").over(earlier) > F.col("first_time")
    )
    return blocks.withColumn("crosses", F.coalesce(crosses, F.lit(False)))


def _marked_before_later(blocks: DataFrame) -> DataFrame:
    """Extends `crosses`: or the block ends after a later one has begun."""
    order = Window.partitionBy("stream").orderBy("first_id", "file", "block")
    later = order.rowsBetween(1, Window.unboundedFollowing)
    crosses = (F.min("first_id").over(later) <= F.col("last_id")) | (
        F.min("first_time").over(later) < F.col("last_time")
    )
    both = F.col("crosses") | F.coalesce(crosses, F.lit(False))
    return blocks.withColumn("crosses", both)
