"""What the endpoint gives back at once, though the library would keep it until a collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED
from tests.endpoints.exchange import collect, opened, send
from tests.endpoints.solace_system import DIRECT, GUARANTEED, Restartable, restartable


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
