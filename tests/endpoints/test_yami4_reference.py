"""The endpoint against the reference broker, if `YAMI4_BROKER` names its program."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from threading import Event
from time import monotonic

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.yami4 import Yami4Sink, open_source
from gateway.errors import NotConnectedError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, RETRY
from tests.brokers.yami4_client import Client, connect_to
from tests.cases.yami4_matching import ROWS
from tests.endpoints.exchange import collect, opened, send
from tests.waiting import PATIENCE

PROGRAM = os.environ.get("YAMI4_BROKER", "")
pytestmark = [
    pytest.mark.broker,
    pytest.mark.skipif(not PROGRAM, reason="YAMI4_BROKER does not name a reference broker"),
]
SURE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)


@pytest.fixture
def url() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    options = {
        "listener": url,
        "max_subscriptions": "40",
        "max_client_queue": "100000",
        "overflow_policy": "reject_message",
    }
    arguments = [PROGRAM, os.devnull, *(f"-D{key}={value}" for key, value in options.items())]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL) as process:  # noqa: S603
        try:
            wait_until_it_listens(url)
            yield url
        finally:
            process.terminate()


def wait_until_it_listens(url: str) -> None:
    until, pause = monotonic() + PATIENCE, Event()
    while True:
        try:
            connect_to(url).close()
        except OSError:
            assert monotonic() < until, "the broker does not listen"
            pause.wait(0.02)
        else:
            return


def test_the_broker_matches_as_in_the_table(url: str) -> None:
    for patterns in dict.fromkeys(patterns for _, patterns, _ in ROWS):
        rows = [(tags, expected) for tags, each, expected in ROWS if each == patterns]
        with Client(url) as client:
            client.subscribe(patterns)
            for tags, _ in rows:
                client.send(tags, "publish")
            got = [update.name for update in client.collect()]
        assert got == [f"update {tags}" for tags, expected in rows if expected], patterns
        with Client(url) as client:  # the broker removes a client only at its next update
            for tags, expected in rows:
                if expected:
                    client.send(tags, "publish")
            client.collect()


def test_messages_arrive(url: str) -> None:
    settings = Yami4Settings(url=url)
    source, sink = open_source(settings, [Subscription("a.*")]), Yami4Sink(settings)
    messages = [
        Message("a.b", b"bytes", SURE),
        Message("a.b,c", {"v": 42, "deep": {"list": ["x"]}}, SURE),
        Message("a.c", bytes(100_000), SURE),
        *(Message("a.n", str(number), SURE) for number in range(5_000)),
    ]
    with opened(source, sink):
        assert send(sink, *messages) == [ACCEPTED] * len(messages)
        assert collect(source, len(messages)) == messages


def test_a_full_table_is_noticed(url: str) -> None:
    with Client(url) as client:
        for number in range(40):
            client.subscribe(f"t{number}")
        source = open_source(Yami4Settings(url=url, answer_timeout=1), [Subscription("a")])
        with pytest.raises(NotConnectedError, match="does not serve it"):
            source.open()


def test_an_overflow_is_retried(url: str) -> None:
    sink = Yami4Sink(Yami4Settings(url=url, answer_timeout=30))
    with Client(url) as slow, opened(sink):
        slow.subscribe("a")
        payload = bytes(200_000)
        outcomes = send(sink, *(Message("a", payload, SURE) for _ in range(40)))

        assert all(each in (ACCEPTED, RETRY) for each in outcomes)
