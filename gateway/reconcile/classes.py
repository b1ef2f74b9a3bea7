"""The rules that assign the class of a copy, as conditions of Spark SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from gateway.model.copy_class import CopyClass

# Rules of dead letters with a cause outside the message: a failure of a broker or the gateway.
# Every other rule refuses a name, a header, a payload or a size.
FAILURES: Final = (
    "broker-exception", "expired", "internal", "library", "no-subscription", "not-authorised",
    "poisoned", "publish-acl", "queue", "spool-age", "spool-full",
)  # fmt: skip
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


def class_column(late: int, spooled_since: int) -> Column:
    """Return the class of a copy from the columns of `copies`, without CopyClass.DISORDERED.

    Units: microseconds.
    """
    cases = " ".join(f"WHEN {rule} THEN '{each.value}'" for each, rule in RULES.items())
    return F.expr(f"CASE {cases} END".format(late=late, since=spooled_since))


def is_marked_duplicate() -> Column:
    """Return whether at-least-once allows the deliveries of a copy."""
    return F.expr(_IS_MARKED_DUPLICATE)
