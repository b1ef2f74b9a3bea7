"""Whether a source removes what it reads, for every kind that has queues, shares or groups.

`test_endpoints.py` has the sources whose messages are their own. `tests/endpoints/nats` has the
streams, which the server keeps for several readers or for one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pytest

from gateway.endpoints.base import Source, Subscription
from gateway.endpoints.registry import make_sink, make_source, removal
from gateway.endpoints.settings.amqp import AmqpSettings
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.jms import JmsSettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.settings.nats import NatsSettings
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED
from tests.endpoints.exchange import QUIET, collect, hold, opened, send

SENT = 10
_numbers = count()


@dataclass(frozen=True)
class Place:
    """A place that sources read, and the address of its messages."""

    settings: EndpointSettings
    pattern: str
    address: str
    removes: bool = True

    def source(self, instance: str) -> Source:
        return make_source(self.settings, [Subscription(self.pattern)], instance=instance)

    def send(self, *numbers: int) -> None:
        headers = Headers(mode=self.settings.mode)
        with opened(sink := make_sink(self.settings)):
            messages = [Message(self.address, str(each).encode(), headers) for each in numbers]
            assert send(sink, *messages) == [ACCEPTED] * len(numbers)


def _rabbitmq(request: pytest.FixtureRequest, kind: str, *, removes: bool) -> Place:
    vhost = request.getfixturevalue("rabbitmq")
    vhost.api("PUT", "queues", "/work", {"durable": True, "arguments": {"x-queue-type": kind}})
    settings = replace(vhost.settings, start="first")
    return Place(settings, "queue:work", "queue:work", removes)


def _amqp(request: pytest.FixtureRequest, kind: str) -> Place:
    vhost = request.getfixturevalue("rabbitmq_4")
    vhost.api("PUT", "queues", "/work", {"durable": True, "arguments": {"x-queue-type": kind}})
    return Place(AmqpSettings(url=vhost.url), "queue:work", "queue:work")


def _jms(request: pytest.FixtureRequest, destination: str, prefix: str) -> Place:
    broker = request.getfixturevalue("activemq")
    name = f"{prefix}removes-{next(_numbers)}"
    settings: JmsSettings = broker.settings(destination=destination, prefetch=1)
    return Place(settings, name, name)


def _mqtt(request: pytest.FixtureRequest, pattern: str, *, removes: bool) -> Place:
    broker = request.getfixturevalue("mosquitto")
    settings = MqttSettings(host="127.0.0.1", port=broker.port, client_id="removes")
    return Place(settings, pattern, "t/x", removes)


def _solace(request: pytest.FixtureRequest, *, removes: bool = True, **changes: Any) -> Place:  # noqa: ANN401
    from tests.endpoints.solace.restartable import RestartableBroker  # noqa: PLC0415  # skips without it

    broker = RestartableBroker()
    request.addfinalizer(broker.stop)
    settings = replace(broker.settings, **changes)
    if settings.guaranteed:
        owner = make_source(replace(settings, subscribe_queue=True), [Subscription("t/>")])
        with opened(owner):  # a queue that somebody else fills
            pass
    return Place(settings, "t/>", "t/x", removes)


def _nats(request: pytest.FixtureRequest, group: str) -> Place:
    server = request.getfixturevalue("nats_server")
    settings = NatsSettings(url=server.url, jetstream=False, queue_group=group)
    return Place(settings, "t.>", "t.x", bool(group))


ONE_QUEUE: dict[str, Any] = {"queue": "work", "exclusive_queue": False}
PLACES: dict[str, Callable[[pytest.FixtureRequest], Place]] = {
    "rabbitmq-queue": lambda request: _rabbitmq(request, "classic", removes=True),
    "rabbitmq-quorum": lambda request: _rabbitmq(request, "quorum", removes=True),
    "rabbitmq-stream": lambda request: _rabbitmq(request, "stream", removes=False),
    "amqp-queue": lambda request: _amqp(request, "classic"),
    "amqp-quorum": lambda request: _amqp(request, "quorum"),
    "jms-queue": lambda request: _jms(request, "topic", "queue:"),
    "jms-queue-by-default": lambda request: _jms(request, "queue", ""),
    "jms-topic": lambda request: replace(_jms(request, "topic", ""), removes=False),
    "mqtt-share": lambda request: _mqtt(request, "$share/group/t/#", removes=True),
    "mqtt-no-share": lambda request: _mqtt(request, "t/#", removes=False),
    "solace-queue-of-others": lambda request: _solace(request, **ONE_QUEUE, subscribe_queue=False),
    "solace-queue-of-several": lambda request: _solace(request, **ONE_QUEUE),
    "solace-share": lambda request: _solace(request, guaranteed=False, share="group"),
    "solace-direct": lambda request: _solace(request, removes=False, guaranteed=False),
    "nats-group": lambda request: _nats(request, "group"),
    "nats-core": lambda request: _nats(request, ""),
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Place:
    return PLACES[request.param](request)


def left(source: Source) -> int:
    """Receive and settle what there is; return how many messages came."""
    found = 0
    while (batch := source.receive(QUIET)) is not None:
        found += len(batch.messages)
        batch.settle([ACCEPTED] * len(batch.messages))
    return found


def test_a_source_says_whether_others_still_get_what_it_took(place: Place) -> None:
    first, second = place.source("one"), place.source("two")
    with opened(first, second):
        place.send(*range(SENT))
        taken = collect(first, 1)
        received = len(taken) + left(second) + left(first)
        says = removal(first, place.settings, [Subscription(place.pattern)])
        said = [says(each.address) for each in taken]

    assert {each.address for each in taken} == {place.address}
    assert received == (SENT if place.removes else 2 * SENT)
    assert {*said} == {place.removes}


@pytest.mark.parametrize(
    "place",
    [
        "rabbitmq-queue",
        "amqp-queue",
        "amqp-quorum",
        "rabbitmq-quorum",
        "jms-queue",
        "mqtt-share",
        "solace-queue-of-others",
    ],
    indirect=True,
)
def test_a_message_that_was_not_settled_says_that_it_comes_again(place: Place) -> None:
    """By that an equal message that somebody put there again differs from a redelivery."""
    with opened(source := place.source("one")):
        place.send(1)
        hold(source, 1)
    with opened(source := place.source("one")):
        place.send(2)
        again = collect(source, 2)

    assert [each.payload for each in again] == [b"1", b"2"]
    assert [each.headers.redelivered for each in again] == [True, False]
