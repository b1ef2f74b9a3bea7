from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Event, Lock, Thread, current_thread
from time import monotonic
from types import SimpleNamespace

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.yami4 import Yami4Sink, open_sink, open_source, request_state
from gateway.endpoints.yami4.connection import Yami4Connection
from gateway.endpoints.yami4.request_state import RequestState
from gateway.errors import NotConnectedError
from gateway.model.message import NO_HEADERS, DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, NO_ROOM, RETRY, Outcome, Settlement
from gateway.runtime.delivery.lane_limits import LaneLimits
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.outbound.sink_binding import SinkBinding
from gateway.runtime.record.counters import EndpointState
from gateway.trial.brokers.yami4 import OverflowPolicy, Yami4Broker, Yami4BrokerOptions
from gateway.wire.yami4.frames import Packet
from gateway.wire.yami4.messages import MessageHeading
from tests.brokers.yami4_client import Client
from tests.endpoints.exchange import Answer, collect, opened, send
from tests.endpoints.yami4_scripted import refuse, reply, scripted
from tests.runtime.outbound_batches import batch_of
from tests.waiting import PATIENCE, until

HASTY = Yami4Settings(answer_timeout=0.5, heartbeat=0.1, connect_timeout=2.0, drain_timeout=0.2)
SURE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
MODES = pytest.mark.parametrize("headers", [NO_HEADERS, SURE], ids=["publish", "publish_confirm"])


@pytest.fixture
def broker() -> Iterator[Yami4Broker]:
    with Yami4Broker(options=Yami4BrokerOptions(max_client_queue=10_000)) as broker:
        yield broker


def sink_of(url: str, settings: Yami4Settings = HASTY) -> Yami4Sink:
    return open_sink(replace(settings, url=url))


def say(count: int, headers: Headers, tags: str = "a") -> list[Message]:
    return [Message(tags, str(number).encode(), headers) for number in range(count)]


def numbers(messages: list[Message]) -> list[int]:
    return [int(bytes(message.payload)) for message in messages if type(message.payload) is bytes]


@MODES
@pytest.mark.parametrize("window", [1, 2, 5, 128])
def test_messages_arrive_in_order_through_any_window(
    broker: Yami4Broker, headers: Headers, window: int
) -> None:
    source = open_source(Yami4Settings(url=broker.url), [Subscription("a")])
    sink = sink_of(broker.url, replace(HASTY, send_window=window))
    with opened(source, sink):
        assert send(sink, *say(500, headers)) == [ACCEPTED] * 500
        got = collect(source, 500)

    assert numbers(got) == list(range(500))
    assert all(message.headers == headers for message in got[:500])


def test_confirmed_and_unconfirmed_messages_mix(broker: Yami4Broker) -> None:
    source = open_source(Yami4Settings(url=broker.url), [Subscription("a")])
    sink = sink_of(broker.url, replace(HASTY, send_window=16))
    messages = [
        Message("a", str(number).encode(), SURE if number % 3 else NO_HEADERS)
        for number in range(300)
    ]
    with opened(source, sink):
        assert send(sink, *messages) == [ACCEPTED] * 300
        assert numbers(collect(source, 300)) == list(range(300))


def test_every_kind_of_payload_arrives(broker: Yami4Broker) -> None:
    source = open_source(Yami4Settings(url=broker.url), [Subscription("a.*")])
    sink = sink_of(broker.url)
    headers = Headers(
        mode=DeliveryMode.AT_LEAST_ONCE, reply_to="x.y", origin=("gw",), properties={"k": [1, 2]}
    )
    messages = [
        Message("a.1", b"bytes", headers),
        Message("a.2", "text", headers),
        Message("a.3,b", {"v": 42, "deep": {"list": ["x", "y"]}}, headers),
        Message("a.4", {}, NO_HEADERS),
        Message("a.5", bytes(1_000_000), NO_HEADERS),
    ]
    with opened(source, sink):
        assert send(sink, *messages) == [ACCEPTED] * 5
        assert collect(source, 5) == messages


def test_an_unsendable_message_is_rejected_and_the_others_are_sent(broker: Yami4Broker) -> None:
    source = open_source(Yami4Settings(url=broker.url), [Subscription("a")])
    sink = sink_of(broker.url, replace(HASTY, max_message=4096))
    with opened(source, sink):
        verdicts = send(
            sink,
            Message("a", b"1", SURE),
            Message("a\0b", b"", SURE),
            Message("\ud800", b"", NO_HEADERS),
            Message("a", {"n": None}, SURE),
            Message("a", bytes(5000), NO_HEADERS),
            Message("a", b"2", NO_HEADERS),
        )
        got = collect(source, 2)

    assert numbers(got) == [1, 2]
    assert [verdict.rule for verdict in verdicts] == [
        "",
        "nul",
        "not-utf-8",
        "null-value",
        "message-size",
        "",
    ]
    assert "limit 4096" in verdicts[4].reason


def test_a_batch_of_unsendable_messages_is_settled(broker: Yami4Broker) -> None:
    sink = sink_of(broker.url)
    with opened(sink):
        (verdict,) = send(sink, Message("a\0", b"", SURE))

    assert verdict.outcome is Outcome.REJECTED


def test_an_overflow_is_retried() -> None:
    options = Yami4BrokerOptions(max_client_queue=0, overflow_policy=OverflowPolicy.REJECT_MESSAGE)
    with Yami4Broker(options=options) as broker, Client(broker.url) as client:
        client.subscribe("a")
        sink = sink_of(broker.url)
        with opened(sink):
            assert send(sink, Message("a", b"", SURE), Message("b", b"", SURE)) == [
                NO_ROOM,
                ACCEPTED,
            ]


def only(**answers: Callable[[int], bytes]) -> Callable[[MessageHeading, int], bytes]:
    def answer(heading: MessageHeading, message_id: int) -> bytes:
        known = answers.get(heading.message_name.decode())
        return known(message_id) if known else b""

    return answer


def test_another_exception_rejects_the_message() -> None:
    def strange(message_id: int) -> bytes:
        return refuse(message_id, "Unknown destination object.")

    with scripted(only(publish_confirm=strange, get=reply)) as url:
        sink = sink_of(url)
        with opened(sink):
            (verdict,) = send(sink, Message("a", b"", SURE))

    assert verdict.rule == "broker-exception"
    assert verdict.reason == "yami4: Unknown destination object."


def test_a_broker_that_stops_answering_is_treated_as_stuck() -> None:
    def once(message_id: int) -> bytes:
        return reply(message_id) if message_id == 1 else b""

    with scripted(only(get=once)) as url:
        sink = sink_of(url)
        with opened(sink):
            assert send(sink, *say(3, SURE)) == [RETRY] * 3
            with pytest.raises(NotConnectedError, match="the broker does not answer"):
                sink.send(say(1, SURE), Answer())


def hang_up(_: int) -> bytes:
    raise ConnectionResetError


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        pytest.param({"get": hang_up}, "closed the connection|connection lost", id="closes"),
        pytest.param({}, "the broker does not answer", id="silent"),
    ],
)
def test_what_accepts_a_connection_and_does_not_answer_is_no_broker(
    answers: dict[str, Callable[[int], bytes]], reason: str
) -> None:
    """As a load balancer without a broker behind it."""
    with scripted(only(**answers)) as url:
        sink = sink_of(url)
        with pytest.raises(NotConnectedError, match=reason):
            sink.open()
        with pytest.raises(NotConnectedError, match=reason):
            sink.send(say(1, SURE), Answer())
        sink.close()


def test_no_message_is_blamed_for_a_broker_that_is_away() -> None:
    here = Event()
    attempts: list[int] = []

    def answer(message_id: int) -> bytes:
        if not here.is_set():
            attempts.append(message_id)
            raise ConnectionResetError
        return reply(message_id)

    settled: list[Settlement] = []
    messages = say(3, SURE)
    with scripted(only(get=answer, publish_confirm=answer)) as url:
        lane = Lane(
            SinkBinding(sink_of(url), "yami4", frozenset(), LaneLimits((0.01, 0.02))),
            EndpointState("yami4", "sink"),
        )
        lane.start()
        lane.deliver(batch_of(messages, lambda found, _: settled.extend(found)))
        until(lambda: len(attempts) > 20)
        here.set()
        until(lambda: len(settled) == 3)
        lane.stop()

    assert settled == [ACCEPTED] * 3


def test_a_broker_that_answers_only_questions_is_treated_as_stuck() -> None:
    # The reference does so while it warms up: facts, section 10.
    with scripted(only(get=reply)) as url:
        sink = sink_of(url, replace(HASTY, send_window=4))
        with opened(sink):
            assert send(sink, Message("a", b"", SURE)) == [RETRY]


def test_a_message_that_takes_long_to_write_is_not_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker cannot answer before it has the whole message."""
    late, reads = 0.0, 0
    write, read = Yami4Connection.write, Yami4Connection.read

    def write_slowly(connection: Yami4Connection, data: bytes, timeout: float) -> int:
        nonlocal late
        if b"publish_confirm" in data:
            late, before = late + 2 * timeout, reads
            until(lambda: reads > before + 1 or connection.fileno < 0)
        return write(connection, data, timeout)

    def count(connection: Yami4Connection, timeout: float) -> list[Packet] | None:
        nonlocal reads
        reads += 1
        return read(connection, timeout)

    monkeypatch.setattr(Yami4Connection, "write", write_slowly)
    monkeypatch.setattr(Yami4Connection, "read", count)
    clock = SimpleNamespace(monotonic=lambda: monotonic() + late)
    monkeypatch.setattr(request_state, "time", clock)
    with scripted(only(publish_confirm=reply, get=reply)) as url:
        sink = sink_of(url, replace(HASTY, answer_timeout=60))
        with opened(sink):
            assert send(sink, *say(3, SURE)) == [ACCEPTED] * 3


@pytest.mark.parametrize("window", [2, 128])
def test_an_unconfirmed_message_is_accepted_when_a_question_after_it_is_answered(
    window: int,
) -> None:
    published, asked, go = Event(), Event(), Event()

    def publish(_: int) -> bytes:
        published.set()
        return b""

    def get(message_id: int) -> bytes:
        if published.is_set():
            asked.set()
            assert go.wait(PATIENCE)
        return reply(message_id)

    with scripted(only(get=get, publish=publish)) as url:
        sink, answer = sink_of(url, replace(HASTY, send_window=window, answer_timeout=60)), Answer()
        with opened(sink):
            sender = Thread(target=sink.send, args=(say(5, NO_HEADERS), answer))
            sender.start()
            assert asked.wait(PATIENCE)
            assert not answer.has_come
            go.set()
            assert answer.wait() == [ACCEPTED] * 5
            sender.join(PATIENCE)


@pytest.mark.parametrize("window", [2, 128])
def test_unconfirmed_messages_on_a_connection_that_ends_are_sent_again(window: int) -> None:
    """As with a proxy before a broker that is gone: the socket has taken every byte."""

    def get(message_id: int) -> bytes:
        if message_id > 1:
            raise ConnectionResetError
        return reply(message_id)

    with scripted(only(get=get, publish=lambda _: b"")) as url:
        sink = sink_of(url, replace(HASTY, send_window=window))
        with opened(sink):
            assert send(sink, *say(5, NO_HEADERS)) == [RETRY] * 5


def test_the_answer_to_a_message_confirms_those_before_it() -> None:
    last, first = Message("a", b"last", SURE), say(3, NO_HEADERS)
    with scripted(
        only(
            get=lambda i: reply(i) if i == 1 else b"", publish=lambda _: b"", publish_confirm=reply
        )
    ) as url:
        sink = sink_of(url, replace(HASTY, answer_timeout=60))
        with opened(sink):
            assert send(sink, *first, last) == [ACCEPTED] * 4


def test_an_idle_connection_sends_heartbeats() -> None:
    asked = Event()

    def note(message_id: int) -> bytes:
        asked.set()
        return reply(message_id)

    with scripted(only(get=note)) as url:
        sink = sink_of(url)
        with opened(sink):
            assert asked.wait(PATIENCE)


def test_the_window_limits_unanswered_messages() -> None:
    seen: list[int] = []
    full, go = Event(), Event()
    lock = Lock()

    def hold(message_id: int) -> bytes:
        with lock:
            seen.append(message_id)
            if len(seen) < 4:
                return b""
            full.set()
            assert go.wait(PATIENCE)
            held, seen[:] = list(seen), []
        return b"".join(map(reply, held))

    with scripted(only(publish_confirm=hold, get=reply)) as url:
        sink = sink_of(url, replace(HASTY, send_window=4, answer_timeout=10))
        answer = Answer()
        with opened(sink):
            thread = Thread(target=sink.send, args=(say(8, SURE), answer))
            thread.start()
            assert full.wait(PATIENCE)
            assert thread.is_alive()
            go.set()
            assert answer.wait() == [ACCEPTED] * 8
            thread.join()


@MODES
def test_a_window_is_written_by_halves(monkeypatch: pytest.MonkeyPatch, headers: Headers) -> None:
    """The broker answers each message apart, so that each moment has another room."""
    written: list[int] = []
    write = Yami4Connection.write

    def count(connection: Yami4Connection, data: bytes, timeout: float) -> int:
        if found := data.count(b"publish"):
            written.append(found)
        return write(connection, data, timeout)

    monkeypatch.setattr(Yami4Connection, "write", count)
    with scripted(only(publish=lambda _: b"", publish_confirm=reply, get=reply)) as url:
        sink = sink_of(url, replace(HASTY, send_window=16, answer_timeout=60))
        with opened(sink):
            assert send(sink, *say(200, headers)) == [ACCEPTED] * 200

    assert written == [8] * 25


def test_close_retries_messages_without_an_answer() -> None:
    answer = Answer()
    with scripted(only(get=reply)) as url:
        sink = sink_of(url, replace(HASTY, answer_timeout=60))
        sink.open()
        sink.send(say(5, SURE), answer)
        sink.close()
        sink.close()

    assert answer.wait() == [RETRY] * 5


def test_close_waits_for_pending_answers(broker: Yami4Broker) -> None:
    # With unread answers a close makes the broker's system drop what it has not read: section 11.
    sink, answer = sink_of(broker.url, replace(HASTY, drain_timeout=10)), Answer()
    sink.open()
    sink.send(say(2_000, NO_HEADERS), Answer())
    sink.send(say(2_000, SURE), answer)
    sink.close()

    assert answer.wait() == [ACCEPTED] * 2_000
    with Client(broker.url) as client:
        assert client.ask("stats", "get").values["total_incoming"] == 4_000


def test_a_slow_close_does_not_close_a_later_connection(
    broker: Yami4Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, go_on = Event(), Event()
    close = RequestState.close

    def linger(state: RequestState) -> None:
        close(state)
        if current_thread() is closer:
            closed.set()
            assert go_on.wait(PATIENCE)

    sink = sink_of(broker.url)
    with opened(sink):
        closer = Thread(target=sink.close)
        monkeypatch.setattr(RequestState, "close", linger)
        closer.start()
        assert closed.wait(PATIENCE)
        sink.open()
        go_on.set()
        closer.join(PATIENCE)

        assert send(sink, *say(3, SURE)) == [ACCEPTED] * 3


def test_a_connection_lost_under_load_settles_every_message_once() -> None:
    answers = [Answer() for _ in range(50)]

    def some(message_id: int) -> bytes:
        if message_id > 400:
            raise ConnectionResetError
        return reply(message_id)

    with scripted(only(publish_confirm=some, get=reply)) as url:
        sink = sink_of(url)
        with opened(sink):
            taken = send_until_lost(sink, answers)
            outcomes = [each for answer in answers[:taken] for each in answer.wait()]

    assert not any(answer.has_come for answer in answers[taken:])
    assert all(each in (ACCEPTED, RETRY) for each in outcomes)
    assert 0 < outcomes.count(ACCEPTED) <= 400


def send_until_lost(sink: Yami4Sink, answers: list[Answer]) -> int:
    for number, answer in enumerate(answers):
        try:
            sink.send(say(20, SURE), answer)
        except NotConnectedError:
            return number
    raise AssertionError("the loss of the connection goes unnoticed")


def test_the_rate_is_kept(broker: Yami4Broker) -> None:
    sink = sink_of(broker.url, replace(HASTY, rate=1_000))
    with opened(sink):
        start = monotonic()
        assert send(sink, *say(300, SURE)) == [ACCEPTED] * 300

        assert monotonic() - start > 0.2


def test_the_overflow_policy_decides_the_delivery_mode() -> None:
    assert Yami4Settings().mode is DeliveryMode.AT_LEAST_ONCE
    for policy in ("drop_update", "unsubscribe"):
        assert Yami4Settings(overflow_policy=policy).mode is DeliveryMode.AT_MOST_ONCE
