"""The in-process broker: naming rules of its dialect, queues, and back-pressure."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import count

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.memory import find_broker
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.memory import MemorySettings
from gateway.errors import EndpointError, GatewayError, NotConnectedError
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, Outcome
from tests.endpoints.exchange import QUIET, Answer, collect, opened, send
from tests.waiting import PATIENCE

_numbers = count()


@pytest.fixture
def settings() -> MemorySettings:
    return MemorySettings(broker=f"test-{next(_numbers)}")


SELECTIONS = [
    pytest.param("ems", "orders.>", "orders.eu.fx", True, id="ems-rest"),
    pytest.param("ems", "orders.>", "orders", False, id="ems-rest-is-not-the-parent"),
    pytest.param("mqtt", "orders/#", "orders", True, id="mqtt-parent-too"),
    pytest.param("mqtt", "#", "$SYS/x", False, id="mqtt-dollar"),
    pytest.param("smf", "re*/x", "red/x", True, id="smf-prefix"),
    pytest.param("yami4", "a.*", "z,a.b,a.c", True, id="yami4-one-of-many-tags"),
]


@pytest.mark.parametrize(("dialect", "pattern", "name", "expected"), SELECTIONS)
def test_messages_are_selected_by_the_rules_of_the_dialect(
    settings: MemorySettings, dialect: str, pattern: str, name: str, expected: bool
) -> None:
    settings = replace(settings, dialect=dialect)
    source, sink = make_source(settings, [Subscription(pattern)]), make_sink(settings)
    with opened(source, sink):
        assert send(sink, Message(name, b"")) == [ACCEPTED]
        batch = source.receive(0)

    assert (len(batch.messages) if batch else 0) == expected


def test_a_message_selected_by_two_subscriptions_arrives_once(
    settings: MemorySettings,
) -> None:
    source = make_source(settings, [Subscription("a/#"), Subscription("a/b")])
    sink = make_sink(settings)
    with opened(source, sink):
        send(sink, Message("a/b", b""))

        assert len(collect(source, 1)) == 1
        assert source.receive(0) is None


@pytest.mark.parametrize(
    ("dialect", "name", "rule"),
    [
        pytest.param("ems", "a..b", "empty-element", id="ems-empty"),
        pytest.param("mqtt", "a/+", "wildcard-in-name", id="mqtt-wildcard"),
        pytest.param("smf", "x" * 251, "too-long", id="smf-long"),
    ],
)
def test_an_illegal_name_is_rejected_with_its_rule(
    settings: MemorySettings, dialect: str, name: str, rule: str
) -> None:
    sink = make_sink(replace(settings, dialect=dialect))
    with opened(sink):
        (answer,) = send(sink, Message(name, b""))

    assert (answer.outcome, answer.rule) == (Outcome.REJECTED, rule)


def test_an_illegal_pattern_is_refused_at_open(settings: MemorySettings) -> None:
    with pytest.raises(EndpointError, match="a/#/b"):
        make_source(settings, [Subscription("a/#/b")]).open()


def test_endpoints_of_two_dialects_have_two_brokers(settings: MemorySettings) -> None:
    other = replace(settings, dialect="ems")

    with opened(make_sink(settings)), opened(make_sink(other)):
        assert find_broker(settings) is not find_broker(other)
    assert settings.broker_key != other.broker_key


def test_an_unknown_dialect_is_an_error_of_the_gateway(settings: MemorySettings) -> None:
    with pytest.raises(GatewayError, match="mqqt"):
        make_sink(replace(settings, dialect="mqqt")).open()


def test_one_queue_has_one_source(settings: MemorySettings) -> None:
    first, second = (make_source(settings, [Subscription("t")]) for _ in range(2))
    with opened(first), pytest.raises(EndpointError, match="another source"):
        second.open()


def test_a_durable_queue_fills_while_its_source_is_closed(settings: MemorySettings) -> None:
    for durable, expected in ((True, 1), (False, 0)):
        chosen = replace(settings, durable=durable, name=f"durable {durable}")
        source, sink = make_source(chosen, [Subscription("t")]), make_sink(chosen)
        with opened(sink):
            with opened(source):
                pass
            send(sink, Message("t", b""))
            with opened(source):
                batch = source.receive(0)
        assert (len(batch.messages) if batch else 0) == expected


def test_a_full_queue_slows_the_sender_and_loses_nothing(settings: MemorySettings) -> None:
    settings = replace(settings, capacity=2_000)
    source, sink = make_source(settings, [Subscription("t")]), make_sink(settings)
    answers = [Answer() for _ in range(20)]

    def run() -> None:
        for i, answer in enumerate(answers):
            sink.send([Message("t", str(i).encode())], answer)

    with opened(source, sink):
        sender = threading.Thread(target=run)
        sender.start()
        sender.join(QUIET)
        assert not answers[-1].has_come
        got = collect(source, 20)
        sender.join(PATIENCE)

    assert [m.payload for m in got] == [str(i).encode() for i in range(20)]
    assert all(answer.has_come for answer in answers)


def test_a_close_frees_a_sender_that_waits_for_room(settings: MemorySettings) -> None:
    settings = replace(settings, capacity=1)
    source, sink = make_source(settings, [Subscription("t")]), make_sink(settings)
    freed: list[NotConnectedError] = []

    def run() -> None:
        try:
            for _ in range(2):
                sink.send([Message("t", b"")], Answer())
        except NotConnectedError as error:
            freed.append(error)

    with opened(source, sink):
        sender = threading.Thread(target=run)
        sender.start()
    sender.join(PATIENCE)

    assert len(freed) == 1


def test_an_empty_retained_message_removes_the_earlier_one(settings: MemorySettings) -> None:
    sink = make_sink(settings)
    headers = replace(Message("t", b"").headers, retained=True)
    with opened(sink):
        send(sink, Message("t", b"kept", headers), Message("t", b"", headers))
        source = make_source(settings, [Subscription("t")])
        with opened(source):
            assert source.receive(0) is None
