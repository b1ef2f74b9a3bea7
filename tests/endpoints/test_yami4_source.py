from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.source_shell import SourceShell
from gateway.endpoints.yami4 import intake, open_source
from gateway.endpoints.yami4.bodies import UNDECODED
from gateway.endpoints.yami4.intake import PROBE
from gateway.errors import EndpointError, NotConnectedError, SubscriptionRefusedError
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED
from gateway.trial.brokers.yami4 import Yami4Broker, Yami4BrokerOptions
from gateway.wire.yami4.frames import HEAD, FrameDecoder, Packet
from gateway.wire.yami4.messages import MessageHeading
from gateway.wire.yami4.parameters import EMPTY, encode_parameters
from tests.brokers.yami4_client import Client
from tests.endpoints.exchange import collect, opened, receive, wait_for_loss
from tests.endpoints.yami4_scripted import refuse, reply, scripted, update

HASTY = Yami4Settings(answer_timeout=0.6, heartbeat=0.1, connect_timeout=2.0)


@pytest.fixture
def broker() -> Iterator[Yami4Broker]:
    with Yami4Broker(options=Yami4BrokerOptions(max_client_queue=10_000)) as broker:
        yield broker


def source_of(url: str, *patterns: str, settings: Yami4Settings = HASTY) -> SourceShell:
    return open_source(replace(settings, url=url), [Subscription(each) for each in patterns])


def test_a_message_matched_by_several_patterns_arrives_once(broker: Yami4Broker) -> None:
    source = source_of(broker.url, "a.*", "a.b", "*", "a.b")
    with opened(source), Client(broker.url) as client:
        client.send("a.b,a.c", "publish", encode_parameters({"v": 42}))
        client.send("x", "publish", encode_parameters({"payload": b"bytes"}))
        got = collect(source, 2)

    assert got == [Message("a.b,a.c", {"v": 42}), Message("x", b"bytes")]


def test_a_body_that_is_no_parameters_arrives_unchanged(broker: Yami4Broker) -> None:
    source = source_of(broker.url, "a")
    with opened(source), Client(broker.url) as client:
        client.send("a", "publish", b"\xff" * 8)
        client.send("a", "publish", EMPTY)
        raw, empty = collect(source, 2)

    assert (raw.payload, raw.headers.properties) == (b"\xff" * 8, {UNDECODED: True})
    assert empty == Message("a", {})


def test_tags_that_are_not_utf_8_arrive_with_their_bytes(broker: Yami4Broker) -> None:
    source = source_of(broker.url, "a.*")
    with opened(source), Client(broker.url) as client:
        client.send(b"a.\xff", "publish")
        client.send(b"a.\xff", "publish")
        got = collect(source, 2)

    assert [message.address for message in got] == ["a.\\xff"] * 2
    assert [dict(message.headers.properties) for message in got] == [{"yami4.tags": b"a.\xff"}] * 2


def test_probes_are_not_received_as_messages(broker: Yami4Broker) -> None:
    first, second = source_of(broker.url, "*"), source_of(broker.url, "*")
    with opened(first, second), Client(broker.url) as client:
        client.send("a", "publish")

        assert [message.address for message in collect(first, 1)] == ["a"]
        assert [message.address for message in collect(second, 1)] == ["a"]


@pytest.mark.parametrize("patterns", [(), ("a\0",), ("\ud800",)])
def test_illegal_patterns_are_refused(patterns: tuple[str, ...]) -> None:
    with pytest.raises(EndpointError, match="no list of patterns"):
        source_of("tcp://127.0.0.1:1", *patterns)


@pytest.mark.parametrize(
    "url", ["tcp://127.0.0.1:1", "unix:///nowhere/at/all", "tcp://no.such.host.invalid:1"]
)
def test_an_unreachable_broker_is_a_temporary_error(url: str) -> None:
    with pytest.raises(NotConnectedError, match="yami4: "):
        source_of(url, "a").open()


@pytest.mark.parametrize("url", ["", "tcp://host", "udp://127.0.0.1:1", "tcp://127.0.0.1:x"])
def test_an_invalid_url_is_a_permanent_error(url: str) -> None:
    with pytest.raises(EndpointError, match="yami4: ") as caught:
        source_of(url, "a").open()

    assert not caught.value.retryable


def test_a_unix_socket(tmp_path: Path) -> None:
    with Yami4Broker(f"unix://{tmp_path}/broker") as broker, Client(broker.url) as client:
        source = source_of(broker.url, "a")
        with opened(source):
            client.send("a", "publish")

            assert len(collect(source, 1)) == 1


def test_a_full_table_is_a_temporary_error() -> None:
    options = Yami4BrokerOptions(max_subscriptions=0)
    with (
        Yami4Broker(options=options) as broker,
        pytest.raises(NotConnectedError, match="Subscription table full"),
    ):
        source_of(broker.url, "a").open()


def only(
    **answers: Callable[[MessageHeading, int], bytes],
) -> Callable[[MessageHeading, int], bytes]:
    """Answer only messages with these names."""

    def answer(heading: MessageHeading, message_id: int) -> bytes:
        known = answers.get(heading.message_name.decode())
        return known(heading, message_id) if known else b""

    return answer


def agree(_heading: MessageHeading, message_id: int) -> bytes:
    return reply(message_id)


def test_a_broker_that_never_answers_is_a_temporary_error() -> None:
    with scripted(only()) as url, pytest.raises(NotConnectedError, match="does not answer"):
        source_of(url, "a").open()


def test_a_subscription_that_is_confirmed_and_not_served_is_noticed() -> None:
    # The reference answers OK when its table is full: facts, section 7.
    silent = only(subscribe=agree, get=agree)
    with scripted(silent) as url, pytest.raises(NotConnectedError, match="does not serve it"):
        source_of(url, "a").open()


def test_a_refused_subscription_is_a_permanent_error() -> None:
    def answer(_heading: MessageHeading, message_id: int) -> bytes:
        return refuse(message_id, "Bad type.")

    refusal = pytest.raises(SubscriptionRefusedError, match=r"refused: Bad type\.")
    with scripted(answer) as url, refusal as it:
        source_of(url, "a").open()

    assert not it.value.retryable


def test_without_a_probe_the_answer_is_enough() -> None:
    with scripted(only(subscribe=agree)) as url:
        source = source_of(url, "a", settings=replace(HASTY, probe=False))
        with opened(source):
            assert source.receive(0) is None


def test_a_broker_that_stops_answering_is_noticed() -> None:
    with scripted(only(subscribe=agree)) as url:
        source = source_of(url, "a", settings=replace(HASTY, probe=False))
        with opened(source):
            assert wait_for_loss(source) == []


class SlowLine:
    """A connection with a long message under way: a part of it comes every six seconds. Mutable."""

    def __init__(self) -> None:
        self.now, self.asked, self._reads = 0.0, 0, 0

    def write(self, data: bytes, _timeout: float) -> int:
        self.asked += 1
        return len(data)

    def read(self, _timeout: float) -> list[Packet] | None:
        """The answer to the subscription; then nothing and a part by turns, and the next answer."""
        self._reads += 1
        if self._reads == 1:
            return FrameDecoder().feed(reply(1))
        self.now += 3.0
        if self._reads == 15:
            return FrameDecoder().feed(reply(2))
        return [] if self._reads % 2 else None

    def take_skipped(self) -> int:
        return 0

    def close(self) -> None:
        """Nothing is to be done."""


def test_a_broker_that_sends_a_long_message_is_not_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer comes behind the message."""
    line = SlowLine()
    monkeypatch.setattr(intake, "connect", lambda _settings: line)
    monkeypatch.setattr(intake, "time", SimpleNamespace(monotonic=lambda: line.now))
    settings = Yami4Settings(answer_timeout=10.0, heartbeat=1.0, probe=False)
    source = source_of("tcp://127.0.0.1:1", "a", settings=settings)
    with opened(source):
        assert source.receive(45.0) is None

    assert line.asked == 2  # the subscription and one question


def test_a_lost_subscription_is_renewed() -> None:
    seen: list[bytes] = []

    def publish(heading: MessageHeading, _message_id: int) -> bytes:
        seen.append(b"probe")
        if seen.count(b"probe") > 1:
            return b""
        mark = heading.object_name.removeprefix(PROBE.encode())
        return update(b"gateway-" + mark, heading.object_name, EMPTY)

    def subscribe(heading: MessageHeading, message_id: int) -> bytes:
        seen.append(heading.object_name)
        return reply(message_id)

    time = 1_000
    with scripted(only(subscribe=subscribe, publish=publish, get=agree)) as url:
        source = source_of(url, "a")
        source.continuity.clock = lambda: time
        with opened(source):
            time = 2_000
            while len(seen) < 4:
                assert source.receive(0.05) is None

    assert seen[1] == seen[2] == b"probe"
    assert seen[3] == seen[0]
    (loss, *_) = source.continuity.take_losses()
    assert (loss.reason, loss.messages) == (
        "the broker dropped an update of the gateway itself",
        None,
    )
    assert (loss.begin, loss.end) == (1_000, 2_000)  # from the last update that is known to come


def test_a_connection_that_never_answered_again_was_heard_when_it_opened() -> None:
    time = 1_000
    with scripted(only(subscribe=agree)) as url:
        source = source_of(url, "a", settings=replace(HASTY, probe=False))
        source.continuity.clock = lambda: time
        with opened(source):
            time = 2_000
            wait_for_loss(source)

    assert source.continuity.heard == 1_000


def test_a_connection_lost_within_a_message_leaves_no_partial_message(
    broker: Yami4Broker,
) -> None:
    calls = {"connections": 0}

    def subscribe(_heading: MessageHeading, message_id: int) -> bytes:
        calls["connections"] += 1
        return reply(message_id)

    def hang_up(_heading: MessageHeading, _message_id: int) -> bytes:
        raise ConnectionResetError

    def first_frame(heading: MessageHeading, message_id: int) -> bytes:
        return subscribe(heading, message_id) + update(b"x", b"a", bytes(400), 128)[:128]

    with scripted(only(subscribe=first_frame, get=hang_up)) as url:
        source = source_of(url, "a", settings=replace(HASTY, probe=False))
        with opened(source):
            assert wait_for_loss(source) == []
            assert calls["connections"] == 1
    source = source_of(broker.url, "a")
    with opened(source), Client(broker.url) as client:
        client.send("a", "publish", encode_parameters({"payload": bytes(10_000)}))

        assert [message.payload for message in collect(source, 1)] == [bytes(10_000)]


def test_close_from_another_thread_ends_receive(broker: Yami4Broker) -> None:
    source = source_of(broker.url, "a", settings=Yami4Settings())
    with opened(source):
        thread = Thread(target=source.close)
        thread.start()
        assert wait_for_loss(source) == []
        thread.join()


def test_a_message_that_is_too_large_is_a_gap_when_its_header_comes_late(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Then nobody knows the name of its dead letter."""
    late = [HEAD.pack(7, number, 4, 4_096) + bytes(4_096) for number in (*range(2, 30), 1, -30)]

    def subscribe(_heading: MessageHeading, message_id: int) -> bytes:
        return b"".join(late) + reply(message_id)

    with scripted(only(subscribe=subscribe, get=agree)) as url:
        source = source_of(url, "a", settings=replace(HASTY, probe=False, max_message=4096))
        with opened(source):
            assert source.receive(0.2) is None  # the heartbeat's answer
    assert "a message was too large and is lost; see max_message" in caplog.text
    (loss,) = source.continuity.take_losses()
    assert (loss.reason, loss.messages) == (
        "messages longer than `max_message` were dropped here",
        1,
    )
    assert source.continuity.take_losses() == []


def test_reading_pauses_while_the_queue_is_full(broker: Yami4Broker) -> None:
    settings = replace(HASTY, receive_window_bytes=65_536)
    source = source_of(broker.url, "a", settings=settings)
    body = encode_parameters({"payload": bytes(70_000)})
    with opened(source), Client(broker.url) as client:
        client.send("a", "publish", body)
        first = receive(source)
        client.send("a", "publish", body)
        assert source.receive(0.2) is None

        first.settle([ACCEPTED])

        assert len(receive(source).messages) == 1
