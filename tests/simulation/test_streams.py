"""Generated worlds of NATS and RabbitMQ: nothing lost, kept once within a stream's window."""

from __future__ import annotations

import os

import pytest

from tests.simulation.campaign import run_in_processes
from tests.simulation.stream_plans import (
    FAULTS,
    GATEWAY_FAULTS,
    OWN_FAULTS,
    STREAMS,
    kafka_plan,
    stream_plan,
)


def test_streams_have_no_finding() -> None:
    campaign = run_in_processes(range(60), share=60, make=stream_plan)

    assert not campaign.findings
    kinds = {*FAULTS, *GATEWAY_FAULTS}.union(*(OWN_FAULTS[each] for each in STREAMS))
    assert {f"fault-{kind}" for kind in kinds} | {"known", "ended"} <= campaign.coverage.keys()


def test_kafka_has_no_finding() -> None:
    campaign = run_in_processes(range(60), share=60, make=kafka_plan)

    assert not campaign.findings
    kinds = {*FAULTS, *GATEWAY_FAULTS, *OWN_FAULTS["kafka"]}
    assert {f"fault-{kind}" for kind in kinds} <= campaign.coverage.keys()


@pytest.mark.nightly
@pytest.mark.timeout(4 * 3600)
def test_a_hundred_thousand_worlds_with_streams() -> None:
    count = int(os.environ.get("SIMULATION_SEEDS", "100000"))
    assert not run_in_processes(range(1_000, 1_000 + count), make=stream_plan).findings


@pytest.mark.nightly
@pytest.mark.timeout(4 * 3600)
def test_ten_thousand_worlds_of_kafka() -> None:
    assert not run_in_processes(range(1_000, 11_000), make=kafka_plan).findings
