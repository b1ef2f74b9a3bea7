"""What taps saw at the targets, tied to the messages they belong to; DataFrames to a DataFrame.

An observed row names its message in `origin_id` where the system carries properties. Where it does
not, it belongs to the delivery of the same way, name and payload, in the order of time; among equal
messages nobody can tell one from another, so only their number is proven.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from gateway.archive.schema import Leg
from gateway.reconcile.classify.transforms import WAY, minute

_IDENTITY: Final = "^[0-9a-f]{32}$"
_ALIKE: Final = (*WAY, "name", "hash")


def is_observed() -> Column:
    return F.col("leg") == Leg.OBSERVED.value


def since(rows: DataFrame) -> DataFrame:
    """For each gateway, route and target with a tap, the first minute it saw something of."""
    first = F.min(minute(F.coalesce("received", "time"))).alias("tap_since")
    return rows.where(is_observed()).groupBy(*WAY).agg(first)


def named(rows: DataFrame) -> DataFrame:
    """The rows, each observed one with the id of its message where it carries that."""
    origin = F.lower("origin_id")
    carried = is_observed() & F.coalesce(origin.rlike(_IDENTITY), F.lit(False))
    return rows.withColumn(
        "id", F.when(carried, F.unhex(origin)).otherwise(F.col("id"))
    ).withColumn("blind", is_observed() & ~carried)


def matched(rows: DataFrame) -> DataFrame:
    """Spread and `named` rows, each blind one with the id and receipt of the delivery it equals.

    Those beyond the number of deliveries keep an id of their own.
    """
    order = Window.partitionBy(*_ALIKE).orderBy("time", "id")
    place = F.row_number().over(order).alias("place")
    delivered = rows.where(F.col("leg") == Leg.DELIVERED.value).select(
        *_ALIKE, place, F.col("id").alias("their_id"), F.col("own").alias("their_own")
    )
    blind = rows.where("blind").withColumn("place", F.row_number().over(order))
    tied = (
        blind.join(delivered, on=[*_ALIKE, "place"], how="left")
        .withColumn("id", F.coalesce("their_id", "id"))
        .withColumn("own", F.coalesce("their_own", "own"))
    )
    return rows.where(~F.col("blind")).unionByName(tied.select(*rows.columns))
