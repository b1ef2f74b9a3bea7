"""The rows of a report: their values, and what their counts of classes weigh."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from gateway.model.copy_class import CLASSES, EXCEPTION_CLASSES, Severity

Row: TypeAlias = Mapping[str, object]
Rows: TypeAlias = Sequence[Row]

_ENDS: Final = (("gateway", "route"), ("receiver", "receiver_route"))


def count(row: Row, name: str) -> int:
    """Return the count in a column; 0 when it is missing."""
    value = row.get(name)
    return value if isinstance(value, int) else 0


def number(row: Row, name: str) -> float | None:
    """Return the number in a column; None when it is missing."""
    value = row.get(name)
    return value if isinstance(value, int | float) else None


def word(row: Row, name: str) -> str:
    """Return the text in a column; an empty text when it is missing."""
    value = row.get(name)
    return "" if value is None else str(value)


def hop_ends(row: Row) -> tuple[str, str, str]:
    """Return the sending route, the broker and the receiving route of a hop, with gateways."""
    ends = [f"{word(row, gateway)}/{word(row, route)}" for gateway, route in _ENDS]
    return ends[0], word(row, "broker"), ends[1]


def violations(name: str, row: Row, *, strict: bool) -> int:
    """Return how many deliveries of a class violate a guarantee."""
    facts = CLASSES[name]
    if facts.severity is Severity.BREACH or (strict and facts.severity is Severity.STRICT):
        return count(row, name) - (0 if strict else count(row, facts.allowed))
    return 0


def all_violations(row: Row, *, strict: bool) -> int:
    return sum(violations(name, row, strict=strict) for name in CLASSES)


def severity_of(name: str, row: Row, *, strict: bool) -> Severity:
    """Return the severity of the count `name` in `row`; allowed copies are a warning only."""
    if not count(row, name):
        return Severity.NONE
    if violations(name, row, strict=strict):
        return Severity.BREACH
    severity = CLASSES[name].severity
    return Severity.STRICT if severity is Severity.BREACH else severity


def exceptions_in(rows: Rows) -> list[str]:
    """Return the exception classes with at least one delivery in `rows`, the gravest first."""
    return [name for name in EXCEPTION_CLASSES if any(count(row, name) for row in rows)]


def shown_classes(rows: Rows) -> list[str]:
    """Return the classes that a table shows: the usual ones, and those with a delivery."""
    found = exceptions_in(rows)
    return [name for name in EXCEPTION_CLASSES if name in found or CLASSES[name].usual]


def worst_first(rows: Iterable[Row], *, strict: bool) -> list[Row]:
    """Sort routes by violations, then by exceptions, then by traffic."""

    def sort_key(row: Row) -> tuple[int, int, int, str, str]:
        return (
            -all_violations(row, strict=strict),
            -sum(count(row, name) for name in EXCEPTION_CLASSES),
            -count(row, "received"),
            word(row, "route"),
            word(row, "target"),
        )

    return sorted(rows, key=sort_key)
