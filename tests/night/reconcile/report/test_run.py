"""The verdict of a run: that of all its dates and of the findings beside them."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pytest
from rich.console import Console

from gateway.archive.findings import error, warning
from gateway.night.reconcile.report.report import Report
from gateway.night.reconcile.report.rows import Row
from gateway.night.reconcile.report.run import NOTHING, Run, date_row, run_json
from gateway.night.reconcile.report.terminal import print_report
from tests.night.reconcile.summaries import DAY, clean, counted, empty, eventful, gappy

SILENT = error("silent-writer", "_heads/edge.json", "edge wrote nothing since its last head")
NO_DATE = Report("archive", None)
BAD = "2026-03-13"
PAGE = Path(__file__).parents[4] / "docs" / "reconciliation.md"


def earlier(report: Report, date: str = BAD) -> Row:
    """The row of a date that an earlier run of the night judged."""
    return {**date_row(report), "date": date}


def printed(run: Run) -> list[str]:
    text = io.StringIO()
    print_report(run, Console(file=text, width=200))
    return text.getvalue().splitlines()


def test_a_run_that_judged_nothing_has_no_verdict() -> None:
    run = Run(NO_DATE)

    assert (run.status, run.exit_status, run.verdict) == (None, 0, "")
    assert printed(run) == [NOTHING]
    found = json.loads(run_json(run))
    assert (found["headline"], found["verdict"], found["status"]) == (NOTHING, None, None)
    assert found["dates"] == []


@pytest.mark.parametrize("report", [clean(), eventful(), gappy(), empty()])
def test_a_run_of_one_date_has_the_verdict_of_the_date(report: Report) -> None:
    report = replace(report, carried=())
    run, own = Run(report), date_row(report)

    assert (run.headline, run.verdict, run.status) == (
        own["headline"], own["verdict"], report.status,
    )  # fmt: skip
    assert json.loads(run_json(run))["dates"] == [own]


def test_a_second_run_of_the_day_has_the_verdict_of_the_first() -> None:
    run = Run(replace(NO_DATE, carried=[earlier(eventful()), earlier(clean(), "2026-03-14")]))

    lines = printed(run)

    assert (run.status, run.exit_status) == (1, 1)
    assert run.verdict == "not clean: 1 of 2 dates"
    assert lines[0].startswith("Not clean: 12,000 rows of the date are absent")
    assert lines[0].endswith(f"({BAD}; 1 of 2 dates is not clean)")
    assert lines[1] == "verdict: not clean: 1 of 2 dates"
    assert lines[2].startswith(f"judged by an earlier run: {BAD}, not clean: 4 missing")
    assert lines[3] == "judged by an earlier run: 2026-03-14, clean"
    assert len(lines) == 4
    found = json.loads(run_json(run))
    assert (found["status"], found["verdict"]) == (1, run.verdict)


def test_the_lines_after_the_verdict_are_the_dates_and_then_the_counts_of_the_newest() -> None:
    again = {**earlier(clean()), "before": 5, "after": 0, "status_before": 0}
    run = Run(replace(clean(), carried=[again]))

    lines = printed(run)

    at = lines.index("verdict: clean")
    assert lines[at - 1] == (
        "Clean: all 21,600 deliveries arrived (2026-03-14; 2 of 2 dates are clean)"
    )
    assert lines[at + 1 : at + 4] == [
        f"reconciled again: {BAD}, 5 in flight -> 0, clean", "reconciled: 2026-03-14, clean",
        "received 21600",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("statuses", "verdict", "status"),
    [
        ((0, 0), "clean", 0),
        ((0, 3), "clean for what was received: 1 of 2 dates", 3),
        ((2, 3), "no answer: 1 of 2 dates", 2),
        ((2, 1), "not clean: 1 of 2 dates", 1),
        ((1, 1), "not clean: 2 of 2 dates", 1),
    ],
)
def test_the_verdict_is_that_of_the_worst_date(
    statuses: tuple[int, int], verdict: str, status: int
) -> None:
    reports = {0: clean(), 1: eventful(), 2: empty(), 3: gappy()}
    before, last = (replace(reports[each], carried=()) for each in statuses)
    run = Run(replace(last, carried=[earlier(before)]))

    assert (run.verdict, run.exit_status) == (verdict, status)
    assert json.loads(run_json(run))["status"] == status


def test_errors_of_the_night_are_the_runs_and_leave_its_dates_alone() -> None:
    run = Run(clean(), [SILENT, warning("w", "p", "text")])

    lines = printed(run)

    assert (run.report.status, run.exit_status) == (0, 1)
    assert run.verdict == "not clean: 1 error of the night"
    assert run.headline == (
        "Not clean: 1 error of the night, silent-writer;"
        " 2026-03-14: Clean: all 21,600 deliveries arrived"
    )
    assert str(SILENT) in lines
    found = json.loads(run_json(run))
    assert found["findings"] == []
    assert [each["rule"] for each in found["night_findings"]] == ["silent-writer", "w"]
    assert [row["status"] for row in found["dates"]] == [0]


def test_errors_of_a_night_without_dates_are_its_verdict() -> None:
    run = Run(NO_DATE, [SILENT, SILENT])

    assert (run.exit_status, run.verdict) == (1, "not clean: 2 errors of the night")
    assert run.headline == "Not clean: 2 errors of the night, silent-writer"


def test_errors_of_the_night_stand_beside_a_date_that_is_not_clean() -> None:
    run = Run(replace(eventful(), carried=()), [SILENT])

    assert run.verdict.startswith("not clean: 4 missing")
    assert run.verdict.endswith("1 error of the night")
    assert run.headline.startswith("Not clean: 12,000 rows of the date are absent")
    assert run.headline.endswith("; 1 error of the night, silent-writer")


def test_the_first_screen_of_the_document_has_headline_verdict_and_status_of_the_code() -> None:
    """The headline of absent rows is cut there."""
    runs = [
        Run(of_date(28_000)),
        Run(of_date(55, **{"dead-lettered": 25})),
        Run(NO_DATE),
        Run(of_date(28_000, missing=3, in_flight=7)),
        Run(replace(of_date(9), findings=[error("missing-segment", "p", "is absent")],
                    proof={"unproven": 12_000})),
        Run(of_date(28_000), [SILENT]),
        Run(empty()),
        Run(replace(of_date(28_000), gaps=gappy().gaps[:1])),
    ]  # fmt: skip
    page = PAGE.read_text("utf-8")
    lines = page.partition("| headline | verdict | status |\n| --- | --- | --- |\n")[2]

    rows = [re.fullmatch(r"\| `(.*)` \| (.*) \| (\d) \|", each) for each in lines.splitlines()]
    told = [each.groups() for each in takewhile(bool, rows) if each]

    assert len(told) == len(runs)
    for (said, verdict, status), run in zip(told, runs, strict=True):
        kept = said.removesuffix("...").removesuffix("Clean: ").rstrip()
        assert run.headline.startswith(kept)
        assert kept != said or run.headline == said
        assert (verdict.strip("`"), int(status)) == (run.verdict or "none", run.exit_status)


def of_date(received: int, **counts: int) -> Report:
    """A date with the copies of these classes; all others were delivered."""
    return Report("archive", DAY.date(), routes=[counted(received, **counts)])
