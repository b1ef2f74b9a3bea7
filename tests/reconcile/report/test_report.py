from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gateway.archive.findings import Finding, error, warning
from gateway.model.copy_class import TALLIES
from gateway.reconcile.report.report import Report
from gateway.reconcile.report.summary import to_json
from tests.reconcile.summaries import DAY, clean, eventful, gappy

ROUTE = {**dict.fromkeys(TALLIES, 0), "route": "orders", "target": "e"}
WARNING, ERROR = warning("open-journal", "j", "waits"), error("foreign-file", "f", "is foreign")


def report(*findings: Finding, **counts: int) -> Report:
    route = {**ROUTE, "received": 9, "delivered": 9, **counts}
    return Report("a", DAY.date(), findings, [route])


@pytest.mark.parametrize(
    ("found", "status", "verdict"),
    [
        pytest.param(report(), 0, "clean", id="clean"),
        pytest.param(report(**{"dead-lettered": 3}), 0, "clean", id="dead-letters-alone"),
        pytest.param(report(**{"in flight": 3}), 0, "clean", id="in-flight"),
        pytest.param(report(recovered=3), 0, "clean", id="recovered"),
        pytest.param(report(unexpected=3), 1, "not clean: 3 unexpected", id="unexpected"),
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
        pytest.param(report(ERROR), 1, "not clean: 1 error in the archive", id="fault"),
        pytest.param(Report("a", None, [ERROR], answered=False), 2, "no answer", id="no-answer"),
    ],
)
def test_the_status_tells_whether_a_guarantee_was_violated(
    found: Report, status: int, verdict: str
) -> None:
    assert (found.status, found.verdict) == (status, verdict)
    content = json.loads(to_json(found))
    assert (content["status"], content["verdict"]) == (status, verdict)


@pytest.mark.parametrize(
    ("found", "status", "verdict"),
    [
        pytest.param(gappy(), 3, "clean for what was received, 1 source gap", id="gap"),
        pytest.param(
            replace(gappy(), accept_gaps=True),
            0,
            "clean for what was received, 1 source gap",
            id="accepted",
        ),
        pytest.param(replace(gappy(), gaps=gappy().gaps[2:]), 0, "clean", id="kept-sessions"),
        pytest.param(
            replace(gappy(), findings=[ERROR]), 1, "not clean: 1 error in the archive", id="breach"
        ),
        pytest.param(replace(gappy(), answered=False), 2, "no answer", id="no-answer"),
    ],
)
def test_a_gap_of_a_source_makes_the_verdict_one_of_what_was_received(
    found: Report, status: int, verdict: str
) -> None:
    assert (found.status, found.verdict) == (status, verdict)
    content = json.loads(to_json(found))
    assert (content["source_gaps"], len(content["gaps"])) == (found.source_gaps, len(found.gaps))
    assert content["gaps"][0]["end"].endswith("+00:00")


def test_the_summary_has_recovered_and_carried_copies() -> None:
    content = json.loads(to_json(eventful()))

    assert content["totals"]["recovered"] == 5
    assert content["carried"] == list(eventful().carried)
    assert content["proof"]["sets"] == 48


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [(0, 1, 1), (3, 1, 1), (1, 1, 1), (1, 0, 0), (0, 2, 2), (0, 3, 3), (0, 0, 0)],
)
def test_the_exit_status_is_that_of_the_worst_date(before: int, after: int, status: int) -> None:
    again = {"date": "2026-03-13", "before": 5, "after": 0, "status_before": before,
             "status": after, "verdict": "..."}  # fmt: skip

    assert replace(clean(), carried=[again]).exit_status == status
    assert replace(clean(), carried=[again], answered=False).exit_status == (
        1 if status == 1 else 2
    )
