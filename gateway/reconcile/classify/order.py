"""Detection of deliveries out of order: DataFrame transforms.

A delivery is out of order when it was recorded before that of a message with a smaller id and the
same gateway, route, target and source name. The deliveries with these in common are a *stream*. A
busy stream is divided into blocks of ids, so that many tasks check it; each block starts with the
latest delivery of the blocks before it.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from gateway.model.copy_class import CopyClass

_BLOCK_BITS: Final = 16  # of the counter of an id within its block
_BLOCK: Final = ("stream", "run", "block")
_BEFORE: Final = (Window.unboundedPreceding, -1)  # the rows before each one


def mark_disordered(classes: DataFrame, is_own: Column) -> DataFrame:
    """Set the class of copies that were delivered, in time or late, before an earlier one.

    Copies that are not `is_own`, of other dates, count when their receipt is known.
    """
    blocks = classes.withColumn("block", F.shiftright("counter", _BLOCK_BITS))
    first_time = F.when(is_own | F.col("was_received"), F.col("first_time"))
    timed = blocks.withColumn("first_time", first_time)
    carried = _latest_before(timed)
    joined = timed.join(carried, on=list(_BLOCK), how="left")
    before = Window.partitionBy(*_BLOCK).orderBy("counter").rowsBetween(*_BEFORE)
    latest = F.greatest(F.max("first_time").over(before), F.col("carried"))
    delivered = F.col("class").isin(CopyClass.DELIVERED.value, CopyClass.LATE.value)
    disordered = delivered & F.coalesce(latest > F.col("first_time"), F.lit(False))
    name = F.when(disordered, CopyClass.DISORDERED.value).otherwise(F.col("class"))
    return joined.withColumn("class", name)


def _latest_before(blocks: DataFrame) -> DataFrame:
    """Return the latest delivery before each block that begins before it."""
    bounds = (
        blocks.where(F.col("first_time").isNotNull())
        .groupBy(*_BLOCK)
        .agg(F.max("first_time").alias("latest"), F.min("first_time").alias("earliest"))
    )
    before = Window.partitionBy("stream").orderBy("run", "block").rowsBetween(*_BEFORE)
    carried = bounds.withColumn("carried", F.max("latest").over(before))
    return carried.where(F.col("carried") > F.col("earliest")).select(*_BLOCK, "carried")
