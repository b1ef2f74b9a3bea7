"""Gaps of sources: outages from rows, and their timelines over the day."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.archive.gaps import GapRule
from gateway.night.reconcile.report.charts import LARGE, figures
from gateway.night.reconcile.report.html import page
from gateway.night.reconcile.report.outage_bars import bands, gap_timelines
from gateway.night.reconcile.report.reported_gaps import GAP_RULES, outages, rule_of
from gateway.night.reconcile.report.timelines import DAY_SECONDS, MAX_TIMELINES
from tests.night.reconcile.summaries import DAY, clean, eventful, gap, gappy


def test_every_rule_has_a_meaning_and_an_advice() -> None:
    assert set(GAP_RULES) == {each.value for each in GapRule}
    assert rule_of("of-a-later-version").meaning == "the source may have missed messages"


def test_the_rows_of_one_outage_are_counted_once() -> None:
    first, *others = outages(gappy().gaps)

    assert (first.rule, first.routes, first.seconds) == ("session-lost", ["orders", "audit"], 77)
    assert [(each.rule, each.counted) for each in others] == [
        ("away", False), ("not-running", False),
    ]  # fmt: skip
    assert "Ask the publishers" in first.advice
    assert all(each.advice.startswith("Nothing") for each in others)
    assert (gappy().source_gaps, gappy().absences) == (1, 2)


def test_the_page_says_what_is_counted() -> None:
    text = page(gappy())
    assert "The verdict counts 1 source gap. It does not count 2 absences:" in text
    assert "It does not count" not in page(replace(clean(), gaps=[gap("disconnected", 3, 60)]))


def test_an_outage_of_another_gateway_or_time_is_another_gap() -> None:
    rows = [
        gap("disconnected", 3, 60),
        gap("disconnected", 3, 61),
        gap("disconnected", 3, 60, gateway="west"),
        gap("disconnected", 3, 60, endpoint="other"),
        gap("not-running", 3, 60),
    ]

    assert replace(clean(), gaps=rows).source_gaps == 5


@pytest.mark.parametrize(("lost", "shown"), [([None, None], None), ([7, 7], 7), ([None, 3], 3)])
def test_the_number_of_lost_messages_is_that_of_the_source(
    lost: list[int | None], shown: int | None
) -> None:
    (found,) = outages(
        gap("dropped", 3, 60, route=str(n), lost=each) for n, each in enumerate(lost)
    )

    assert found.lost == shown


def test_a_lane_has_the_bars_of_one_source_within_the_day() -> None:
    rows = [
        gap("session-lost", 23.99, 3_600),
        gap("disconnected", -2, 2 * 3_600 + 1_800),
        gap("away", 6, 1),
        gap("dropped", -5, 99 * 3_600, endpoint="other"),
    ]
    found = gap_timelines(outages(rows), DAY.date())

    plant, other = sorted(found, key=lambda timeline: timeline.label != "plant")
    assert sorted((bar.begin, bar.width, bar.css) for bar in plant.bars) == [
        (0, 1_800, "bad"), (21_600, 240, "calm"), (DAY_SECONDS - 240, 240, "bad"),
    ]  # fmt: skip
    assert [(bar.begin, bar.width) for bar in other.bars] == [(0, DAY_SECONDS)]


def test_the_number_of_lanes_is_bounded() -> None:
    rows = [gap("session-lost", 6, 77, endpoint=f"plant-{n}") for n in range(500)]
    text = page(replace(clean(), gaps=rows))
    assert text.count('<div class="timeline"><span') == MAX_TIMELINES
    assert f"{MAX_TIMELINES} of 500 sources" in text
    assert "200 of 500 are shown" in text


def test_every_outage_is_in_the_charts_and_in_their_number() -> None:
    rows = [gap("disconnected", minute / 60, 5) for minute in range(60)]
    rows += [gap("disconnected", 14, 4 * 3_600), gap("away", 20, 60)]
    found = bands(outages(rows), DAY.date())

    assert [(each.css, each.begin, each.width, each.outages) for each in found] == [
        ("bad", 0, 63 * 60, 60), ("bad", 14 * 3_600, 4 * 3_600, 1), ("calm", 20 * 3_600, 240, 1),
    ]  # fmt: skip
    charts = figures({}, "all routes", LARGE, found, complete=True)
    assert {each.alternative.rpartition("; ")[2] for each in charts} == {
        "61 source gaps, 1 absence"
    }


def test_the_size_of_a_chart_is_bounded() -> None:
    """A day has room for so many bars that do not touch."""
    rows = [gap("disconnected", second / 3_600, 1) for second in range(0, DAY_SECONDS, 481)]

    assert len(bands(outages(rows), DAY.date())) == 180
    closer = [gap("disconnected", second / 3_600, 1) for second in range(0, DAY_SECONDS, 100)]
    (band,) = bands(outages(closer), DAY.date())
    assert band.outages == DAY_SECONDS // 100


def test_a_source_of_two_gateways_has_two_lanes() -> None:
    found = gap_timelines(outages(eventful().gaps), DAY.date())

    assert sorted((timeline.label, timeline.gateway) for timeline in found) == [
        ("gateway east", ""), ("headquarters", "east"), ("headquarters", "west"),
        ("plant", "east"), ("plant", "west"),
    ]  # fmt: skip
