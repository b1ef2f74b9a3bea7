"""The result tables of a reconciliation: DataFrame transforms.

`classes` are classified copies. `tallies` are counts by target and minute, of joined rows or from
digests; all other counts are sums of them.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from gateway.archive.schema import Leg
from gateway.archive.segments.latency import BUCKETS
from gateway.reconcile.classes import CopyClass
from gateway.reconcile.classify.transforms import (
    COPY_KEYS,
    TALLIES,
    TARGET_KEYS,
    is_receipt,
    minute,
)

PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "slowest": 1.0}
_EXCEPTION_CLASSES: Final = (
    CopyClass.MISSING, CopyClass.LOST, CopyClass.ALTERED, CopyClass.DUPLICATED,
    CopyClass.DISORDERED, CopyClass.UNEXPECTED, CopyClass.LATE, CopyClass.REFUSED, CopyClass.DEAD,
)  # fmt: skip


def tallied(classes: DataFrame) -> DataFrame:
    """Count the copies of each class by target and minute."""
    name = F.col("class")
    return classes.groupBy(*TARGET_KEYS, minute(F.col("received_time")).alias("minute")).agg(
        F.count_if("was_received").alias("received"),
        *[F.count_if(name == each.value).alias(each.value) for each in CopyClass],
        F.count_if((name == CopyClass.DUPLICATED.value) & F.col("marked")).alias("marked"),
        F.count_if("redelivered").alias("redelivered"),
    )


def proven_tallies(minutes: DataFrame) -> DataFrame:
    """Count the delivered copies of proven minutes; dead letters are counted from their rows."""
    known = {
        "received": F.col("delivered_count"),
        CopyClass.DELIVERED.value: F.col("delivered_count"),
        "redelivered": F.col("redelivered"),
    }
    counts = [known.get(name, F.lit(0)).cast("long").alias(name) for name in TALLIES]
    return minutes.select(*TARGET_KEYS, "minute", *counts)


def per_route(tallies: DataFrame) -> DataFrame:
    return _summed(tallies, "route", "target")


def per_gateway(tallies: DataFrame) -> DataFrame:
    return _summed(tallies, "gateway")


def per_hour(tallies: DataFrame, latencies: DataFrame) -> DataFrame:
    """Return counts, messages per second and latency percentiles by hour, route and target."""
    return _by_hour(tallies, latencies, "hour", "route", "target")


def whole_day(tallies: DataFrame, latencies: DataFrame) -> DataFrame:
    """Return counts, messages per second and latency percentiles of all routes by hour."""
    return _by_hour(tallies, latencies, "hour")


def _by_hour(tallies: DataFrame, latencies: DataFrame, *keys: str) -> DataFrame:
    hour = F.date_trunc("hour", "minute").alias("hour")
    counts = tallies.select("*", hour)
    return (
        _summed(counts, *keys)
        .withColumn("rate", F.col("received") / 3600)
        .join(percentiles(latencies, *keys), on=list(keys), how="left")
        .orderBy(*keys)
    )


def _summed(tallies: DataFrame, *keys: str) -> DataFrame:
    sums = [F.sum(F.col(f"`{name}`")).alias(name) for name in TALLIES]
    return tallies.groupBy(*keys).agg(*sums).orderBy(*keys)


def bucket(latency: Column) -> Column:
    """Return the latency bucket of microseconds, as in `gateway.archive.segments.latency`."""
    bits = F.length(F.bin(latency)) - 1
    half = F.expr("shiftright(latency, greatest(length(bin(latency)) - 2, 0)) & 1")
    wide = F.least(2 * bits + half, F.lit(BUCKETS - 1))
    return F.when(latency < 2, latency).otherwise(wide)  # noqa: PLR2004  # 0 and 1 have buckets of their own


def upper_bound(number: Column) -> Column:
    """Return the longest latency of a bucket, in microseconds."""
    octave = F.pow(F.lit(2.0), F.floor(number / 2))
    wide = octave * F.when(number % 2 == 1, 2.0).otherwise(1.5) - 1
    return F.when(number < 2, number).otherwise(wide).cast("long")  # noqa: PLR2004  # see `bucket`


def latencies(classes: DataFrame) -> DataFrame:
    """Count the delivered copies by hour, route, target and latency bucket."""
    hour = F.date_trunc("hour", "received_time").alias("hour")
    number = bucket(F.col("latency")).cast("long").alias("bucket")
    found = classes.where(F.col("was_received") & F.col("latency").isNotNull())
    return found.groupBy(hour, "route", "target", number).agg(F.count("*").alias("copies"))


def proven_latencies(digests: DataFrame, minutes: DataFrame) -> DataFrame:
    """Return the latency counts of proven minutes from their digests."""
    hour = F.date_trunc("hour", "minute").alias("hour")
    keys = [*TARGET_KEYS, "minute"]
    own = digests.where(F.col("leg") == Leg.DELIVERED.value).join(
        minutes.select(*keys), on=keys, how="left_semi"
    )
    each = own.select(hour, "route", "target", F.posexplode("latency").alias("bucket", "copies"))
    wide = F.col("bucket").cast("long").alias("bucket")
    summed = each.groupBy("hour", "route", "target", wide).agg(F.sum("copies").alias("copies"))
    return summed.where(F.col("copies") > 0)


def percentiles(found: DataFrame, *keys: str) -> DataFrame:
    """Return latency percentiles by `keys`, in microseconds, to a half octave.

    The column `timed` is the number of copies with a known latency.
    """
    group = Window.partitionBy(*keys)
    up_to = group.orderBy("bucket").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    merged = found.groupBy(*keys, "bucket").agg(F.sum("copies").alias("copies"))
    cumulated = merged.withColumn("up_to", F.sum("copies").over(up_to)).withColumn(
        "all", F.sum("copies").over(group)
    )
    bound = upper_bound(F.col("bucket"))
    bounds = [
        F.min(F.when(F.col("up_to") >= F.col("all") * share, bound)).alias(name)
        for name, share in PERCENTILES.items()
    ]
    return cumulated.groupBy(*keys).agg(F.max("all").alias("timed"), *bounds)


def with_details(found: DataFrame, rows: DataFrame) -> DataFrame:
    """Add the details of exceptions: names, size, rule and reason.

    `rows` contain the rows of the exceptions, one for each target.
    """
    received, dead = is_receipt(), F.col("leg") == Leg.DEAD.value
    rule = F.coalesce("rule", F.lit("")).alias("rule")
    details = (
        rows.join(found.select(*COPY_KEYS), on=list(COPY_KEYS), how="left_semi")
        .groupBy(*COPY_KEYS)
        .agg(
            F.coalesce(
                F.min(F.when(received, F.col("name"))), F.min("source_name"), F.min("name")
            ).alias("name"),
            F.max("size").alias("size"),
            F.max(F.when(F.col("leg") == Leg.DELIVERED.value, F.col("name"))).alias("sent_name"),
            F.max(F.when(dead, F.struct(rule, "reason"))).alias("dead"),
        )
    )  # fmt: skip
    return found.join(details, on=list(COPY_KEYS), how="left").select(
        "class",
        "gateway",
        "route",
        "target",
        F.lower(F.hex("id")).alias("id"),
        "received_time",
        "end_time",
        "latency",
        "deliveries",
        "sightings",
        "marked",
        "name",
        "size",
        "sent_name",
        "dead.*",
    )


def dead_letters(found: DataFrame) -> DataFrame:
    """Count dead-lettered exceptions by rule, with one example of each."""
    dead = found.where(F.col("class").isin(CopyClass.REFUSED.value, CopyClass.DEAD.value))
    example = F.struct("id", "name", "reason")
    return (
        dead.groupBy("class", "route", "target", F.coalesce("rule", F.lit("")).alias("rule"))
        .agg(F.count("*").alias("copies"), F.min(example).alias("example"))
        .select("class", "route", "target", "rule", "copies", "example.*")
        .orderBy("route", "target", "rule")
    )


def worst_names(found: DataFrame, limit: int) -> DataFrame:
    """Return the source names with the most exceptions, with counts by class."""
    name = F.col("class")
    bad = found.where(
        name.isin(*[each.value for each in _EXCEPTION_CLASSES]) & F.col("name").isNotNull()
    )
    counts = [F.count_if(name == each.value).alias(each.value) for each in _EXCEPTION_CLASSES]
    return (
        bad.groupBy("route", "name")
        .agg(F.count("*").alias("copies"), *counts)
        .orderBy(F.desc("copies"), "route", "name")
        .limit(limit)
    )


def sample(found: DataFrame, of_each: int) -> DataFrame:
    """Return the first `of_each` exceptions of every class, by time of receipt."""
    order = Window.partitionBy("class").orderBy("received_time", "gateway", "id", "target")
    ranked = found.withColumn("rank", F.row_number().over(order))
    return (
        ranked.where(F.col("rank") <= of_each).drop("rank").orderBy("class", "received_time", "id")
    )
