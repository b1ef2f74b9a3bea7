"""One dictionary of shortened names for an archive: what each stands for, where and when it went.

It is made of what the gateways wrote down, `_names`, and of the names of ends, `_pairs`, of every
day that is there. A pair whose name nobody wrote down gives it back where its route changed none
of its levels. DataFrames to DataFrames; `lexicon` reads and writes them.
"""

from __future__ import annotations

from datetime import date
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from gateway.archive.schema import Leg
from gateway.dialects.registry import DIALECTS
from gateway.reconcile.maintenance.short_names_decode import MEANT, meanings
from gateway.reconcile.schema import DICTIONARY_ROWS
from gateway.translate.shorten import DIGEST

_SOURCES: Final = 10  # names a shortened one came under that are listed
_SENT: Final = ("target", "system", "name", "digest")
_MEANT: Final = ("system", "name", "digest", "source_name")
_ENTRY: Final = DICTIONARY_ROWS.names


def used(ends: DataFrame) -> DataFrame:
    """The shortened names among `ends` by target, gateway and source name; times in microseconds.

    `ends` have the columns of name pairs, or are rows of the archive with a `count` of 1.
    """
    lists = [name for name, dialect in DIALECTS.items() if dialect.tag_lists]
    own = F.array("name")
    tags = F.when(F.col("system").isin(lists), F.split("name", ",")).otherwise(own)
    return (
        ends.where((F.col("leg") == Leg.DELIVERED.value) & F.col("name").rlike(DIGEST.pattern))
        .withColumn("name", F.explode(tags))
        .withColumn("digest", _digest())
        .where(F.col("digest") != "")
        .groupBy(*_SENT, F.coalesce("source_name", F.lit("")).alias("source_name"), "gateway")
        .agg(
            F.min(F.unix_micros("first_time")).alias("first"),
            F.max(F.unix_micros("last_time")).alias("last"),
            F.sum("count").alias("count"),
        )
    )


def _digest() -> Column:
    """The digest that is the last level of `name`, as its system cuts it; empty without one."""
    found = F.lit("")
    for dialect in DIALECTS.values():
        last = rf"(?:^|\Q{dialect.separator}\E)({DIGEST.pattern})\z"
        own = F.regexp_extract("name", last, 1)
        found = F.when(F.col("system") == dialect.name, own).otherwise(found)
    return found


def written(lines: DataFrame) -> DataFrame:
    """Each digest once, with its levels, when it was last written down and by whom.

    `noted` is null where any of its lines has no time.
    """
    known = F.count("noted") == F.count("*")
    return (
        lines.where(F.col("rule") == "")
        .groupBy("digest")
        .agg(
            F.any_value("levels").alias("noted_levels"),
            F.when(known, F.max("noted")).alias("noted"),
            F.sort_array(F.collect_set("gateway")).alias("noted_by"),
        )
    )


def meant(sent: DataFrame, notes: DataFrame) -> DataFrame:
    """What every different name of `sent` stands for, with `rule` and `text` of what is wrong."""
    asked = sent.select(*_MEANT).distinct().join(notes, "digest", "left")
    rows = asked.select(*_MEANT, "noted_levels").rdd.map(tuple)
    return sent.sparkSession.createDataFrame(rows.mapPartitions(meanings), MEANT)


def entries(sent: DataFrame, meaning: DataFrame) -> DataFrame:
    """The dictionary of names that were sent."""
    near = Window.partitionBy(*_SENT).orderBy("source_name")
    listed = F.when(F.col("place") <= _SOURCES, F.col("source_name"))
    found = (
        sent.join(meaning, list(_MEANT))
        .withColumn("place", F.dense_rank().over(near))
        .groupBy(*_SENT)
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
    return found.select(*_ENTRY)


def unused(notes: DataFrame, sent: DataFrame, oldest: date | None) -> DataFrame:
    """Entries of names that were written down and that no end has.

    With `oldest`, the first day that is kept, those written down before it are left out: the days
    that used them are gone. Without a time of its own a name stays.
    """
    idle = notes.join(sent.select("digest").distinct(), "digest", "left_anti")
    if oldest is not None:
        recent = F.timestamp_micros("noted") >= F.lit(oldest).cast("timestamp")
        idle = idle.where(F.col("noted").isNull() | recent)
    given = {
        "target": F.lit(""),
        "name": F.col("digest"),
        "digest": F.col("digest"),
        "levels": F.col("noted_levels"),
        "gateways": F.col("noted_by"),
        "sources": F.array(),
        "count": F.lit(0),
    }
    return idle.select(
        *[
            given.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name)
            for field in DICTIONARY_ROWS
        ]
    )
