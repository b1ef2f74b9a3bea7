"""A report as JSON, `summary.json`, and back: scripts read it, and the page can be made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final

from gateway.archive.findings import Finding, Weight
from gateway.errors import ReconcileError
from gateway.reconcile.report.report import NO_ANSWER, Report
from gateway.reconcile.report.rows import Row, Rows

VERSION: Final = 1
_HINT: Final = "give the summary.json that gateway reconcile wrote"
_ROWS: Final = (
    "gaps", "carried", "routes", "gateways", "hours", "whole_day", "dead_letters", "names",
    "renamed", "samples",
)  # fmt: skip  # fields of a report that are the rows of the same key


def to_json(report: Report) -> str:
    """Return the report as JSON; times are ISO 8601 in UTC."""
    content = {
        "version": VERSION,
        "archive": report.archive,
        "date": report.day or "",
        "headline": report.headline,
        "verdict": report.verdict,
        "status": report.status,
        "mode": report.mode,
        "strict": report.strict,
        "accept_gaps": report.accept_gaps,
        "proof": report.proof,
        "totals": report.sums,
        "source_gaps": report.source_gaps,
        **{name: getattr(report, name) for name in _ROWS},
        "names_unchecked": report.names_unchecked,
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
    rows: dict[str, Any] = {name: _rows(content, name) for name in _ROWS}
    return Report(
        archive=_value(content, "archive", str),
        day=_date(content),
        findings=_findings(content),
        names_unchecked=_value(content, "names_unchecked", str),
        totals=_value(content, "totals", dict),
        proof=_value(content, "proof", dict),
        mode=_value(content, "mode", str),
        strict=_value(content, "strict", bool),
        accept_gaps=_value(content, "accept_gaps", bool),
        answered=_value(content, "status", int) != NO_ANSWER,
        timings=_value(content, "seconds", dict),
        **rows,
    )


def finding_row(finding: Finding) -> dict[str, str]:
    """Return a finding as a row of JSON."""
    return {
        "weight": finding.weight.value,
        "rule": finding.rule,
        "place": finding.place,
        "text": finding.text,
    }


def finding_of(row: Row) -> Finding:
    """Return the finding in a row of JSON.

    Raises:
        KeyError, ValueError: it is none.
    """
    rule, place, text = (str(row[name]) for name in ("rule", "place", "text"))
    return Finding(Weight(row["weight"]), rule, place, text)


def _findings(content: Row) -> list[Finding]:
    try:
        return [finding_of(row) for row in _rows(content, "findings")]
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


def _rows(content: Row, name: str) -> Rows:
    rows: Rows = _value(content, name, list)
    if not all(isinstance(row, Mapping) for row in rows):
        raise _wrong_type(name, "a list of objects")
    return rows


def _value(content: Row, name: str, kind: type) -> Any:  # noqa: ANN401  # of the kind
    value = content.get(name)
    if not isinstance(value, kind):
        words = {str: "text", dict: "an object", list: "a list", bool: "true or false"}
        raise _wrong_type(name, words.get(kind, "a number"))
    return value


def _wrong_type(name: str, kind: str) -> ReconcileError:
    return ReconcileError(f"summary: {name!r} is not {kind}; {_HINT}")
