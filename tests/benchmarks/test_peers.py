"""The load of the peers counts what is lost and what comes twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.peers import Load
from gateway.endpoints.base import Batch, Sink, Source, Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.memory import MemorySettings


class Faulty:
    """A source that loses every tenth message, and has every fourth twice."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def open(self) -> None:
        self._source.open()

    def receive(self, timeout: float) -> Batch | None:
        batch = self._source.receive(timeout)
        if batch is None:
            return None
        kept = [each for at, each in enumerate(batch.messages) if at % 10]
        return Batch([*kept, *kept[::4]], lambda _: None)

    def close(self) -> None:
        self._source.close()


@pytest.fixture
def ends() -> Iterator[tuple[Sink, Source]]:
    settings = MemorySettings(name="peers", dialect="mqtt", broker="peers")
    source, sink = make_source(settings, [Subscription("src/#")]), make_sink(settings)
    source.open()
    sink.open()
    yield sink, source
    sink.close()
    source.close()


def test_a_relay_that_loses_nothing_has_no_loss(ends: tuple[Sink, Source]) -> None:
    load = Load(*ends, "src/")
    load.wait_for_relay()
    found = load.run(1_000)

    assert (len(found.seen), found.doubled) == (1_000, 0)
    assert len(load.run(10).seen) == 10


def test_losses_and_doubles_are_counted(ends: tuple[Sink, Source]) -> None:
    sink, source = ends
    found = Load(sink, Faulty(source), "src/").run(500, quiet=0.2)

    assert len(found.seen) == 450
    assert found.doubled == 113
