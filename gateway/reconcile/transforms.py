"""Compare what came in with what went out. Every function: DataFrames to a DataFrame.

A message owes one end, delivered or dead, to each target its received row names. What is counted
is therefore one message for one target: a *copy*, by gateway, route, id and target.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from gateway.archive.schema import Leg, Step

KEY: Final = ("gateway", "route", "id", "target")
EXACTLY_ONCE: Final = 2


class Class(Enum):
    """What became of a copy; every copy is in one of them, the first that fits."""

    UNEXPECTED = "unexpected"  # it has an end, but no received row
    ALTERED = "altered"  # a payload arrived that is not the one received
    DUPLICATED = "duplicated"  # it has more than one end, and was delivered
    DELIVERED = "delivered"
    DEAD = "dead-lettered"
    IN_FLIGHT = "in flight"  # received just before the cut, its end may be in an open journal
    MISSING = "missing"


def per_target(rows: DataFrame) -> DataFrame:
    """Each row once for every target it speaks of; the empty target where it names none."""
    own = F.col("target")
    named = F.when(own != "", F.array(own)).when(F.size("targets") > 0, F.col("targets"))
    targets = F.coalesce(named, F.array(F.lit("")))
    return rows.withColumn("target", F.explode(targets))


def steps(day: DataFrame, before: DataFrame, after: DataFrame) -> DataFrame:
    """The rows that say something of the date's copies, once for every target they speak of.

    Of the day before, what was received: its ends may be the date's. Of the day after, the ends.
    """
    received = F.col("leg") == Leg.RECEIVED.value
    ended = F.col("leg").isin(Leg.DELIVERED.value, Leg.DEAD.value)
    rows = (
        day.where(received | ended)
        .withColumn("today", F.lit(True))
        .unionByName(before.where(received).withColumn("today", F.lit(False)))
        .unionByName(after.where(ended).withColumn("today", F.lit(False)))
    )
    return per_target(rows)


def _received() -> Column:
    """A receipt; the dead letter of a message that no route took is its own."""
    on_arrival = (F.col("leg") == Leg.DEAD.value) & (F.col("route") == "")
    return (F.col("leg") == Leg.RECEIVED.value) | on_arrival


def copies(found: DataFrame) -> DataFrame:
    """One row a copy: what its steps add up to, in numbers alone, so that many fit in memory.

    Copies received before the date are that day's business, and those only seen to end after it
    are the next day's; both are left out.
    """
    leg, today = F.col("leg"), F.col("today")
    received, delivered = _received(), leg == Leg.DELIVERED.value
    digest = F.when(F.col("hash").isNotNull(), F.xxhash64("hash"))
    sent = F.when(delivered & (F.col("outcome") == Step.ACCEPTED.value), digest)
    first_try = F.coalesce("attempt", F.lit(1)) <= 1
    return (
        found.groupBy(*KEY)
        .agg(
            F.max(received & today).alias("owed"),
            F.max(received & ~today).alias("owed_before"),
            F.max(~received & today).alias("ended"),
            F.min(F.when(received, F.col("time"))).alias("received_time"),
            F.max(F.when(leg != Leg.RECEIVED.value, F.col("time"))).alias("end_time"),
            F.max(F.when(received, F.col("redelivered"))).alias("redelivered"),
            F.min(F.when(received, digest)).alias("taken"),
            F.min(sent).alias("least_sent"),
            F.max(sent).alias("most_sent"),
            F.count_if(delivered).alias("deliveries"),
            F.count_if(delivered & first_try).alias("first_tries"),
            F.count_if(leg == Leg.DEAD.value).alias("deaths"),
            F.max(F.when(delivered, F.col("mode"))).alias("mode"),
        )
        .where(F.col("owed") | (F.col("ended") & ~F.col("owed_before")))
    )


def cut(day: DataFrame, after: DataFrame) -> DataFrame:
    """Per gateway, the time of the last row the archive has of it."""
    rows = day.select("gateway", "time").unionByName(after.select("gateway", "time"))
    return rows.groupBy("gateway").agg(F.max("time").alias("last"))


def classified(found: DataFrame, last: DataFrame, seconds: int) -> DataFrame:
    """Each copy with its class; `seconds` before the cut a copy without an end is in flight.

    With 0 nothing is: there is no open journal its end could be in.
    """
    open_since = F.col("last") - F.make_interval(secs=F.lit(seconds))
    return found.join(F.broadcast(last), on="gateway", how="left").select(
        *KEY,
        _class(F.col("received_time") > open_since).alias("class"),
        _marked().alias("marked"),
        F.coalesce("redelivered", F.lit(False)).alias("redelivered"),
        "owed",
        "deliveries",
        "received_time",
        "end_time",
    )


def _class(recent: Column) -> Column:
    taken, ends = F.col("taken"), F.col("deliveries") + F.col("deaths")
    rules = [
        (~F.col("owed"), Class.UNEXPECTED),
        ((F.col("least_sent") != taken) | (F.col("most_sent") != taken), Class.ALTERED),
        ((F.col("deliveries") > 0) & (ends > 1), Class.DUPLICATED),
        (F.col("deliveries") > 0, Class.DELIVERED),
        (F.col("deaths") > 0, Class.DEAD),
        (recent, Class.IN_FLIGHT),
    ]
    found = F.lit(Class.MISSING.value)
    for condition, name in reversed(rules):
        found = F.when(condition, F.lit(name.value)).otherwise(found)
    return found


def _marked() -> Column:
    """Whether more than one delivery is what the hop allows: a retry that says it is one."""
    retried = (F.col("first_tries") <= 1) & (F.col("deaths") == 0)
    return retried & (F.coalesce("mode", F.lit(0)) < EXACTLY_ONCE)


def per_route(classes: DataFrame) -> DataFrame:
    """How many copies of each route and target are in each class."""
    name = F.col("class")
    return (
        classes.groupBy("route", "target")
        .agg(
            F.count_if("owed").alias("received"),
            *[F.count_if(name == one.value).alias(one.value) for one in Class],
            F.count_if((name == Class.DUPLICATED.value) & F.col("marked")).alias("marked"),
            F.count_if("redelivered").alias("redelivered"),
        )
        .orderBy("route", "target")
    )


def exceptions(classes: DataFrame) -> DataFrame:
    """Every copy that was not simply delivered."""
    return classes.where(F.col("class") != Class.DELIVERED.value)


def detailed(found: DataFrame, rows: DataFrame) -> DataFrame:
    """Exceptions with what a person needs to look them up: names, sizes, the rule, the reason."""
    received, dead = _received(), F.col("leg") == Leg.DEAD.value
    details = (
        rows.join(found.select(*KEY), on=list(KEY))
        .groupBy(*KEY)
        .agg(
            F.min(F.when(received, F.struct("endpoint", "name", "size"))).alias("first"),
            F.max(F.when(F.col("leg") == Leg.DELIVERED.value, F.col("name"))).alias("sent_name"),
            F.max(F.when(dead, F.struct("rule", "reason"))).alias("dead"),
        )
    )
    return found.join(details, on=list(KEY), how="left").select(
        "class",
        "gateway",
        "route",
        "target",
        F.lower(F.hex("id")).alias("id"),
        "received_time",
        "end_time",
        "deliveries",
        "marked",
        "first.*",
        "sent_name",
        "dead.*",
    )


def dead_letters(found: DataFrame) -> DataFrame:
    """Exceptions that were dead-lettered, by the rule that did it, with one of them to see."""
    dead = found.where(F.col("class") == Class.DEAD.value)
    example = F.struct("id", "name", "reason")
    return (
        dead.groupBy("route", "target", F.coalesce("rule", F.lit("")).alias("rule"))
        .agg(F.count("*").alias("copies"), F.min(example).alias("example"))
        .select("route", "target", "rule", "copies", "example.*")
        .orderBy("route", "target", "rule")
    )


def sample(found: DataFrame, of_each: int) -> DataFrame:
    """The first `of_each` exceptions of every class, by time of receipt."""
    order = Window.partitionBy("class").orderBy("received_time", "id", "target")
    ranked = found.withColumn("rank", F.row_number().over(order))
    return ranked.where(F.col("rank") <= of_each).drop("rank")
