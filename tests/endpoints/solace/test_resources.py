"""Memory, threads and sessions that the endpoint frees at once, without a collection."""

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
from tests.endpoints.solace.restartable import DIRECT, GUARANTEED, RestartableBroker, restartable
from tests.waiting import until


@pytest.fixture
def system() -> Iterator[RestartableBroker]:
    with restartable() as system:
        yield system


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Disable the cyclic collector."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def alive() -> int:
    """Return the number of messages allocated by the library, in C and in Python."""
    return sum(type(each).__name__ == "_SolaceMessage" for each in gc.get_objects())


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("mode", [DIRECT, GUARANTEED.mode])
def test_received_messages_are_freed_when_read(
    system: RestartableBroker, mode: DeliveryMode
) -> None:
    source, sink = system.source("a/>", guaranteed=mode is not DIRECT), system.sink()
    with opened(source, sink):
        before = alive()
        for _ in range(5):
            messages = [Message("a/x", b"x" * 1_000, Headers(mode=mode)) for _ in range(200)]
            assert send(sink, *messages) == [ACCEPTED] * 200
            collect(source, 200)

        assert alive() - before < 10


@pytest.mark.usefixtures("uncollected")
def test_single_use_messages_are_freed_by_the_next_send(system: RestartableBroker) -> None:
    with opened(sink := system.sink()):
        before = alive()
        send(sink, *(Message("a/x", {"n": n}, GUARANTEED) for n in range(500)))

        assert alive() - before < 10


@pytest.mark.usefixtures("uncollected")
def test_prepared_messages_are_bounded(system: RestartableBroker) -> None:
    with opened(sink := system.sink()):
        before = alive()
        headers = [Headers(GUARANTEED.mode, correlation_id=str(n)) for n in range(1_000)]
        send(sink, *(Message("a/x", b"x", each) for each in headers))

        assert alive() - before < 300


def kept() -> tuple[int, int]:
    """Return the number of threads, native ones included, and of sessions of the library."""
    gc.collect()
    sessions = sum(type(each).__name__ == "_SolaceSession" for each in gc.get_objects())
    return len([*Path("/proc/self/task").iterdir()]), sessions


def test_attempts_to_reach_an_unreachable_broker_leak_nothing(system: RestartableBroker) -> None:
    source, sink = system.source("a/>"), system.sink()
    system.stop()
    counts: list[tuple[int, int]] = []
    for _ in range(4):
        for end in (source, sink):
            with pytest.raises(NotConnectedError):
                end.open()
            end.close()
        counts.append(kept())

    assert counts[1:] == counts[:1] * (len(counts) - 1)


def _is_idle(sink: Sink) -> bool:
    """Return False until the sink reports its lost connection by an exception."""
    sink.send((), Answer())
    return False


def test_a_lost_connection_leaks_nothing(system: RestartableBroker) -> None:
    source, sink = system.source("a/>", reconnect_attempts=0), system.sink(reconnect_attempts=0)

    def lose() -> None:
        with opened(source, sink):
            system.stop()
            with pytest.raises(NotConnectedError):
                collect(source, 1)
            with pytest.raises(NotConnectedError):
                until(lambda: _is_idle(sink))

    def has_released() -> bool:  # the library's thread needs a moment
        return all(now <= then for now, then in zip(kept(), first, strict=True))

    lose()
    first = kept()
    for _ in range(3):
        system.start()
        lose()
        until(has_released)


def test_attempts_to_bind_a_missing_queue_leak_nothing(system: RestartableBroker) -> None:
    source = system.source("a/>", create_queue=False)
    counts: list[tuple[int, int]] = []
    for _ in range(4):
        with pytest.raises(GatewayError):
            source.open()
        counts.append(kept())

    assert counts[1:] == counts[:1] * (len(counts) - 1)
