"""A report as JSON, `summary.json`, and back: scripts read it, and the page can be made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from typing import Any, Final, get_type_hints

from gateway.archive.signed_json import document_of, parse
from gateway.errors import ReconcileError
from gateway.night.reconcile.report.headline import headline
from gateway.night.reconcile.report.report import NO_ANSWER, Report
from gateway.untyped import Untyped

SUMMARY: Final = "summary.json"
VERSION: Final = 1
_HINT: Final = "give the summary.json that gateway reconcile wrote, or reconcile the date again"
_OTHER_KEYS: Final = {"day": "date", "timings": "seconds"}  # of fields of a report


def to_json(report: Report) -> str:
    """Return the report as JSON; times are ISO 8601 in UTC."""
    return json.dumps(content_of(report), indent=2, default=members) + "\n"


def content_of(report: Report) -> dict[str, Any]:
    """Return the members of the JSON of a report."""
    own = {_OTHER_KEYS.get(name, name): value for name, value in members(report).items()}
    del own["answered"]  # the status tells it
    return {
        "version": VERSION,
        "headline": headline(report),
        "verdict": report.verdict,
        "status": report.status,
        **own,
        "date": report.day or "",
        "totals": report.sums,
        "source_gaps": report.source_gaps,
        "absences": report.absences,
        "seconds": {name: round(seconds, 3) for name, seconds in report.timings.items()},
    }


def members(value: Untyped) -> Untyped:
    """Return the members of a dataclass by name, and a time or a date as ISO 8601."""
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return value.isoformat() if isinstance(value, date) else str(value)


def from_json(text: str | bytes) -> Report:
    """Return the report in the text of a `summary.json`.

    Raises:
        ReconcileError: it is not JSON, has another version, or lacks a key.
    """
    try:
        content = document_of(text, VERSION)
        content["date"] = content.get("date") or None
        content["answered"] = content.get("status") != NO_ANSWER
        return Report(**dict(_parsed(content)))
    except ValueError as fault:
        raise ReconcileError(f"summary: {fault}; {_HINT}") from fault


def _parsed(content: Mapping[str, object]) -> Untyped:
    for name, kind in get_type_hints(Report).items():
        key = _OTHER_KEYS.get(name, name)
        yield name, parse(kind, content.get(key), key)
