"""MQTT in a WebSocket: frames are a stream, and a server that breaks the protocol costs bounds."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from gateway.endpoints.base import Source, Subscription
from gateway.endpoints.mqtt import open_sink, open_source
from gateway.endpoints.settings.mqtt import MqttSettings, WebSocketSettings
from gateway.errors import EndpointError, GatewayError, NotConnectedError
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.wire.mqtt.packet_fields import encode_length
from tests.endpoints.exchange import collect, receive
from tests.endpoints.mqtt.peer import WELCOME, connected, grant, listening
from tests.endpoints.mqtt.web_peer import (
    BINARY,
    CLOSE,
    CONTINUED,
    NOT_LAST,
    PING,
    PONG,
    TEXT,
    WebPeer,
    accepting,
    frame,
    web,
)
from tests.waiting import PATIENCE, until

__all__ = ["web"]

MESSAGE = b"\x30\x05\x00\x01t\x00a"  # QoS 0
LIMIT = 4_194_304  # bytes, the least `max_packet_in`


def lost(source: Source) -> GatewayError:
    """Receive until the connection is over; return why."""
    found: list[GatewayError] = []

    def over() -> bool:
        try:
            source.receive(0.1)
        except GatewayError as error:
            found.append(error)
        return bool(found)

    until(over, "the connection lives")
    return found[0]


def test_the_request_has_path_subprotocol_and_headers(web: WebPeer) -> None:
    wanted = WebSocketSettings(path="/iot/mqtt?x=1", headers={"Authorization": "Bearer abc"})
    web.settings = replace(web.settings, websocket=wanted)
    connected(web).close()

    lines = web.request.split(b"\r\n")
    assert lines[0] == b"GET /iot/mqtt?x=1 HTTP/1.1"
    assert {
        f"Host: 127.0.0.1:{web.settings.port}".encode(),
        b"Sec-WebSocket-Protocol: mqtt",
        b"Authorization: Bearer abc",
    } <= {*lines}
    assert b"extensions" not in web.request.lower()  # nothing is compressed


def test_a_packet_spans_frames_and_a_frame_has_many_packets(web: WebPeer) -> None:
    source = listening(web)
    web.write(MESSAGE * 3 + MESSAGE[:4])
    web.write(MESSAGE[4:])
    web.raw(frame(BINARY & NOT_LAST, MESSAGE[:1]) + frame(PING, b"between"))
    web.raw(frame(CONTINUED & NOT_LAST, b"") + frame(CONTINUED, MESSAGE[1:]))

    assert [each.payload for each in collect(source, 5)] == [b"a"] * 5
    assert web.frame() == (PONG, b"between")
    source.close()


def test_a_sink_sends_no_empty_frame(web: WebPeer) -> None:
    """mosquitto 2.1.2 takes its last packet again for an empty one, here the CONNECT."""
    sink = connected(web)
    sink.send([Message("t", b"a")], lambda _: None)

    first, payload = web.frame()
    assert (first, payload[:1]) == (BINARY, b"\x30")
    sink.close()


def test_packets_that_come_with_the_handshake_are_read(web: WebPeer) -> None:
    web.answer = lambda request: accepting(request) + frame(BINARY, WELCOME)
    sink = open_sink(web.settings)
    web.opening(sink).result(PATIENCE)
    sink.close()


def test_what_comes_before_a_close_is_received(web: WebPeer) -> None:
    source = listening(web)
    web.raw(frame(BINARY, MESSAGE) + frame(CLOSE, b"\x03\xf0quota exceeded"))

    assert receive(source).messages[0].payload == b"a"
    assert "WebSocket close 1008 quota exceeded" in str(lost(source))
    assert web.frame() == (CLOSE, b"\x03\xf0quota exceeded")


HANDSHAKES = [
    pytest.param(partial(accepting, key=b"d3Jvbmc="), "Bad accept token", True, id="wrong-key"),
    pytest.param(partial(accepting, protocol=b""), "does not take the subprotocol mqtt", False,
                 id="no-subprotocol"),
    pytest.param(partial(accepting, protocol=b"chat"), "unrecognized subprotocol chat", True,
                 id="other-subprotocol"),
    pytest.param(partial(accepting, protocol=b"\xff"), "does not answer as a WebSocket does", True,
                 id="bytes-as-subprotocol"),
    pytest.param(lambda _: b"HTTP/1.1 401 Unauthorized\r\n\r\n", "refuses /mqtt with 401", False,
                 id="unauthorised"),
    pytest.param(lambda _: b"HTTP/1.1 404 Not Found\r\n\r\n", "answers 404 to /mqtt", True,
                 id="no-such-path"),
    pytest.param(lambda _: b"HTTP/1.1 503 Busy\r\n\r\n", "answers 503 to /mqtt", True, id="busy"),
    pytest.param(lambda _: b"HTTP/1.1 100 Continue\r\n\r\n", "answers 100", True, id="interim"),
    pytest.param(lambda _: b"\x20\x02\x00\x05", "its port for WebSockets?", True, id="mqtt"),
    pytest.param(lambda _: b"HTTP/1.1 101 X\r\nA: " + b"a" * 99_999, "as a WebSocket does",
                 True, id="endless-head"),
    pytest.param(lambda _: b"", "no answer to the WebSocket handshake in time", True, id="silent"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "reason", "retryable"), HANDSHAKES)
def test_a_handshake_that_fails_is_an_error_with_its_cause(
    web: WebPeer, answer: Callable[[bytes], bytes], reason: str, retryable: bool
) -> None:
    web.answer = answer
    web.settings = replace(web.settings, connect_timeout=0.5)
    future = web._pool.submit(open_sink(web.settings).open)  # noqa: SLF001
    web.shake()

    error = future.exception(PATIENCE)

    assert isinstance(error, EndpointError)
    assert str(error).startswith(f"p: 127.0.0.1:{web.settings.port}: ")
    assert reason in str(error)
    assert error.retryable is retryable


BREAKS = [
    pytest.param(frame(TEXT, MESSAGE), "a WebSocket frame of text", 1003, id="text"),
    pytest.param(frame(BINARY, b"", 125 << 40), "", 0, id="size-of-a-terabyte"),
    pytest.param(frame(0x83, b""), "Invalid opcode", 1002, id="unknown-opcode"),
    pytest.param(frame(0xC2, MESSAGE), "Reserved bit", 1002, id="compressed"),
    pytest.param(frame(CONTINUED, MESSAGE), "unexpected CONTINUATION", 1002, id="no-beginning"),
    pytest.param(frame(PING & NOT_LAST, b""), "fragment control", 1002, id="fragment-of-a-ping"),
    pytest.param(frame(PING, b"x" * 200), "len > 125", 1002, id="long-ping"),
    pytest.param(bytes((BINARY, 0x81)) + b"keys" + b"x", "masked", 1002, id="masked"),
    pytest.param(frame(CLOSE, b"\x03"), "1 byte", 1002, id="half-a-close"),
]


@pytest.mark.parametrize(("data", "reason", "code"), BREAKS)
def test_a_server_that_breaks_the_protocol_loses_the_connection(
    web: WebPeer, data: bytes, reason: str, code: int
) -> None:
    source = listening(web)
    web.raw(data)
    if not code:  # a size alone is nothing to keep
        source.close()
        return

    error = lost(source)

    assert isinstance(error, NotConnectedError)
    assert reason in str(error)
    assert web.frame() == (CLOSE, code.to_bytes(2, "big"))


def test_a_frame_beyond_max_packet_in_ends_the_connection_and_is_never_kept(web: WebPeer) -> None:
    """It has many packets, so that only its own size is a fault."""
    web.settings = replace(web.settings, max_packet_in=LIMIT)
    source = listening(web)
    packet = b"\x30" + encode_length(60_003) + b"\x00\x01t" + bytes(60_000)
    tracemalloc.start()
    web.raw(frame(BINARY, b"", 1 << 40))
    future = web._pool.submit(_flood, web, packet, 2 * LIMIT // len(packet))  # noqa: SLF001
    error = lost(source)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert f"a WebSocket frame of more than {LIMIT} bytes; raise `max_packet_in`" in str(error)
    assert peak < 24_000_000  # some blocks of 2 MiB
    source.close()
    future.result(PATIENCE)


def test_a_packet_beyond_max_packet_in_ends_the_connection_before_it_came(web: WebPeer) -> None:
    web.settings = replace(web.settings, max_packet_in=LIMIT)
    source = listening(web)
    web.raw(frame(BINARY & NOT_LAST, b"\x90\xff\xff\xff\x7f\x00\x01t\x00"))

    assert "a packet of 268435460 bytes" in str(lost(source))


@pytest.mark.parametrize(
    "nothing",
    [
        pytest.param(frame(BINARY & NOT_LAST, b""), id="fragments-of-nothing"),
        pytest.param(frame(PING, b"again"), id="pings"),
        pytest.param(frame(PONG, b"never asked"), id="pongs"),
    ],
)
def test_a_flood_of_frames_without_packets_is_no_sign_of_life(web: WebPeer, nothing: bytes) -> None:
    web.settings = replace(web.settings, connect_timeout=0.5)
    sink = open_sink(web.settings)
    future = web.opening(sink)
    more = frame(CONTINUED & NOT_LAST, b"") if nothing[0] == 0x02 else nothing
    flood = web._pool.submit(_flood, web, nothing + 1_000 * more, 10_000)  # noqa: SLF001
    tracemalloc.start()

    error = future.exception(PATIENCE)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    web.hang_up()
    flood.result(PATIENCE)

    assert "no answer to the log-in in time" in str(error)
    assert peak < 16_000_000


def _flood(web: WebPeer, data: bytes, times: int) -> None:
    """Write until the endpoint hangs up."""
    try:
        for _ in range(times):
            web.raw(data)
    except OSError:
        return


def test_only_the_last_of_many_pings_is_answered_while_the_server_reads_nothing(
    web: WebPeer,
) -> None:
    source = listening(web)
    web.raw(b"".join(frame(PING, b"%d" % number) for number in range(1_000)))
    web.write(MESSAGE)
    receive(source)
    answers = 0
    while True:
        answers += 1
        first, payload = web.frame()
        assert first == PONG
        if payload == b"999":
            break

    assert answers < 100
    source.close()


def test_a_close_of_ours_tells_the_server(web: WebPeer) -> None:
    sink = connected(web)
    future = web._pool.submit(sink.close)  # noqa: SLF001
    assert web.read() == b"\xe0\x00"
    web.raw(frame(CLOSE, b"\x03\xe8"))
    future.result(PATIENCE)

    assert web.frame() == (CLOSE, b"\x03\xe8")


def test_large_messages_go_out_whole(web: WebPeer) -> None:
    sink = connected(web)
    for size in (1, 100, 200, 65_530, 70_000):
        sink.send([Message("t", b"x" * size, Headers())], lambda _: None)
        head = web.exactly(1)
        length = shift = 0
        while True:
            (byte,) = web.exactly(1)
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        body = web.exactly(length)
        assert head[0] >> 4 == 3
        assert body.endswith(b"x" * size)
        assert web.read() == b"\xc0\x00"  # the ping behind a message of QoS 0
        web.write(b"\xd0\x00")
    sink.close()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (WebSocketSettings(path="/a b"), "is no path"),
        (WebSocketSettings(path="mqtt"), "is no path"),
        (WebSocketSettings(path="/mqtt?token=secret#x"), "'/mqtt' is no path"),
        (WebSocketSettings(headers={"a b": "x"}), "'a b' is no name of a header"),
        (WebSocketSettings(headers={"Host": "x"}), "belongs to the handshake"),
        (WebSocketSettings(headers={"Sec-WebSocket-Key": "x"}), "belongs to the handshake"),
        (WebSocketSettings(headers={"a": "x\r\nb: y"}), "has a line break"),
    ],
)
def test_faults(settings: WebSocketSettings, reason: str) -> None:
    (fault,) = MqttSettings(websocket=settings).faults()

    assert reason in fault.reason
    assert "secret" not in fault.reason


def test_a_redelivered_message_is_acknowledged_in_a_frame(web: WebPeer) -> None:
    source = open_source(web.settings, [Subscription("t")])
    future = web.opening(source)
    web.write(WELCOME)
    grant(web)
    future.result(PATIENCE)
    web.write(b"\x32\x07\x00\x01t\x00\x07\x00a")
    receive(source).settle([ACCEPTED])

    assert web.read() == b"\x40\x02\x00\x07"
    source.close()
