"""The classes of a copy, and the rules that assign one, as Spark column expressions."""

from __future__ import annotations

from enum import Enum
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

EXACTLY_ONCE: Final = 2

# Rules of dead letters with a cause outside the message: a failure of a broker or the gateway.
# Every other rule refuses a name, a header, a payload or a size.
FAILURES: Final = (
    "broker-exception", "expired", "internal", "library", "no-subscription", "not-authorised",
    "poisoned", "publish-acl", "queue", "spool-age", "spool-full",
)  # fmt: skip


class CopyClass(Enum):
    """The result for one copy: the first class that fits, in the order of `class_column`."""

    UNEXPECTED = "unexpected"  # it has an outcome or was observed, and was never received
    ALTERED = "altered"  # a payload arrived that is not the one received
    DUPLICATED = "duplicated"  # it has more than one outcome, and was delivered
    LOST = "lost in target"  # delivered, and the tap at the target never saw it
    DISORDERED = "out of order"  # delivered before a message of its name that was received earlier
    LATE = "delivered late"
    DELIVERED = "delivered"
    REFUSED = "refused"  # dead-lettered by a rule about names, limits or contents
    DEAD = "dead-lettered"  # dead-lettered for another reason
    IN_FLIGHT = "in flight"  # its outcome may be in an open journal, or the copy is spooled
    MISSING = "missing"


def class_column(recent: Column, late: int) -> Column:
    """Return the class of a copy from the columns of `copies`, without CopyClass.DISORDERED.

    `recent` is true when the outcome may still be in an open journal; `late` is in microseconds.
    """
    delivered = F.col("deliveries") > 0
    received = F.col("received_hash")
    altered = (F.col("least_sent") != received) | (F.col("most_sent") != received)
    altered_there = (F.col("least_seen") != F.col("least_arrived")) | (
        F.col("most_seen") != F.col("most_arrived")
    )
    rules = [
        (~F.col("was_received"), CopyClass.UNEXPECTED),
        (altered | (delivered & altered_there), CopyClass.ALTERED),
        (delivered & (F.col("deliveries") + F.col("dead_letters") > 1), CopyClass.DUPLICATED),
        (delivered & F.col("tapped") & (F.col("sightings") == 0), CopyClass.LOST),
        (delivered & (F.col("latency") > late), CopyClass.LATE),
        (delivered, CopyClass.DELIVERED),
        (F.col("refusals") > 0, CopyClass.REFUSED),
        (F.col("dead_letters") > 0, CopyClass.DEAD),
        (recent | (F.col("spooled") > 0), CopyClass.IN_FLIGHT),
    ]
    found = F.lit(CopyClass.MISSING.value)
    for condition, name in reversed(rules):
        found = F.when(condition, F.lit(name.value)).otherwise(found)
    return found


def is_marked_duplicate() -> Column:
    """Return whether at-least-once allows the deliveries: at most one is not marked as a retry."""
    retried = (F.col("first_attempts") <= 1) & (F.col("dead_letters") == 0)
    return retried & (F.coalesce("mode", F.lit(0)) < EXACTLY_ONCE)
