"""DataFrame transforms from archive rows to the class of every copy.

A message must have one outcome, delivered or dead, for each target in its received row. The unit
of counting is therefore one message for one target: a *copy*, identified by gateway, route, id and
target. It belongs to the date of its receipt.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from gateway.archive.schema import Leg, RowOutcome
from gateway.reconcile.classes import FAILURES, CopyClass, class_column, is_marked_duplicate

COPY_KEYS: Final = ("gateway", "route", "id", "target")
TARGET_KEYS: Final = ("gateway", "route", "target")
TALLIES: Final = ("received", *(each.value for each in CopyClass), "marked", "redelivered")


def midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def on_date(moment: Column, day: date) -> Column:
    """Return whether a time is on `day`, UTC."""
    start = midnight(day)
    return (moment >= F.lit(start)) & (moment < F.lit(start + timedelta(days=1)))


def in_window(rows: DataFrame, day: date, hours: int) -> DataFrame:
    """Keep the rows recorded on the date, or at most `hours` before or after it."""
    start, margin = midnight(day), timedelta(hours=hours)
    at = F.col("time")
    end = start + timedelta(days=1) + margin
    return rows.where((at >= F.lit(start - margin)) & (at < F.lit(end)))


def explode_targets(rows: DataFrame) -> DataFrame:
    """Repeat each row for every target it names; a row without a target gets the empty one.

    Adds `receipt_time`: the receipt of the message, or the time of the row when an older gateway
    did not record it.
    """
    target = F.col("target")
    named = F.when(target != "", F.array(target)).when(F.size("targets") > 0, F.col("targets"))
    targets = F.coalesce(named, F.array(F.lit("")))
    receipt_time = F.coalesce("received", "time")
    return rows.withColumn("target", F.explode(targets)).withColumn("receipt_time", receipt_time)


def minute(moment: Column) -> Column:
    return F.date_trunc("minute", moment)


def is_receipt() -> Column:
    """Return whether a row is a receipt; the dead letter of an unrouted message is its receipt."""
    unrouted = (F.col("leg") == Leg.DEAD.value) & (F.col("route") == "")
    return (F.col("leg") == Leg.RECEIVED.value) | unrouted


def copies(found: DataFrame, keys: Sequence[str] = COPY_KEYS) -> DataFrame:
    """Aggregate rows to one row for each copy, in numbers of fixed width to save memory.

    Rows with `proven` are dead letters whose receipt is already proven and counted by a digest. A
    spooled copy was received: after a crash the spooled row may be its only one.
    """
    leg, at = F.col("leg"), F.col("time")
    proven = F.col("proven") if "proven" in found.columns else F.lit(False)
    received = is_receipt() | proven
    delivered, dead = leg == Leg.DELIVERED.value, leg == Leg.DEAD.value
    ended, seen = delivered | dead, leg == Leg.OBSERVED.value
    spooled = leg == Leg.SPOOLED.value
    digest = F.when(F.col("hash").isNotNull(), F.xxhash64("hash"))
    sent = F.when(delivered & (F.col("outcome") == RowOutcome.ACCEPTED.value), digest)
    first_attempt = F.coalesce("attempt", F.lit(1)) <= 1
    refused = ~F.coalesce("rule", F.lit("")).isin(*FAILURES)
    source_name = F.coalesce("source_name", "name")
    return found.groupBy(*keys).agg(
        F.coalesce(F.max(received | spooled), F.lit(False)).alias("was_received"),
        F.coalesce(F.min(F.when(received, F.col("receipt_time"))), F.min("receipt_time")).alias(
            "received_time"
        ),
        F.min(F.when(delivered, at)).alias("first_time"),
        F.max(F.when(ended, at)).alias("end_time"),
        F.max(F.when(is_receipt() & ~proven, F.col("redelivered"))).alias("redelivered"),
        F.min(F.when(received, digest)).alias("received_hash"),
        F.min(sent).alias("least_sent"),
        F.max(sent).alias("most_sent"),
        F.min(F.when(delivered, digest)).alias("least_arrived"),
        F.max(F.when(delivered, digest)).alias("most_arrived"),
        F.min(F.when(seen, digest)).alias("least_seen"),
        F.max(F.when(seen, digest)).alias("most_seen"),
        F.count_if(delivered).alias("deliveries"),
        F.count_if(delivered & first_attempt).alias("first_attempts"),
        F.count_if(dead).alias("dead_letters"),
        F.count_if(dead & refused).alias("refusals"),
        F.count_if(seen).alias("sightings"),
        F.count_if(spooled).alias("spooled"),
        F.max(F.when(delivered, F.col("mode"))).alias("mode"),
        F.max(F.when(delivered, F.xxhash64(*TARGET_KEYS, source_name))).alias("stream"),
    )


def in_flight_since(last: DataFrame, seconds: int) -> DataFrame:
    """Return by gateway the time from which a copy without an outcome counts as in flight.

    It is `seconds` before `last`, the time of the gateway's last row.
    """
    since = F.col("last") - F.make_interval(secs=F.lit(seconds))
    return last.select("gateway", since.alias("open_since"))


def classified(found: DataFrame, open_since: DataFrame, taps: DataFrame, late: int) -> DataFrame:
    """Add the class to each copy, without the order among copies, which `mark_disordered` adds.

    `open_since` has a time for each gateway; `taps` has the first observed minute for each target;
    `late` is in seconds.
    """
    received_time = F.col("received_time")
    elapsed = F.unix_micros("first_time") - F.unix_micros(received_time)
    latency = F.when(elapsed.isNotNull(), F.greatest(elapsed, F.lit(0)))  # a clock may be set back
    recent = F.coalesce(received_time > F.col("open_since"), F.lit(False))
    tapped = F.coalesce(F.col("first_time") >= F.col("tap_since"), F.lit(False))
    joined = (
        found.join(F.broadcast(open_since), on="gateway", how="left")
        .join(F.broadcast(taps), on=list(TARGET_KEYS), how="left")
        .withColumn("tapped", tapped)
        .withColumn("latency", latency)
    )
    return joined.select(
        *COPY_KEYS,
        class_column(recent, late * 1_000_000).alias("class"),
        is_marked_duplicate().alias("marked"),
        F.coalesce("redelivered", F.lit(False)).alias("redelivered"),
        "was_received",
        "deliveries",
        "sightings",
        "received_time",
        "first_time",
        "end_time",
        "latency",
        "stream",
    )


def mark_disordered(classes: DataFrame, disordered: Column) -> DataFrame:
    """Set the class of copies that are `disordered`, when they are delivered or delivered late."""
    delivered = F.col("class").isin(CopyClass.DELIVERED.value, CopyClass.LATE.value)
    name = F.when(delivered & disordered, CopyClass.DISORDERED.value).otherwise(F.col("class"))
    return classes.withColumn("class", name)


def drop_foreign_sightings(classes: DataFrame, delivered: DataFrame) -> DataFrame:
    """Drop unexpected copies that were only observed and that another gateway delivered.

    `delivered` has the route, target and id of every delivered copy.
    """
    unexpected = (F.col("class") == CopyClass.UNEXPECTED.value) & (F.col("sightings") > 0)
    only_seen = unexpected & F.col("end_time").isNull()
    seen = classes.where(only_seen).join(delivered, on=["route", "target", "id"], how="left_anti")
    return classes.where(~only_seen).unionByName(seen)


def exceptions(classes: DataFrame) -> DataFrame:
    """Return every copy with another class than delivered."""
    return classes.where(F.col("class") != CopyClass.DELIVERED.value)
