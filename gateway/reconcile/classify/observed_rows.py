"""Assignment of observed rows to the messages that a tap saw: a DataFrame transform.

An observed row has the message id where the system carries properties. Otherwise it is assigned by
route, target, name and payload, in the order of time. Equal messages cannot be distinguished, so
only their number is checked; a redelivery to the tap repeats a message that it saw before.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from gateway.archive.schema import Leg
from gateway.reconcile.classify.transforms import ID
from gateway.reconcile.grouping import TARGET_KEYS

_MAX_ATTEMPTS: Final = 10  # of one delivery that may have arrived
_EQUAL_KEYS: Final = (*TARGET_KEYS, "name", "hash_high", "hash_low")


def assign_by_content(rows: DataFrame) -> DataFrame:
    """Give each row with `no_id` the id and receipt of the equal delivery, in the order of time.

    Every attempt of a delivery may have arrived; the first rows are those of first attempts.
    Surplus rows keep their own id; surplus redeliveries of a row before them are dropped.
    """
    equal = Window.partitionBy(*_EQUAL_KEYS)
    attempts = F.least(F.greatest(F.coalesce("attempt", F.lit(1)), F.lit(1)), F.lit(_MAX_ATTEMPTS))
    attempt = F.explode(F.sequence(F.lit(1), attempts)).alias("number")
    sent = rows.where(F.col("leg") == Leg.DELIVERED.value).select("*", attempt)
    delivered = sent.select(
        *_EQUAL_KEYS,
        F.row_number().over(equal.orderBy("number", "time", *ID)).alias("rank"),
        *[F.col(name).alias(f"delivered_{name}") for name in (*ID, "receipt_time")],
    )
    rank = F.row_number().over(equal.orderBy("redelivered", "time", *ID))
    observed = rows.where("no_id").withColumn("rank", rank)
    assigned = observed.join(delivered, on=[*_EQUAL_KEYS, "rank"], how="left")
    is_repeat = F.col("delivered_run").isNull() & F.col("redelivered") & (F.col("rank") > 1)
    assigned = assigned.where(~is_repeat)
    for name in (*ID, "receipt_time"):
        assigned = assigned.withColumn(name, F.coalesce(f"delivered_{name}", name))
    return rows.where(~F.col("no_id")).unionByName(assigned.select(*rows.columns))
