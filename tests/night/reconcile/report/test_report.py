from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gateway.archive.findings import Finding, error, warning
from gateway.model.copy_class import TALLIES
from gateway.night.reconcile.report.headline import all_arrived, headline
from gateway.night.reconcile.report.report import Report
from gateway.night.reconcile.report.run import Run
from gateway.night.reconcile.report.summary import from_json, to_json
from tests.night.reconcile.summaries import DAY, clean, eventful, gappy, hidden

ROUTE = {**dict.fromkeys(TALLIES, 0), "route": "orders", "target": "e"}
WARNING, ERROR = warning("open-journal", "j", "waits"), error("foreign-file", "f", "is foreign")


def between(**counts: int) -> Report:
    return replace(report(), hops=[{"expected": 9, **counts}, {"expected": 1, "delivered": 1}])


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
        pytest.param(between(), 0, "clean", id="hops"),
        pytest.param(
            between(missing=2, altered=1),
            1,
            "not clean: 2 missing between gateways, 1 altered between gateways",
            id="lost-between-gateways",
        ),
        pytest.param(
            between(duplicated=3, marked=2),
            1,
            "not clean: 1 duplicated between gateways",
            id="duplicated-between-gateways",
        ),
        pytest.param(
            between(**{"in flight": 2, "in gap": 1, "delivered late": 1}), 0, "clean", id="between"
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
            "clean for what was received, 1 source gap (accepted)",
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


WORDS = (
    "2 messages cut on another's word",
    "1 message between gateways on a publisher's word",
)


@pytest.mark.parametrize(
    ("found", "status", "verdict"),
    [
        pytest.param(hidden(), 3, f"clean for what was received, {', '.join(WORDS)}", id="words"),
        pytest.param(
            replace(hidden(), hops=()), 3, f"clean for what was received, {WORDS[0]}", id="cuts"
        ),
        pytest.param(
            replace(hidden(), cuts=()), 3, f"clean for what was received, {WORDS[1]}", id="hops"
        ),
        pytest.param(
            replace(hidden(), accept_cuts=True, hops=()),
            0,
            f"clean for what was received, {WORDS[0]} (accepted)",
            id="accepted",
        ),
        pytest.param(
            replace(hidden(), gaps=gappy().gaps, accept_cuts=True, hops=()),
            3,
            f"clean for what was received, 1 source gap, {WORDS[0]} (accepted)",
            id="gaps-are-not",
        ),
        pytest.param(
            replace(hidden(), cuts=hidden().cuts[1:], hops=()), 0, "clean", id="other-cuts"
        ),
    ],
)
def test_what_is_known_on_another_s_word_is_told_as_a_gap(
    found: Report, status: int, verdict: str
) -> None:
    assert (found.status, found.verdict) == (status, verdict)
    read = from_json(to_json(found))
    assert (read.status, read.verdict, read.words) == (status, verdict, found.words)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        pytest.param(
            hidden(),
            f"Clean for what was received, with {' and '.join(WORDS)}:"
            " all 21,600 deliveries arrived",
            id="words",
        ),
        pytest.param(
            replace(report(delivered=8, missing=1), cuts=hidden().cuts),
            f"Not clean: 8 of 9 deliveries arrived; 1 missing; {WORDS[0]}",
            id="missing-and-cut",
        ),
        pytest.param(report(), "Clean: all 9 deliveries arrived", id="clean"),
        pytest.param(
            report(delivered=4, recovered=5), "Clean: all 9 deliveries arrived", id="recovered"
        ),
        pytest.param(
            report(delivered=7, duplicated=2, marked=2),
            "Clean: all 9 deliveries arrived",
            id="twice",
        ),
        pytest.param(
            report(delivered=3, refused=1, **{"in flight": 5}),
            "3 of 9 deliveries arrived; 1 refused, 5 in flight",
            id="accounted",
        ),
        pytest.param(
            report(delivered=7, missing=2),
            "Not clean: 7 of 9 deliveries arrived; 2 missing",
            id="missing",
        ),
        pytest.param(
            report(unexpected=2),
            "Not clean: all 9 deliveries arrived; 2 unexpected",
            id="unexpected",
        ),
        pytest.param(report(received=1, delivered=1), "Clean: 1 of 1 arrived", id="the-only-one"),
        pytest.param(
            report(received=0, delivered=0), "Clean: no delivery was expected", id="nothing"
        ),
        pytest.param(
            report(error("damaged-routes", "f", "is no route")),
            "Not clean: all 9 deliveries arrived; 1 error in the archive",
            id="rows-are-intact",
        ),
        pytest.param(
            report(error("torn-journal", "j", "ends early"), delivered=8, missing=1),
            "Not clean: the archive may lack rows, so how many of how many deliveries arrived is"
            " not known; among the rest, 1 missing",
            id="rows-may-lack",
        ),
        pytest.param(
            replace(report(error("changed-segment", "s", "differs")), proof={"unproven": 1}),
            "Not clean: 1 row of the date is absent or not proven, so how many of how many"
            " deliveries arrived is not known",
            id="one-row",
        ),
        pytest.param(
            replace(report(), gaps=gappy().gaps),
            "Clean for what was received, with 1 source gap: all 9 deliveries arrived",
            id="gap",
        ),
        pytest.param(
            replace(report(), gaps=gappy().gaps, accept_gaps=True),
            "Clean for what was received, with 1 source gap (accepted): all 9 deliveries arrived",
            id="accepted-gap",
        ),
        pytest.param(
            replace(report(delivered=8, refused=1), gaps=gappy().gaps),
            "8 of 9 deliveries arrived; 1 refused; 1 source gap",
            id="gap-and-refused",
        ),
        pytest.param(
            replace(report(), answered=False, proof={"unproven": 12_000}),
            "No answer: this date could not be reconciled; 12,000 rows of the date are absent or"
            " not proven",
            id="no-answer",
        ),
    ],
)
def test_the_headline_says_how_many_of_how_many_arrived(found: Report, text: str) -> None:
    assert headline(found) == text
    assert json.loads(to_json(found))["headline"] == text


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

    assert Run(replace(clean(), carried=[again])).exit_status == status
    assert Run(replace(clean(), carried=[again], answered=False)).exit_status == (
        1 if status == 1 else 2
    )


def test_the_headline_says_what_is_not_received_between_gateways() -> None:
    assert headline(between()) == "Clean: all 9 deliveries arrived"
    waiting = between(**{"in flight": 2, "in gap": 1})
    assert not all_arrived(waiting)
    assert headline(waiting) == "all 9 deliveries arrived; between gateways 1 in gap, 2 in flight"
    assert headline(between(missing=1)) == (
        "Not clean: all 9 deliveries arrived; between gateways 1 missing"
    )
