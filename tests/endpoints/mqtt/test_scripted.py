"""Conversations that mosquitto does not have: the test scripts the broker's side."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import pytest

from gateway.endpoints.base import Batch, Sink, Source, Statement, Subscription
from gateway.endpoints.mqtt import open_sink, open_source
from gateway.endpoints.mqtt.receive_state import ReceiveState
from gateway.endpoints.mqtt.session import MqttSession
from gateway.endpoints.mqtt.sink import MqttSink
from gateway.endpoints.mqtt.source import MqttSource
from gateway.endpoints.settings.mqtt import MqttSettings, MqttTlsSettings
from gateway.errors import (
    EndpointError,
    NotConnectedError,
    SubscriptionRefusedError,
    TakenOverError,
)
from gateway.model.message import DroppedPayload
from gateway.model.outcome import ACCEPTED, RETRY
from gateway.wire.mqtt.packet_fields import encode_length
from tests.endpoints.exchange import QUIET, collect, receive, wait_for_loss
from tests.endpoints.mqtt.peer import (
    WELCOME,
    WELCOME_BACK,
    Peer,
    connected,
    listening,
    lost_after_qos_2,
    peer,
)
from tests.waiting import PATIENCE, until

__all__ = ["peer"]  # a fixture


@dataclass(frozen=True, slots=True)
class Waiting:
    """A source with an unsettled batch, while a thread waits for the next one."""

    source: Source
    batch: Batch
    next_batch: Future[Batch | None]


REFUSALS = [
    pytest.param("3.1.1", 1, False, "version 5", id="3.2.2.3-version"),
    pytest.param("3.1.1", 2, False, "client id", id="3.2.2.3-identifier"),
    pytest.param("3.1.1", 3, True, "not available", id="3.2.2.3-unavailable"),
    pytest.param("3.1.1", 4, False, "bad user name or password", id="3.2.2.3-bad-login"),
    pytest.param("3.1.1", 5, False, "not authorised", id="3.2.2.3-not-authorised"),
    pytest.param("5", 0x84, False, "version 3.1.1", id="3.2.2.2-version"),
    pytest.param("5", 0x86, False, "bad user name or password", id="3.2.2.2-bad-login"),
    pytest.param("5", 0x88, True, "0x88", id="3.2.2.2-unavailable"),
]


@pytest.mark.parametrize(("version", "code", "retryable", "text"), REFUSALS)
def test_a_refused_connection_says_why(
    peer: Peer, version: str, code: int, retryable: bool, text: str
) -> None:
    settings = MqttSettings(host="127.0.0.1", port=peer.settings.port, version=version)
    future = peer.opening(open_sink(settings))
    peer.write(bytes([0x20, 2, 0, code]) if version != "5" else bytes([0x20, 3, 0, code, 0]))

    with pytest.raises(EndpointError, match=text) as caught:
        future.result(PATIENCE)
    assert caught.value.retryable is retryable


def test_a_refused_subscription_is_named(peer: Peer) -> None:
    future = peer.opening(open_source(peer.settings, [Subscription("yes"), Subscription("no/#")]))
    peer.write(WELCOME)
    subscribe = peer.read()
    peer.write(b"\x90\x05" + subscribe[2:4] + b"\x00\x01\x87")

    with pytest.raises(SubscriptionRefusedError, match="'no/#'") as caught:
        future.result(PATIENCE)
    assert "yes" not in str(caught.value)
    assert not caught.value.retryable


DISCONNECTS = [
    pytest.param(0x8B, True, "Server shutting down", id="3.14.2.1-shutting-down"),
    pytest.param(0x8E, False, "client 'gateway-p'.* an id of its own", id="3.14.2.1-taken-over"),
]


@pytest.mark.parametrize(("code", "retryable", "text"), DISCONNECTS)
def test_a_session_that_the_broker_ends_says_why(
    peer: Peer, code: int, retryable: bool, text: str
) -> None:
    source = listening(peer)
    peer.write(bytes([0xE0, 2, code, 0]))

    with pytest.raises(EndpointError, match=text) as caught:
        receive(source)
    assert caught.value.retryable is retryable
    assert isinstance(caught.value, TakenOverError) is (code == 0x8E)


def test_a_takeover_is_seen_while_nothing_is_read(peer: Peer) -> None:
    """Otherwise the gap of a source with a slow target would be `away`, which loses nothing."""
    peer.settings = replace(peer.settings, receive_window_bytes=65_536)
    source = listening(peer)
    peer.write(b"\x32\xf6\xa2\x04\x00\x01t\x00\x07\x00" + bytes(70_000))
    batch = receive(source)
    peer.write(b"\xe0\x02\x8e\x00")
    peer.hang_up()
    assert isinstance(source, MqttSource)
    source.end_intake()  # a ping, which the end of the connection answers

    with pytest.raises(TakenOverError):
        receive(source)
    assert len(batch.messages) == 1
    source.close()


def test_a_sink_that_was_replaced_closes_without_its_last_state(peer: Peer) -> None:
    """Another client has its session, and tells a state of its own."""
    sink = connected(peer)
    assert isinstance(sink, MqttSink)
    sink.statement = Statement("state", b"up", b"down")
    sink.tell(connected=True)
    peer.read()
    peer.write(b"\xe0\x02\x8e\x00")
    peer.hang_up()
    until(partial(is_replaced, sink))

    sink.close()
    with pytest.raises(NotConnectedError, match="open it first"):
        sink.send((), lambda _: None)


def is_replaced(sink: Sink) -> bool:
    try:
        sink.send((), lambda _: None)
    except TakenOverError:
        return True
    return False


def close_each(server: socket.socket) -> None:
    """Accept and close connections until the server is shut down."""
    with suppress(OSError):
        while True:
            server.accept()[0].close()


def test_a_cut_in_the_tls_handshake_is_no_fault_of_the_settings_the_first_time() -> None:
    texts: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(close_each, server)
        port = server.getsockname()[1]
        settings = MqttSettings(host="127.0.0.1", port=port, tls=MqttTlsSettings(verify=False))
        sink = open_sink(settings)
        for _ in range(2):
            with pytest.raises(NotConnectedError) as caught:
                sink.open()
            texts.append(str(caught.value))
        server.shutdown(socket.SHUT_RDWR)

    first, second = texts
    assert "the connection ended during the TLS handshake" in first
    assert "does not speak TLS" not in first
    assert "does not speak TLS" in second


def test_a_hang_up_instead_of_an_answer_is_retryable(peer: Peer) -> None:
    future = peer.opening(open_sink(peer.settings))
    peer.hang_up()

    with pytest.raises(NotConnectedError):
        future.result(PATIENCE)


def test_acknowledgements_go_out_in_the_order_of_arrival(peer: Peer) -> None:
    source = listening(peer)
    peer.write(b"\x32\x06\x00\x01t\x00\x07\x00")
    first = receive(source)
    peer.write(b"\x34\x06\x00\x01t\x00\x08\x00")
    second = receive(source)
    second.settle([ACCEPTED])
    first.settle([RETRY])
    receive(source).settle([ACCEPTED])

    assert peer.read() == b"\x40\x02\x00\x07"
    assert peer.read() == b"\x50\x02\x00\x08"
    peer.write(b"\x62\x02\x00\x08")
    assert peer.read() == b"\x70\x02\x00\x08"
    peer.hang_up()
    source.close()


def test_a_qos_2_message_received_before_is_not_delivered_again(peer: Peer) -> None:
    source = lost_after_qos_2(peer)
    wait_for_loss(source)

    future = peer.opening(source)
    peer.write(WELCOME_BACK)
    peer.write(b"\x90\x04" + peer.read()[2:4] + b"\x00\x02")
    future.result(PATIENCE)
    peer.write(b"\x3c\x07\x00\x01t\x00\x08\x00a")
    assert peer.read() == b"\x50\x02\x00\x08"
    assert source.receive(QUIET) is None
    peer.write(b"\x62\x02\x00\x08")
    assert peer.read() == b"\x70\x02\x00\x08"
    peer.hang_up()
    source.close()


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param("²", id="superscript"),
        pytest.param("٣", id="digit-of-another-script"),
        pytest.param("+7", id="sign"),
        pytest.param("", id="empty"),
        pytest.param("9" * 19, id="more-than-a-row-holds"),
        pytest.param("9" * 100, id="long"),
    ],
)
def test_a_count_of_dropped_messages_is_ascii_digits_or_nothing(peer: Peer, payload: str) -> None:
    peer.settings = replace(peer.settings, dropped_topic="d")
    source = listening(peer, counts=b"\x00")
    for each in ("5", payload, "7"):
        text = each.encode()
        peer.write(bytes([0x30, 6 + len(text)]) + b"\x00\x01d\x02\x01\x01" + text)  # UTF-8
    peer.write(b"\x30\x05\x00\x01t\x00a")

    assert isinstance(source, MqttSource)
    assert receive(source).messages[0].payload == b"a"
    (loss,) = source.continuity.take_losses()
    assert (source.continuity.dropped, loss.messages) == (7, 2)
    source.close()


@pytest.mark.parametrize(("asked", "kept"), [(0, 3), (65_535, 3), (2, 2)])
def test_a_broker_shortens_the_keep_alive_and_does_not_switch_it_off(
    peer: Peer, asked: int, kept: int
) -> None:
    session = MqttSession(replace(peer.settings, keepalive=3), "c", clean=True, label="l")
    session.log_in()

    assert session.receive(b"\x20\x06\x00\x00\x03\x13" + asked.to_bytes(2, "big")) is None
    assert session.keepalive == kept


@pytest.mark.nightly
def test_answers_to_a_broker_that_does_not_read_are_bounded_and_end_the_connection(
    peer: Peer,
) -> None:
    peer.settings = replace(peer.settings, keepalive=1)
    source = listening(peer)
    flood = b"\x62\x02\x00\x01" * 65_536  # each PUBREL has a PUBCOMP of its size as its answer

    def is_over() -> bool:
        peer.write(flood)
        return False

    with pytest.raises(OSError, match=r"reset|Broken pipe"):
        until(is_over)

    def is_lost() -> bool:
        source.receive(1.0)
        return False

    with pytest.raises(NotConnectedError, match="the broker reads nothing for 1 s"):
        until(is_lost)
    source.close()


def test_a_message_over_the_limit_is_acknowledged_once_it_is_settled(peer: Peer) -> None:
    peer.settings = replace(peer.settings, max_packet_in=4_194_304)
    source = listening(peer)
    peer.write(b"\x32" + encode_length(4_194_300) + b"\0\1t\0\7\0" + bytes(4_194_294))
    batch = receive(source)
    (message,) = batch.messages
    batch.settle([ACCEPTED])

    assert isinstance(message.payload, DroppedPayload)
    assert message.payload.full == 4_194_294
    assert peer.read() == b"\x40\2\0\7"
    source.close()


def test_a_topic_outside_utf_8_stops_no_other_message(peer: Peer) -> None:
    """A broker such as nats-server passes it on, and sends it again after a lost connection."""
    source = listening(peer)
    first, wrong, last = (
        bytes([0x32, 7, 0, 1]) + topic + bytes([0, at, 0]) + b"x"
        for at, topic in enumerate((b"t", b"\xff", b"t"), 1)
    )
    peer.write(first + wrong + last)

    assert [each.address for each in collect(source, 3)] == ["t", "\udcff", "t"]
    source.close()


def test_received_messages_of_qos_0_survive_the_loss(peer: Peer) -> None:
    source = listening(peer)
    peer.write(b"\x30\x05\x00\x01t\x00a" + b"\x32\x07\x00\x01t\x00\x07\x00b")
    peer.hang_up()

    assert b"a" in [m.payload for m in wait_for_loss(source)]
    source.close()


@pytest.fixture
def waiting(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Waiting]:
    """A receiver that leads the connection, or is about to."""
    looks: list[int] = []
    wants_more = ReceiveState.wants_more

    def asked(state: ReceiveState) -> bool:
        looks.append(threading.get_ident())
        return wants_more(state)

    monkeypatch.setattr(ReceiveState, "wants_more", asked)
    source = listening(peer)
    peer.write(b"\x32\x06\x00\x01t\x00\x07\x00")
    batch = receive(source)
    with ThreadPoolExecutor(1) as pool:
        ident = pool.submit(threading.get_ident).result(PATIENCE)
        future_batch = pool.submit(source.receive, 60.0)
        until(lambda: ident in looks)
        yield Waiting(source, batch, future_batch)
        source.close()


def test_a_leading_receiver_gets_a_retried_message(waiting: Waiting) -> None:
    waiting.batch.settle([RETRY])

    again = waiting.next_batch.result(PATIENCE)
    assert again is not None
    assert [m.headers.redelivered for m in again.messages] == [True]


def test_a_leading_receiver_is_woken_by_a_close(waiting: Waiting) -> None:
    waiting.source.close()

    with pytest.raises(NotConnectedError, match="closed"):
        waiting.next_batch.result(PATIENCE)


def test_a_leading_receiver_is_woken_when_the_broker_hangs_up(waiting: Waiting, peer: Peer) -> None:
    peer.hang_up()

    with pytest.raises(NotConnectedError):
        waiting.next_batch.result(PATIENCE)
