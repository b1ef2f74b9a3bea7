"""What can become of a message at one target, and the rules that tell; columns to a column."""

from __future__ import annotations

from enum import Enum
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

EXACTLY_ONCE: Final = 2

# Rules of dead letters that say nothing against the message: a broker's or the gateway's own
# failure. Every other rule refuses a name, a header, a payload or a size.
FAILURES: Final = (
    "broker-exception", "expired", "internal", "library", "no-subscription", "not-authorised",
    "poisoned", "publish-acl", "queue", "spool-age", "spool-full",
)  # fmt: skip


class Class(Enum):
    """What became of a copy; every copy is in one of them, the first that fits."""

    UNEXPECTED = "unexpected"  # it has an end or was seen at the target, but was never received
    ALTERED = "altered"  # a payload arrived that is not the one received
    DUPLICATED = "duplicated"  # it has more than one end, and was delivered
    LOST = "lost in target"  # delivered, and the tap at the target never saw it
    DISORDERED = "out of order"  # delivered before a message of its name that was received earlier
    LATE = "delivered late"
    DELIVERED = "delivered"
    REFUSED = "refused"  # a rule of names, limits or contents set it aside
    DEAD = "dead-lettered"  # set aside for another reason
    IN_FLIGHT = "in flight"  # its end may be in an open journal, or the gateway keeps it on disk
    MISSING = "missing"


def classed(recent: Column, late: int) -> Column:
    """The class of a copy by the columns of `copies`, its order apart; `late` is in microseconds.

    `recent` says whether it was received so near the cut that its end may not be written yet.
    """
    delivered = F.col("deliveries") > 0
    taken = F.col("taken")
    altered = (F.col("least_sent") != taken) | (F.col("most_sent") != taken)
    altered_there = (F.col("least_seen") != F.col("least_arrived")) | (
        F.col("most_seen") != F.col("most_arrived")
    )
    rules = [
        (~F.col("owed"), Class.UNEXPECTED),
        (altered | (delivered & altered_there), Class.ALTERED),
        (delivered & (F.col("deliveries") + F.col("deaths") > 1), Class.DUPLICATED),
        (delivered & F.col("watched") & (F.col("sightings") == 0), Class.LOST),
        (delivered & (F.col("latency") > late), Class.LATE),
        (delivered, Class.DELIVERED),
        (F.col("refusals") > 0, Class.REFUSED),
        (F.col("deaths") > 0, Class.DEAD),
        (recent | (F.col("spooled") > 0), Class.IN_FLIGHT),
    ]
    found = F.lit(Class.MISSING.value)
    for condition, name in reversed(rules):
        found = F.when(condition, F.lit(name.value)).otherwise(found)
    return found


def marked() -> Column:
    """Whether more than one delivery is what the hop allows: a retry that says it is one."""
    retried = (F.col("first_tries") <= 1) & (F.col("deaths") == 0)
    return retried & (F.coalesce("mode", F.lit(0)) < EXACTLY_ONCE)
