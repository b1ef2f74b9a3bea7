"""The tables of a night, which the report and its pictures are made of; DataFrames to one.

`classes` are classified copies. `tallies` has the counts of one way, minute and hour, joined or
proven by digest; everything that is counted comes from it.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from gateway.archive.schema import Leg
from gateway.archive.segments.latency import BUCKETS
from gateway.reconcile.classes import Class
from gateway.reconcile.classify.transforms import KEY, TALLIES, WAY, is_receipt, minute

PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "slowest": 1.0}
_BAD: Final = (
    Class.MISSING, Class.LOST, Class.ALTERED, Class.DUPLICATED, Class.DISORDERED, Class.UNEXPECTED,
    Class.LATE, Class.REFUSED, Class.DEAD,
)  # fmt: skip


def tallied(classes: DataFrame) -> DataFrame:
    """How many copies of each way and minute are in each class."""
    name = F.col("class")
    return classes.groupBy(*WAY, minute(F.col("received_time")).alias("minute")).agg(
        F.count_if("owed").alias("received"),
        *[F.count_if(name == each.value).alias(each.value) for each in Class],
        F.count_if((name == Class.DUPLICATED.value) & F.col("marked")).alias("marked"),
        F.count_if("redelivered").alias("redelivered"),
    )


def proven_tallies(minutes: DataFrame) -> DataFrame:
    """The same of minutes proven by digest: all that was delivered; the dead are counted by row."""
    given = {
        "received": F.col("delivered_count"),
        Class.DELIVERED.value: F.col("delivered_count"),
        "redelivered": F.col("redelivered"),
    }
    counts = [given.get(name, F.lit(0)).cast("long").alias(name) for name in TALLIES]
    return minutes.select(*WAY, "minute", *counts)


def per_route(tallies: DataFrame) -> DataFrame:
    return _summed(tallies, "route", "target")


def per_gateway(tallies: DataFrame) -> DataFrame:
    return _summed(tallies, "gateway")


def per_hour(tallies: DataFrame, latencies: DataFrame) -> DataFrame:
    """Counts, messages a second and latency percentiles by hour, route and target."""
    return _by_hour(tallies, latencies, "hour", "route", "target")


def whole_day(tallies: DataFrame, latencies: DataFrame) -> DataFrame:
    """The same of all routes together."""
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
    """Microseconds by half octaves, as the digests count them; two whole numbers below 2."""
    bits = F.length(F.bin(latency)) - 1
    half = F.expr("shiftright(latency, greatest(length(bin(latency)) - 2, 0)) & 1")
    wide = F.least(2 * bits + half, F.lit(BUCKETS - 1))
    return F.when(latency < 2, latency).otherwise(wide)  # noqa: PLR2004  # told above


def upper(place: Column) -> Column:
    """The longest latency of a bucket, in microseconds."""
    octave = F.pow(F.lit(2.0), F.floor(place / 2))
    wide = octave * F.when(place % 2 == 1, 2.0).otherwise(1.5) - 1
    return F.when(place < 2, place).otherwise(wide).cast("long")  # noqa: PLR2004  # as in `bucket`


def latencies(classes: DataFrame) -> DataFrame:
    """How many delivered copies took how long, by hour, route, target and bucket."""
    hour = F.date_trunc("hour", "received_time").alias("hour")
    place = bucket(F.col("latency")).cast("long").alias("bucket")
    found = classes.where(F.col("owed") & F.col("latency").isNotNull())
    return found.groupBy(hour, "route", "target", place).agg(F.count("*").alias("copies"))


def proven_latencies(digests: DataFrame, minutes: DataFrame) -> DataFrame:
    """The same of proven minutes, from the counts in their digests."""
    hour = F.date_trunc("hour", "minute").alias("hour")
    own = digests.where(F.col("leg") == Leg.DELIVERED.value).join(
        minutes.select(*WAY, "minute"), on=[*WAY, "minute"], how="left_semi"
    )
    each = own.select(hour, "route", "target", F.posexplode("latency").alias("bucket", "copies"))
    wide = F.col("bucket").cast("long").alias("bucket")
    summed = each.groupBy("hour", "route", "target", wide).agg(F.sum("copies").alias("copies"))
    return summed.where(F.col("copies") > 0)


def percentiles(found: DataFrame, *keys: str) -> DataFrame:
    """By `keys`, microseconds that so many copies did not exceed, to a half octave.

    `timed` is of how many copies.
    """
    own = Window.partitionBy(*keys)
    so_far = own.orderBy("bucket").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    merged = found.groupBy(*keys, "bucket").agg(F.sum("copies").alias("copies"))
    placed = merged.withColumn("below", F.sum("copies").over(so_far)).withColumn(
        "all", F.sum("copies").over(own)
    )
    reached = [
        F.min(F.when(F.col("below") >= F.col("all") * share, upper(F.col("bucket")))).alias(name)
        for name, share in PERCENTILES.items()
    ]
    return placed.groupBy(*keys).agg(F.max("all").alias("timed"), *reached)


def detailed(found: DataFrame, rows: DataFrame) -> DataFrame:
    """Exceptions with what a person needs to look them up: names, sizes, the rule, the reason.

    `rows` are spread, and hold those of the exceptions.
    """
    received, dead = is_receipt(), F.col("leg") == Leg.DEAD.value
    rule = F.coalesce("rule", F.lit("")).alias("rule")
    details = (
        rows.join(found.select(*KEY), on=list(KEY), how="left_semi")
        .groupBy(*KEY)
        .agg(
            F.coalesce(
                F.min(F.when(received, F.col("name"))), F.min("source_name"), F.min("name")
            ).alias("name"),
            F.max("size").alias("size"),
            F.max(F.when(F.col("leg") == Leg.DELIVERED.value, F.col("name"))).alias("sent_name"),
            F.max(F.when(dead, F.struct(rule, "reason"))).alias("dead"),
        )
    )  # fmt: skip
    return found.join(details, on=list(KEY), how="left").select(
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
    """Exceptions that were set aside, by the rule that did it, with one of them to see."""
    dead = found.where(F.col("class").isin(Class.REFUSED.value, Class.DEAD.value))
    example = F.struct("id", "name", "reason")
    return (
        dead.groupBy("class", "route", "target", F.coalesce("rule", F.lit("")).alias("rule"))
        .agg(F.count("*").alias("copies"), F.min(example).alias("example"))
        .select("class", "route", "target", "rule", "copies", "example.*")
        .orderBy("route", "target", "rule")
    )


def worst_names(found: DataFrame, kept: int) -> DataFrame:
    """The names at the source with the most exceptions, by class."""
    name = F.col("class")
    bad = found.where(name.isin(*[each.value for each in _BAD]) & F.col("name").isNotNull())
    counts = [F.count_if(name == each.value).alias(each.value) for each in _BAD]
    return (
        bad.groupBy("route", "name")
        .agg(F.count("*").alias("copies"), *counts)
        .orderBy(F.desc("copies"), "route", "name")
        .limit(kept)
    )


def sample(found: DataFrame, of_each: int) -> DataFrame:
    """The first `of_each` exceptions of every class, by time of receipt."""
    order = Window.partitionBy("class").orderBy("received_time", "gateway", "id", "target")
    ranked = found.withColumn("rank", F.row_number().over(order))
    return (
        ranked.where(F.col("rank") <= of_each).drop("rank").orderBy("class", "received_time", "id")
    )
