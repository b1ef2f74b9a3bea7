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
STILL_RED: Final[Mapping[str, Known]] = {}


def is_known(plan: Plan, finding: Finding) -> bool:
    """Return whether the finding is one of STILL_RED."""
    return any(matches(plan, finding) for matches in STILL_RED.values())
