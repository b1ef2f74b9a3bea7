"""A slower gateway is found by its ratio to the yardsticks."""

from __future__ import annotations

import json

import pytest

from benchmarks.check import RECORDED, regressions


@pytest.mark.parametrize(
    ("found", "worse"),
    [({"a": 1.0, "b": 2.0}, 0), ({"a": 0.81, "b": 2.5}, 0), ({"a": 0.79, "b": 2.0}, 1), ({}, 2)],
    ids=["equal", "within a fifth", "one is worse", "not measured"],
)
def test_a_ratio_that_lost_more_than_a_fifth_is_told(found: dict[str, float], worse: int) -> None:
    assert len(regressions({"a": 1.0, "b": 2.0}, found)) == worse


def test_the_recorded_ratios_name_both_yardsticks() -> None:
    recorded = json.loads(RECORDED.read_text())

    assert sorted(recorded) == [
        f"qos {q} x {other}" for q in (0, 1) for other in ("mosquitto", "paho")
    ]
