"""Comparison of the names that were sent with their translation by another mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, TypeAlias

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from gateway.archive.schema import Leg

# Route, target, source name -> name at the target; without one, the reason in parentheses.
Translator: TypeAlias = Callable[[str, str, str], str]

_MAX_LOCAL: Final = 20_000  # distinct names that the driver translates faster than executors
_SCHEMA: Final = (
    "route string, target string, source_name string, name string, now string, copies long"
)


def renamed(pairs: DataFrame, translator: Translator) -> DataFrame:
    """Return the distinct names whose translation differs from the sent one, with their copies."""
    distinct = (
        pairs.where((F.col("leg") == Leg.DELIVERED.value) & F.col("source_name").isNotNull())
        .groupBy("route", "target", "source_name", "name")
        .agg(F.sum("count").alias("copies"))
        .persist()
    )
    work = partial(_compare, translator)
    spark = distinct.sparkSession
    if distinct.count() <= _MAX_LOCAL:
        return spark.createDataFrame(list(work(distinct.collect())), _SCHEMA)
    return spark.createDataFrame(distinct.rdd.mapPartitions(work), _SCHEMA)


def _compare(
    translator: Translator, rows: Iterable[Row]
) -> Iterator[tuple[str, str, str, str, str, int]]:
    for row in rows:
        now = translator(row["route"], row["target"], row["source_name"])
        if now != row["name"]:
            yield (
                row["route"], row["target"], row["source_name"], row["name"], now, row["copies"],
            )  # fmt: skip
