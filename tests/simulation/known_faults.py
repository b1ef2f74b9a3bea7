"""Faults of the product that the simulation finds and that are not mended yet.

Each has a scenario in `tests.simulation.scenarios`, expected to fail. A mend makes that test pass
unexpectedly; then its line here goes, and every seed must be clean of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from tests.simulation.books import Finding
from tests.simulation.faults import Plan

Known: TypeAlias = Callable[[Plan, Finding], bool]


# By the name of the scenario.
STILL_RED: Final[Mapping[str, Known]] = {
    # A message that equals a copy without an answer is treated as its echo, although the target
    # refuses the copy afterwards. See docs/delivery.md, "No guarantee".
    "echo_of_an_unanswered_copy": lambda plan, finding: (
        finding.rule == "not-drained"
        and "mqtt311" in plan.brokers.values()
        and _is_published_twice(plan)
    ),
}


def _is_published_twice(plan: Plan) -> bool:
    """Return whether two brokers have an equal message of their own."""
    brokers: dict[bytes, set[str]] = {}
    for each in plan.publications:
        brokers.setdefault(each.payload, set()).add(each.broker)
    return any(len(found) > 1 for found in brokers.values())


def is_known(plan: Plan, finding: Finding) -> bool:
    """Return whether the finding is one of STILL_RED."""
    return any(matches(plan, finding) for matches in STILL_RED.values())
