"""What the endpoint gives back at once, though the library would keep it until a collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.endpoints.base import Sink
from gateway.errors import GatewayError, NotConnectedError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED
from tests.endpoints.exchange import Answer, collect, opened, send
from tests.endpoints.solace_system import DIRECT, GUARANTEED, Restartable, restartable
from tests.waiting import until


@pytest.fixture
def system() -> Iterator[Restartable]:
    with restartable() as made:
        yield made


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Nothing that refers to itself goes away."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def alive() -> int:
    """Messages of the library that take memory, its own as well as Python's."""
    return sum(type(each).__name__ == "_SolaceMessage" for each in gc.get_objects())


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("mode", [DIRECT, GUARANTEED.mode])
def test_received_messages_go_when_they_are_read(system: Restartable, mode: DeliveryMode) -> None:
    source, sink = system.source("a/>", guaranteed=mode is not DIRECT), system.sink()
    with opened(source, sink):
        before = alive()
        for _ in range(5):
            messages = [Message("a/x", b"x" * 1_000, Headers(mode=mode)) for _ in range(200)]
            assert send(sink, *messages) == [ACCEPTED] * 200
            collect(source, 200)

        assert alive() - before < 10


@pytest.mark.usefixtures("uncollected")
def test_messages_that_are_made_for_one_sending_go_with_the_next(system: Restartable) -> None:
    with opened(sink := system.sink()):
        before = alive()
        send(sink, *(Message("a/x", {"n": n}, GUARANTEED) for n in range(500)))

        assert alive() - before < 10


@pytest.mark.usefixtures("uncollected")
def test_prepared_messages_are_bounded(system: Restartable) -> None:
    with opened(sink := system.sink()):
        before = alive()
        headers = [Headers(GUARANTEED.mode, correlation_id=str(n)) for n in range(1_000)]
        send(sink, *(Message("a/x", b"x", each) for each in headers))

        assert alive() - before < 300


def kept() -> tuple[int, int]:
    """Threads of this process, of which Python does not know all, and sessions of the library."""
    gc.collect()
    sessions = sum(type(each).__name__ == "_SolaceSession" for each in gc.get_objects())
    return len([*Path("/proc/self/task").iterdir()]), sessions


def test_a_broker_that_is_away_costs_nothing_an_attempt(system: Restartable) -> None:
    source, sink = system.source("a/>"), system.sink()
    system.stop()
    counts: list[tuple[int, int]] = []
    for _ in range(8):
        for end in (source, sink):
            with pytest.raises(NotConnectedError):
                end.open()
            end.close()
        counts.append(kept())

    assert counts[1:] == counts[:1] * (len(counts) - 1)


def _is_idle(sink: Sink) -> bool:
    """Never: asked again and again, the sink says at last that its connection is lost."""
    sink.send((), Answer())
    return False


def test_a_connection_that_was_lost_leaves_nothing(system: Restartable) -> None:
    source, sink = system.source("a/>", reconnect_attempts=0), system.sink(reconnect_attempts=0)

    def lose() -> None:
        with opened(source, sink):
            system.stop()
            with pytest.raises(NotConnectedError):
                collect(source, 1)
            with pytest.raises(NotConnectedError):
                until(lambda: _is_idle(sink))

    def has_let_go() -> bool:  # the library's own thread may take a moment
        return all(now <= then for now, then in zip(kept(), first, strict=True))

    lose()
    first = kept()
    for _ in range(3):
        system.start()
        lose()
        until(has_let_go)


def test_a_queue_that_is_not_there_costs_nothing_an_attempt(system: Restartable) -> None:
    source = system.source("a/>", create_queue=False)
    counts: list[tuple[int, int]] = []
    for _ in range(4):
        with pytest.raises(GatewayError):
            source.open()
        counts.append(kept())

    assert counts[1:] == counts[:1] * (len(counts) - 1)
