"""The count of dropped messages is asked for by default, at no cost where a broker has none."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace

import pytest

from gateway.endpoints.base import Source, Subscription
from gateway.endpoints.mqtt import connection, open_source
from gateway.endpoints.mqtt.source import MqttSource
from gateway.endpoints.settings.mqtt import MqttSettings
from tests.endpoints.exchange import QUIET, collect, receive, wait_for_loss
from tests.endpoints.mqtt.peer import WELCOME, WELCOME_3, WELCOME_BACK, Peer, grant, peer
from tests.waiting import PATIENCE

__all__ = ["peer"]  # a fixture

COUNTS = MqttSettings().dropped_topic.encode()
WELCOME_BACK_3 = b"\x20\x02\x01\x00"
REFUSED = b"\x87"
NOT_AUTHORISED = b"\xe0\x02\x87\x00"  # a DISCONNECT, which is permanent elsewhere


@pytest.fixture
def source(peer: Peer) -> Iterator[Source]:
    settings = replace(peer.settings, dropped_topic=COUNTS.decode())
    source = open_source(settings, [Subscription("t")])
    yield source
    source.close()


def opening(peer: Peer, source: Source, welcome: bytes = WELCOME_BACK) -> Future[None]:
    """Let the source connect, and grant its route's subscription."""
    future = peer.opening(source)
    peer.write(welcome)
    assert COUNTS not in grant(peer)
    return future


def welcomed_again(peer: Peer) -> None:
    """Take the connection that follows at once, and grant its route's subscription."""
    peer.accept()
    peer.write(WELCOME_BACK)
    grant(peer)


def asked(peer: Peer) -> bool:
    """Whether the source subscribes to the count over its open connection."""
    peer.write(b"\x30\x05\x00\x01t\x00a")
    return peer.has_bytes() and COUNTS in peer.read()


@pytest.mark.parametrize("farewell", [b"", NOT_AUTHORISED], ids=["hang-up", "disconnect"])
def test_a_broker_that_ends_the_connection_is_not_asked_over_the_next_one(
    peer: Peer, source: Source, farewell: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    future = opening(peer, source, WELCOME)
    assert COUNTS in peer.read()
    peer.write(farewell)
    peer.hang_up()
    welcomed_again(peer)

    future.result(PATIENCE)
    assert not asked(peer)
    assert receive(source).messages[0].payload == b"a"
    assert 'set `dropped_topic: ""`' in caplog.text


RETAINED = [  # CONNACKs, SUBACK and retained message; whether it comes with the next SUBSCRIBE too
    pytest.param(
        "5", (WELCOME, WELCOME_BACK), b"\x90\x04\x00\x01\x00\x01", b"\x31\x05\x00\x01t\x00a", 1,
        id="5",
    ),
    pytest.param(
        "3.1.1", (WELCOME_3, WELCOME_BACK_3), b"\x90\x03\x00\x01\x01", b"\x31\x04\x00\x01ta", 2,
        id="3.1.1",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("version", "welcomes", "suback", "retained", "times"), RETAINED)
def test_a_retained_message_over_a_connection_that_ends_at_the_request_is_delivered(
    peer: Peer, version: str, welcomes: tuple[bytes, bytes], suback: bytes, retained: bytes,
    times: int,
) -> None:  # fmt: skip
    """At QoS 0: the broker sends it no more (5.0), or the source knows it (3.1.1)."""
    peer.settings = replace(
        peer.settings, dropped_topic=COUNTS.decode(), version=version, client_id=f"r{version}"
    )
    source = open_source(peer.settings, [Subscription("t")])
    future = peer.opening(source)
    peer.write(welcomes[0])
    peer.read()
    peer.write(suback + retained)
    assert COUNTS in peer.read()
    peer.hang_up()
    peer.accept()
    peer.write(welcomes[1])
    peer.read()
    peer.write(suback + retained * (times - 1))

    future.result(PATIENCE)
    assert [each.payload for each in receive(source).messages] == [b"a"]
    assert source.receive(QUIET) is None
    source.close()


def test_a_broker_that_ends_two_connections_is_never_asked_again(
    peer: Peer, source: Source
) -> None:
    for _ in range(2):
        future = opening(peer, source)
        assert COUNTS in peer.read()
        peer.hang_up()
        welcomed_again(peer)
        future.result(PATIENCE)
        peer.hang_up()
        wait_for_loss(source)

    opening(peer, source).result(PATIENCE)
    assert not asked(peer)


def test_a_cut_at_the_request_is_forgotten_when_the_broker_answers_the_next_one(
    peer: Peer, source: Source
) -> None:
    for _ in range(3):
        future = opening(peer, source)
        assert COUNTS in peer.read()
        peer.hang_up()
        welcomed_again(peer)
        future.result(PATIENCE)
        peer.hang_up()
        wait_for_loss(source)

        future = opening(peer, source)
        grant(peer, b"\x00")
        future.result(PATIENCE)
        peer.hang_up()
        wait_for_loss(source)


def test_a_broker_that_refuses_is_not_asked_again(
    peer: Peer, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    future = opening(peer, source, WELCOME)
    grant(peer, REFUSED)
    future.result(PATIENCE)
    assert "the broker refuses `dropped_topic`" in caplog.text
    peer.hang_up()
    wait_for_loss(source)

    opening(peer, source).result(PATIENCE)
    assert not asked(peer)


def test_a_broker_that_does_not_answer_delays_the_source_and_does_not_stop_it(
    peer: Peer, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "COUNT_TIMEOUT", 0.01)
    opening(peer, source, WELCOME).result(PATIENCE)
    assert COUNTS in peer.read()
    peer.write(b"\x30\x05\x00\x01t\x00a")

    assert receive(source).messages[0].payload == b"a"


def test_a_connection_that_is_closed_twice_ended_once_at_the_request(
    peer: Peer, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two such ends would be for good."""
    monkeypatch.setattr(connection, "COUNT_TIMEOUT", 0.01)
    opening(peer, source, WELCOME).result(PATIENCE)
    assert COUNTS in peer.read()
    peer.hang_up()
    wait_for_loss(source)
    source._intake.close()  # type: ignore[attr-defined]  # noqa: SLF001  # as another thread may
    opening(peer, source).result(PATIENCE)  # without the request
    peer.hang_up()
    wait_for_loss(source)

    opening(peer, source).result(PATIENCE)
    assert asked(peer)


@pytest.mark.parametrize("pattern", ["$SYS/#", COUNTS.decode()])
def test_a_route_that_selects_the_counts_brings_them(peer: Peer, pattern: str) -> None:
    settings = replace(peer.settings, dropped_topic=COUNTS.decode())
    source = open_source(settings, [Subscription(pattern)])
    future = peer.opening(source)
    peer.write(WELCOME)
    grant(peer)
    future.result(PATIENCE)
    for count in b"47":
        peer.write(bytes([0x30, len(COUNTS) + 4, 0, len(COUNTS)]) + COUNTS + bytes([0, count]))

    assert isinstance(source, MqttSource)
    assert [each.payload for each in collect(source, 2)] == [b"4", b"7"]
    assert [loss.messages for loss in source.continuity.take_losses()] == [3]
    source.close()
