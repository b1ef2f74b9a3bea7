"""A report as JSON, `summary.json`, and back: scripts read it, and the page can be made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final

from gateway.archive.findings import Finding, Weight, finding_row
from gateway.errors import ReconcileError
from gateway.reconcile.report.report import NO_ANSWER, Report
from gateway.reconcile.report.rows import Row

VERSION: Final = 1
_HINT: Final = "give the summary.json that gateway reconcile wrote"
# The fields of a report that the JSON has under the same key, with the kinds of their values.
_FIELDS: Final[Mapping[str, type]] = {
    "archive": str, "mode": str, "strict": bool, "accept_gaps": bool, "names_unchecked": str,
    "hops": list, "hop_samples": list, "hops_unchecked": str,
    "proof": dict, "gaps": list, "holders": list, "carried": list, "routes": list,
    "gateways": list, "hours": list, "whole_day": list, "dead_letters": list, "names": list,
    "renamed": list, "samples": list,
}  # fmt: skip
_WORDS: Final = {
    str: "text", dict: "an object", list: "a list of objects", bool: "true or false",
    int: "a number",
}  # fmt: skip


def to_json(report: Report) -> str:
    """Return the report as JSON; times are ISO 8601 in UTC."""
    content = {
        "version": VERSION,
        "date": report.day or "",
        "headline": report.headline,
        "verdict": report.verdict,
        "status": report.status,
        "totals": report.sums,
        "source_gaps": report.source_gaps,
        **{name: getattr(report, name) for name in _FIELDS},
        "findings": [finding_row(each) for each in report.findings],
        "seconds": {name: round(seconds, 3) for name, seconds in report.timings.items()},
    }
    return json.dumps(content, indent=2, default=_text) + "\n"


def from_json(text: str | bytes) -> Report:
    """Return the report in the text of a `summary.json`.

    Raises:
        ReconcileError: it is no JSON, has another version, or lacks a key.
    """
    try:
        content = json.loads(text)
    except ValueError as fault:
        raise ReconcileError(f"summary: is not JSON: {fault}; {_HINT}") from fault
    if not isinstance(content, Mapping):
        raise ReconcileError(f"summary: is not a JSON object; {_HINT}")
    if (version := content.get("version")) != VERSION:
        text = f"summary: has version {version!r}; this program reads version {VERSION}"
        raise ReconcileError(f"{text}: reconcile the date again")
    fields: dict[str, Any] = {each: _value(content, each, kind) for each, kind in _FIELDS.items()}
    return Report(
        day=_date(content),
        findings=_findings(content),
        totals=_value(content, "totals", dict),
        answered=_value(content, "status", int) != NO_ANSWER,
        timings=_value(content, "seconds", dict),
        **fields,
    )


def finding_of(row: Row) -> Finding:
    """Return the finding in a row of JSON.

    Raises:
        KeyError, ValueError: it is none.
    """
    rule, place, text = (str(row[name]) for name in ("rule", "place", "text"))
    return Finding(Weight(row["weight"]), rule, place, text)


def _findings(content: Row) -> list[Finding]:
    try:
        return [finding_of(row) for row in _value(content, "findings", list)]
    except (KeyError, ValueError) as fault:
        raise _wrong_type("findings", "a list of findings") from fault


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, date | datetime) else str(value)


def _date(content: Row) -> date | None:
    text = _value(content, "date", str)
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as fault:
        raise _wrong_type("date", "a date") from fault


def _value(content: Row, name: str, kind: type) -> Any:  # noqa: ANN401  # of the kind
    value = content.get(name)
    rows = value if isinstance(value, list) else ()
    if not isinstance(value, kind) or not all(isinstance(row, Mapping) for row in rows):
        raise _wrong_type(name, _WORDS[kind])
    return value


def _wrong_type(name: str, kind: str) -> ReconcileError:
    return ReconcileError(f"summary: {name!r} is not {kind}; {_HINT}")
