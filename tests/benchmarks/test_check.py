"""`make bench-check` detects a slower gateway by its ratio to the yardsticks."""

from __future__ import annotations

import json

import pytest

from benchmarks.check import PATHS, RECORDED, SHAPES, regressions
from benchmarks.relay import BASIC_SHAPES


@pytest.mark.parametrize(
    ("found", "worse"),
    [({"a": 1.0, "b": 2.0}, 0), ({"a": 0.81, "b": 2.5}, 0), ({"a": 0.79, "b": 2.0}, 1), ({}, 2)],
    ids=["equal", "within a fifth", "one is worse", "not measured"],
)
def test_a_ratio_that_lost_more_than_a_fifth_is_a_regression(
    found: dict[str, float], worse: int
) -> None:
    assert len(regressions({"a": 1.0, "b": 2.0}, found)) == worse


def test_every_ratio_has_a_recorded_value() -> None:
    expected = [f"{shape} x mosquitto" for shape in SHAPES]
    expected += [f"{shape} x paho" for shape in BASIC_SHAPES]
    expected += [f"{shape} latency x mosquitto" for shape in BASIC_SHAPES]
    expected += [f"mqtt {direction} {system} x slower end" for system, direction in PATHS]

    assert sorted(json.loads(RECORDED.read_text())) == sorted(expected)
