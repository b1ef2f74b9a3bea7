"""The content of `summary.json`, parsed and checked: the input of the HTML report.

`gaps`, `carried` and `names_unchecked` may be absent: summaries of older versions do not have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, TypeAlias

from gateway.errors import ReconcileError

Row: TypeAlias = Mapping[str, object]
Rows: TypeAlias = Sequence[Row]

_HINT: Final = "give the summary.json that gateway reconcile wrote"


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of one date: `seconds` by step, `proof` as counts, the rest rows of tables."""

    archive: str
    date: date
    verdict: str
    status: int
    mode: str
    strict: bool
    accept_gaps: bool
    totals: Row
    proof: Row
    seconds: Row
    routes: Rows
    gateways: Rows
    hours: Rows
    whole_day: Rows
    dead_letters: Rows
    names: Rows
    renamed: Rows
    names_unchecked: str
    samples: Rows
    findings: Rows
    gaps: Rows
    carried: Rows


def parse_summary(content: object) -> Summary:
    """Return the summary in the content of a JSON file.

    Raises:
        ReconcileError: a key is missing or has a value of the wrong type.
    """
    if not isinstance(content, Mapping):
        raise ReconcileError(f"summary: is not a JSON object; {_HINT}")
    return Summary(
        archive=_text(content, "archive"),
        date=_date(content, "date"),
        verdict=_text(content, "verdict"),
        status=count(content, "status"),
        mode=_text(content, "mode"),
        strict=content.get("strict") is True,
        accept_gaps=content.get("accept_gaps") is True,
        totals=_row(content, "totals"),
        proof=_row(content, "proof"),
        seconds=_row(content, "seconds"),
        names_unchecked=word(content, "names_unchecked"),
        **{
            name: _rows(content, name)
            for name in (
                "routes", "gateways", "hours", "whole_day", "dead_letters", "names", "renamed",
                "samples", "findings",
            )
        },
        **{name: _rows({name: content.get(name, [])}, name) for name in ("gaps", "carried")},
    )  # fmt: skip


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


def _text(content: Row, name: str) -> str:
    value = content.get(name)
    if not isinstance(value, str):
        raise _wrong_type(name, "text")
    return value


def _date(content: Row, name: str) -> date:
    try:
        return date.fromisoformat(_text(content, name))
    except ValueError as fault:
        raise _wrong_type(name, "a date") from fault


def _row(content: Row, name: str) -> Row:
    value = content.get(name)
    if not isinstance(value, Mapping):
        raise _wrong_type(name, "an object")
    return value


def _rows(content: Row, name: str) -> Rows:
    value = content.get(name)
    if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
        raise _wrong_type(name, "a list of objects")
    return value


def _wrong_type(name: str, kind: str) -> ReconcileError:
    return ReconcileError(f"summary: {name!r} is not {kind}; {_HINT}")
