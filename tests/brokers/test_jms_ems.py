"""The JMS endpoint against a real EMS server, where there is one.

EMS_URL names it (tcp://host:7222), EMS_CLASSPATH its jars, separated by colons; EMS_USER and
EMS_PASSWORD are optional. The user may create topics and queues below `gateway.test`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.jms import JmsSink, JmsSource, open_sink, open_source
from gateway.endpoints.jms_settings import JmsSettings
from gateway.model.message import DeliveryMode, Headers, Message, Payload
from gateway.model.outcome import ACCEPTED, Outcome
from tests.endpoints.exchange import QUIET, collect, opened, send

URL, CLASSPATH = os.environ.get("EMS_URL", ""), os.environ.get("EMS_CLASSPATH", "")
ROOT = "gateway.test"
PERSISTENT = Headers(mode=DeliveryMode.AT_LEAST_ONCE)

pytestmark = [
    pytest.mark.broker,
    pytest.mark.skipif(not (URL and CLASSPATH), reason="EMS_URL and EMS_CLASSPATH are not set"),
]

SETTINGS = JmsSettings(
    name="ems",
    urls=(URL,),
    classpath=tuple(CLASSPATH.split(":")),
    username=os.environ.get("EMS_USER"),
    password=os.environ.get("EMS_PASSWORD"),
)


@pytest.fixture
def pair() -> Iterator[tuple[JmsSource, JmsSink]]:
    patterns = [Subscription(f"{ROOT}.>"), Subscription(f"queue:{ROOT}.q")]
    source, sink = open_source(SETTINGS, patterns), open_sink(SETTINGS)
    with opened(source, sink):
        while (batch := source.receive(QUIET)) is not None:  # left by an earlier run
            batch.settle([ACCEPTED] * len(batch.messages))
        yield source, sink


@pytest.mark.parametrize("address", [f"{ROOT}.a.b", f"queue:{ROOT}.q"])
@pytest.mark.parametrize(
    "payload",
    [b"bytes", "text é", {"a": 1, "m": {"n": "nested"}, "l": [1, 2, 3]}, b"x" * 1_048_576],
    ids=["bytes", "text", "nested-map", "megabyte"],
)
def test_a_message_crosses(pair: tuple[JmsSource, JmsSink], address: str, payload: Payload) -> None:
    source, sink = pair
    assert send(sink, Message(address, payload, PERSISTENT)) == [ACCEPTED]
    (got,) = collect(source, 1)

    assert (got.address, got.payload) == (address, payload)


def test_the_parent_is_not_below_itself(pair: tuple[JmsSource, JmsSink]) -> None:
    source, sink = pair
    send(sink, Message(ROOT, b"", PERSISTENT))

    assert source.receive(QUIET) is None
    assert source.counts.unwanted == 0  # EMS did not even deliver it


def test_a_name_of_ems_is_refused(pair: tuple[JmsSource, JmsSink]) -> None:
    _, sink = pair
    (refused,) = send(sink, Message("$sys.x", b"", PERSISTENT))

    assert refused.outcome is Outcome.REJECTED


@pytest.mark.parametrize("delivery", ["persistent", "non_persistent", "reliable"])
@pytest.mark.parametrize("acknowledge", ["explicit", "explicit_lazy", "client", "transacted"])
def test_what_is_settled_does_not_come_again(delivery: str, acknowledge: str) -> None:
    queue = f"queue:{ROOT}.{acknowledge}"
    settings = JmsSettings(
        name="ems",
        urls=SETTINGS.urls,
        classpath=SETTINGS.classpath,
        username=SETTINGS.username,
        password=SETTINGS.password,
        delivery=delivery,
        acknowledge=acknowledge,
    )
    source, sink = open_source(settings, [Subscription(queue)]), open_sink(settings)
    with opened(source, sink):
        send(sink, *(Message(queue, str(i).encode(), PERSISTENT) for i in range(100)))
        assert len(collect(source, 100)) == 100
    with opened(source):
        assert source.receive(QUIET) is None
