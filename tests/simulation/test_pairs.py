"""Generated pairs: nothing lost, sent only with the lease, in order, and archived right."""

from __future__ import annotations

import os

import pytest

from gateway.lease import lease as rules
from gateway.lease.holder import LeaseHolder
from tests.simulation.campaign import run_in_processes, run_seeds
from tests.simulation.pair_plans import BROKER_FAULTS, INSTANCE_FAULTS, pair_plan


def test_pairs_have_no_finding() -> None:
    campaign = run_in_processes(range(50), share=50, make=pair_plan)

    assert not campaign.findings
    kinds = {f"fault-{kind}" for kind in (*INSTANCE_FAULTS, *BROKER_FAULTS)}
    assert kinds | {"double"} <= campaign.coverage.keys()


@pytest.mark.nightly
@pytest.mark.timeout(4 * 3600)
def test_a_hundred_thousand_pairs() -> None:
    count = int(os.environ.get("SIMULATION_SEEDS", "100000"))
    assert not run_in_processes(range(1_000, 1_000 + count), make=pair_plan).findings


def found(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, value: object) -> bool:
    monkeypatch.setattr(owner, name, value)
    return any(run_seeds([seed], make=pair_plan).findings for seed in range(300))


def test_a_gateway_that_does_not_ask_for_its_lease_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert found(monkeypatch, LeaseHolder, "require", lambda _self: None)


def test_a_lease_that_never_ends_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, rules, "MARGIN", -3.0)
