"""DataFrame transforms from rows to the class of every copy.

A message must have one outcome, delivered or dead, for each target in its received row. The unit
of counting is therefore one message for one target: a *copy*, identified by gateway, route, target
and id. It belongs to the date of its receipt. `rows` have the columns of `JOIN_ROWS`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from gateway.archive.schema import Leg
from gateway.model.copy_class import CopyClass
from gateway.model.outcome import REPEAT
from gateway.reconcile.classes import FAILURES, class_column, is_marked_duplicate
from gateway.reconcile.classify.result_tables import EXCEPTIONS
from gateway.reconcile.grouping import TARGET_KEYS

ID: Final = ("run", "counter")
COPY_KEYS: Final = ("counter", "run", "gateway", "route", "target")  # a unique one sorts fastest


def is_receipt() -> Column:
    """Return whether a row is a receipt; the dead letter of an unrouted message is its receipt."""
    unrouted = (F.col("leg") == Leg.DEAD.value) & (F.col("route") == "")
    return (F.col("leg") == Leg.RECEIVED.value) | unrouted


def copies(rows: DataFrame, *, tapped: bool = False, detailed: bool = False) -> DataFrame:
    """Aggregate rows to one row for each copy, with its details when `detailed`.

    With `tapped`, it has its `content`, which `drop_known_sightings` compares.

    All other aggregates are numbers of fixed width: Spark sorts the rows to aggregate texts. A
    spooled copy was received: after a crash the spooled row may be its only one. A copy is recent
    by its receipt; a tap may see it later.
    """
    leg, at, replayed = F.col("leg"), F.col("time"), F.col("replayed")
    received = is_receipt() | (leg == Leg.SPOOLED.value)
    delivered, dead = leg == Leg.DELIVERED.value, leg == Leg.DEAD.value
    own, seen = delivered & ~replayed, leg == Leg.OBSERVED.value
    new = own & (F.coalesce("rule", F.lit("")) != REPEAT)  # the target kept no second one
    first_attempt = F.coalesce("attempt", F.lit(1)) <= 1
    refused = ~F.coalesce("rule", F.lit("")).isin(*FAILURES)
    hashed = {
        "received": received, "sent": delivered & ~F.col("converted"), "arrived": delivered,
        "seen": seen,
    }  # fmt: skip
    return rows.groupBy(*COPY_KEYS).agg(
        F.coalesce(F.max(received), F.lit(False)).alias("was_received"),
        F.coalesce(F.min(F.when(received, F.col("receipt_time"))), F.min("receipt_time")).alias(
            "received_time"
        ),
        F.min(F.when(own, at)).alias("first_time"),
        F.max(F.when(delivered | dead, at)).alias("end_time"),
        F.coalesce(F.max(is_receipt() & F.col("redelivered")), F.lit(False)).alias("redelivered"),
        F.coalesce(F.max(F.when(~seen, F.col("recent"))), F.max("recent")).alias("recent"),
        F.coalesce(F.min(F.when(delivered, F.col("tapped"))), F.lit(False)).alias("tapped"),
        F.count_if((received | delivered | seen) & F.col("hash_high").isNull()).alias("hashless"),
        F.greatest(F.count_if(new), F.least(F.count_if(own), F.lit(1))).alias("deliveries"),
        F.count_if(delivered & replayed).alias("replays"),
        F.count_if(new & first_attempt).alias("first_attempts"),
        F.count_if(dead).alias("dead_letters"),
        F.count_if(dead & refused).alias("refusals"),
        F.count_if(seen).alias("sightings"),
        F.count_if(leg == Leg.SPOOLED.value).alias("spooled"),
        F.max(F.when(delivered, F.col("mode"))).alias("mode"),
        F.max(F.when(own, stream())).alias("stream"),
        *[column for name, which in hashed.items() for column in _hash_range(name, which)],
        *([F.max(F.when(delivered | seen, content())).alias("content")] if tapped else ()),
        *(_details() if detailed else ()),
    )


def stream() -> Column:
    """Return the hash of the stream of a delivery: gateway, route, target and source name."""
    return F.xxhash64(*TARGET_KEYS, F.coalesce("source_name", "name"))


def content() -> Column:
    """Return the hash of a message as its target has it: target keys, name and payload."""
    return F.xxhash64(*TARGET_KEYS, "name", "hash_high", "hash_low")


def _hash_range(name: str, which: Column) -> list[Column]:
    """Return least and most of the hashes of some rows; equal when all hashes are."""
    return [
        function(F.when(which, F.col(f"hash_{word}"))).alias(f"{bound}_{name}_{word}")
        for bound, function in (("least", F.min), ("most", F.max))
        for word in ("high", "low")
    ]


def details(rows: DataFrame) -> DataFrame:
    """Return the details of the copies in `rows`: texts, and the size."""
    return rows.groupBy(*COPY_KEYS).agg(*_details())


def _details() -> list[Column]:
    leg = F.col("leg")
    received = is_receipt() | (leg == Leg.SPOOLED.value)
    delivered, dead = leg == Leg.DELIVERED.value, leg == Leg.DEAD.value
    rule = F.coalesce("rule", F.lit("")).alias("rule")
    own_name = F.min(F.when(received, F.col("name")))
    return [
        F.coalesce(own_name, F.min("source_name"), F.min("name")).alias("name"),
        F.max("size").alias("size"),
        F.max(F.when(delivered, F.col("name"))).alias("sent_name"),
        F.max(F.when(dead, F.struct(rule, "reason"))).alias("dead"),
    ]


def classified(found: DataFrame, late: int, spooled_since: int) -> DataFrame:
    """Add class, mark and latency to each copy, without the order among copies.

    Units: microseconds.
    """
    elapsed = F.unix_micros("first_time") - F.unix_micros("received_time")
    latency = F.when(elapsed.isNotNull(), F.greatest(elapsed, F.lit(0)))  # a clock may be set back
    return found.withColumn("latency", latency).withColumns(
        {
            "class": class_column(late, spooled_since),
            "marked": is_marked_duplicate(),
            "deliveries": F.col("deliveries") + F.col("replays"),
        }
    )


def drop_known_sightings(classes: DataFrame) -> DataFrame:
    """Drop unexpected copies that were only observed, and whose delivery is known.

    Another gateway delivered them; or runs of this one did and died before they recorded that, and
    the next one received the message again, marked, and delivered an equal one.
    """
    unexpected = (F.col("class") == CopyClass.UNEXPECTED.value) & (F.col("sightings") > 0)
    only_seen = unexpected & F.col("end_time").isNull()
    keys = ["route", "target", *ID]
    delivered = classes.where("deliveries > 0")
    seen = classes.where(only_seen).join(delivered.select(*keys), on=keys, how="left_anti")
    again = delivered.where("redelivered").select("content")
    seen = seen.join(again, on="content", how="left_anti").select(*classes.columns)
    return classes.where(~only_seen).unionByName(seen)


def exceptions(classes: DataFrame) -> DataFrame:
    """Return every copy with another class than delivered."""
    return classes.where(F.col("class") != CopyClass.DELIVERED.value)


def described(found: DataFrame) -> DataFrame:
    """Return the rows of EXCEPTIONS of copies with their details; their id is hexadecimal."""
    made = {
        "id": F.format_string("%016x%016x", *ID),  # F.lower loads Unicode's tables, 3 s
        "rule": F.col("dead.rule"),
        "reason": F.col("dead.reason"),
    }
    return found.withColumns(made).select(*EXCEPTIONS.names)
