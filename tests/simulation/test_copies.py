"""Generated worlds of copies: none lost, none without a row, and few of one message."""

from __future__ import annotations

import os

import pytest

from tests.simulation.campaign import run_in_processes
from tests.simulation.copy_plans import KINDS, copy_plan


def test_copies_have_no_finding() -> None:
    campaign = run_in_processes(range(60), share=60, make=copy_plan)

    assert not campaign.findings
    assert {f"application-{kind}" for kind in KINDS} <= campaign.coverage.keys()


@pytest.mark.nightly
@pytest.mark.timeout(4 * 3600)
def test_a_hundred_thousand_worlds_of_copies() -> None:
    count = int(os.environ.get("SIMULATION_SEEDS", "100000"))
    assert not run_in_processes(range(1_000, 1_000 + count), make=copy_plan).findings
