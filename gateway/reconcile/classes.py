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
_WORDS: Final = ("high", "low")  # of a hash


class CopyClass(Enum):
    """The result for one copy: the first class that fits, in the order of `class_column`."""

    UNEXPECTED = "unexpected"  # it has an outcome or was observed, and was never received
    ALTERED = "altered"  # a payload arrived that is not the one received
    DUPLICATED = "duplicated"  # it has more than one outcome, and was delivered
    LOST = "lost in target"  # delivered, and the tap at the target never saw it
    RECOVERED = "recovered"  # missing or a dead letter, and then delivered by a replay
    DISORDERED = "out of order"  # delivered before a message of its name that was received earlier
    LATE = "delivered late"
    DELIVERED = "delivered"
    REFUSED = "refused"  # dead-lettered by a rule about names, limits or contents
    DEAD = "dead-lettered"  # dead-lettered for another reason
    IN_FLIGHT = "in flight"  # its outcome may be in an open journal, or the copy is in the spool
    MISSING = "missing"


def class_column(late: int, spooled_since: int) -> Column:
    """Return the class of a copy from the columns of `copies`, without CopyClass.DISORDERED.

    A copy received before `spooled_since` is not in the spool any more.
    Units: microseconds.
    """
    deliveries = F.col("deliveries") + F.col("replays")
    delivered = deliveries > 0
    in_spool = (F.col("spooled") > 0) & (F.unix_micros("received_time") >= spooled_since)
    rules = [
        (~F.col("was_received"), CopyClass.UNEXPECTED),
        (delivered & _is_altered(), CopyClass.ALTERED),
        (_has_several_outcomes(), CopyClass.DUPLICATED),
        (delivered & F.col("tapped") & (F.col("sightings") == 0), CopyClass.LOST),
        (F.col("replays") > 0, CopyClass.RECOVERED),
        (delivered & (F.col("latency") > late), CopyClass.LATE),
        (delivered, CopyClass.DELIVERED),
        (F.col("refusals") > 0, CopyClass.REFUSED),
        (F.col("dead_letters") > 0, CopyClass.DEAD),
        (F.col("recent") | in_spool, CopyClass.IN_FLIGHT),
    ]
    found = F.lit(CopyClass.MISSING.value)
    for condition, name in reversed(rules):
        found = F.when(condition, F.lit(name.value)).otherwise(found)
    return found


def is_marked_duplicate() -> Column:
    """Return whether at-least-once allows the deliveries: at most one is not marked as a retry.

    A replay is always marked.
    """
    retried = (F.col("first_attempts") <= 1) & (F.col("dead_letters") == 0)
    at_least_once = F.coalesce("mode", F.lit(0)) < EXACTLY_ONCE
    return (retried & (at_least_once | (F.col("deliveries") <= 1))) | (F.col("deliveries") == 0)


def _has_several_outcomes() -> Column:
    """Return whether a copy was delivered twice, or delivered and dead-lettered.

    A replay after a dead letter is the recovery of it.
    """
    again = (F.col("deliveries") > 0) & (F.col("deliveries") + F.col("dead_letters") > 1)
    return again | (F.col("deliveries") + F.col("replays") > 1)


def _is_altered() -> Column:
    """Return whether a hash is absent, or is not that of the payload before."""
    wrong = F.col("hashless") > 0
    for word in _WORDS:
        wrong |= _differs("sent", word, "received") | _differs("seen", word, "arrived")
    return wrong


def _differs(later: str, word: str, earlier: str) -> Column:
    """Return whether a hash of the rows `later` is not the one of the rows `earlier`."""
    least, most = F.col(f"least_{later}_{word}"), F.col(f"most_{later}_{word}")
    other = (least != F.col(f"least_{earlier}_{word}")) | (most != F.col(f"most_{earlier}_{word}"))
    return F.coalesce(other, F.lit(False))
