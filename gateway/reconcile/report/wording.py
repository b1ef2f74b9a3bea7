"""The classes of a reconciliation: meaning, severity and advice of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from gateway.reconcile.report.summary import Row, Rows, count, word


class Severity(Enum):
    """How severe a count is; the values are classes of the style sheet."""

    BREACH = "bad"  # a delivery guarantee was violated
    STRICT = "warn"  # a violation with --strict only
    ACCOUNTED = "note"  # not delivered, and the archive has the reason
    NONE = ""


@dataclass(frozen=True, slots=True)
class ClassDescription:
    """The meaning of a class, and the advice for its deliveries."""

    severity: Severity
    meaning: str  # completes "the deliveries ..."
    advice: str
    replayable: bool = False  # `gateway replay` repairs it; the copies become recovered


# The gravest first; the table on the terminal has the same names.
CLASSES: Final[Mapping[str, ClassDescription]] = MappingProxyType(
    {
        "missing": ClassDescription(
            Severity.BREACH,
            "were received, and the archive has no outcome for them",
            "Send them again, and reconcile this date again: they become recovered.",
            replayable=True,
        ),
        "lost in target": ClassDescription(
            Severity.BREACH,
            "were accepted by the target's broker and never reached its subscribers",
            "Ask that broker's operator: a full queue, an expiry, a purge. Then send them again.",
            replayable=True,
        ),
        "altered": ClassDescription(
            Severity.BREACH,
            "arrived with a payload that differs from the one received",
            "Compare one with its original. Find what changes payloads before you send them again.",
        ),
        "unexpected": ClassDescription(
            Severity.BREACH,
            "appeared at a target without a received message",
            "Look for a second publisher on the target, and for files missing from the archive.",
        ),
        "duplicated": ClassDescription(
            Severity.BREACH,
            "arrived more than once; only copies marked as redelivered are allowed",
            "Ask the consumers of these names whether they processed a message twice.",
        ),
        "out of order": ClassDescription(
            Severity.BREACH,
            "arrived before an earlier message of the same name",
            "Ask the consumers of these names whether an older value replaced a newer one.",
        ),
        "delivered late": ClassDescription(
            Severity.STRICT,
            "arrived later than the route's limit",
            "Find the hours in which the latency rises, and check the target in these hours.",
        ),
        "dead-lettered": ClassDescription(
            Severity.ACCOUNTED,
            "could not be delivered and are dead letters with a reason",
            "When the cause is removed, send them again; they become recovered.",
        ),
        "refused": ClassDescription(
            Severity.ACCOUNTED,
            "break a rule of the target (a name, a limit, a payload) and are dead letters",
            "The rules are listed below. Correct the mapping; gateway explain shows each name.",
        ),
        "in flight": ClassDescription(
            Severity.ACCOUNTED,
            "were not settled yet when the archive was read: spooled, or in an open journal",
            "Nothing now: the next run of gateway reconcile counts this date again.",
        ),
        "recovered": ClassDescription(
            Severity.ACCOUNTED,
            "were missing or dead letters, and arrived when gateway replay sent them again",
            "",
        ),
        "delivered": ClassDescription(Severity.NONE, "arrived once, unchanged and in time", ""),
    }
)
EXCEPTIONS: Final = tuple(name for name in CLASSES if name != "delivered")
_USUAL: Final = ("missing", "altered", "duplicated", "out of order")  # shown even when all are 0


def severity_of(name: str, row: Row, *, strict: bool) -> Severity:
    """Return the severity of the count `name` in `row`; marked duplicates are a warning only."""
    severity = CLASSES[name].severity if name in CLASSES and count(row, name) else Severity.NONE
    if name == "duplicated" and severity is Severity.BREACH:
        return Severity.BREACH if violations(name, row, strict=strict) else Severity.STRICT
    return Severity.BREACH if severity is Severity.STRICT and strict else severity


def violations(name: str, row: Row, *, strict: bool) -> int:
    """Return how many deliveries of a class violate a guarantee."""
    severity = CLASSES[name].severity
    if severity is Severity.BREACH:
        allowed = count(row, "marked") if name == "duplicated" and not strict else 0
        return count(row, name) - allowed
    return count(row, name) if severity is Severity.STRICT and strict else 0


def all_violations(row: Row, *, strict: bool) -> int:
    return sum(violations(name, row, strict=strict) for name in CLASSES)


def exceptions_in(rows: Rows) -> list[str]:
    """Return the exception classes with at least one delivery in `rows`, the gravest first."""
    return [name for name in EXCEPTIONS if any(count(row, name) for row in rows)]


def shown_classes(rows: Rows) -> list[str]:
    """Return the classes that a table shows: the usual ones, and those with a delivery."""
    found = exceptions_in(rows)
    return [name for name in EXCEPTIONS if name in found or name in _USUAL]


def worst_first(rows: Iterable[Row], *, strict: bool) -> list[Row]:
    """Sort routes by violations, then by exceptions, then by traffic."""

    def sort_key(row: Row) -> tuple[int, int, int, str, str]:
        exceptions = sum(count(row, name) for name in EXCEPTIONS)
        violated = all_violations(row, strict=strict)
        return (
            -violated,
            -exceptions,
            -count(row, "received"),
            word(row, "route"),
            word(row, "target"),
        )

    return sorted(rows, key=sort_key)
