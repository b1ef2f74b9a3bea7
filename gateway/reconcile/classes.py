"""The rules that assign the class of a copy, as Spark column expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from gateway.model.copy_class import CopyClass

EXACTLY_ONCE: Final = 2

# Rules of dead letters with a cause outside the message: a failure of a broker or the gateway.
# Every other rule refuses a name, a header, a payload or a size.
FAILURES: Final = (
    "broker-exception", "expired", "internal", "library", "no-subscription", "not-authorised",
    "poisoned", "publish-acl", "queue", "spool-age", "spool-full",
)  # fmt: skip
_WORDS: Final = ("high", "low")  # of a hash


def _has(counts: str) -> Column:
    return F.col(counts) > 0


def _is_delivered() -> Column:
    return F.col("deliveries") + F.col("replays") > 0


def _in_spool(since: int) -> Column:
    return _has("spooled") & (F.unix_micros("received_time") >= since)


def _has_several_outcomes() -> Column:
    """Return whether a copy was delivered twice, or delivered and dead-lettered.

    A replay after a dead letter is the recovery of it.
    """
    again = _has("deliveries") & (F.col("deliveries") + F.col("dead_letters") > 1)
    return again | (F.col("deliveries") + F.col("replays") > 1)


def _is_altered() -> Column:
    """Return whether a hash is absent, or is not that of the payload before."""
    wrong = _has("hashless")
    for word in _WORDS:
        wrong |= _differs("sent", word, "received") | _differs("seen", word, "arrived")
    return wrong


def _differs(later: str, word: str, earlier: str) -> Column:
    """Return whether a hash of the rows `later` is not the one of the rows `earlier`."""
    least, most = F.col(f"least_{later}_{word}"), F.col(f"most_{later}_{word}")
    other = (least != F.col(f"least_{earlier}_{word}")) | (most != F.col(f"most_{earlier}_{word}"))
    return F.coalesce(other, F.lit(False))


# A copy has the first class whose rule fits, by the longest latency and the first receipt of a
# copy that may still be in the spool, in microseconds.
RULES: Final[Mapping[CopyClass, Callable[[int, int], Column]]] = {
    CopyClass.UNEXPECTED: lambda _late, _since: ~F.col("was_received"),
    CopyClass.ALTERED: lambda _late, _since: _is_delivered() & _is_altered(),
    CopyClass.DUPLICATED: lambda _late, _since: _has_several_outcomes(),
    CopyClass.LOST: lambda _late, _since: (
        _is_delivered() & F.col("tapped") & (F.col("sightings") == 0)
    ),
    CopyClass.RECOVERED: lambda _late, _since: _has("replays"),
    # The order among copies decides it later.
    CopyClass.DISORDERED: lambda _late, _since: F.lit(False),
    CopyClass.LATE: lambda late, _since: _is_delivered() & (F.col("latency") > late),
    CopyClass.DELIVERED: lambda _late, _since: _is_delivered(),
    CopyClass.REFUSED: lambda _late, _since: _has("refusals"),
    CopyClass.DEAD: lambda _late, _since: _has("dead_letters"),
    CopyClass.IN_FLIGHT: lambda _late, since: F.col("recent") | _in_spool(since),
    CopyClass.MISSING: lambda _late, _since: F.lit(True),
}


def class_column(late: int, spooled_since: int) -> Column:
    """Return the class of a copy from the columns of `copies`, without CopyClass.DISORDERED.

    Units: microseconds.
    """
    found = F.lit(CopyClass.MISSING.value)
    for each, rule in reversed(tuple(RULES.items())):
        found = F.when(rule(late, spooled_since), F.lit(each.value)).otherwise(found)
    return found


def is_marked_duplicate() -> Column:
    """Return whether at-least-once allows the deliveries: at most one is not marked as a retry.

    A replay is always marked.
    """
    retried = (F.col("first_attempts") <= 1) & (F.col("dead_letters") == 0)
    at_least_once = F.coalesce("mode", F.lit(0)) < EXACTLY_ONCE
    return (retried & (at_least_once | (F.col("deliveries") <= 1))) | (F.col("deliveries") == 0)
