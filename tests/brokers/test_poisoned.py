"""Messages that end the session of a target: found at every kind of endpoint, without pauses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import TypeAlias
from uuid import uuid4

import pytest

from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import Outcome, Settlement
from gateway.runtime.delivery.lane_limits import LaneLimits
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.outbound.sink_binding import SinkBinding
from gateway.runtime.record.counters import EndpointState
from gateway.trial.brokers.yami4 import Yami4Broker
from tests.brokers.controlled_smf import SmfBroker
from tests.brokers.wire import Wire
from tests.runtime.outbound_batches import batch_of
from tests.waiting import until

pytestmark = pytest.mark.broker

MakeSettings: TypeAlias = Callable[[int], EndpointSettings]  # for a port

PERSISTENT = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
POISON = b"ends the session"
LONG_PAUSES = (5.0, 30.0)  # seconds: a pause for each loss would last longer than the test waits
COUNT, EACH = 100, 10


@pytest.fixture(params=["jms", "solace", "yami4", "mqtt"])
def broker(request: pytest.FixtureRequest) -> Iterator[tuple[int, MakeSettings]]:
    """The port of a broker, and the settings of an endpoint at any port."""
    with ExitStack() as stack:
        match request.param:
            case "jms":
                amq = request.getfixturevalue("activemq")
                yield amq.port, lambda port: amq.settings(urls=(f"tcp://127.0.0.1:{port}",))
            case "solace":
                smf = stack.enter_context(SmfBroker())
                yield (
                    int(smf.url.rpartition(":")[2]),
                    lambda port: SolaceSettings(url=f"tcp://127.0.0.1:{port}"),
                )
            case "yami4":
                yami4 = stack.enter_context(Yami4Broker())
                yield (
                    int(yami4.url.rpartition(":")[2]),
                    lambda port: Yami4Settings(url=f"tcp://127.0.0.1:{port}"),
                )
            case _:
                name = uuid4().hex
                mosquitto = request.getfixturevalue("start_mosquitto")()
                yield mosquitto.port, lambda port: MqttSettings(port=port, client_id=name)


def test_messages_that_end_the_session_are_found_without_pauses(
    broker: tuple[int, MakeSettings],
) -> None:
    rules: dict[int, str] = {}

    def done(numbers: range, ends: Sequence[Settlement], _attempts: int) -> None:
        assert all(each.outcome is not Outcome.RETRY for each in ends)
        rules.update(zip(numbers, (each.rule for each in ends), strict=True))

    with closing(Wire(broker[0])) as wire:
        wire.poison = POISON
        settings = broker[1](wire.port)
        limits = LaneLimits(LONG_PAUSES, isolate_after=1)  # no pause before the search, either
        sink = make_sink(settings)
        lane = Lane(
            SinkBinding(sink, settings.dialect, settings.carries, limits),
            EndpointState("target", "sink"),
        )
        lane.start()
        try:
            for first in range(0, COUNT, EACH):
                numbers = range(first, first + EACH)
                payloads = [POISON if number % EACH == 3 else b"x" for number in numbers]
                messages = [Message("a", payload, PERSISTENT) for payload in payloads]
                lane.deliver(batch_of(messages, partial(done, numbers), size=EACH))
            until(lambda: len(rules) == COUNT, "every message has its outcome")
        finally:
            lane.stop()

    assert rules == {number: "poisoned" if number % EACH == 3 else "" for number in range(COUNT)}
