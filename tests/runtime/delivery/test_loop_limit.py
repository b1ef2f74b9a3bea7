"""The limit on equal messages: beyond it a route cuts them, and only where it says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gateway.dialects.registry import DIALECTS
from gateway.model.message import Headers, Message
from gateway.routing.route import Route
from gateway.routing.router import Delivery, RouteMatch
from gateway.routing.source_pattern import parse_source
from gateway.runtime.delivery import loop_limit
from gateway.runtime.delivery.loop_limit import MAX_SIZE, LoopLimit
from gateway.runtime.delivery.rows import Cut
from tests.model.test_memory_size import taken
from tests.runtime.received_batches import received_batch

MQTT = DIALECTS["mqtt"]
ALL = Route("all", "here", MQTT, parse_source("a/#", MQTT), ())
LIMITED = replace(ALL, name="limited", loop_limit=3)
ON = Message("a/b", b"on")
AGAIN = replace(ON, headers=Headers(redelivered=True))


def passed(
    messages: Sequence[Message], *, route: Route = LIMITED, interval: float = 0.0
) -> list[bool]:
    """Return which of the messages the route takes when they come one by one."""
    limit, found = LoopLimit(), []
    for number, message in enumerate(messages):
        batch = received_batch([message])
        batch.matches = [(RouteMatch(route, (Delivery(route, None, "x", "there"),)),)]
        limit.cut(batch, 100.0 + number * interval)
        found.append(bool(batch.matches[0]))
        assert batch.cuts == ([] if found[-1] else [Cut(0, route.name, "there", "loop-limit")])
        assert batch.left_out == ([] if found[-1] else [(route.name, "loop-limit")])
    return found


@pytest.mark.parametrize(
    ("messages", "interval", "expected"),
    [
        pytest.param([ON] * 5, 0.0, "+++--", id="beyond"),
        pytest.param([ON] * 5, 14.0, "+++--", id="slow"),
        pytest.param([ON] * 7, 15.0, "+++-+++", id="next-minute"),
        pytest.param([ON] * 5, 20.0, "+++++", id="never-too-many"),
        pytest.param([ON, replace(ON, payload=b"off")] * 3, 0.0, "++++++", id="payloads"),
        pytest.param([ON, replace(ON, address="a/c")] * 3, 0.0, "++++++", id="names"),
        pytest.param([ON, replace(ON, payload="on")] * 2, 0.0, "+++-", id="text-equals-bytes"),
        pytest.param([ON, AGAIN, AGAIN, AGAIN, AGAIN, ON], 0.0, "++++++", id="delivered-again"),
    ],
)
def test_equal_messages_beyond_the_limit_are_cut(
    messages: Sequence[Message], interval: float, expected: str
) -> None:
    assert passed(messages, interval=interval) == [each == "+" for each in expected]


def test_a_route_without_a_limit_cuts_nothing() -> None:
    assert all(passed([ON] * 1_000, route=ALL))


def test_only_the_route_with_the_limit_cuts() -> None:
    batch = received_batch([ON] * 5)
    both = (
        RouteMatch(ALL, (Delivery(ALL, None, "x"),)),
        RouteMatch(LIMITED, (Delivery(LIMITED, None, "x"),)),
    )
    batch.matches = [both] * 5

    LoopLimit().cut(batch, 1.0)

    assert batch.matches == [both] * 3 + [both[:1]] * 2
    assert [each.position for each in batch.cuts] == [3, 4]


def test_the_memory_of_the_counts_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_limit, "MAX_SIZE", MAX_SIZE // 16)

    def fill() -> LoopLimit:
        limit = LoopLimit()
        for number in range(5_000):
            batch = received_batch([replace(ON, payload=b"%d" % number)])
            batch.matches = [(RouteMatch(LIMITED, ()),)]
            limit.cut(batch, number * 0.001)
        return limit

    assert taken(fill) < MAX_SIZE // 16


def test_the_oldest_count_is_forgotten_first_and_its_message_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_limit, "MAX_SIZE", 5_000)
    monkeypatch.setattr(loop_limit, "EVICTED_SIZE", 100)
    others = [replace(ON, payload=b"%d" % number) for number in range(100)]

    assert all(passed([ON, ON, ON, *others, ON]))
    assert not passed([*others, ON, ON, ON, ON])[-1]
