"""Charts: a value is drawn at its height, and every value is drawn inside the frame."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.night.reconcile.formatting import amount, duration
from gateway.night.reconcile.report.charts import (
    HOURS,
    LARGE,
    SMALL,
    Chart,
    ChartFrame,
    Series,
    Unit,
    bars,
    day_of,
    figures,
    lines,
)
from gateway.night.reconcile.report.rows import Row
from gateway.night.reconcile.report.timelines import TimelineBar
from tests.night.reconcile.summaries import content, lossy

Draw = Callable[..., Chart]
VALUES = st.lists(
    st.one_of(st.none(), st.floats(0, 1e12, allow_subnormal=False)), min_size=HOURS, max_size=HOURS
)  # fmt: skip


def day(**values: float | None) -> Sequence[float | None]:
    """A value for hours named `h7`; 0 in the others."""
    return [values.get(f"h{hour}", 0.0) for hour in range(HOURS)]


def undrawn(frame: ChartFrame, *series: Series, unit: Unit = amount) -> Chart:
    return Chart("x", "", "", frame, series, unit)


def path(chart: Chart, css: str) -> str:
    return chart.paths.get(css, "")


def test_a_bar_is_as_high_as_its_number_and_stands_on_the_one_below() -> None:
    series = Series("a", "bad", day(h0=2, h6=1)), Series("b", "pale", day(h0=2))
    chart = bars(undrawn(LARGE, *series))

    below, above = path(chart, "bad"), path(chart, "pale")
    floor, half, top = (f"{LARGE.y(share):.1f}" for share in (0, 0.5, 1))
    assert below.count("M") == 2
    assert below.startswith(f"M{LARGE.x(0) + 0.5:.1f} {floor}h")
    assert f"V{half}h" in below
    assert f" {half}h" in above
    assert f"V{top}h" in above


def test_one_message_in_a_million_is_visible() -> None:
    chart = bars(undrawn(SMALL, Series("a", "bad", day(h0=1e6, h6=1))))

    low, high = re.findall(r" ([\d.]+)h[\d.]+V([\d.]+)h", path(chart, "bad"))[1]
    assert float(low) - float(high) >= 2


def test_an_unknown_value_leaves_a_gap() -> None:
    values = [None if hour in (3, 4) else 1_000.0 for hour in range(HOURS)]

    drawn = path(lines(undrawn(LARGE, Series("p50", "thin", values), unit=duration)), "line thin")

    assert drawn.count("M") == 2
    assert drawn.count("L") == HOURS - 2 - 2


@pytest.mark.parametrize(
    ("hours", "dots"), [((5,), 1), ((5, 6), 0), ((0, 23), 2), ((0, 1, 7, 12, 13), 1), ((), 0)]
)
def test_an_hour_between_two_gaps_is_a_dot(hours: tuple[int, ...], dots: int) -> None:
    values = [1_000.0 if hour in hours else None for hour in range(HOURS)]

    chart = lines(undrawn(LARGE, Series("p50", "thin", values), unit=duration))

    drawn = [data for css, data in chart.paths.items() if "dot" in css and data]
    assert sum(data.count("M") for data in drawn) == dots
    assert len(drawn) == (dots > 0)


def test_a_few_messages_in_a_day_are_counts_and_no_rate() -> None:
    row = {"hour": "2026-03-14T07:00:00", "received": 1, "rate": 1 / 3600}

    shown = figures(day_of([row]), "all", LARGE, (), complete=True)[0]

    assert (shown.title, shown.caption) == ("messages", "1 in the busiest hour")
    assert [*shown.ticks.values()] == ["0", "1"]


@pytest.mark.parametrize("frame", [LARGE, SMALL])
def test_a_source_gap_is_drawn_behind_every_chart(frame: ChartFrame) -> None:
    gaps = [
        TimelineBar("bad", 21_600, 10_800, ""),
        TimelineBar("calm", 86_364, 36, ""),
        TimelineBar("bad", 0, 4, ""),
    ]
    hours = day_of([{"hour": "2026-03-14T07:00:00", "received": 1}])

    for each in figures(hours, "all", frame, gaps, complete=True):
        assert [*each.paths][:2] == ["band bad", "band calm"]
        bad = each.paths["band bad"]
        floor = frame.floor
        assert bad.startswith(f"M{frame.x(6):.1f} {floor}V4H{frame.x(9):.1f}V{floor}z")
        assert bad.endswith(f"M{frame.x(0):.1f} {floor}V4")  # a short gap is a line
        assert each.alternative.endswith("; 2 source gaps, 1 absence")


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        pytest.param(day(), ["0"], id="nothing"),
        pytest.param(day(h1=1), ["0", "1"], id="half-a-message-is-none"),
        pytest.param(day(h1=5), ["0", "3", "6"], id="five"),
        pytest.param(day(h1=0.25), ["0", "0.2", "0.4"], id="a-rate"),
        pytest.param(day(h1=7_300), ["0", "4,000", "8,000"], id="thousands"),
    ],
)
def test_the_scale_ends_on_a_round_number(values: Sequence[float | None], ticks: list[str]) -> None:
    chart = bars(undrawn(LARGE, Series("a", "bad", values)))

    assert [*chart.ticks.values()] == ticks


@pytest.mark.parametrize("draw", [bars, lines])
@pytest.mark.parametrize("frame", [LARGE, SMALL])
@given(one=VALUES, other=VALUES)
def test_nothing_is_drawn_outside_the_frame(
    draw: Draw, frame: ChartFrame, one: Sequence[float | None], other: Sequence[float | None]
) -> None:
    chart = draw(undrawn(frame, Series("a", "bad", one), Series("b", "pale", other)))

    data = " ".join(chart.paths.values())
    points = re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", data)
    tops = [float(top) for top in re.findall(r"V(-?[\d.]+)", data)]
    assert all(0 <= float(x) <= frame.width for x, _ in points)
    assert all(0 <= y <= frame.height for y in [*(float(y) for _, y in points), *tops])
    assert "nan" not in data
    assert "inf" not in data
    assert all(0 <= share <= 1 for share in chart.ticks)


def test_the_text_alternative_has_the_numbers_of_the_chart() -> None:
    hours = content(lossy())["whole_day"]
    assert isinstance(hours, list)

    alternatives = [
        each.alternative for each in figures(day_of(hours), "all routes", LARGE, (), complete=True)
    ]

    times = "p50 ≤ 32.8 ms, p90 ≤ 131 ms, p99 ≤ 1.64 s (17,100 of 39,954 measured)"
    absent = "2 missing, 3 lost in target, 10 dead-lettered, 9 refused, 11 in flight, 12 recovered"
    assert alternatives == [
        "Messages by hour, all routes: 2,111 in the busiest hour",
        f"Latency percentiles by hour, all routes: {times}",
        f"Not arrived by hour, all routes: {absent}",
        "Duplicates by hour, all routes: 3 unmarked, 2 marked",
    ]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([], id="no-hour"),
        pytest.param([{"hour": "noon", "missing": 3}], id="no-time"),
        pytest.param([{"hour": "2026-03-14T07:00:00"}], id="no-number"),
    ],
)
def test_hours_without_numbers_draw_nothing(rows: list[Row]) -> None:
    captions = [each.caption for each in figures(day_of(rows), "all", SMALL, (), complete=True)]

    assert captions == ["no traffic", "nothing delivered", "none", "none"]


def test_deliveries_without_latencies_are_not_measured() -> None:
    row = {"hour": "2026-03-14T07:00:00", "delivered": 5, "p50": None, "p99": None, "timed": None}

    latency = figures(day_of([row]), "all", LARGE, (), complete=True)[1]

    assert latency.caption == "not measured"
    assert [*latency.ticks.values()] == [""]
    assert latency.legend == []
