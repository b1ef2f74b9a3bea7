"""The instances of a pair in the report: who was active when, under which lease."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console

from gateway.night.reconcile.report.html import page
from gateway.night.reconcile.report.report import Report
from gateway.night.reconcile.report.run import Run
from gateway.night.reconcile.report.summary import from_json, to_json
from gateway.night.reconcile.report.terminal import print_report
from gateway.night.reconcile.report.timelines import DAY_SECONDS, MAX_TIMELINES, turn_timelines
from tests.night.reconcile.summaries import DAY, clean, holder, paired


def printed(report: Report) -> list[str]:
    text = StringIO()
    print_report(Run(report), Console(file=text))
    return text.getvalue().splitlines()


def test_each_instance_has_a_timeline_of_its_turns() -> None:
    found = turn_timelines(paired().holders, DAY.date())

    bars = {each.label: [(bar.begin, bar.begin + bar.width) for bar in each.bars]
            for each in found}  # fmt: skip
    assert bars == {
        "plant-1@a": [(0, 33_300), (50_526, DAY_SECONDS)],
        "plant-1@b": [(33_310.08, 50_531.04)],
    }
    assert [bar.hint for bar in found[0].bars] == [
        "2026-03-13 23:30:00 to 09:15:00 lease 7",
        "14:02:06 to 24:00:00 lease 9, 5.0 s beside another by their clocks",
    ]


def test_the_page_draws_the_takeovers_and_lists_them_with_their_leases() -> None:
    text = page(from_json(to_json(paired())))
    section = text.partition('<section id="instances"')[2].partition("</section>")[0]

    assert section.count("<rect") == len(paired().holders)
    assert [f'data-label="lease">{number}<' in section for number in (6, 7, 8, 9)] == [
        False, True, True, True,
    ]  # fmt: skip
    assert 'data-label="beside another">5.04 s<' in section
    assert 'id="instances"' not in page(clean())


def test_many_turns_are_bounded_on_the_page_and_on_the_terminal() -> None:
    rows = [holder(f"host-{n}", 0, n / 100, (n + 1) / 100) for n in range(300)]
    report = replace(clean(), holders=rows)

    text = page(report)
    assert f"{MAX_TIMELINES} of 300 instances" in text
    assert "200 of 300 are shown" in text
    lines = printed(report)
    assert sum(line.startswith("active: ") for line in lines) == 10
    assert "... and 290 more [times of instances]; --json has all" in lines
    assert "active: plant-1@a, 14:02:06 to 24:00:00, lease 9, 5.0 s beside another" in " ".join(
        printed(paired())
    )
