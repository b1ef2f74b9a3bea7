"""DataFrame transforms from rows to the class of every copy.

A message must have one outcome, delivered or dead, for each target in its received row. The unit
of counting is therefore one message for one target: a *copy*, identified by gateway, route, target
and id. It belongs to the date of its receipt. `rows` have the columns of `JOIN_ROWS`. The rules
that assign a class are conditions of Spark SQL.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from gateway.archive.schema import Leg
from gateway.model.copy_class import CopyClass
from gateway.model.dead_letter_rule import BLAMING
from gateway.model.outcome import REPEAT
from gateway.night.reconcile.classify.result_tables import EXCEPTIONS
from gateway.night.reconcile.grouping import TARGET_KEYS

ID: Final = ("run", "counter")
COPY_KEYS: Final = ("counter", "run", "gateway", "route", "target")  # a unique one sorts fastest
_MAX_ATTEMPTS: Final = 10  # of one delivery that may have arrived
_EQUAL_KEYS: Final = (*TARGET_KEYS, "name", "hash_high", "hash_low")
_BLOCK_BITS: Final = 16  # of the counter of an id within its block
_BLOCK: Final = ("stream", "run", "block")
_BEFORE: Final = (Window.unboundedPreceding, -1)  # the rows before each one

_IS_DELIVERED: Final = "deliveries + replays > 0"
# A hash of later rows is not that of the rows before them, in one of its words.
_DIFFERS: Final = " OR ".join(
    f"coalesce({bound}_{later}_{word} != {bound}_{earlier}_{word}, false)"
    for later, earlier in (("sent", "received"), ("seen", "arrived"))
    for word in ("high", "low")
    for bound in ("least", "most")
)
# At-least-once (a mode below 2) allows that at most one delivery is not marked as a retry. A replay
# is always marked.
_IS_MARKED_DUPLICATE: Final = (
    "deliveries = 0 OR first_attempts <= 1 AND dead_letters = 0"
    " AND (coalesce(mode, 0) < 2 OR deliveries <= 1)"
)

# A copy has the first class whose rule fits. `late` is the longest latency, and `since` the first
# receipt of a copy that may still be in the spool, in microseconds.
RULES: Final[Mapping[CopyClass, str]] = {
    CopyClass.UNEXPECTED: "NOT was_received",
    CopyClass.ALTERED: f"{_IS_DELIVERED} AND (hashless > 0 OR {_DIFFERS})",
    # A replay after a dead letter is the recovery of it.
    CopyClass.DUPLICATED: (
        "deliveries > 0 AND deliveries + dead_letters > 1 OR deliveries + replays > 1"
    ),
    CopyClass.LOST: f"{_IS_DELIVERED} AND tapped AND sightings = 0",
    CopyClass.RECOVERED: "replays > 0",
    CopyClass.DISORDERED: "false",  # the order among copies decides it later
    CopyClass.LATE: f"{_IS_DELIVERED} AND latency > {{late}}",
    CopyClass.DELIVERED: _IS_DELIVERED,
    CopyClass.REFUSED: "refusals > 0",
    CopyClass.DEAD: "dead_letters > 0",
    CopyClass.IN_FLIGHT: "recent OR spooled > 0 AND unix_micros(received_time) >= {since}",
    CopyClass.MISSING: "true",
}


def assign_by_content(rows: DataFrame) -> DataFrame:
    """Give each row with `no_id` the id and receipt of the equal delivery, in the order of time.

    An observed row has the message id where the system carries properties. Otherwise it is assigned
    by route, target, name and payload. Equal messages cannot be distinguished, so only their number
    is checked; a redelivery to the tap repeats a message that it saw before.

    Every attempt of a delivery may have arrived; the first rows are those of first attempts.
    Surplus rows keep their own id; surplus redeliveries of a row before them are dropped.
    """
    equal = Window.partitionBy(*_EQUAL_KEYS)
    attempts = F.least(F.greatest(F.coalesce("attempt", F.lit(1)), F.lit(1)), F.lit(_MAX_ATTEMPTS))
    attempt = F.explode(F.sequence(F.lit(1), attempts)).alias("number")
    sent = rows.where(F.col("leg") == Leg.DELIVERED.value).select("*", attempt)
    delivered = sent.select(
        *_EQUAL_KEYS,
        F.row_number().over(equal.orderBy("number", "time", *ID)).alias("rank"),
        *[F.col(name).alias(f"delivered_{name}") for name in (*ID, "receipt_time")],
    )
    rank = F.row_number().over(equal.orderBy("redelivered", "time", *ID))
    observed = rows.where("no_id").withColumn("rank", rank)
    assigned = observed.join(delivered, on=[*_EQUAL_KEYS, "rank"], how="left")
    is_repeat = F.col("delivered_run").isNull() & F.col("redelivered") & (F.col("rank") > 1)
    assigned = assigned.where(~is_repeat)
    for name in (*ID, "receipt_time"):
        assigned = assigned.withColumn(name, F.coalesce(f"delivered_{name}", name))
    return rows.where(~F.col("no_id")).unionByName(assigned.select(*rows.columns))


def is_receipt() -> Column:
    """Return whether a row is a receipt; the dead letter of an unrouted message is its receipt."""
    unrouted = (F.col("leg") == Leg.DEAD.value) & (F.col("route") == "")
    return (F.col("leg") == Leg.RECEIVED.value) | unrouted


def copies(
    rows: DataFrame,
    *,
    tapped: bool = False,
    detailed: bool = False,
    leased: Collection[str] = (),
) -> DataFrame:
    """Aggregate rows to one row for each copy, with its details when `detailed`.

    With `tapped`, it has its `content`, which `drop_known_sightings` compares. The `leased` are
    gateways of several instances.

    All other aggregates are numbers of fixed width: Spark sorts the rows to aggregate texts. A
    spooled copy was received: after a crash the spooled row may be its only one. A copy is recent
    by its receipt; a tap may see it later.
    """
    leg, at, replayed = F.col("leg"), F.col("time"), F.col("replayed")
    received = is_receipt() | (leg == Leg.SPOOLED.value)
    delivered, dead = leg == Leg.DELIVERED.value, leg == Leg.DEAD.value
    own, seen = delivered & ~replayed, leg == Leg.OBSERVED.value
    new = own & (F.coalesce("rule", F.lit("")) != REPEAT)  # the target kept no second one
    receipt = F.coalesce(F.min(F.when(received, F.col("receipt_time"))), F.min("receipt_time"))
    first_attempt = F.coalesce("attempt", F.lit(1)) <= 1
    refused = F.coalesce("rule", F.lit("")).isin(*sorted(BLAMING))
    hashed = {
        "received": received,
        "sent": delivered & ~F.col("converted"),
        "arrived": delivered,
        "seen": seen,
    }
    return rows.groupBy(*COPY_KEYS).agg(
        F.coalesce(F.max(received), F.lit(False)).alias("was_received"),
        receipt.alias("received_time"),
        F.min(F.when(own, at)).alias("first_time"),
        F.max(F.when(delivered | dead, at)).alias("end_time"),
        F.coalesce(F.max(is_receipt() & F.col("redelivered")), F.lit(False)).alias("redelivered"),
        F.coalesce(F.max(own & ~first_attempt), F.lit(False)).alias("resent"),
        F.coalesce(F.max(F.when(~seen, F.col("recent"))), F.max("recent")).alias("recent"),
        F.coalesce(F.min(F.when(delivered, F.col("tapped"))), F.lit(False)).alias("tapped"),
        F.count_if((received | delivered | seen) & F.col("hash_high").isNull()).alias("hashless"),
        F.greatest(F.count_if(new), F.least(F.count_if(own), F.lit(1))).alias("deliveries"),
        F.count_if(delivered & replayed).alias("replays"),
        F.count_if(new & first_attempt).alias("first_attempts"),
        F.count_if(dead).alias("dead_letters"),
        F.count_if(dead & refused).alias("refusals"),
        F.count_if(leg == Leg.CUT.value).alias("thinned"),
        F.count_if(seen).alias("sightings"),
        F.count_if(leg == Leg.SPOOLED.value).alias("spooled"),
        F.max(F.when(delivered, F.col("mode"))).alias("mode"),
        F.max(F.when(own, stream(leased))).alias("stream"),
        *[column for name, which in hashed.items() for column in _hash_range(name, which)],
        *([F.max(F.when(delivered | seen, content())).alias("content")] if tapped else ()),
        *(_details() if detailed else ()),
    )


def stream(leased: Collection[str] = ()) -> Column:
    """Return the hash of the stream of a delivery: gateway, route, target and source name.

    Each turn of a `leased` gateway has streams of its own: a later turn is later, whatever the
    clocks of two instances say, and a frozen one reads its answers when it wakes up.
    """
    turn = F.when(F.col("gateway").isin(*leased), F.col("run"))
    return F.xxhash64(*TARGET_KEYS, F.coalesce("source_name", "name"), turn)


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

    A copy is marked when at-least-once allows its deliveries.
    Units: microseconds.
    """
    elapsed = F.unix_micros("first_time") - F.unix_micros("received_time")
    latency = F.when(elapsed.isNotNull(), F.greatest(elapsed, F.lit(0)))  # a clock may be set back
    cases = " ".join(f"WHEN {rule} THEN '{each.value}'" for each, rule in RULES.items())
    return found.withColumn("latency", latency).withColumns(
        {
            "class": F.expr(f"CASE {cases} END".format(late=late, since=spooled_since)),
            "marked": F.expr(_IS_MARKED_DUPLICATE),
            "deliveries": F.col("deliveries") + F.col("replays"),
        }
    )


def without_thinned(classes: DataFrame) -> DataFrame:
    """Drop the copies that `thin` left out: another one stands for each, as the mapping says.

    The table of cuts counts them. One that was sent as well, after a crash, is a copy like others.
    """
    return classes.where("thinned = 0 OR deliveries + dead_letters > 0")


def mark_disordered(classes: DataFrame, is_own: Column) -> DataFrame:
    """Set the class of copies that were delivered, in time or late, before an earlier one.

    A delivery is out of order when it was recorded before that of a message with a smaller id and
    the same gateway, route, target and source name. The deliveries with these in common are a
    *stream*. A busy stream is divided into blocks of ids, so that many tasks check it; each block
    starts with the latest delivery of the blocks before it.

    Copies that are not `is_own`, of other dates, count when their receipt is known.
    """
    blocks = classes.withColumn("block", F.shiftright("counter", _BLOCK_BITS))
    first_time = F.when(is_own | F.col("was_received"), F.col("first_time"))
    timed = blocks.withColumn("first_time", first_time)
    carried = _latest_before(timed)
    joined = timed.join(carried, on=list(_BLOCK), how="left")
    before = Window.partitionBy(*_BLOCK).orderBy("counter").rowsBetween(*_BEFORE)
    latest = F.greatest(F.max("first_time").over(before), F.col("carried"))
    delivered = F.col("class").isin(CopyClass.DELIVERED.value, CopyClass.LATE.value)
    disordered = delivered & F.coalesce(latest > F.col("first_time"), F.lit(False))
    name = F.when(disordered, CopyClass.DISORDERED.value).otherwise(F.col("class"))
    return joined.withColumn("class", name)


def _latest_before(blocks: DataFrame) -> DataFrame:
    """Return the latest delivery before each block that begins before it."""
    timed = blocks.where("first_time IS NOT NULL").groupBy(*_BLOCK)
    bounds = timed.agg(F.max("first_time").alias("latest"), F.min("first_time").alias("earliest"))
    before = Window.partitionBy("stream").orderBy("run", "block").rowsBetween(*_BEFORE)
    carried = bounds.withColumn("carried", F.max("latest").over(before))
    return carried.where(F.col("carried") > F.col("earliest")).select(*_BLOCK, "carried")


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
