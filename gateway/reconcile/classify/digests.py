"""Comparison of digest sums, which separates proven minutes from minutes to be joined.

A minute of a gateway, route and target is *proven* when the sums of its received rows equal the
sums of its outcomes: the count, and the 128-bit sums over ids and contents. Its rows are not read.
"""

from __future__ import annotations

from datetime import date
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from gateway.archive.schema import Leg
from gateway.reconcile.classify.transforms import TARGET_KEYS, on_date

_SUMS: Final = (
    *(f"id_{word}" for word in range(4)),
    *(f"content_{word}" for word in range(4)),
)
_LEGS: Final = (Leg.RECEIVED, Leg.DELIVERED, Leg.DEAD, Leg.OBSERVED)


def differences(digests: DataFrame) -> DataFrame:
    """Return a row for each target and minute: counts by leg, and the difference of every sum.

    `pending_*` is received minus outcomes, `unseen_*` is delivered minus observed by a tap. A
    difference is 0 where both sides agree.
    """
    leg = F.col("leg")
    delivered, ended = leg == Leg.DELIVERED.value, leg.isin(Leg.DELIVERED.value, Leg.DEAD.value)
    unrouted = (leg == Leg.DEAD.value) & (F.col("route") == "")
    receipt = (leg == Leg.RECEIVED.value) | unrouted
    pending = F.when(unrouted, 0).when(receipt, 1).when(ended, -1).otherwise(0)
    unseen = F.when(delivered, 1).when(leg == Leg.OBSERVED.value, -1).otherwise(0)
    counts = {each: F.when(leg == each.value, F.col("count")).otherwise(0) for each in _LEGS}
    return digests.groupBy(*TARGET_KEYS, "minute").agg(
        *[F.sum(count).alias(f"{each.value}_count") for each, count in counts.items()],
        F.sum(pending * F.col("count")).alias("pending"),
        F.sum(unseen * F.col("count")).alias("unseen"),
        *[F.sum(pending * F.col(name)).alias(f"pending_{name}") for name in _SUMS],
        *[F.sum(unseen * F.col(name)).alias(f"unseen_{name}") for name in _SUMS],
        F.sum(F.when(delivered, F.col("converted")).otherwise(0)).alias("converted"),
        F.sum(F.when(receipt, F.col("redelivered")).otherwise(0)).alias("redelivered"),
        F.max(F.when(delivered, F.col("slowest")).otherwise(0)).alias("slowest"),
        F.coalesce(F.max("forced"), F.lit(False)).alias("forced"),
    )


def proven_minutes(sums: DataFrame, day: date, late: int) -> DataFrame:
    """Return the minutes that count for `day`, with the flag `proven`.

    A minute with an outcome later than `late` seconds is not proven. Minutes of the neighbouring
    days count only for targets with a tap: a tap may see a message of the date after midnight.
    """
    of_target = Window.partitionBy("route", "target")
    tapped = F.max(F.col("observed_count") > 0).over(of_target)
    settled = _sums_agree() & ~F.col("forced") & (F.col("slowest") <= late * 1_000_000)
    by_gateway = sums.withColumn("tapped", tapped).withColumn(
        "proven", settled & (~F.col("tapped") | _tap_agrees())
    )
    # A tap sees the messages of every gateway, so a difference at one concerns all of them.
    of_minute = Window.partitionBy("route", "target", "minute")
    of_all = F.when(F.col("tapped"), F.min("proven").over(of_minute)).otherwise(F.col("proven"))
    return (
        by_gateway.withColumn("proven", of_all)
        .withColumn("today", on_date(F.col("minute"), day))
        .where(F.col("today") | (F.col("tapped") & ~F.col("proven")))
    )


def _sums_agree() -> Column:
    """Return whether the outcomes of a minute are exactly the expected ones."""
    all_converted = (F.col("converted") == F.col("delivered_count")) & (F.col("converted") > 0)
    agree = F.col("pending") == 0
    for name in _SUMS:
        equal = F.col(f"pending_{name}") == 0
        agree &= (equal | all_converted) if name.startswith("content") else equal
    return agree & (all_converted | (F.col("converted") == 0))


def _tap_agrees() -> Column:
    """Return whether the tap saw exactly the delivered messages."""
    agree = F.col("unseen") == 0
    for name in _SUMS:
        agree &= F.col(f"unseen_{name}") == 0
    return agree


def tap_starts(sums: DataFrame) -> DataFrame:
    """Return, for each target with a tap, the first minute with an observed message."""
    return (
        sums.where(F.col("observed_count") > 0)
        .groupBy(*TARGET_KEYS)
        .agg(F.min("minute").alias("tap_since"))
    )


def unproven_minutes(minutes: DataFrame, also: DataFrame) -> DataFrame:
    """Return the minutes whose rows are joined: those not proven, and those of `also`."""
    found = minutes.where(~F.col("proven")).select(*TARGET_KEYS, "minute")
    return found.unionByName(also.select(*TARGET_KEYS, "minute")).distinct()
