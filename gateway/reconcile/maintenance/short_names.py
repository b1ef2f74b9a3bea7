"""Transforms that build the dictionary of shortened names: whole names, targets, use.

Input are the names that gateways recorded in `_names`, and the name pairs of all days.
An unrecorded name is recovered from a pair when its route changed none of its levels.
"""

from __future__ import annotations

from datetime import date
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from gateway.dialects.registry import DIALECTS
from gateway.reconcile.input.executors import map_records
from gateway.reconcile.maintenance.short_names_decode import DECODED, decode
from gateway.reconcile.schema import DICTIONARY_ROWS
from gateway.translate.shorten import DIGEST

_MAX_SOURCES: Final = 10  # source names in an entry
_SENT_KEYS: Final = ("target", "system", "name", "digest")
_DECODED_KEYS: Final = ("system", "name", "digest", "source_name")
_ENTRY_COLUMNS: Final = DICTIONARY_ROWS.names


def sent_names(deliveries: DataFrame) -> DataFrame:
    """Return the shortened names in `deliveries`, by target, gateway and source name.

    `deliveries` have the columns of `short_names_files.SENT`, with times in microseconds.
    """
    lists = [name for name, dialect in DIALECTS.items() if dialect.tag_lists]
    own = F.array("name")
    tags = F.when(F.col("system").isin(lists), F.split("name", ",")).otherwise(own)
    return (
        deliveries.where(F.col("rule") == "")
        .withColumn("name", F.explode(tags))
        .withColumn("digest", _digest())
        .where(F.col("digest") != "")
        .groupBy(*_SENT_KEYS, F.coalesce("source_name", F.lit("")).alias("source_name"), "gateway")
        .agg(
            F.min("first").alias("first"),
            F.max("last").alias("last"),
            F.sum("count").alias("count"),
        )
    )


def _digest() -> Column:
    """Return the digest in the last level of `name`, in its system's syntax; empty without one."""
    found = F.lit("")
    for dialect in DIALECTS.values():
        last = rf"(?:^|\Q{dialect.separator}\E)({DIGEST.pattern})\z"
        own = F.regexp_extract("name", last, 1)
        found = F.when(F.col("system") == dialect.name, own).otherwise(found)
    return found


def recorded_names(lines: DataFrame) -> DataFrame:
    """Return each recorded digest with its levels, the last time, and the gateways.

    The time `noted` is null when any line of the digest has no time.
    """
    has_times = F.count("noted") == F.count("*")
    return (
        lines.where(F.col("rule") == "")
        .groupBy("digest")
        .agg(
            F.any_value("levels").alias("noted_levels"),
            F.when(has_times, F.max("noted")).alias("noted"),
            F.sort_array(F.collect_set("gateway")).alias("noted_by"),
        )
    )


def decoded(sent: DataFrame, recorded: DataFrame) -> DataFrame:
    """Return the whole name of every distinct name of `sent`, with the findings."""
    names = sent.select(*_DECODED_KEYS).distinct().join(recorded, "digest", "left")
    return map_records(names.select(*_DECODED_KEYS, "noted_levels"), DECODED, decode)


def entries(sent: DataFrame, whole_names: DataFrame) -> DataFrame:
    """Return the dictionary entries of names that were sent."""
    by_source = Window.partitionBy(*_SENT_KEYS).orderBy("source_name")
    listed = F.when(F.col("rank") <= _MAX_SOURCES, F.col("source_name"))
    found = (
        sent.join(whole_names, list(_DECODED_KEYS))
        .withColumn("rank", F.dense_rank().over(by_source))
        .groupBy(*_SENT_KEYS)
        .agg(
            F.any_value("levels").alias("levels"),
            F.any_value("whole").alias("whole"),
            F.sort_array(F.collect_set(listed)).alias("sources"),
            F.sort_array(F.collect_set("gateway")).alias("gateways"),
            F.timestamp_micros(F.min("first")).alias("first_time"),
            F.timestamp_micros(F.max("last")).alias("last_time"),
            F.sum("count").alias("count"),
        )
    )
    return found.select(*_ENTRY_COLUMNS)


def unused_entries(recorded: DataFrame, sent: DataFrame, oldest: date | None) -> DataFrame:
    """Return entries for the recorded names that no delivery uses.

    With `oldest`, the first kept day, names recorded before it are left out: the days that used
    them were removed. A name without a time stays.
    """
    unused = recorded.join(sent.select("digest").distinct(), "digest", "left_anti")
    if oldest is not None:
        recent = F.timestamp_micros("noted") >= F.lit(oldest).cast("timestamp")
        unused = unused.where(F.col("noted").isNull() | recent)
    values = {
        "target": F.lit(""),
        "name": F.col("digest"),
        "digest": F.col("digest"),
        "levels": F.col("noted_levels"),
        "gateways": F.col("noted_by"),
        "sources": F.array(),
        "count": F.lit(0),
    }
    return unused.select(
        *[
            values.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name)
            for field in DICTIONARY_ROWS
        ]
    )
