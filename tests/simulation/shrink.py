"""Shrinks a plan that has a finding: fewer faults, fewer messages, a simpler world."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from tests.simulation.plan import Plan
from tests.simulation.scheduler import Policy
from tests.simulation.simulate import Result, simulate

MAX_RUNS: Final = 400
_CALM: Final = (
    {"heartbeat": False}, {"dead_letter_endpoint": False}, {"policy": Policy(switch=0.02)},
    {"spool_seconds": None}, {"sync": "batch"}, {"batch": 1_000}, {"capacity": 1 << 20},
    {"window": 20}, {"latency": 0.02}, {"flush": 0.01}, {"spool_messages": None},
    {"when_full": "slow"}, {"spool": False},
)  # fmt: skip


def shrink(found: Result) -> Result:
    """The result of a smaller plan with a finding of the same rule."""
    best, runs = found, 0
    improved = True
    while improved and runs < MAX_RUNS:
        improved = False
        for plan in _smaller(best.plan):
            runs += 1
            if runs >= MAX_RUNS:
                break
            result = simulate(plan)
            if result.rules & found.rules:
                best, improved = result, True
                break
    return best


def _smaller(plan: Plan) -> Iterable[Plan]:
    """The plans that are one step simpler, largest steps first."""
    for at in range(len(plan.faults)):
        yield replace(plan, faults=plan.faults[:at] + plan.faults[at + 1 :])
    number = len(plan.publications)
    size = number // 2
    while size:
        for at in range(0, number, size):
            left = plan.publications[:at] + plan.publications[at + size :]
            if left:
                yield replace(plan, publications=left)
        size //= 2
    for change in _CALM:
        simpler = replace(plan, **change)
        if simpler != plan:
            yield simpler
