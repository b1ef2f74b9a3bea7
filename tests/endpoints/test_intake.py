"""The end of the intake of sources whose brokers keep nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gateway.endpoints.base import EndsIntake, Source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.settings.nats import NatsSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED
from tests.endpoints.exchange import QUIET, collect, opened, send
from tests.endpoints.systems import SYSTEMS, System
from tests.waiting import until

COUNT = 100


def keeping_nothing(system: System) -> System:
    match system.settings:
        case MqttSettings() as settings:
            return replace(system, settings=replace(settings, qos=0, session_expiry=0))
        case NatsSettings(url=url):
            return replace(system, settings=NatsSettings(name="nats", url=url, jetstream=False))
        case SolaceSettings() as settings:
            return replace(system, settings=replace(settings, guaranteed=False))
        case _:
            assert isinstance(system.settings, Yami4Settings)
            return system


def rest(source: Source) -> list[Message]:
    """Receive as a stop does, until the broker has answered."""
    found: list[Message] = []
    assert isinstance(source, EndsIntake)
    while True:
        ended = source.intake_ended
        batch = source.receive(0 if ended else QUIET)
        if batch is not None:
            found += batch.messages
            batch.settle([ACCEPTED] * len(batch.messages))
        elif ended:
            return found


@pytest.mark.parametrize("name", ["mqtt-5", "nats", "solace", "yami4"])
def test_a_source_has_what_was_sent_before_the_end_of_its_intake_and_no_more(
    name: str, request: pytest.FixtureRequest
) -> None:
    make: Callable[[pytest.FixtureRequest], System] = SYSTEMS[name]
    system = keeping_nothing(make(request))
    source, sink = system.source("t"), system.sink()
    witness = system.source("t", instance="two")
    with opened(source, witness, sink):
        said = [
            Message(system.address("t", "x"), str(number).encode(), Headers(mode=system.mode))
            for number in range(COUNT)
        ]
        send(sink, *said)
        collect(witness, COUNT)  # the broker has passed them on
        assert isinstance(source, EndsIntake)
        source.end_intake()
        got = rest(source)

        def is_quiet() -> bool:
            send(sink, said[0])
            return source.receive(QUIET) is None

        until(is_quiet)

    assert [each.payload for each in got] == [each.payload for each in said]
