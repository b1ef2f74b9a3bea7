"""The faults that hostile trials and random worlds found once, as scripted worlds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.simulation import scenarios
from tests.simulation.hostile_plans import EMPTY_SPOOL
from tests.simulation.plan import Plan
from tests.simulation.simulate import simulate
from tests.simulation.small_disk import SmallDisk

# The scenario, and the seeds that found the fault in the code that had it.
SCENARIOS = [
    (scenarios.echoes_of_lost_attempts, range(4)),
    (scenarios.names_from_fields, range(4)),
    (scenarios.spool_waits_for_itself, range(6)),
    (scenarios.reload_removes_an_absent_target, range(4)),
    (scenarios.full_spool_blocks_its_own_deletes, range(4)),
    (scenarios.batch_larger_than_the_disk, range(4)),
    (scenarios.stop_waits_for_the_disk, range(4)),
    (scenarios.start_on_a_full_disk, range(4)),
    (scenarios.source_too_busy_to_know, range(4)),
    (scenarios.oldest_strands_rows_at_a_break, range(8)),
    (scenarios.clean_stop_forgets_echoes, range(10)),
    (scenarios.outcome_without_receipt, range(4)),
    (scenarios.echo_of_a_failed_send, range(8)),
    (scenarios.gap_forgotten_by_a_kill, range(4)),
    (scenarios.gap_forgotten_by_a_stop, range(4)),
    (scenarios.echo_of_an_unanswered_copy, range(8)),
    (scenarios.redelivered_before_the_answer, range(8)),
    (scenarios.rename_with_copies_on_their_way, range(8)),
]
CASES = [pytest.param(scenario, seeds, id=scenario.__name__) for scenario, seeds in SCENARIOS]
CASES += [
    pytest.param(scenario, range(8, last), marks=pytest.mark.nightly)
    for scenario, last in (
        (scenarios.oldest_strands_rows_at_a_break, 40),
        (scenarios.rename_with_copies_on_their_way, 200),
    )
]


@pytest.mark.parametrize(("scenario", "seeds"), CASES)
def test_a_scripted_world_has_no_finding(scenario: Callable[[int], Plan], seeds: range) -> None:
    found = {seed: simulate(scenario(seed)).findings for seed in seeds}

    assert not {seed: findings for seed, findings in found.items() if findings}


def test_a_small_disk_has_room_for_an_empty_spool(monkeypatch: pytest.MonkeyPatch) -> None:
    """A world whose disk is full at the start proves nothing."""
    used = [0]
    real = SmallDisk.writing

    def writing(disk: SmallDisk, path: Path) -> AbstractContextManager[None]:
        used.append(disk.used())
        return real(disk, path)

    monkeypatch.setattr(SmallDisk, "writing", writing)
    plan = scenarios.batch_larger_than_the_disk(1)
    simulate(replace(plan, disk=None, publications=(), faults=()))

    assert EMPTY_SPOOL - 3_000 < max(used) < EMPTY_SPOOL
