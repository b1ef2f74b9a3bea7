"""Detection of deliveries out of order: DataFrame transforms.

A delivery is out of order when it was recorded before that of a message with a smaller id and the
same gateway, route, target and source name. The deliveries with these in common are a *stream*.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from gateway.archive.schema import Leg
from gateway.reconcile.classify.transforms import COPY_KEYS


def stream() -> Column:
    """Return the hash that identifies the stream of a row."""
    target = F.coalesce("target", F.lit(""))
    return F.xxhash64("gateway", "route", target, F.coalesce("source_name", "name"))


def is_out_of_order() -> Column:
    """Return whether a copy was first delivered before an earlier copy of its stream."""
    before = Window.partitionBy("stream").orderBy("id").rowsBetween(Window.unboundedPreceding, -1)
    return F.coalesce(F.max("first_time").over(before) > F.col("first_time"), F.lit(False))


def out_of_order(copies: DataFrame) -> DataFrame:
    """Return the copies that were delivered out of order."""
    delivered = copies.where(F.col("first_time").isNotNull())
    flagged = delivered.select(*COPY_KEYS, "received_time", is_out_of_order().alias("disordered"))
    return flagged.where("disordered").drop("disordered")


def crossing_streams(pairs: DataFrame) -> DataFrame:
    """Return streams with blocks that overlap, and the files of these blocks.

    `pairs` has a row for each name and block, with the file of the block. Two blocks are in order
    when one ends, by id and by time, before the other begins.
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
    streams = _mark_overlap_before(blocks).where("crosses").select("stream").distinct()
    candidates = blocks.join(streams, on="stream", how="left_semi")
    marked = _mark_overlap_after(_mark_overlap_before(candidates))
    return marked.where("crosses").select("stream", "file")


def _mark_overlap_before(blocks: DataFrame) -> DataFrame:
    """Add `crosses`: whether the block begins before the end of an earlier one."""
    order = Window.partitionBy("stream").orderBy("first_id", "file", "block")
    earlier = order.rowsBetween(Window.unboundedPreceding, -1)
    crosses = (F.max("last_id").over(earlier) >= F.col("first_id")) | (
        F.max("last_time").over(earlier) > F.col("first_time")
    )
    return blocks.withColumn("crosses", F.coalesce(crosses, F.lit(False)))


def _mark_overlap_after(blocks: DataFrame) -> DataFrame:
    """Set `crosses` also where the block ends after the beginning of a later one."""
    order = Window.partitionBy("stream").orderBy("first_id", "file", "block")
    later = order.rowsBetween(1, Window.unboundedFollowing)
    crosses = (F.min("first_id").over(later) <= F.col("last_id")) | (
        F.min("first_time").over(later) < F.col("last_time")
    )
    both = F.col("crosses") | F.coalesce(crosses, F.lit(False))
    return blocks.withColumn("crosses", both)
