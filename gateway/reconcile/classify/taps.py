"""Assignment of observed rows to the messages that a tap saw: DataFrame transforms.

An observed row has the message id in `origin_id` where the system carries properties. Otherwise
it is assigned by route, target, name and payload, in the order of time. Equal messages cannot be
distinguished, so only their number is checked.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from gateway.archive.schema import Leg
from gateway.reconcile.classify.transforms import TARGET_KEYS, minute

_MESSAGE_ID: Final = "^[0-9a-f]{32}$"
_EQUAL_KEYS: Final = (*TARGET_KEYS, "name", "hash")


def is_observed() -> Column:
    return F.col("leg") == Leg.OBSERVED.value


def tap_starts(rows: DataFrame) -> DataFrame:
    """Return, for each gateway, route and target with a tap, its first observed minute."""
    first = F.min(minute(F.coalesce("received", "time"))).alias("tap_since")
    return rows.where(is_observed()).groupBy(*TARGET_KEYS).agg(first)


def with_message_ids(rows: DataFrame) -> DataFrame:
    """Set the id of observed rows from `origin_id`; rows without one get the flag `no_id`."""
    origin = F.lower("origin_id")
    has_id = is_observed() & F.coalesce(origin.rlike(_MESSAGE_ID), F.lit(False))
    return rows.withColumn("id", F.when(has_id, F.unhex(origin)).otherwise(F.col("id"))).withColumn(
        "no_id", is_observed() & ~has_id
    )


def assign_by_content(rows: DataFrame) -> DataFrame:
    """Give each row with `no_id` the id and receipt of the equal delivery, in the order of time.

    Surplus rows keep their own id.
    """
    order = Window.partitionBy(*_EQUAL_KEYS).orderBy("time", "id")
    rank = F.row_number().over(order).alias("rank")
    delivered = rows.where(F.col("leg") == Leg.DELIVERED.value).select(
        *_EQUAL_KEYS,
        rank,
        F.col("id").alias("delivered_id"),
        F.col("receipt_time").alias("delivered_receipt"),
    )
    observed = rows.where("no_id").withColumn("rank", F.row_number().over(order))
    assigned = (
        observed.join(delivered, on=[*_EQUAL_KEYS, "rank"], how="left")
        .withColumn("id", F.coalesce("delivered_id", "id"))
        .withColumn("receipt_time", F.coalesce("delivered_receipt", "receipt_time"))
    )
    return rows.where(~F.col("no_id")).unionByName(assigned.select(*rows.columns))
