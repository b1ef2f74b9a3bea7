"""Sources of MQTT with a real mosquitto: pings, a backlog, QoS 2 and a narrowed pattern.

`tests/conformance` has the events that every kind can have.
"""

from __future__ import annotations

from dataclasses import replace
from time import monotonic

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.mqtt import open_source
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import NotConnectedError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED
from tests.brokers.mosquitto import Mosquitto
from tests.endpoints.exchange import (
    QUIET,
    collect,
    hold,
    opened,
    receive,
    reopen,
    send,
    wait_for_loss,
)
from tests.waiting import until

pytestmark = pytest.mark.broker

ONCE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
EXACTLY = Headers(mode=DeliveryMode.EXACTLY_ONCE)
VERSIONS = pytest.mark.parametrize("version", ["3.1.1", "5"])


def mqtt(broker: Mosquitto) -> MqttSettings:
    return MqttSettings(name="m", host="127.0.0.1", port=broker.port)


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
