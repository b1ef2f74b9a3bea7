"""Counters of a route, and the state of a connection."""

from __future__ import annotations

from dataclasses import fields

import pytest

from gateway.errors import NotConnectedError, TakenOverError
from gateway.model import dead_letter_rule
from gateway.runtime.delivery import admission
from gateway.runtime.delivery.loop_limit import LOOP_LIMIT
from gateway.runtime.delivery.received_batch import Count
from gateway.runtime.record.counters import EndpointState, RouteCounters, RouteTotals
from tests.waiting import PATIENCE


def test_a_latency_is_never_negative() -> None:
    counters = RouteCounters()
    counters.add(Count("all", delivered=2, latency=0.5))
    counters.add(Count("all", delivered=3, latency=-3_600.0))

    assert counters.latency_sum == 1.0  # Prometheus would read a falling sum as a restart
    assert (sum(counters.latencies), counters.latencies[0]) == (5, 3)


@pytest.mark.parametrize("hastened", ["before", "after"])
def test_a_connection_that_is_lost_later_gets_its_first_pause(hastened: str) -> None:
    state = EndpointState("far", "source")
    if hastened == "before":
        state.hasten()  # while it connects
    state.connected()
    if hastened == "after":
        state.hasten()
    state.lost(NotConnectedError("far: lost"))

    assert not state.pause(0)


def test_the_pause_after_an_attempt_that_was_hastened_ends() -> None:
    state = EndpointState("far", "source")
    state.lost(NotConnectedError("far: lost"))
    state.hasten()

    assert state.pause(PATIENCE)
    assert not state.pause(0)


@pytest.mark.parametrize(
    ("reason", "counter"),
    [
        (dead_letter_rule.LOOP, "loops"),
        (LOOP_LIMIT, "loops"),
        (admission.DUPLICATE, "duplicates"),
        (admission.IGNORED, "ignored"),
        (dead_letter_rule.UNSELECTED, "unselected"),
    ],
)
def test_each_reason_to_leave_a_message_out_has_its_counter(reason: str, counter: str) -> None:
    counters = RouteCounters()
    counters.count_left_out(reason)

    changed = {each.name for each in fields(RouteTotals) if getattr(counters, each.name) == 1}
    assert changed == {counter}


def test_the_reason_of_a_dispute_is_that_of_the_connection_before() -> None:
    """Beside a source that is connected it would look like a fault of now."""
    state = EndpointState("plant", "source")
    state.lost(TakenOverError("plant: another client"))
    assert state.shown_reason == "another client"

    state.connected()
    assert state.shown_reason == "the connection before ended: another client"
