"""A message that an application puts back where a source removes what it reads is never gone.

It is in the hands of the application or among the dead letters, as often as it is put back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gateway.endpoints.settings.nats import NatsSettings
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.model.message import GATEWAY_ID, Headers, Message
from tests.conformance.bridged import MAX_HOPS, Bridged
from tests.conformance.test_removes import PLACES, Place
from tests.endpoints.exchange import QUIET, opened
from tests.endpoints.nats.stream import ask
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("journals_stay")


MOST = 20  # messages until the other reader has one
ROUTE = """\
  redrive:
    from: {{endpoint: there, pattern: "{pattern}"}}
    to: {{endpoint: here, template: "{name}"}}
"""
Make = Callable[[pytest.FixtureRequest], Place]


@dataclass(frozen=True)
class Queue:
    """A place that a source removes from, the name that a copy of its message has, and its pattern.

    With `ids` an application puts a message back with all its ids.
    """

    make: Make
    name: str
    pattern: str = ""
    ids: bool = True


def _unique(request: pytest.FixtureRequest) -> Place:
    place = PLACES["rabbitmq-queue"](request)
    assert isinstance(place.settings, RabbitmqSettings)
    return replace(place, settings=replace(place.settings, unique_message_ids=True))


def _work_queue(request: pytest.FixtureRequest) -> Place:
    place = PLACES["nats-core"](request)
    assert isinstance(place.settings, NatsSettings)
    settings = replace(place.settings, jetstream=True, stream="T")
    ask(
        settings,
        lambda stream: stream.add_stream(name="T", subjects=["t.>"], retention="workqueue"),
    )
    return replace(place, settings=settings)


QUEUES = {
    "rabbitmq-queue": Queue(PLACES["rabbitmq-queue"], "work"),
    "rabbitmq-unique-ids": Queue(_unique, "work"),
    "rabbitmq-quorum": Queue(PLACES["rabbitmq-quorum"], "work"),
    "jms-queue": Queue(PLACES["jms-queue"], ""),
    "jms-queue-by-default": Queue(PLACES["jms-queue-by-default"], ""),
    "mqtt-share": Queue(PLACES["mqtt-share"], "t/x", "$share/group/t/x"),
    "solace-queue-of-others": Queue(PLACES["solace-queue-of-others"], "t/x", "t/x"),
    "solace-share": Queue(PLACES["solace-share"], "t/x", "t/x"),
    "nats-group": Queue(PLACES["nats-group"], "t/x", "t.x"),
    # its stream knows an id for two minutes, and would itself drop what is put back with it
    "nats-work-queue": Queue(_work_queue, "t/x", "t.x", ids=False),
}


@pytest.mark.parametrize("renamed", [True, False], ids=["renamed", "same-name"])
@pytest.mark.parametrize("kind", QUEUES)
def test_what_is_put_back_is_never_gone(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, *, renamed: bool
) -> None:
    """A copy with the name of the queue comes back as it was sent: that is a loop.

    Any other one is a new message, until it has too many hops.
    """
    queue = QUEUES[kind]
    place = queue.make(request)
    same = queue.name or place.address.removeprefix("queue:").replace(".", "/")
    name = "done" if renamed else same
    route = ROUTE.format(pattern=queue.pattern or place.address, name=name)
    world = Bridged(tmp_path, place.settings, route, place.pattern)
    with world.running(world.here) as gateway:
        given = "invoice-1" if queue.ids else None
        message, rounds = world.say(place.address, b"invoice 1", given), 0
        counters = gateway.counters["redrive"]
        while True:
            world.there.publish(message)
            until(lambda n=rounds: counters.delivered > n or bool(counters.dead))  # type: ignore[misc]  # a default binds it now
            if counters.dead:
                break
            copy = world.here.wait_for(b"invoice 1")
            world.here.arrived.clear()
            headers = copy.headers if queue.ids else without_ids(copy.headers)
            message, rounds = replace(copy, address=place.address, headers=headers), rounds + 1

    assert rounds == (MAX_HOPS if renamed else 1)
    assert world.rows("dead", "rule", "source_name") == [
        ("hops" if renamed else "loop", place.address)
    ]
    assert world.rows("cut", "rule") == []


@pytest.mark.parametrize(
    "kind", ["rabbitmq-queue", "rabbitmq-quorum", "jms-queue", "solace-queue-of-others"]
)
def test_what_another_reader_held_and_returned_is_never_gone(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    """It has the ids of a message that the gateway has settled, and says that it comes again."""
    queue = QUEUES[kind]
    place = queue.make(request)
    route = ROUTE.format(pattern=queue.pattern or place.address, name="done")
    world = Bridged(tmp_path, place.settings, route, place.pattern)
    headers = Headers(mode=place.settings.mode, properties={GATEWAY_ID: "ab" * 16})
    message = Message(place.address, b"invoice 1", headers)
    with world.running() as gateway:
        counters = gateway.counters["redrive"]
        world.there.publish(message)
        until(lambda: counters.delivered == 1)
        published, other, held = 1, place.source("other"), False
        with opened(other):
            while not held:
                assert published < MOST, "the broker gives the other reader nothing"
                world.there.publish(message)
                published += 1
                held = other.receive(QUIET) is not None
        until(lambda: counters.delivered == published)

    assert world.rows("cut", "rule") == []


def without_ids(headers: Headers) -> Headers:
    properties = {name: value for name, value in headers.properties.items() if name != GATEWAY_ID}
    return replace(headers, source_id=None, properties=properties)
