"""Assignment of observed rows to the messages that a tap saw: a DataFrame transform.

An observed row has the message id where the system carries properties. Otherwise it is assigned by
route, target, name and payload, in the order of time. Equal messages cannot be distinguished, so
only their number is checked.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from gateway.archive.schema import Leg
from gateway.reconcile.classify.transforms import ID, TARGET_KEYS

_EQUAL_KEYS: Final = (*TARGET_KEYS, "name", "hash_high", "hash_low")


def assign_by_content(rows: DataFrame) -> DataFrame:
    """Give each row with `no_id` the id and receipt of the equal delivery, in the order of time.

    Surplus rows keep their own id.
    """
    order = Window.partitionBy(*_EQUAL_KEYS).orderBy("time", *ID)
    rank = F.row_number().over(order).alias("rank")
    delivered = rows.where(F.col("leg") == Leg.DELIVERED.value).select(
        *_EQUAL_KEYS,
        rank,
        *[F.col(name).alias(f"delivered_{name}") for name in (*ID, "receipt_time")],
    )
    observed = rows.where("no_id").withColumn("rank", F.row_number().over(order))
    assigned = observed.join(delivered, on=[*_EQUAL_KEYS, "rank"], how="left")
    for name in (*ID, "receipt_time"):
        assigned = assigned.withColumn(name, F.coalesce(f"delivered_{name}", name))
    return rows.where(~F.col("no_id")).unionByName(assigned.select(*rows.columns))
