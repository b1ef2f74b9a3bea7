"""The report on a terminal: nothing is cut at 80 columns, and the last lines are plain."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from gateway.archive.findings import error
from gateway.model.copy_class import TALLIES
from gateway.night.reconcile.report.report import Report
from gateway.night.reconcile.report.rows import Row
from gateway.night.reconcile.report.run import Run
from gateway.night.reconcile.report.terminal import print_report
from tests.night.reconcile.summaries import (
    DAY,
    clean,
    counted,
    eventful,
    gap,
    gappy,
    hidden,
    huge,
    lossy,
)

ROUTE = {**dict.fromkeys(TALLIES, 0), "route": "orders", "target": "e"}
LONG = "plant-events-of-line-12-in-hamburg-north"  # 40 characters


def printed(report: Report, width: int | None = 80) -> list[str]:
    """The lines on a terminal of this width, or in a file when it is None."""
    text = io.StringIO()
    console = Console(
        file=text, width=width or 80, force_terminal=width is not None, color_system=None
    )
    print_report(Run(report), console)
    return text.getvalue().splitlines()


def route(name: str, target: str, **counts: int) -> Row:
    return {"route": name, "target": target, **counted(1_000_000, **counts)}


def table_of(lines: list[str]) -> list[str]:
    below = ("next: ", "Clean: ", "Not clean: ")
    return lines[1 : next(n for n, line in enumerate(lines) if line.startswith(below))]


def test_the_last_lines_are_plain_text_and_end_with_the_gravest_count() -> None:
    samples = [{"class": "missing", "id": "01", "route": "r", "target": "t", "name": "[red]n"}]
    fault = error("foreign-file", "f", "is foreign")
    night = Report("a", DAY.date(), [fault] * 12, [{**ROUTE, "missing": 1}], [], samples)

    lines = printed(night, None)

    assert lines[-3:] == ["lost in target 0", "source gaps 0", "missing 1"]
    assert "verdict: not clean: 1 missing, 12 errors in the archive" in lines
    assert "error: f: is foreign [foreign-file]" in lines
    assert "... and 2 more [foreign-file]; --json has all" in lines
    assert "missing: 01 r -> t '[red]n'" in lines


@pytest.mark.parametrize("width", [80, None])
def test_the_counts_are_one_to_a_line_wherever_they_are_printed(width: int | None) -> None:
    lines = printed(eventful(), width)

    start = lines.index("received 34800")
    assert lines[start:] == [
        "received 34800", "delivered 34787", "recovered 5", "in flight 2", "refused 0",
        "dead-lettered 0", "delivered late 0", "out of order 0", "duplicated 0",
        "redelivered by sources 0", "sent again by the gateway 0", "unexpected 0", "altered 0",
        "lost in target 2", "source gaps 3", "absences 2", "missing 4",
    ]  # fmt: skip
    assert lines[start - 3].startswith("verdict: not clean: 1 of 2 dates")
    assert lines[start - 2] == "reconciled again: 2026-03-13, 5 in flight -> 0, clean"
    assert lines[start - 1].startswith("reconciled: 2026-03-14, not clean: 4 missing")


def test_gaps_are_lines_with_their_interval_and_rule() -> None:
    lines = printed(eventful())

    assert (
        "source gap: plant, 06:12:00 to 06:13:17: the broker kept no session; 77 s [session-lost]"
        in lines
    )
    listed = [line.split(":")[0] for line in lines if line.startswith(("source gap:", "absence:"))]
    assert listed == ["source gap"] * 3 + ["absence"] * 2
    assert any("13:30:00 to 14:00:00, 1,204 messages lost" in line for line in lines)


def test_cuts_are_lines_by_class_rule_and_target() -> None:
    lines = printed(hidden(), None)

    start = lines.index("cuts")
    assert lines[start + 1] == "2 cut on another's word [loop] east/orders -> erp"
    assert f"cut on another's word: {11:032x} orders -> erp 'plant/line1/temp'" in lines
    ends = "east/orders -> west/up 'plant/line1/temp'"
    assert f"unproven between gateways: {11:032x} {ends}" in lines
    assert lines[-7:] == [
        "left out 6", "cut 5", "cut retained 4", "cut in flight 3", "cut on another's word 2",
        "source gaps 0", "missing 0",
    ]  # fmt: skip


def test_a_table_drops_the_counts_that_are_zero_everywhere() -> None:
    lines = table_of(printed(replace(clean(), routes=[route("orders", "erp", missing=2)])))

    assert lines[0].split() == ["route", "target", "received", "delivered", "missing"]
    assert lines[1].split() == ["orders", "erp", "1,000,000", "999,998", "2"]


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_names_of_40_characters_are_complete_at_every_width(width: int) -> None:
    routes = [route(LONG, LONG[::-1], missing=2, altered=3, recovered=5), route("a", "b")]

    lines = table_of(printed(replace(clean(), routes=routes), width))

    text = "\n".join(lines)
    assert LONG in text
    assert LONG[::-1] in text
    assert "…" not in text
    assert max(map(len, lines)) <= width


def test_long_names_have_a_line_of_their_own() -> None:
    lines = table_of(printed(replace(clean(), routes=[route(LONG, LONG, missing=2)])))

    assert lines == [
        "route -> target",
        "     received  delivered  missing",
        LONG,
        f"  -> {LONG}",
        "    1,000,000    999,998        2",
    ]


def test_a_count_is_never_torn_from_its_class() -> None:
    lines = table_of(printed(lossy()))

    assert "    received 40,000  delivered 39,931  recovered 12  in flight 11  refused 9" in lines
    assert any("dead-lettered 10" in line for line in lines)
    assert any("lost in target 3" in line for line in lines)


def test_a_terminal_has_the_worst_routes_and_a_file_has_all() -> None:
    on_terminal, in_file = printed(huge()), printed(huge(), None)

    assert "... and 950 more routes; --json has all" in on_terminal
    assert sum(line.startswith("route-") for line in on_terminal) == 50
    assert sum(line.startswith("route-") for line in in_file) == 1_000


def test_a_file_has_no_limit_of_width() -> None:
    routes = [route(LONG * 5, LONG, missing=2)]

    lines = printed(replace(clean(), routes=routes), None)

    assert any(line.split() == [LONG * 5, LONG, "1,000,000", "999,998", "2"] for line in lines)


def test_control_characters_of_names_do_not_reach_the_terminal() -> None:
    report = replace(lossy("\x1b[2J\u202e"), samples=[], findings=[], gaps=gappy().gaps)

    text = "\n".join(printed(report))

    assert "\x1b" not in text
    assert "\\x1b[2J\\u202e" in text


def test_an_earlier_date_that_turned_out_not_clean_has_its_verdict() -> None:
    again = {**eventful().carried[0], "status": 1, "verdict": "not clean: 5 missing"}

    lines = printed(replace(clean(), carried=[again]))

    assert "reconciled again: 2026-03-13, 5 in flight -> 0, not clean: 5 missing" in lines


def test_an_earlier_date_that_no_night_judged_before_is_not_judged_again() -> None:
    first = {**eventful().carried[0], "status_before": None, "verdict": "clean"}

    lines = printed(replace(clean(), carried=[first]))

    assert "reconciled: 2026-03-13, clean" in lines
    assert not [each for each in lines if "again:" in each]


def test_the_name_of_a_file_adds_no_line() -> None:
    found = error("unsealed-segment", "a\nmissing 7\nb", "no seal names it")

    lines = printed(replace(clean(), findings=[found]))

    assert "missing 7" not in lines
    assert lines[-1] == "missing 0"


def test_a_dead_letter_has_what_to_do() -> None:
    letter = {"route": "orders", "target": "e", "copies": 3, "reason": "a reload removed it"}
    rows: list[Row] = [{**letter, "rule": "target-removed"}, {**letter, "rule": "of-a-plug-in"}]

    lines = printed(replace(clean(), dead_letters=rows))

    at = lines.index("3 [target-removed] orders -> e")
    assert lines[at + 1 : at + 3] == [
        "    a reload removed it", "    to do: configure the target again",
    ]  # fmt: skip
    assert "    to do: remove the cause, then send it again" in lines


def test_an_absence_is_counted_and_is_no_source_gap() -> None:
    rows = [gap("away", 6, 1), gap("away", 7, 1), gap("not-running", 9, 1, kept=True)]

    lines = printed(replace(clean(), gaps=rows))

    assert lines[-3:] == ["source gaps 0", "absences 3", "missing 0"]
    assert not any(line.startswith("absences") for line in printed(clean()))


def test_the_next_steps_stand_before_the_verdict_with_their_commands() -> None:
    """At three in the morning no operator has a browser for the page."""
    lines = printed(Report("/a", DAY.date(), [], [{**ROUTE, "missing": 1}], []), None)

    at = next(n for n, line in enumerate(lines) if line.startswith("next: Missing (1): "))
    assert lines[at + 1].startswith("    gateway replay /a --config CONFIG --route orders --from")
    assert lines[at + 3] == f"    gateway reconcile /a --date {DAY.date()}"
    assert at < lines.index("verdict: not clean: 1 missing")
