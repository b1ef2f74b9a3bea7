"""MQTT with a real mosquitto that dies, freezes or is slow."""

from __future__ import annotations

import threading
from dataclasses import replace
from time import monotonic

import pytest

from gateway.endpoints.base import Sink, Subscription
from gateway.endpoints.mqtt import open_source
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import NotConnectedError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, RETRY
from tests.brokers.mosquitto import Mosquitto
from tests.endpoints.exchange import (
    QUIET,
    Answer,
    collect,
    hold,
    opened,
    receive,
    reopen,
    send,
    wait_for_loss,
)
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.broker

ONCE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
EXACTLY = Headers(mode=DeliveryMode.EXACTLY_ONCE)
VERSIONS = pytest.mark.parametrize("version", ["3.1.1", "5"])


def mqtt(broker: Mosquitto) -> MqttSettings:
    return MqttSettings(name="m", host="127.0.0.1", port=broker.port)


class Sender:
    """Sends numbered messages until each is accepted, as the runtime does. Mutable."""

    def __init__(self, sink: Sink, total: int) -> None:
        self._sink = sink
        self.left = [Message("t", str(i).encode(), ONCE) for i in range(total)]
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while self.left:
            part = self.left[:100]
            answer = Answer()
            try:
                self._sink.send(part, answer)
            except NotConnectedError:
                reopen(self._sink)
                continue
            settlements = answer.wait()
            self.left[:100] = [
                m for m, s in zip(part, settlements, strict=True) if s is not ACCEPTED
            ]


@VERSIONS
def test_a_broker_restarted_under_traffic_loses_nothing(mosquitto: Mosquitto, version: str) -> None:
    total = 10_000
    settings = replace(mqtt(mosquitto), version=version)
    source, sink = make_source(settings, [Subscription("t")]), make_sink(settings)
    sender = Sender(sink, total)
    seen: set[object] = set()
    breaks = [7_000, 3_000]
    deadline = monotonic() + PATIENCE
    with opened(source, sink):
        sender.thread.start()
        while len(seen) < total:
            assert monotonic() < deadline
            try:
                batch = source.receive(0.2)
            except NotConnectedError:
                reopen(source)
                continue
            if batch is not None:
                seen.update(m.payload for m in batch.messages)
                batch.settle([ACCEPTED] * len(batch.messages))
            if breaks and len(sender.left) < breaks[0]:
                breaks.pop(0)
                mosquitto.stop()
                mosquitto.start()
        sender.thread.join(PATIENCE)

    assert not breaks
    assert not sender.left
    assert seen == {str(i).encode() for i in range(total)}


@VERSIONS
def test_a_frozen_broker_is_noticed_by_the_source(mosquitto: Mosquitto, version: str) -> None:
    source = make_source(
        replace(mqtt(mosquitto), keepalive=1, version=version), [Subscription("t")]
    )
    with opened(source):
        mosquitto.freeze()
        wait_for_loss(source)
        with pytest.raises(NotConnectedError, match="no answer to a ping"):
            source.receive(0)


def test_a_publish_without_an_answer_ends_the_connection(mosquitto: Mosquitto) -> None:
    sink = make_sink(replace(mqtt(mosquitto), answer_timeout=0.5))
    with opened(sink):
        assert send(sink, Message("t", b"", ONCE)) == [ACCEPTED]
        mosquitto.freeze()

        assert send(sink, Message("t", b"", ONCE), Message("t", b"", ONCE)) == [RETRY, RETRY]
        with pytest.raises(NotConnectedError, match="treated as stuck"):
            sink.send([Message("t", b"", ONCE)], Answer())


def test_open_times_out_with_a_frozen_broker(mosquitto: Mosquitto) -> None:
    mosquitto.freeze()
    with pytest.raises(NotConnectedError, match="no answer to the log-in"):
        make_sink(replace(mqtt(mosquitto), connect_timeout=0.3)).open()


def test_close_retries_messages_without_an_answer(mosquitto: Mosquitto) -> None:
    sink = make_sink(mqtt(mosquitto))
    answer = Answer()
    with opened(sink):
        mosquitto.freeze()
        sink.send([Message("t", b"", ONCE)], answer)

    assert answer.wait() == [RETRY]


def test_close_frees_a_send_that_waits_for_its_window(mosquitto: Mosquitto) -> None:
    sink = make_sink(replace(mqtt(mosquitto), send_window=1))
    caught: list[BaseException] = []
    answer = Answer()

    def run() -> None:
        try:
            sink.send([Message("t", b"", ONCE)] * 2, answer)
        except NotConnectedError as error:
            caught.append(error)

    with opened(sink):
        mosquitto.freeze()
        thread = threading.Thread(target=run)
        thread.start()
    thread.join(PATIENCE)

    assert len(caught) == 1
    assert not answer.has_come


@pytest.mark.parametrize("version", [pytest.param("3.1.1", marks=pytest.mark.nightly), "5"])
def test_an_unread_source_stays_small_and_loses_nothing(mosquitto: Mosquitto, version: str) -> None:
    total, bound = 50_000, 262_144
    settings = replace(mqtt(mosquitto), receive_window_bytes=bound, keepalive=1, version=version)
    source = open_source(settings, [Subscription("t")])
    sink = make_sink(settings)
    peak = 0
    with opened(source, sink):
        for start in range(0, total, 500):
            part = [Message("t", str(i).encode(), ONCE) for i in range(start, start + 500)]
            assert send(sink, *part) == [ACCEPTED] * 500
            queue = source._intake.queue  # type: ignore[union-attr]  # noqa: SLF001  # what it has received
            peak = max(peak, queue.held)
        silence = monotonic() + 2.5  # longer than the broker's keep alive timeout
        until(lambda: monotonic() > silence, "the time to pass")
        got = collect(source, total)

    assert bound <= peak < bound + 8_000_000  # one more block of small messages
    assert [m.payload for m in got] == [str(i).encode() for i in range(total)]


def test_after_a_break_unsettled_qos_2_messages_are_redelivered_and_settled_ones_not(
    mosquitto: Mosquitto,
) -> None:
    settings = replace(mqtt(mosquitto), qos=2)
    source, sink = make_source(settings, [Subscription("t")]), make_sink(settings)
    with opened(source, sink):
        send(sink, Message("t", b"1", EXACTLY))
        receive(source).settle([ACCEPTED])
        send(sink, Message("t", b"2", EXACTLY))
        hold(source, 1)
        mosquitto.stop()
        wait_for_loss(source)
        mosquitto.start()
        reopen(source)
        got = collect(source, 1)

        assert [m.payload for m in got] == [b"2"]
        assert source.receive(QUIET) is None


@VERSIONS
def test_a_backlog_larger_than_the_window_is_delivered(mosquitto: Mosquitto, version: str) -> None:
    total = 900
    settings = replace(mqtt(mosquitto), version=version)
    source, sink = make_source(settings, [Subscription("t")]), make_sink(settings)
    with opened(source):
        pass
    with opened(sink):
        for _ in range(0, total, 100):
            assert send(sink, *[Message("t", bytes(30_000), ONCE)] * 100) == [ACCEPTED] * 100

    with opened(make_source(settings, [Subscription("t"), Subscription("u")])):
        pass  # a restart or a reload
    with opened(source):
        assert len(collect(source, total)) == total


def test_a_narrowed_pattern_does_not_double_messages(mosquitto: Mosquitto) -> None:
    settings = mqtt(mosquitto)
    sink = make_sink(settings)
    with opened(make_source(settings, [Subscription("t/#")])):
        pass
    narrower = make_source(settings, [Subscription("t/+")])
    with opened(narrower, sink):
        send(sink, Message("t/1", b"once", ONCE))

        assert [m.payload for m in collect(narrower, 1)] == [b"once"]
        assert narrower.receive(QUIET) is None
