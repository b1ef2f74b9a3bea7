"""One seed gives one run, and nothing of the simulation stays behind."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from gateway.endpoints import registry, sent_messages
from gateway.runtime import pump, wiring
from tests.simulation.faults import make_plan
from tests.simulation.simulate import simulate


@pytest.mark.parametrize("seed", [0, 7, 38, 107, 839])
def test_a_seed_gives_the_same_log_twice(seed: int) -> None:
    one, other = simulate(make_plan(seed)), simulate(make_plan(seed))

    assert one.log == other.log
    assert (one.steps, one.seconds) == (other.steps, other.seconds)


def test_a_thread_outside_of_the_run_has_no_part_in_it() -> None:
    """As one that an earlier test of the process left."""
    over = threading.Event()

    def log_errors() -> None:
        while not over.wait(0.001):
            log = logging.getLogger("gateway.outside")
            log.error("of another test", exc_info=ValueError("outside"))

    thread = threading.Thread(target=log_errors)
    thread.start()
    try:
        findings = simulate(make_plan(7)).findings
    finally:
        over.set()
        thread.join()

    assert not findings


def test_the_real_modules_are_back_after_a_run() -> None:
    simulate(make_plan(3))

    assert pump.threading is threading  # type: ignore[attr-defined]
    assert sent_messages.monotonic is time.monotonic  # type: ignore[attr-defined]
    assert wiring.make_source is registry.make_source  # type: ignore[attr-defined]
