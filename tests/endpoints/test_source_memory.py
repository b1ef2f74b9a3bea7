"""The position of a source in a stream: written ahead, late, and exactly."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.endpoints import source_memory
from gateway.endpoints.source_memory import Position, SourceMemory
from gateway.runtime.inbound.source_memories import MemoryFile, SourceMemories
from tests.memories import ROLE


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        monkeypatch.setattr(source_memory, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def started(file: Path) -> tuple[SourceMemory, Position]:
    memory = SourceMemory()
    memory.keep_in(SourceMemories(MemoryFile(file)), ROLE)
    return memory, memory.position("place", ahead=10)


@pytest.mark.usefixtures("clock")
def test_a_killed_process_leaves_a_position_that_is_too_high(tmp_path: Path) -> None:
    _, first = started(tmp_path / "m")
    assert first.is_new
    assert not any(map(first.received, range(25)))
    first.settle(4, "proof")

    _, after = started(tmp_path / "m")

    assert not after.is_new
    marked = [number for number in range(100) if after.received(number)]
    assert marked == list(range(len(marked)))
    assert 25 <= len(marked) <= 25 + 2 * 10


def test_a_source_that_falls_quiet_leaves_it_exactly(tmp_path: Path, clock: Clock) -> None:
    memory, first = started(tmp_path / "m")
    for number in range(25):
        first.received(number)
    first.settle(24, "proof")
    clock.now += 0.5
    memory.write_late(quiet=True)
    assert started(tmp_path / "m")[1].seen > 24, "it is not quiet yet"
    clock.now += 1.0
    memory.write_late(quiet=True)

    _, after = started(tmp_path / "m")

    assert (after.proof, after.settled, after.seen) == ("proof", 24, 24)


def test_a_slow_source_writes_what_is_settled_each_second(tmp_path: Path, clock: Clock) -> None:
    memory, first = started(tmp_path / "m")
    for number in range(5):
        clock.now += 1.0
        first.received(number)
        first.settle(number, str(number))
        memory.write_late(quiet=False)

    _, after = started(tmp_path / "m")

    assert after.settled == 4
    assert after.seen >= 4


@pytest.mark.usefixtures("clock")
def test_a_fast_source_writes_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, first = started(tmp_path / "m")
    written: list[object] = []
    monkeypatch.setattr(memory, "put", lambda _fact, value: written.append(value))
    for number in range(10_000):
        first.received(number)

    assert len(written) < 30


@pytest.mark.usefixtures("clock")
def test_a_later_connection_may_get_what_the_earlier_ones_had(tmp_path: Path) -> None:
    _, first = started(tmp_path / "m")
    assert not first.received(7)
    first.begin()

    assert first.received(7)
    assert not first.received(8)


@pytest.mark.usefixtures("clock")
def test_another_stream_has_another_position(tmp_path: Path) -> None:
    _, first = started(tmp_path / "m")
    first.received(7)
    first.settle(7, "one")
    first.begin_anew("two")

    _, after = started(tmp_path / "m")

    assert (after.proof, after.settled, after.seen) == ("two", -1, -1)
    assert not first.received(7)
