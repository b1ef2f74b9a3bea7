"""A broker's answer settles its message; without one, the message is sent again."""

from __future__ import annotations

import pytest

from gateway.endpoints.mqtt import open_sink
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, RETRY, Outcome
from tests.endpoints.exchange import Answer
from tests.endpoints.mqtt.peer import ONCE, WELCOME, Peer, connected, peer
from tests.waiting import PATIENCE

__all__ = ["peer"]  # a fixture

EXACTLY = Headers(mode=DeliveryMode.EXACTLY_ONCE)
PUBACKS = [
    pytest.param(b"\x40\x02\x00\x01", Outcome.ACCEPTED, "", id="short-form"),
    pytest.param(b"\x40\x03\x00\x01\x10", Outcome.ACCEPTED, "", id="no-subscriber"),
    pytest.param(b"\x40\x04\x00\x01\x87\x00", Outcome.REJECTED, "not-authorised", id="forbidden"),
    pytest.param(b"\x40\x04\x00\x01\x90\x00", Outcome.REJECTED, "topic-invalid", id="topic"),
    pytest.param(b"\x40\x04\x00\x01\x95\x00", Outcome.REJECTED, "packet-size", id="too-large"),
    pytest.param(b"\x40\x04\x00\x01\x99\x00", Outcome.REJECTED, "payload-format", id="format"),
    pytest.param(b"\x40\x04\x00\x01\x9a\x00", Outcome.REJECTED, "retain", id="retain"),
    pytest.param(b"\x40\x04\x00\x01\x9b\x00", Outcome.REJECTED, "qos", id="qos"),
    pytest.param(b"\x50\x04\x00\x01\x95\x00", Outcome.REJECTED, "packet-size", id="pubrec"),
    pytest.param(b"\x40\x04\x00\x01\x80\x00", Outcome.RETRY, "", id="unspecified"),
    pytest.param(b"\x40\x04\x00\x01\x83\x00", Outcome.RETRY, "", id="implementation"),
    pytest.param(b"\x40\x04\x00\x01\x91\x00", Outcome.RETRY, "", id="id-in-use"),
    pytest.param(b"\x40\x04\x00\x01\x97\x00", Outcome.RETRY, "no-room", id="quota"),
]


def test_an_unforeseen_error_of_a_message_concerns_that_message_alone(peer: Peer) -> None:
    sink = open_sink(peer.settings)
    future = peer.opening(sink)
    peer.write(WELCOME)
    future.result(PATIENCE)
    answer = Answer()
    wrong = Message(7, b"")  # type: ignore[arg-type]  # no text
    sink.send([wrong, Message("t", b"", ONCE)], answer)
    assert peer.read()[0] == 0x32
    peer.write(b"\x40\x02\x00\x01")
    settlements = answer.wait()
    peer.hang_up()
    sink.close()

    assert [each.rule for each in settlements] == ["unwritable", ""]
    assert settlements[1] == ACCEPTED


@pytest.mark.parametrize(("reply", "outcome", "rule"), PUBACKS)
def test_the_reason_of_a_puback_decides(
    peer: Peer, reply: bytes, outcome: Outcome, rule: str
) -> None:
    sink = open_sink(peer.settings)
    future = peer.opening(sink)
    peer.write(WELCOME)
    future.result(PATIENCE)
    answer = Answer()
    sink.send([Message("t", b"", ONCE)], answer)
    assert peer.read()[0] == 0x32
    peer.write(reply)
    (settlement,) = answer.wait()
    peer.hang_up()
    sink.close()

    assert (settlement.outcome, settlement.rule) == (outcome, rule)


def test_a_qos_2_message_is_accepted_with_its_pubcomp(peer: Peer) -> None:
    sink = open_sink(peer.settings)
    future = peer.opening(sink)
    peer.write(WELCOME)
    future.result(PATIENCE)
    answer = Answer()
    sink.send([Message("t", b"", EXACTLY), Message("u", b"", EXACTLY)], answer)
    peer.read()
    peer.read()
    peer.write(b"\x50\x02\x00\x01" + b"\x50\x04\x00\x02\x87\x00")
    assert peer.read() == b"\x62\x02\x00\x01"
    assert not answer.has_come
    peer.write(b"\x70\x02\x00\x01")
    first, second = answer.wait()
    peer.hang_up()
    sink.close()

    assert first == ACCEPTED
    assert second.rule == "not-authorised"


PING, PONG = b"\xc0\x00", b"\xd0\x00"


def test_qos_0_is_not_delivered_to_a_broker_that_closes_for_a_name(peer: Peer) -> None:
    sink, answer = connected(peer), Answer()
    sink.send([Message("good", b""), Message("b.ad", b"")], answer)
    assert b"good" in peer.read()
    assert b"b.ad" in peer.read()
    peer.hang_up()
    settlements = answer.wait()
    sink.close()

    assert settlements == [RETRY, RETRY]


def test_qos_0_is_delivered_when_the_broker_answers_a_ping_after_it(peer: Peer) -> None:
    sink, first, second, third = connected(peer), Answer(), Answer(), Answer()
    sink.send([Message("a", b"")], first)
    sink.send([Message("b", b"")], second)
    packets = [peer.read() for _ in range(3)]
    assert [each[:1] for each in packets] == [b"\x30", PING[:1], b"\x30"]  # one ping in flight
    peer.write(PONG)
    assert first.wait() == [ACCEPTED]
    assert peer.read() == PING
    assert not second.has_come
    peer.write(PONG)
    assert second.wait() == [ACCEPTED]
    sink.send([], Answer())  # as an idle lane does
    sink.send([Message("c", b""), Message("d", b"", ONCE)], third)
    assert [peer.read()[0] for _ in range(3)] == [0x30, 0x32, 0xC0]
    peer.write(PONG)
    peer.hang_up()
    settlements = third.wait()
    sink.close()

    assert settlements == [ACCEPTED, RETRY]


def test_only_the_answer_to_its_own_ping_confirms_qos_0(peer: Peer) -> None:
    sink, answer = connected(peer), Answer()
    connection = sink._state.connection  # type: ignore[attr-defined]  # noqa: SLF001  # its own ping
    connection.ping()
    sink.send([Message("a", b"")], answer)
    assert [peer.read()[0] for _ in range(2)] == [0xC0, 0x30]
    peer.write(PONG)
    assert peer.read() == PING
    assert not answer.has_come
    peer.hang_up()
    settlements = answer.wait()
    sink.close()

    assert settlements == [RETRY]


def test_messages_without_an_answer_are_retried_when_the_connection_ends(peer: Peer) -> None:
    sink = open_sink(peer.settings)
    future = peer.opening(sink)
    peer.write(WELCOME)
    future.result(PATIENCE)
    answer = Answer()
    sink.send([Message("t", b"", ONCE), Message("u", b"", ONCE)], answer)
    peer.read()
    peer.read()
    peer.write(b"\x40\x02\x00\x01")
    peer.hang_up()

    assert answer.wait() == [ACCEPTED, RETRY]
    sink.close()
