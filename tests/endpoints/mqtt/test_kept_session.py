"""A session that the broker keeps: its backlog, its subscriptions and its packet ids."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace

import pytest

from gateway.endpoints.base import Source, Subscription
from gateway.endpoints.continuity import ReportsContinuity, Retention
from gateway.endpoints.mqtt import open_source
from gateway.endpoints.mqtt.kept_session import KeptSession
from gateway.endpoints.mqtt.receive_state import ReceiveState
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import EndpointError, NotConnectedError
from gateway.model.message import Message
from gateway.wire.mqtt.packets import PacketDecoder
from tests.endpoints.exchange import QUIET, collect, hold, wait_for_loss
from tests.endpoints.mqtt.peer import (
    WELCOME,
    WELCOME_3,
    WELCOME_BACK,
    Peer,
    listening,
    lost_after_qos_2,
    peer,
)
from tests.waiting import PATIENCE

__all__ = ["peer"]  # a fixture

WELCOME_BACK_3 = b"\x20\x02\x01\x00"
LARGE_PUBLISH = b"\x32\xc6\xb8\x02\x00\x01t\x00\x01\x00" + bytes(40_000)  # 5.0


def granted(subscribe: bytes, *reasons: int) -> bytes:
    """Return a SUBACK of 5.0."""
    return bytes([0x90, 3 + len(reasons)]) + subscribe[2:4] + b"\0" + bytes(reasons)


def reopened(peer: Peer, source: Source) -> tuple[Future[None], bytes]:
    """Open the source again with a kept session; return its open and its SUBSCRIBE."""
    future = peer.opening(source)
    peer.write(WELCOME_BACK)
    return future, peer.read()


def small_window(peer: Peer) -> MqttSettings:
    return replace(peer.settings, receive_window_bytes=65_536)


def test_a_message_of_qos_0_tells_that_the_broker_keeps_none(peer: Peer) -> None:
    source = listening(peer)
    assert isinstance(source, ReportsContinuity)
    before = source.continuity.retention
    peer.write(b"\x30\x05\x00\x01t\x00a")
    collect(source, 1)

    assert (before, source.continuity.retention) == (Retention.NEW, Retention.NOTHING)
    source.close()


def test_a_backlog_beyond_the_window_is_delivered_before_the_suback(peer: Peer) -> None:
    source = open_source(small_window(peer), [Subscription("t")])
    future, subscribe = reopened(peer, source)
    peer.write(LARGE_PUBLISH * 4)

    future.result(PATIENCE)
    assert len(collect(source, 4)) == 4
    peer.write(granted(subscribe, 2) + LARGE_PUBLISH)
    assert len(collect(source, 1)) == 1
    peer.hang_up()
    source.close()


def test_a_slow_backlog_is_delivered_when_the_time_for_connecting_is_over(peer: Peer) -> None:
    source = open_source(replace(peer.settings, connect_timeout=0.3), [Subscription("t")])
    future, subscribe = reopened(peer, source)
    peer.write(b"\x32\x06\x00\x01t\x00\x07\x00")

    future.result(PATIENCE)
    collect(source, 1)
    peer.write(granted(subscribe, 2))
    assert peer.read() == b"\x40\x02\x00\x07"
    assert source.receive(2 * QUIET) is None
    peer.hang_up()
    source.close()


def test_a_subscription_that_is_refused_behind_a_backlog_is_named(peer: Peer) -> None:
    source = open_source(small_window(peer), [Subscription("t"), Subscription("no/#")])
    future, subscribe = reopened(peer, source)
    peer.write(LARGE_PUBLISH * 2)
    future.result(PATIENCE)
    peer.write(granted(subscribe, 2, 0x87))

    with pytest.raises(EndpointError, match="'no/#'") as caught:
        collect(source, 100)
    assert not caught.value.retryable
    source.close()


def test_a_suback_that_does_not_follow_a_backlog_is_missed(peer: Peer) -> None:
    settings = replace(small_window(peer), connect_timeout=0.3)
    source = open_source(settings, [Subscription("t")])
    future, _ = reopened(peer, source)
    peer.write(LARGE_PUBLISH * 2)
    future.result(PATIENCE)
    hold(source, 2)  # reading is paused
    assert source.receive(3 * QUIET) is None
    source.close()

    future, _ = reopened(peer, source)
    peer.write(LARGE_PUBLISH * 2)
    future.result(PATIENCE)
    collect(source, 2)
    wait_for_loss(source)
    with pytest.raises(NotConnectedError, match="no answer to the subscriptions"):
        source.receive(0)
    source.close()


def test_a_kept_session_is_subscribed_again(peer: Peer) -> None:
    source = listening(peer)
    peer.hang_up()
    wait_for_loss(source)

    future, subscribe = reopened(peer, source)

    assert subscribe[0] == 0x82
    assert subscribe[5:] == b"\x00\x01t\x1a"  # retained messages only for a new subscription
    peer.write(granted(subscribe, 2))
    future.result(PATIENCE)
    peer.hang_up()
    source.close()


def version_3(peer: Peer, welcome: bytes, source: Source, *filters: str) -> None:
    """Open a source of 3.1.1 and grant its subscriptions."""
    future = peer.opening(source)
    peer.write(welcome)
    subscribe = peer.read()
    assert subscribe[0] == 0x82
    peer.write(bytes([0x90, 2 + len(filters)]) + subscribe[2:4] + bytes([1] * len(filters)))
    future.result(PATIENCE)


def test_retained_messages_of_a_repeated_subscription_are_dropped_in_version_3(peer: Peer) -> None:
    settings = replace(peer.settings, version="3.1.1")
    source = open_source(settings, [Subscription("t")])
    version_3(peer, WELCOME_3, source, "t")
    peer.write(b"\x33\x06\x00\x01t\x00\x011")
    collect(source, 1)
    assert peer.read() == b"\x40\x02\x00\x01"
    peer.hang_up()
    wait_for_loss(source)

    version_3(peer, WELCOME_BACK_3, source, "t")
    peer.write(b"\x33\x06\x00\x01t\x00\x021")  # the same again
    assert peer.read() == b"\x40\x02\x00\x02"
    peer.write(b"\x3b\x06\x00\x01t\x00\x031")  # a redelivery
    peer.write(b"\x33\x06\x00\x01t\x00\x042")  # another one
    assert [m.payload for m in collect(source, 2)] == [b"1", b"2"]
    peer.hang_up()
    source.close()

    wider = open_source(settings, [Subscription("t"), Subscription("+")])
    version_3(peer, WELCOME_BACK_3, wider, "t", "+")
    peer.write(b"\x33\x06\x00\x01t\x00\x052")  # "+" is a new subscription
    assert [m.payload for m in collect(wider, 1)] == [b"2"]
    peer.hang_up()
    wider.close()


def test_an_unsettled_retained_message_is_not_taken_for_one_received_before(peer: Peer) -> None:
    source = open_source(replace(peer.settings, version="3.1.1"), [Subscription("t")])
    version_3(peer, WELCOME_3, source, "t")
    peer.write(b"\x33\x06\x00\x01t\x00\x011")
    hold(source, 1)
    peer.hang_up()
    wait_for_loss(source)

    version_3(peer, WELCOME_BACK_3, source, "t")
    peer.write(b"\x33\x06\x00\x01t\x00\x011")  # without DUP: from an older database
    assert [m.payload for m in collect(source, 1)] == [b"1"]
    peer.hang_up()
    source.close()


def test_a_filter_that_a_reload_removes_is_unsubscribed(peer: Peer) -> None:
    source = listening(peer)
    peer.hang_up()
    source.close()

    narrower = open_source(peer.settings, [Subscription("u")])
    future, subscribe = reopened(peer, narrower)
    unsubscribe = peer.read()
    assert unsubscribe[0] == 0xA2
    assert unsubscribe[4:] == b"\x00\x00\x01t"
    peer.write(granted(subscribe, 2))
    future.result(PATIENCE)
    peer.hang_up()
    wait_for_loss(narrower)

    future, subscribe = reopened(peer, narrower)
    unsubscribe = peer.read()
    assert unsubscribe[0] == 0xA2  # it had no answer
    peer.write(granted(subscribe, 2) + b"\xb0\x04" + unsubscribe[2:4] + b"\x00\x00")
    future.result(PATIENCE)
    peer.write(b"\x30\x05\x00\x01u\x00a")
    collect(narrower, 1)
    peer.hang_up()
    wait_for_loss(narrower)

    future, subscribe = reopened(peer, narrower)
    peer.write(granted(subscribe, 2) + b"\x32\x06\x00\x01u\x00\x07\x00")
    future.result(PATIENCE)
    collect(narrower, 1)
    assert peer.read() == b"\x40\x02\x00\x07"  # and no UNSUBSCRIBE
    peer.hang_up()
    narrower.close()


def test_a_packet_id_that_the_broker_uses_again_is_no_repeat(peer: Peer) -> None:
    source = lost_after_qos_2(peer)
    wait_for_loss(source)

    future, subscribe = reopened(peer, source)
    peer.write(granted(subscribe, 2) + b"\x34\x07\x00\x01t\x00\x08\x00b")
    future.result(PATIENCE)

    assert [m.payload for m in collect(source, 1)] == [b"b"]
    peer.hang_up()
    source.close()


def test_a_repeated_message_with_an_abandoned_packet_id_is_new(peer: Peer) -> None:
    """The broker restarted with an older copy, used the id again, and also lost that connection."""
    source = lost_after_qos_2(peer)
    wait_for_loss(source)

    future, subscribe = reopened(peer, source)
    peer.write(granted(subscribe, 2) + b"\x3c\x07\x00\x01t\x00\x08\x00b")
    future.result(PATIENCE)

    assert [m.payload for m in collect(source, 1)] == [b"b"]
    assert peer.read() == b"\x50\x02\x00\x08"
    peer.hang_up()
    source.close()


def test_packet_ids_that_are_not_repeated_first_are_forgotten(peer: Peer) -> None:
    source = listening(peer)
    peer.write(b"\x34\x07\x00\x01t\x00\x07\x00a" + b"\x34\x07\x00\x01t\x00\x08\x00b")
    collect(source, 2)
    assert peer.exactly(8) == b"\x50\x02\x00\x07\x50\x02\x00\x08"
    peer.hang_up()
    wait_for_loss(source)

    future, subscribe = reopened(peer, source)
    peer.write(granted(subscribe, 2) + b"\x3c\x07\x00\x01t\x00\x07\x00a")  # repeated
    future.result(PATIENCE)
    assert peer.read() == b"\x50\x02\x00\x07"
    peer.write(b"\x34\x07\x00\x01t\x00\x09\x00c")  # a new one: 8 is abandoned
    assert [m.payload for m in collect(source, 1)] == [b"c"]
    peer.hang_up()
    wait_for_loss(source)

    future, subscribe = reopened(peer, source)
    repeats = b"\x3c\x07\x00\x01t\x00\x07\x00a\x3c\x07\x00\x01t\x00\x09\x00c"
    peer.write(granted(subscribe, 2) + repeats + b"\x3c\x07\x00\x01t\x00\x08\x00d")
    future.result(PATIENCE)
    assert [m.payload for m in collect(source, 1)] == [b"d"]
    assert source.receive(QUIET) is None
    peer.hang_up()
    source.close()


def test_a_message_settled_before_a_reload_is_not_delivered_after_it(peer: Peer) -> None:
    lost_after_qos_2(peer).close()

    reloaded = open_source(peer.settings, [Subscription("t"), Subscription("u")])
    future, subscribe = reopened(peer, reloaded)
    peer.write(granted(subscribe, 2, 2) + b"\x3c\x07\x00\x01t\x00\x08\x00a")
    future.result(PATIENCE)

    assert peer.read() == b"\x50\x02\x00\x08"
    assert reloaded.receive(QUIET) is None
    peer.hang_up()
    reloaded.close()


def test_a_lost_session_forgets_everything(peer: Peer) -> None:
    lost_after_qos_2(peer).close()

    narrower = open_source(peer.settings, [Subscription("u")])
    future = peer.opening(narrower)
    peer.write(WELCOME)
    subscribe = peer.read()
    peer.write(granted(subscribe, 2) + b"\x3c\x07\x00\x01u\x00\x08\x00b")
    future.result(PATIENCE)

    assert [m.payload for m in collect(narrower, 1)] == [b"b"]
    assert peer.read() == b"\x50\x02\x00\x08"  # and no UNSUBSCRIBE
    peer.hang_up()
    narrower.close()


def test_a_retained_message_that_is_marked_already_is_compared_with_no_filter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[Message] = []

    def may_be_sent_again(_session: KeptSession, message: Message) -> bool:
        compared.append(message)
        return True

    monkeypatch.setattr(KeptSession, "may_be_sent_again", may_be_sent_again)
    settings = MqttSettings(version="3.1.1", session_expiry=60)
    state = ReceiveState(settings, [Subscription("t")], KeptSession())
    body = b"\x06\x00\x01t\x00\x01x"
    packets = PacketDecoder("3.1.1", lambda: 0).feed(b"\x3b" + body + b"\x33" + body)

    state.packets_received(packets)

    assert [message.headers.redelivered for message in compared] == [False]
    assert [message.headers.redelivered for message in state.queue.unsettled()] == [True, True]
