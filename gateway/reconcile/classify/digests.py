"""Minutes that add up, and those that do not: sums against sums; DataFrames to a DataFrame.

A minute of a way (gateway, route, target) is *proven* when what was received in it has, by count
and by 128-bit sums over ids and contents, exactly the ends it owes. No message of it need be read.
"""

from __future__ import annotations

from datetime import date
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from gateway.archive.schema import Leg
from gateway.reconcile.classify.transforms import WAY, on_date

_SUMS: Final = (
    *(f"id_{word}" for word in range(4)),
    *(f"content_{word}" for word in range(4)),
)
_LEGS: Final = (Leg.RECEIVED, Leg.DELIVERED, Leg.DEAD, Leg.OBSERVED)


def added_up(digests: DataFrame) -> DataFrame:
    """One row a way and minute: rows by leg, and what is left over of every sum.

    `owed_*` is what was received less its ends, `unseen_*` what was delivered less what a tap saw:
    all are 0 where both agree.
    """
    leg = F.col("leg")
    delivered, ended = leg == Leg.DELIVERED.value, leg.isin(Leg.DELIVERED.value, Leg.DEAD.value)
    on_arrival = (leg == Leg.DEAD.value) & (F.col("route") == "")
    receipt = (leg == Leg.RECEIVED.value) | on_arrival
    owed = F.when(on_arrival, 0).when(receipt, 1).when(ended, -1).otherwise(0)
    unseen = F.when(delivered, 1).when(leg == Leg.OBSERVED.value, -1).otherwise(0)
    counts = {each: F.when(leg == each.value, F.col("count")).otherwise(0) for each in _LEGS}
    return digests.groupBy(*WAY, "minute").agg(
        *[F.sum(count).alias(f"{each.value}_count") for each, count in counts.items()],
        F.sum(owed * F.col("count")).alias("owed"),
        F.sum(unseen * F.col("count")).alias("unseen"),
        *[F.sum(owed * F.col(name)).alias(f"owed_{name}") for name in _SUMS],
        *[F.sum(unseen * F.col(name)).alias(f"unseen_{name}") for name in _SUMS],
        F.sum(F.when(delivered, F.col("converted")).otherwise(0)).alias("converted"),
        F.sum(F.when(receipt, F.col("redelivered")).otherwise(0)).alias("redelivered"),
        F.max(F.when(delivered, F.col("slowest")).otherwise(0)).alias("slowest"),
        F.coalesce(F.max("forced"), F.lit(False)).alias("forced"),
    )


def judged(sums: DataFrame, day: date, patience: int) -> DataFrame:
    """The minutes that count for `day`, with `proven`; an end `patience` seconds late proves none.

    Minutes beside the date count for ways with a tap only: what a tap sees just after midnight may
    belong to a message of just before.
    """
    watched = Window.partitionBy("route", "target")
    tapped = F.max(F.col("observed_count") > 0).over(watched)
    settled = _settled() & ~F.col("forced") & (F.col("slowest") <= patience * 1_000_000)
    alone = sums.withColumn("tapped", tapped).withColumn(
        "proven", settled & (~F.col("tapped") | _seen())
    )
    # A tap sees what every gateway sends there, so that one that disagrees concerns them all.
    there = Window.partitionBy("route", "target", "minute")
    shared = F.when(F.col("tapped"), F.min("proven").over(there)).otherwise(F.col("proven"))
    return (
        alone.withColumn("proven", shared)
        .withColumn("today", on_date(F.col("minute"), day))
        .where(F.col("today") | (F.col("tapped") & ~F.col("proven")))
    )


def _settled() -> Column:
    """Whether the ends of a minute are exactly those it owes."""
    all_converted = (F.col("converted") == F.col("delivered_count")) & (F.col("converted") > 0)
    agree = F.col("owed") == 0
    for name in _SUMS:
        nothing = F.col(f"owed_{name}") == 0
        agree &= (nothing | all_converted) if name.startswith("content") else nothing
    return agree & (all_converted | (F.col("converted") == 0))


def _seen() -> Column:
    """Whether the tap saw exactly what was delivered."""
    agree = F.col("unseen") == 0
    for name in _SUMS:
        agree &= F.col(f"unseen_{name}") == 0
    return agree


def tap_starts(sums: DataFrame) -> DataFrame:
    """For each way with a tap, the first minute it saw something of."""
    return (
        sums.where(F.col("observed_count") > 0)
        .groupBy(*WAY)
        .agg(F.min("minute").alias("tap_since"))
    )


def suspects(minutes: DataFrame, also: DataFrame) -> DataFrame:
    """Minutes whose messages are joined: those that are not proven, and those of `also`."""
    found = minutes.where(~F.col("proven")).select(*WAY, "minute")
    return found.unionByName(also.select(*WAY, "minute")).distinct()
