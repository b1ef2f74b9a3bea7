"""The state of a flow, from the status of its route and of its two endpoints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.runtime.record.counters import MAX_REFUSALS, RouteCounters
from gateway.runtime.status import EndpointStatus
from gateway.web.flow_state import FlowState, Moment, flows_of
from tests.web.status_samples import START, endpoint, refusal, route, status

AWAY = {"connection": "lost", "reason": "office: gone"}
REFUSED = {"connection": "refused", "reason": "office: not authorized"}
Facts = dict[str, Any]


def now(*endpoints: EndpointStatus) -> Moment:
    return Moment.of(status(endpoints=endpoints, heartbeat_seconds=10.0), START + 100.0)


@pytest.mark.parametrize(
    ("source", "target", "of_route", "state", "reason"),
    [
        ({}, {}, {}, FlowState.CONNECTED, ""),
        ({}, AWAY, {}, FlowState.DISCONNECTED, "office: office: gone"),
        ({"connection": "connecting"}, {}, {}, FlowState.DISCONNECTED, "plant: connecting"),
        ({}, AWAY | {"spooled_messages": 1_200}, {"lag": 7.0}, FlowState.SPOOLING, "waited 7 s"),
        ({}, {"spooled_messages": 3}, {"lag": 0.1}, FlowState.SPOOLING, "0 s for office"),
        ({}, {"spooled_messages": 3}, {}, FlowState.CONNECTED, ""),  # of another route
        ({}, AWAY | {"spooled_messages": 3}, {}, FlowState.DISCONNECTED, "office: gone"),
        ({}, AWAY | {"spooled_messages": 3, "spool_share": 1.0}, {}, FlowState.STUCK, "is full"),
        ({}, REFUSED, {}, FlowState.REFUSING, "office refuses the connection: office: not"),
        (REFUSED, AWAY, {}, FlowState.REFUSING, "plant refuses the connection"),
        ({}, {"silence": 5.0}, {}, FlowState.STUCK, "no answer from office for 5 s"),
        ({}, {"silence": 4.9}, {}, FlowState.CONNECTED, ""),
        ({}, {}, {"heartbeat_age": 30.0}, FlowState.STUCK, "no heartbeat for more than 30 s"),
        ({}, {}, {"heartbeat_age": 29.9}, FlowState.CONNECTED, ""),
        ({}, {}, {"refused": {"": refusal(at=START + 41)}}, FlowState.REFUSING, "by too-long"),
        ({}, {}, {"refused": {"office": refusal(at=START + 41)}}, FlowState.REFUSING, "too-long"),
        ({}, {}, {"refused": {"cloud": refusal(at=START + 41)}}, FlowState.CONNECTED, ""),
        ({}, {}, {"refused": {"office": refusal(at=START + 40)}}, FlowState.CONNECTED, ""),
        ({}, {}, {"loops": 1_000, "has_reverse": True}, FlowState.CONNECTED, ""),
    ],
)
def test_the_gravest_cause_is_the_state(
    source: Facts, target: Facts, of_route: Facts, state: FlowState, reason: str
) -> None:
    at = now(endpoint(**source), endpoint("office", "sink", **target))

    (flow,) = flows_of([route(**of_route)], at)

    assert (flow.source, flow.target, flow.state) == ("plant", "office", state)
    assert reason in flow.reason
    assert bool(flow.reason) is (state is not FlowState.CONNECTED)


def test_a_flow_is_refusing_where_its_own_target_got_a_dead_letter() -> None:
    """Many newer refusals of another target hide none."""
    counters = RouteCounters()
    counters.count_refusal(refusal(at=START + 90, target="cloud:2#1", rule="too-deep"))
    for _ in range(MAX_REFUSALS):
        counters.count_refusal(refusal(at=START + 95, target="office"))
    shown = replace(route(targets=("office", "cloud:2", "erp")), totals=counters.totals())
    at = now(endpoint(), *(endpoint(name, "sink") for name in ("office", "cloud", "erp")))

    flows = {each.target: (each.state, each.reason) for each in flows_of([shown], at)}

    assert flows == {
        "office": (FlowState.REFUSING, "messages become dead letters, the latest by too-long"),
        "cloud": (FlowState.REFUSING, "messages become dead letters, the latest by too-deep"),
        "erp": (FlowState.CONNECTED, ""),
    }


def test_a_route_has_a_flow_for_each_pair_of_endpoints() -> None:
    parts = [
        route(targets=("office", "office:2", "cloud")),
        route(source="weather x/#", targets=("office",)),
    ]
    at = now(endpoint(), endpoint("office", "sink"), endpoint("cloud", "sink", **AWAY))

    flows = {(each.source, each.target): each.state for each in flows_of(parts, at)}

    assert flows == {
        ("plant", "office"): FlowState.CONNECTED,
        ("plant", "cloud"): FlowState.DISCONNECTED,
        ("weather", "office"): FlowState.DISCONNECTED,  # a reload adds the endpoint
    }
