"""From archive rows to what became of each message. Every function: DataFrames to a DataFrame.

A message owes one end, delivered or dead, to each target its received row names. What is counted
is therefore one message for one target: a *copy*, by gateway, route, id and target. It belongs to
the date it was received on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from gateway.archive.schema import Leg, Step
from gateway.reconcile.classes import FAILURES, Class, classed, marked

KEY: Final = ("gateway", "route", "id", "target")
WAY: Final = ("gateway", "route", "target")
TALLIES: Final = ("received", *(each.value for each in Class), "marked", "redelivered")


def midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def on_date(moment: Column, day: date) -> Column:
    """Whether a time is of `day`, UTC."""
    start = midnight(day)
    return (moment >= F.lit(start)) & (moment < F.lit(start + timedelta(days=1)))


def in_window(rows: DataFrame, day: date, hours: int) -> DataFrame:
    """Rows recorded on the date or within `hours` of it."""
    start, margin = midnight(day), timedelta(hours=hours)
    at = F.col("time")
    end = start + timedelta(days=1) + margin
    return rows.where((at >= F.lit(start - margin)) & (at < F.lit(end)))


def spread(rows: DataFrame) -> DataFrame:
    """Each row once for every target it speaks of, the empty target where it names none.

    Adds `own`: when its message was received, or when the row was recorded where an older gateway
    did not say.
    """
    given = F.col("target")
    named = F.when(given != "", F.array(given)).when(F.size("targets") > 0, F.col("targets"))
    targets = F.coalesce(named, F.array(F.lit("")))
    own = F.coalesce("received", "time")
    return rows.withColumn("target", F.explode(targets)).withColumn("own", own)


def minute(moment: Column) -> Column:
    return F.date_trunc("minute", moment)


def is_receipt() -> Column:
    """A receipt; the dead letter of a message that no route took is its own."""
    on_arrival = (F.col("leg") == Leg.DEAD.value) & (F.col("route") == "")
    return (F.col("leg") == Leg.RECEIVED.value) | on_arrival


def copies(found: DataFrame, keys: Sequence[str] = KEY) -> DataFrame:
    """One row a copy: what its rows add up to, in numbers alone, so that many fit in memory.

    Rows with `proven` are dead letters whose receipt a digest proves, and counts, already. What was
    spooled was received: after a kill that is all that is recorded of it.
    """
    leg, at = F.col("leg"), F.col("time")
    proven = F.col("proven") if "proven" in found.columns else F.lit(False)
    received = is_receipt() | proven
    delivered, dead = leg == Leg.DELIVERED.value, leg == Leg.DEAD.value
    ended, seen = delivered | dead, leg == Leg.OBSERVED.value
    spooled = leg == Leg.SPOOLED.value
    digest = F.when(F.col("hash").isNotNull(), F.xxhash64("hash"))
    sent = F.when(delivered & (F.col("outcome") == Step.ACCEPTED.value), digest)
    first_try = F.coalesce("attempt", F.lit(1)) <= 1
    refused = ~F.coalesce("rule", F.lit("")).isin(*FAILURES)
    source_name = F.coalesce("source_name", "name")
    return found.groupBy(*keys).agg(
        F.coalesce(F.max(received | spooled), F.lit(False)).alias("owed"),
        F.coalesce(F.min(F.when(received, F.col("own"))), F.min("own")).alias("received_time"),
        F.min(F.when(delivered, at)).alias("first_time"),
        F.max(F.when(ended, at)).alias("end_time"),
        F.max(F.when(is_receipt() & ~proven, F.col("redelivered"))).alias("redelivered"),
        F.min(F.when(received, digest)).alias("taken"),
        F.min(sent).alias("least_sent"),
        F.max(sent).alias("most_sent"),
        F.min(F.when(delivered, digest)).alias("least_arrived"),
        F.max(F.when(delivered, digest)).alias("most_arrived"),
        F.min(F.when(seen, digest)).alias("least_seen"),
        F.max(F.when(seen, digest)).alias("most_seen"),
        F.count_if(delivered).alias("deliveries"),
        F.count_if(delivered & first_try).alias("first_tries"),
        F.count_if(dead).alias("deaths"),
        F.count_if(dead & refused).alias("refusals"),
        F.count_if(seen).alias("sightings"),
        F.count_if(spooled).alias("spooled"),
        F.max(F.when(delivered, F.col("mode"))).alias("mode"),
        F.max(F.when(delivered, F.xxhash64(*WAY, source_name))).alias("stream"),
    )


def cut(last: DataFrame, seconds: int) -> DataFrame:
    """Per gateway, since when a copy without an end is in flight; `last` is its last row's time."""
    since = F.col("last") - F.make_interval(secs=F.lit(seconds))
    return last.select("gateway", since.alias("open_since"))


def classified(found: DataFrame, open_since: DataFrame, taps: DataFrame, late: int) -> DataFrame:
    """Each copy with its class, but for the order among copies, which `ordered` adds.

    `open_since` has a time for each gateway, `taps` the first minute a tap saw for each way; `late`
    is in seconds.
    """
    took = F.col("received_time")
    spent = F.unix_micros("first_time") - F.unix_micros(took)
    latency = F.when(spent.isNotNull(), F.greatest(spent, F.lit(0)))  # a clock may be set back
    recent = F.coalesce(took > F.col("open_since"), F.lit(False))
    watched = F.coalesce(F.col("first_time") >= F.col("tap_since"), F.lit(False))
    joined = (
        found.join(F.broadcast(open_since), on="gateway", how="left")
        .join(F.broadcast(taps), on=list(WAY), how="left")
        .withColumn("watched", watched)
        .withColumn("latency", latency)
    )
    return joined.select(
        *KEY,
        classed(recent, late * 1_000_000).alias("class"),
        marked().alias("marked"),
        F.coalesce("redelivered", F.lit(False)).alias("redelivered"),
        "owed",
        "deliveries",
        "sightings",
        "received_time",
        "first_time",
        "end_time",
        "latency",
        "stream",
    )


def ordered(classes: DataFrame, overtook: Column) -> DataFrame:
    """The classes with those copies out of order that are delivered and nothing worse."""
    well = F.col("class").isin(Class.DELIVERED.value, Class.LATE.value)
    name = F.when(well & overtook, Class.DISORDERED.value).otherwise(F.col("class"))
    return classes.withColumn("class", name)


def strangers(classes: DataFrame, delivered: DataFrame) -> DataFrame:
    """The copies without those that only another gateway's tap saw: theirs are accounted for.

    `delivered` has the route, target and id of every delivered copy.
    """
    alone = (F.col("class") == Class.UNEXPECTED.value) & (F.col("sightings") > 0)
    only_seen = alone & F.col("end_time").isNull()
    seen = classes.where(only_seen).join(delivered, on=["route", "target", "id"], how="left_anti")
    return classes.where(~only_seen).unionByName(seen)


def exceptions(classes: DataFrame) -> DataFrame:
    """Every copy that was not simply delivered."""
    return classes.where(F.col("class") != Class.DELIVERED.value)
