"""`make bench-check` detects a slower gateway by its ratios to the yardsticks and the brokers."""

from __future__ import annotations

import json

import pytest

from benchmarks.check import PATHS, RECORDED, SHAPES, regressions
from benchmarks.relay import BASIC_SHAPES

PATH_NAMES = [f"mqtt {direction} {system}" for system, direction in PATHS]


@pytest.mark.parametrize(
    ("rates", "cpu", "worse"),
    [
        ({"a": 1.0, "b": 2.0}, {"c": 1.5}, 0),
        ({"a": 0.81, "b": 2.5}, {"c": 1.8}, 0),
        ({"a": 0.79, "b": 2.0}, {"c": 1.0}, 1),
        ({"a": 1.0, "b": 2.0}, {"c": 1.9}, 1),
        ({}, {}, 3),
    ],
    ids=["equal", "within a fifth", "a rate is worse", "more processor time", "not measured"],
)
def test_a_figure_that_lost_more_than_a_fifth_is_a_regression(
    rates: dict[str, float], cpu: dict[str, float], worse: int
) -> None:
    recorded = {"rates": {"a": 1.0, "b": 2.0}, "cpu": {"c": 1.5}}

    assert len(regressions(recorded, {"rates": rates, "cpu": cpu})) == worse


def test_every_ratio_of_rates_has_a_recorded_value() -> None:
    expected = [f"{shape} x mosquitto" for shape in SHAPES]
    expected += [f"{shape} x paho" for shape in BASIC_SHAPES]
    expected += [f"{shape} latency x mosquitto" for shape in BASIC_SHAPES]
    expected += [f"{path} x slower end" for path in PATH_NAMES]

    assert sorted(json.loads(RECORDED.read_text())["rates"]) == sorted(expected)


def test_every_relative_processor_time_has_a_recorded_value() -> None:
    recorded = json.loads(RECORDED.read_text())["cpu"]

    assert sorted(recorded) == sorted([*SHAPES, *PATH_NAMES])
