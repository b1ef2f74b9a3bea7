"""Log-in, direct messages and hostile clients of the small Solace broker."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

import pytest

from gateway.errors import EndpointError
from gateway.trial.brokers.smf import BrokerOptions
from gateway.wire.smf.frames import DISCARDED, Protocol, encode_frame
from gateway.wire.smf.relayed_message import read_topic
from gateway.wire.smf.responses import OK, SmfResponse
from gateway.wire.smf.subscriptions import SubscriptionChange
from tests.brokers.controlled_smf import SmfBroker
from tests.brokers.smf_client import SmfClient, direct, login
from tests.trial.brokers.smf_clients import broker, client

__all__ = ["broker", "client"]  # fixtures

REFUSED = [
    pytest.param("n", "u", "wrong", "default", SmfResponse(401, "Unauthorized"), id="password"),
    pytest.param("n", "who", "p", "default", SmfResponse(401, "Unauthorized"), id="user"),
    pytest.param("n", "u", "p", "x", SmfResponse(403, "Message VPN Not Allowed"), id="vpn"),
    pytest.param(
        "", "u", "p", "default", SmfResponse(400, "Client Name Parse Error"), id="no-name"
    ),
    pytest.param(
        "c1", "u", "p", "default", SmfResponse(403, "Client Name Already In Use"), id="name-in-use"
    ),
]


@pytest.mark.parametrize(("name", "user", "password", "vpn", "refusal"), REFUSED)
def test_a_refused_login_is_answered_with_the_reason_and_disconnected(  # a table's columns
    broker: SmfBroker,
    client: SmfClient,
    name: str,
    user: str,
    password: str,
    vpn: str,
    refusal: SmfResponse,
) -> None:
    with SmfClient(broker.port) as other:
        assert other.log_in(name, user, password, vpn) == refusal
        assert other.read() is None
    assert client.is_alive()


def test_a_client_name_is_free_after_its_client_disconnects(broker: SmfBroker) -> None:
    with SmfClient(broker.port, "again"):
        pass
    with SmfClient(broker.port) as second:
        assert second.log_in("again") == OK


def test_no_message_is_answered_before_the_login(broker: SmfBroker) -> None:
    with SmfClient(broker.port) as client:
        client.send(direct("a"))
        assert client.read() is None


def test_a_connection_that_never_logs_in_is_closed() -> None:
    options = BrokerOptions(login_timeout=0.05)
    with SmfBroker(options=options) as broker, SmfClient(broker.port) as client:
        assert client.read() is None


def test_direct_messages_are_relayed_unchanged(broker: SmfBroker, client: SmfClient) -> None:
    frames = [direct("a/b", bytes(range(256))), direct("a/c/d")]
    assert client.subscribe("a/>") == OK
    with SmfClient(broker.port, "tx") as sender:
        sender.send(direct("b") + b"".join(frames))

    assert [client.read(), client.read()] == frames


def test_a_client_gets_one_copy_however_many_subscriptions_match(
    broker: SmfBroker, client: SmfClient
) -> None:
    for pattern in ("a/>", "a/*", "a/b"):
        client.subscribe(pattern)
    with SmfClient(broker.port, "tx") as sender:
        sender.send(direct("a/b") + direct("a/end"))

    assert [read_topic(client.read() or b"") for _ in range(2)] == [b"a/b", b"a/end"]


def test_members_of_a_shared_subscription_receive_in_turn(broker: SmfBroker) -> None:
    with SmfClient(broker.port, "m1") as first, SmfClient(broker.port, "m2") as second:
        for member in (first, second):
            assert member.subscribe("#share/g/a/>") == OK
        with SmfClient(broker.port, "tx") as sender:
            sender.send(b"".join(direct(f"a/{i}") for i in range(4)))
        topics = {read_topic(member.read() or b"") for member in (first, second, first, second)}

    assert topics == {b"a/0", b"a/1", b"a/2", b"a/3"}


def test_subscriptions_are_confirmed_or_refused(client: SmfClient) -> None:
    assert client.subscribe("a/b") == OK
    assert client.subscribe("a/b") == SmfResponse(400, "Subscription Already Exists")
    assert client.subscribe("a/b", SubscriptionChange.REMOVE) == OK
    assert client.subscribe("a/b", SubscriptionChange.REMOVE) == SmfResponse(
        400, "Subscription Not Found"
    )
    assert client.subscribe("a//b") == SmfResponse(400, "Subscription Parse Error")
    assert client.subscribe("#share//a") == SmfResponse(400, "Subscription Parse Error")
    assert client.subscribe("x", SubscriptionChange.ADD_TO_QUEUE, "no") == SmfResponse(
        503, "Unknown Queue"
    )
    for number in range(10):
        client.subscribe(f"n/{number}")
    assert client.subscribe("n/x") == SmfResponse(400, "Max Num Subscriptions Exceeded")


def test_message_vpns_are_separate() -> None:
    options = BrokerOptions(vpns=("one", "two"))
    with SmfBroker(options=options) as broker, SmfClient(broker.port) as first:
        first.log_in("c", vpn="one")
        first.subscribe(">")
        with SmfClient(broker.port) as second:
            second.log_in("c", vpn="two")
            second.send(direct("a"))
            assert second.is_alive()
        with SmfClient(broker.port) as third:
            third.log_in("d", vpn="one")
            third.send(direct("b"))

        assert read_topic(first.read() or b"") == b"b"


def test_invalid_bytes_end_only_their_own_connection(broker: SmfBroker, client: SmfClient) -> None:
    rng = random.Random(1)  # noqa: S311  # the same bytes in every run
    for number in range(60):
        with SmfClient(broker.port, f"bad{number}" if number % 2 else "") as hostile:
            hostile.send(_nonsense(rng))
            hostile.connection.shutdown(socket.SHUT_WR)
            while hostile.read() is not None:
                pass

    assert client.is_alive()
    assert broker.clients() == ["c1"]


def _nonsense(rng: random.Random) -> bytes:
    kind = rng.randrange(3)
    if kind == 0:
        return rng.randbytes(200)
    body = rng.randbytes(rng.randrange(60))
    protocol = rng.choice([*Protocol, 0x3F])
    if kind == 1:
        return encode_frame(protocol, rng.randbytes(12), body, flags=rng.choice([0, 0x10]))
    whole = bytearray(login("n", "u", "p") + direct("a"))
    whole[rng.randrange(len(whole))] = rng.randrange(256)
    return bytes(whole)


def test_only_a_slow_client_loses_direct_messages() -> None:
    options = BrokerOptions(peer_bytes=1_000_000)
    frame = direct("a/b", b"x" * 10_000)
    with SmfBroker(options=options) as broker, SmfClient(broker.port, "lazy") as lazy:
        lazy.subscribe("a/>")
        with SmfClient(broker.port, "tx") as sender:
            for _ in range(100):
                sender.send(frame * 20)
            assert sender.is_alive()
        got, marked = 0, False
        with SmfClient(broker.port, "end") as last:
            while not marked:
                got += 1
                marked = bool((lazy.read() or b"\0")[0] & DISCARDED)
                last.send(direct("a/end"))

    assert 1 < got < 2_000


def test_bytes_before_the_login_are_bounded(broker: SmfBroker) -> None:
    with SmfClient(broker.port) as stranger:
        stranger.send(encode_frame(Protocol.CLIENT_CONTROL, b"", b"x" * 90_000)[:80_000])

        assert stranger.read() is None


def test_incomplete_messages_of_all_clients_are_bounded() -> None:
    options = BrokerOptions(total_bytes=1_000_000, max_message=900_000)
    unfinished = direct("a", b"x" * 900_000)[:-1]
    with SmfBroker(options=options) as broker, SmfClient(broker.port, "good") as good:
        with SmfClient(broker.port, "b1") as first, SmfClient(broker.port, "b2") as second:
            first.send(unfinished)
            assert good.is_alive()
            with suppress(ConnectionError):
                second.send(unfinished)
            assert second.read() is None
        with SmfClient(broker.port, "b3") as third:
            assert third.is_alive()


def test_a_port_in_use_is_an_error() -> None:
    with SmfBroker() as broker, pytest.raises(EndpointError, match="cannot listen at"):
        SmfBroker(broker.port)
