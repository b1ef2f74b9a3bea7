from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from gateway.reconcile.findings import Finding, error, warning
from gateway.reconcile.report.text import COLUMNS, Report, print_report, to_json

ROUTE = {**dict.fromkeys((*COLUMNS, "marked", "redelivered"), 0), "route": "orders", "target": "e"}
WARNING, ERROR = warning("open-journal", "j", "waits"), error("foreign-file", "f", "is foreign")


def report(*findings: Finding, **counts: int) -> Report:
    route = {**ROUTE, "received": 9, "delivered": 9, **counts}
    return Report("a", "2026-03-14", findings, [route])


@pytest.mark.parametrize(
    ("found", "status", "verdict"),
    [
        pytest.param(report(), 0, "clean", id="clean"),
        pytest.param(report(**{"dead-lettered": 3}), 0, "clean", id="dead-letters-alone"),
        pytest.param(report(**{"in flight": 3}), 0, "clean", id="in-flight"),
        pytest.param(report(unexpected=3), 0, "clean", id="unexpected"),
        pytest.param(report(WARNING), 0, "clean", id="warning"),
        pytest.param(report(missing=2), 1, "not clean: 2 missing", id="missing"),
        pytest.param(report(altered=1), 1, "not clean: 1 altered", id="altered"),
        pytest.param(report(duplicated=2, marked=2), 0, "clean", id="marked-duplicates"),
        pytest.param(
            report(duplicated=3, marked=2), 1, "not clean: 1 duplicated", id="unmarked-duplicate"
        ),
        pytest.param(
            replace(report(duplicated=2, marked=2), strict=True),
            1,
            "not clean: 2 duplicated",
            id="strict",
        ),
        pytest.param(report(ERROR), 1, "not clean: 1 errors in the archive", id="fault"),
        pytest.param(Report("a", "today", [ERROR], answered=False), 2, "no answer", id="no-answer"),
    ],
)
def test_the_status_tells_whether_a_guarantee_was_violated(
    found: Report, status: int, verdict: str
) -> None:
    assert (found.status, found.verdict) == (status, verdict)
    content = json.loads(to_json(found))
    assert (content["status"], content["verdict"]) == (status, verdict)


def test_the_last_lines_are_plain_text_and_end_with_the_gravest_count() -> None:
    text = io.StringIO()
    samples = [{"class": "missing", "id": "01", "route": "r", "target": "t", "name": "[red]n"}]
    night = Report("a", "2026-03-14", [ERROR] * 12, [{**ROUTE, "missing": 1}], [], samples)

    print_report(night, Console(file=text, width=200))

    lines = text.getvalue().splitlines()
    assert lines[-1] == "missing 1"
    assert "verdict: not clean: 1 missing, 12 errors in the archive" in lines
    assert "error: f: is foreign [foreign-file]" in lines
    assert "... and 2 more [foreign-file]; --json has all" in lines
    assert "missing: 01 r -> t '[red]n'" in lines
