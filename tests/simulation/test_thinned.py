"""Generated worlds of thinned targets: the latest message of each name arrives, and stays last."""

from __future__ import annotations

import os

import pytest

from tests.simulation.campaign import run_in_processes
from tests.simulation.plan import Fault, Plan, Publication
from tests.simulation.scheduler import Policy
from tests.simulation.simulate import simulate
from tests.simulation.thin_plans import BROKER_FAULTS, GATEWAY_FAULTS, thin_plan


def killed_before_the_end(seed: int) -> Plan:
    """A kill between the moment that a copy is in the spool, and the end of its interval."""
    messages = tuple(
        Publication(at, "a", "k0", f"<a{number}>".encode())
        for number, at in enumerate((1.5, 2.0, 2.2, 2.4))
    )
    return Plan(
        seed, "one", {"a": "mqtt5", "b": "mqtt5"}, messages,
        (Fault(3.5, "kill", "g1", seconds=0.3),), Policy(switch=0.1), thin=30.0,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_a_kill_does_not_lose_the_latest(seed: int) -> None:
    """No source gives it again: it was settled before the kill."""
    result = simulate(killed_before_the_end(seed))

    assert not result.findings
    arrived = [line for line in result.log if " arrived " in line]
    assert "<a0>" in arrived[0]
    assert "<a3>" in arrived[-1]
    assert len(arrived) == 3  # the last two of the interval are there


def test_thinned_worlds_have_no_finding() -> None:
    assert not run_in_processes(range(12), share=12, make=thin_plan).findings


@pytest.mark.nightly
@pytest.mark.timeout(4 * 3600)
def test_a_hundred_thousand_thinned_worlds() -> None:
    count = int(os.environ.get("SIMULATION_SEEDS", "100000"))
    campaign = run_in_processes(range(1_000, 1_000 + count), make=thin_plan)

    assert not campaign.findings
    kinds = {*BROKER_FAULTS, *GATEWAY_FAULTS}
    assert {f"fault-{kind}" for kind in kinds} <= campaign.coverage.keys()
