"""The YAMI4 broker, seen by a client over a socket."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.errors import EndpointError
from gateway.trial.brokers.yami4 import OverflowPolicy, Yami4Broker, Yami4BrokerOptions
from gateway.wire.yami4.frames import FrameLimits, encode_message
from gateway.wire.yami4.messages import MessageKind, encode_request
from gateway.wire.yami4.parameters import EMPTY, encode_parameters
from tests.brokers.yami4_client import Client, connect_to
from tests.cases.yami4_matching import ROWS

LARGE = bytes(200_000)


@pytest.fixture
def broker() -> Iterator[Yami4Broker]:
    with Yami4Broker() as broker:
        yield broker


def names(client: Client) -> list[str]:
    return [update.name for update in client.collect()]


def test_an_update_comes_before_the_confirmation(broker: Yami4Broker) -> None:
    with Client(broker.url) as client:
        assert client.subscribe("a.*").heading.kind is MessageKind.REPLY
        body = encode_parameters({"v": 42})

        answer = client.ask("a.b", "publish_confirm", body)

        assert (answer.heading.kind, answer.body) == (MessageKind.REPLY, EMPTY)
        (update,) = client.updates
        assert update.heading.object_name == b"upd"
        assert (update.name, update.message_id, update.body) == ("update a.b", 1, body)


@pytest.mark.parametrize("body", [b"\xff" * 8, EMPTY, LARGE, bytes(4076)], ids=len)
def test_bodies_are_passed_on_unchanged(broker: Yami4Broker, body: bytes) -> None:
    with Client(broker.url) as client:
        client.subscribe("a")
        client.send("a", "publish", body)

        assert [update.body for update in client.collect()] == [body]


def test_the_broker_matches_as_in_the_table(broker: Yami4Broker) -> None:
    for patterns in dict.fromkeys(patterns for _, patterns, _ in ROWS):
        rows = [(tags, expected) for tags, each, expected in ROWS if each == patterns]
        with Client(broker.url) as client:
            client.subscribe(patterns)
            for tags, _ in rows:
                client.send(tags, "publish")
            got = names(client)
        assert got == [f"update {tags}" for tags, expected in rows if expected], patterns


def test_tags_end_at_the_first_nul(broker: Yami4Broker) -> None:
    with Client(broker.url) as client:
        client.subscribe("a\0,b")
        client.send("a\0x", "publish")
        client.send("b", "publish")

        assert names(client) == ["update a"]


def test_tags_need_not_be_utf_8(broker: Yami4Broker) -> None:
    with Client(broker.url) as client:
        client.subscribe(b"\xff.*")
        client.send(b"\xff.\xfe", "publish")

        assert [update.heading.message_name for update in client.collect()] == [b"update \xff.\xfe"]


def test_a_subscription_is_its_patterns_destination_and_connection(broker: Yami4Broker) -> None:
    with Client(broker.url) as client, Client(broker.url) as other:
        for patterns, destination in (("a", "x"), ("a", "x"), ("a", "y"), ("*", "x"), ("a,a", "")):
            client.subscribe(patterns, destination)
        other.subscribe("a", "x")
        client.send("a,a", "publish")

        got = [update.heading.object_name for update in client.collect()]
        assert got == [b"x", b"y", b"x", b""]
        assert len(names(other)) == 1


REFUSED = [
    pytest.param(EMPTY, b"No such name.", id="missing"),
    pytest.param(encode_parameters({"destination_object": 1}), b"Bad type.", id="type"),
    pytest.param(b"\xff" * 8, b"Not enough space or not enough data in the buffer.", id="junk"),
    pytest.param(
        encode_parameters({"destination_object": "*"}),
        b"Forwarding is not supported.",
        id="forwarding",
    ),
]


@pytest.mark.parametrize(("body", "reason"), REFUSED)
def test_a_subscription_may_be_refused(broker: Yami4Broker, body: bytes, reason: bytes) -> None:
    with Client(broker.url) as client:
        answer = client.ask("a", "subscribe", body)

        assert (answer.heading.kind, answer.heading.reason) == (MessageKind.EXCEPTION, reason)


def test_a_full_table_refuses_and_a_disconnect_makes_room() -> None:
    with Yami4Broker(options=Yami4BrokerOptions(max_subscriptions=1)) as broker:
        with Client(broker.url) as first:
            first.subscribe("a")
            with Client(broker.url) as second:
                answer = second.subscribe("a")
                assert answer.heading.reason == b"Subscription table full."
            assert first.subscribe("a").heading.kind is MessageKind.REPLY
        with Client(broker.url) as third:
            while third.subscribe("a").heading.kind is MessageKind.EXCEPTION:
                pass  # until the broker has noticed the first disconnect
            assert third.ask("stats", "get-details").values["sent_messages"] == [0]


@pytest.mark.parametrize(
    ("object_name", "message_name"),
    [("stats", "get_details"), ("a", "unsubscribe"), ("a", ""), ("other", "get")],
)
def test_unknown_commands_get_no_answer(
    broker: Yami4Broker, object_name: str, message_name: str
) -> None:
    with Client(broker.url) as client:
        client.send(object_name, message_name)

        assert client.ask("stats", "get").heading.kind is MessageKind.REPLY


def test_statistics(broker: Yami4Broker) -> None:
    with Client(broker.url) as client:
        assert client.ask("stats", "get-details").values == {
            "total_incoming": 0,
            "total_outgoing": 0,
        }
        client.subscribe("a")
        client.subscribe("stats")
        client.send("a", "publish")
        client.send("stats", "publish")
        client.send("b", "publish")

        values = client.ask("stats", "get-details").values
        port = client.connection.getsockname()[1]
        assert (values["total_incoming"], values["total_outgoing"]) == (3, 2)
        assert values["locations"] == [f"tcp://127.0.0.1:{port}"] * 2
        assert values["overflows"] == [False, False]
        assert values["sent_messages"] == [1, 1]


def test_statistics_show_many_subscriptions(broker: Yami4Broker) -> None:
    with Client(broker.url) as client:
        for number in range(32):
            client.subscribe(f"t{number}")

        assert client.ask("stats", "get-details").values["overflows"] == [False] * 32


def test_nothing_is_published_while_warming_up() -> None:
    with (
        Yami4Broker(options=Yami4BrokerOptions(warm_up=600)) as broker,
        Client(broker.url) as client,
    ):
        assert client.subscribe("a").heading.kind is MessageKind.REPLY
        client.send("a", "publish")
        answer = client.ask("a", "publish_confirm")

        assert answer.heading.reason == b"Broker is warming up."
        assert client.collect() == []
        assert client.ask("stats", "get").values["total_incoming"] == 0


def test_warming_up_ends() -> None:
    with (
        Yami4Broker(options=Yami4BrokerOptions(warm_up=0.05)) as broker,
        Client(broker.url) as client,
    ):
        while client.ask("a", "publish_confirm").heading.kind is MessageKind.EXCEPTION:
            pass
        assert client.ask("stats", "get").values["total_incoming"] == 1


OVERFLOWS = [
    pytest.param(OverflowPolicy.REJECT_MESSAGE, True, True, id="reject"),
    pytest.param(OverflowPolicy.DROP_UPDATE, False, True, id="drop"),
    pytest.param(OverflowPolicy.UNSUBSCRIBE, False, False, id="unsubscribe"),
]


@pytest.mark.parametrize(("policy", "reports_loss", "resumes"), OVERFLOWS)
def test_an_overflow_follows_the_policy(
    policy: OverflowPolicy, reports_loss: bool, resumes: bool
) -> None:
    options = Yami4BrokerOptions(max_client_queue=3, overflow_policy=policy)
    with (
        Yami4Broker(options=options) as broker,
        Client(broker.url) as slow,
        Client(broker.url) as fast,
        Client(broker.url) as publisher,
    ):
        slow.subscribe("a")
        fast.subscribe("a")
        answers = []
        for _ in range(40):
            answers.append(publisher.ask("a", "publish_confirm", LARGE).heading)
            assert len(fast.collect()) == 1
        lost = [each for each in answers if each.kind is MessageKind.EXCEPTION]
        count = len(slow.collect())

        assert 3 <= count < 40
        assert len(lost) == (40 - count if reports_loss else 0)
        assert {each.reason for each in lost} <= {b"Message queue overflow"}
        publisher.ask("a", "publish_confirm")
        assert len(slow.collect()) == (1 if resumes else 0)
        assert len(fast.collect()) == 1


def test_a_queue_of_length_zero_is_always_full() -> None:
    options = Yami4BrokerOptions(max_client_queue=0)
    with Yami4Broker(options=options) as broker, Client(broker.url) as client:
        client.subscribe("a")

        answer = client.ask("a", "publish_confirm")
        assert answer.heading.reason == b"Message queue overflow"
        assert client.collect() == []


def test_a_burst_reaches_a_reading_subscriber_through_a_short_queue(broker: Yami4Broker) -> None:
    with Client(broker.url) as client:
        client.subscribe("a")
        for _ in range(2_000):
            client.send("a", "publish", bytes(100))

        assert len(client.collect()) == 2_000


GARBAGE = [
    pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", id="http"),
    pytest.param(bytes.fromhex("160301020001000001fc0303") + bytes(500), id="tls"),
    pytest.param(bytes(16), id="zeros"),
    pytest.param(bytes.fromhex("01000000 ffffffff 08000000 08000000") + bytes(8), id="no-body"),
    pytest.param(bytes.fromhex("01000000 ffffffff 00000000 fcffff7f"), id="huge"),
]


@pytest.mark.parametrize("data", GARBAGE)
def test_garbage_closes_only_its_own_connection(broker: Yami4Broker, data: bytes) -> None:
    with Client(broker.url) as client, connect_to(broker.url) as bad:
        client.subscribe("a")
        bad.sendall(data)

        assert closes(bad)
        client.send("a", "publish")
        assert len(client.collect()) == 1


def closes(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_publisher_may_disconnect_within_a_message(broker: Yami4Broker) -> None:
    with Client(broker.url) as client:
        client.subscribe("a")
        with Client(broker.url) as publisher:
            publisher.send("a", "publish", EMPTY)
            publisher.connection.sendall(
                bytes.fromhex("09000000 01000000 04000000 08000000") + bytes(8) + bytes(10)
            )
        with Client(broker.url) as publisher:
            publisher.send("a", "publish", EMPTY)
            publisher.ask("stats", "get")

        assert len(client.collect()) == 2


def test_messages_published_before_a_close_arrive(broker: Yami4Broker) -> None:
    with Client(broker.url) as client:
        client.subscribe("a")
        with Client(broker.url) as publisher:
            for _ in range(1_000):
                publisher.send("a", "publish")
        got = 0
        while got < 1_000:
            got += len(client.collect())

        assert got == 1_000


def test_random_bytes_do_not_stop_the_broker(broker: Yami4Broker) -> None:
    chance = random.Random(7)  # noqa: S311  # inputs, not secrets
    for _ in range(200):
        with connect_to(broker.url) as connection:
            connection.sendall(chance.randbytes(chance.randrange(1, 200)))
    with Client(broker.url) as client:
        assert client.ask("stats", "get").heading.kind is MessageKind.REPLY


def test_a_client_that_reads_no_answers_is_not_read(broker: Yami4Broker) -> None:
    block = encode_message(1, encode_request(b"a", b"publish_confirm", 1), EMPTY) * 1_000
    with connect_to(broker.url) as deaf, Client(broker.url) as other:
        deaf.settimeout(0.5)
        with pytest.raises(TimeoutError):
            flood(deaf, block)

        assert other.ask("stats", "get").heading.kind is MessageKind.REPLY


def flood(connection: socket.socket, block: bytes) -> None:
    for _ in range(2_000):
        connection.sendall(block)


def test_the_memory_of_all_connections_is_bounded() -> None:
    frames = FrameLimits(payload=1 << 20, message=1 << 20, held=1 << 20)
    options = replace(Yami4BrokerOptions(), frames=frames, max_total_bytes=1 << 20)
    begun = bytes.fromhex("01000000 ffffffff 00000000 00001000") + bytes(700_000)
    with (
        Yami4Broker(options=options) as broker,
        connect_to(broker.url) as first,
        connect_to(broker.url) as second,
    ):
        first.sendall(begun)
        second.sendall(begun)
        first.setblocking(False)
        second.setblocking(False)
        with Client(broker.url) as client:
            while not (is_closed(first) or is_closed(second)):
                client.ask("stats", "get")

        assert not (is_closed(first) and is_closed(second))


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "broker"
    with Yami4Broker(f"unix://{path}") as broker, Client(broker.url) as client:
        client.subscribe("a")
        client.send("a", "publish")

        assert names(client) == ["update a"]
        assert client.ask("stats", "get-details").values["locations"] == ["unix://$1"]
    assert not path.exists()


@pytest.mark.parametrize("url", ["udp://127.0.0.1:1", "tcp://127.0.0.1:x", "tcp://1.2.3.4:1", ""])
def test_an_address_that_cannot_be_listened_on_is_an_error(url: str) -> None:
    with pytest.raises(EndpointError, match="yami4 broker: "):
        Yami4Broker(url)
