"""The faults of hostile trials, as scripted worlds; one that is not mended yet must fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation import scenarios
from tests.simulation.faults import Plan
from tests.simulation.known_faults import STILL_RED
from tests.simulation.world import simulate

# The scenario, and the seeds that found the fault in the code that had it.
SCENARIOS = [
    (scenarios.echoes_of_lost_attempts, range(4)),
    (scenarios.spool_waits_for_itself, range(6)),
    (scenarios.reload_removes_an_absent_target, range(4)),
    (scenarios.full_spool_blocks_its_own_deletes, range(4)),
    (scenarios.oldest_strands_rows_at_a_break, range(40)),
    (scenarios.clean_stop_forgets_echoes, range(10)),
    (scenarios.outcome_without_receipt, range(4)),
    (scenarios.echo_of_a_failed_send, range(8)),
    (scenarios.gap_forgotten_by_a_kill, range(4)),
    (scenarios.echo_of_an_unanswered_copy, range(8)),
]
CASES = [
    pytest.param(
        scenario,
        seeds,
        id=scenario.__name__,
        marks=[pytest.mark.xfail(strict=True, reason=f"still red: {scenario.__doc__}")]
        if scenario.__name__ in STILL_RED
        else [],
    )
    for scenario, seeds in SCENARIOS
]


@pytest.mark.parametrize(("scenario", "seeds"), CASES)
def test_a_scripted_world_has_no_finding(scenario: Callable[[int], Plan], seeds: range) -> None:
    found = {seed: simulate(scenario(seed)).findings for seed in seeds}

    assert not {seed: findings for seed, findings in found.items() if findings}


def test_every_known_fault_has_a_scenario() -> None:
    assert STILL_RED.keys() <= {scenario.__name__ for scenario, _ in SCENARIOS}
