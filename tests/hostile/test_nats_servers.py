"""A hostile NATS server costs a connection: no memory, no endpoint, no message of a neighbour."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from typing import Final

import pytest

from gateway.endpoints.base import Source, Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.nats import NatsSettings
from gateway.errors import EndpointError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED
from tests.brokers.hostile_servers import Behaviour, serving
from tests.brokers.nats_server import NatsServer
from tests.endpoints.exchange import collect, opened, send, wait_for_loss
from tests.hostile.nats_servers import (
    HONEST,
    consumer,
    endless,
    info,
    jetstream,
    message,
    once,
    receipt,
    stream,
    unasked,
)

pytest.importorskip("nats")

MOST: Final = 256 << 20  # bytes that a hostile server may make this process take
HUGE: Final = 1 << 70
INFOS = [
    pytest.param(b"INFO []\r\n", id="list"),
    pytest.param(b"INFO 7\r\n", id="number"),
    pytest.param(b"INFO {\r\n", id="no-json"),
    pytest.param(b"INFO \xff\r\n", id="no-utf-8"),
    pytest.param(b"INFO " + b"[" * 30_000 + b"\r\n", id="nested"),
    pytest.param(b'INFO {"x": ' + b"9" * 5_000 + b"}\r\n", id="long-number"),
    pytest.param(b"INFO {" + b" " * 100_000 + b"}\r\n", id="long-line"),
    pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", id="another-protocol"),
    *(
        pytest.param(b"INFO %b\r\n" % json.dumps(HONEST | {"max_payload": most}).encode(), id=name)
        for name, most in [
            ("max-payload-text", "big"),
            ("max-payload-0", 0),
            ("max-payload-negative", -1),
            ("max-payload-null", None),
            ("max-payload-half", 0.5),
            ("max-payload-huge", HUGE),
            ("max-payload-list", []),
            ("max-payload-true", True),
        ]
    ),
]
NOTHING = once(lambda _subject, _sid: b"")
ANSWERS = [
    pytest.param(jetstream(NOTHING, of_stream=b"[]"), id="stream-list"),
    pytest.param(jetstream(NOTHING, of_stream=b"{"), id="stream-no-json"),
    pytest.param(jetstream(NOTHING, of_stream=b'{"error": "text"}'), id="error-text"),
    pytest.param(jetstream(NOTHING, of_stream=b'{"error": {"code": "x"}}'), id="error-code-text"),
    pytest.param(jetstream(NOTHING, of_stream={"state": 7}), id="state-number"),
    pytest.param(jetstream(NOTHING, of_stream=stream(first_seq=HUGE)), id="first-seq-huge"),
    pytest.param(jetstream(NOTHING, of_stream=stream(last_seq="x")), id="last-seq-text"),
    pytest.param(jetstream(NOTHING, of_stream=stream(last_seq=-1)), id="last-seq-negative"),
    pytest.param(jetstream(NOTHING, of_consumer=b"7"), id="consumer-number"),
    pytest.param(jetstream(NOTHING, of_consumer={}), id="consumer-empty"),
    pytest.param(
        jetstream(NOTHING, of_consumer=consumer(num_ack_pending=HUGE)), id="unanswered-huge"
    ),
    pytest.param(
        jetstream(NOTHING, of_consumer=consumer(delivered={"consumer_seq": 1, "stream_seq": []})),
        id="delivered-list",
    ),
]
DELIVERIES = [
    pytest.param(once(lambda s, n: message(s, n, receipt(HUGE))), id="number-huge"),
    pytest.param(once(lambda s, n: message(s, n, receipt(1, HUGE))), id="delivery-huge"),
    pytest.param(
        once(lambda s, n: message(s, n, b"$JS.ACK.T.c.1." + b"9" * 3_000 + b".1.1.0")),
        id="number-of-3000-digits",
    ),
    pytest.param(once(lambda s, n: message(s, n, b"$JS.ACK.T.c.1.x.1.1.0")), id="number-text"),
    pytest.param(once(lambda s, n: message(s, n, b"$JS.ACK.T.c")), id="receipt-short"),
    pytest.param(once(lambda s, n: b"MSG %b %b 1\r\n1\r\n" % (s, n)), id="receipt-absent"),
    pytest.param(once(lambda _s, _n: b"-ERR\r\n"), id="error-without-text"),
    pytest.param(once(lambda _s, _n: b"-ERR text\r\n"), id="error-without-quotes"),
    pytest.param(once(lambda _s, _n: b"INFO []\r\n"), id="info-list"),
    pytest.param(once(lambda _s, _n: b"INFO {\r\n"), id="info-no-json"),
    pytest.param(once(lambda _s, _n: b"RUBBISH\r\n"), id="rubbish"),
    pytest.param(once(lambda s, n: b"HMSG %b %b 9 1\r\n1\r\n" % (s, n)), id="headers-longer"),
    pytest.param(
        once(lambda s, n: b"MSG %b %b %b\r\n" % (s, n, b"9" * 5_000)), id="size-of-5000-digits"
    ),
    pytest.param(
        endless(lambda s, n: b"MSG %b %b 9223372036854775807\r\n" % (s, n), bytes(1 << 20)),
        id="size-of-2-to-63",
    ),
    pytest.param(
        endless(lambda s, n: b"HMSG %b %b 12 2147483647\r\n" % (s, n), bytes(1 << 20)),
        id="headers-of-2-gib",
    ),
    pytest.param(endless(lambda _s, _n: b"", b"x" * 65_536), id="line-without-an-end"),
    pytest.param(endless(lambda _s, _n: b"MSG ", b"x" * 65_536), id="subject-without-an-end"),
    pytest.param(unasked(bytes(1 << 16)), id="unasked"),
]
RETURNED = consumer(
    num_ack_pending=1_000_000_000,
    delivered={"consumer_seq": 0, "stream_seq": 1 << 62},
)


@pytest.fixture(autouse=True)
def bounded_memory() -> Iterator[None]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < MOST


@pytest.fixture
def neighbour(nats_server: NatsServer) -> Iterator[None]:
    """An honest endpoint of the same process: everything of it passes meanwhile."""
    settings = NatsSettings(url=nats_server.url, stream="T", create_stream=True, subjects=("t.>",))
    source, sink = source_of(settings), make_sink(settings)
    with opened(source, sink):
        yield
        said = [
            Message("t.x", b"%d" % each, Headers(DeliveryMode.AT_LEAST_ONCE)) for each in (1, 2)
        ]
        assert send(sink, *said) == [ACCEPTED] * 2
        assert [each.payload for each in collect(source, 2)] == [b"1", b"2"]


def source_of(settings: NatsSettings) -> Source:
    return make_source(settings, [Subscription("t.>")], instance="r")


def hostile(port: int) -> NatsSettings:
    return NatsSettings(
        url=f"nats://127.0.0.1:{port}", stream="T", answer_timeout=2.0, connect_timeout=2.0,
        consumer="c", receive_window_bytes=1 << 20,
    )  # fmt: skip


def test_the_script_is_honest_but_for_one_thing() -> None:
    deliver = once(lambda subject, sid: message(subject, sid, receipt(1)))
    with serving(jetstream(deliver)) as port, opened(source := source_of(hostile(port))):
        assert [each.payload for each in collect(source, 1)] == [b"1"]


@pytest.mark.usefixtures("neighbour")
@pytest.mark.parametrize("line", INFOS)
def test_a_malformed_greeting_is_an_error_that_names_the_endpoint(line: bytes) -> None:
    with serving(info(line)) as port:
        for endpoint in (source_of(hostile(port)), make_sink(hostile(port))):
            with pytest.raises(EndpointError, match=r"^nats: "):
                endpoint.open()


@pytest.mark.usefixtures("neighbour")
@pytest.mark.parametrize("behaviour", ANSWERS)
def test_a_malformed_answer_costs_the_connection(behaviour: Behaviour) -> None:
    with serving(behaviour) as port:
        source = source_of(hostile(port))
        with pytest.raises(EndpointError, match=r"^nats: "):
            source.open()


@pytest.mark.usefixtures("neighbour")
@pytest.mark.parametrize("deliver", DELIVERIES)
def test_a_malformed_delivery_costs_the_connection(deliver: object) -> None:
    with serving(jetstream(deliver)) as port, opened(source := source_of(hostile(port))):  # type: ignore[arg-type]  # of the list
        wait_for_loss(source)
        for loss in source.continuity.take_losses():  # type: ignore[attr-defined]  # of this source
            assert (loss.messages or 0) < 1 << 63


@pytest.mark.usefixtures("neighbour")
def test_messages_that_are_held_count_in_the_window() -> None:
    """They wait for others, which a server announces and never sends."""
    behaviour = jetstream(unasked(bytes(1 << 16)), of_consumer=RETURNED)
    with serving(behaviour) as port, opened(source := source_of(hostile(port))):
        wait_for_loss(source)
