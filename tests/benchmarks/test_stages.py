"""The time of a step is its own: that of the steps within it counts there."""

from __future__ import annotations

import os

from benchmarks.stages import Stopwatch, rows


def test_a_step_within_another_one_counts_once() -> None:
    watch = Stopwatch()
    inner = watch.measured("inner", lambda: sum(range(300_000)))
    outer = watch.measured("outer", lambda: [inner(), inner()])

    began = os.times().user
    assert outer() == [sum(range(300_000))] * 2
    spent = os.times().user - began
    calls = {name: count for name, (count, _) in watch.steps.items()}
    assert calls == {"inner": 2, "outer": 1}
    assert watch.steps["outer"][1] < watch.steps["inner"][1] / 10
    assert watch.steps["inner"][1] / 1e9 <= spent + 0.1


def test_what_no_step_has_is_other() -> None:
    found = rows({"write": [10, 4_000_000], "read": [5, 5_000_000], "tick": [1, 10]}, 12.0, 1_000)

    assert [(each["step"], each["us a message"]) for each in found] == [
        ("read", 5.0), ("write", 4.0), ("other", 3.0), ("all", 12.0),
    ]  # fmt: skip
