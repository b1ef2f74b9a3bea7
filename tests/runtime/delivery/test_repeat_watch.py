"""The suspicion of a loop by its rate: rings raise it, and plants that repeat themselves do not."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pytest

from gateway.model.message import Headers, Message
from gateway.runtime.delivery.repeat_watch import (
    FAST,
    FAST_WINDOWS,
    MAX_NAME,
    SAMPLE,
    WINDOW,
    FastRepeat,
    RepeatWatch,
)
from tests.model.test_memory_size import taken

TICK = 0.1  # seconds between two batches
LONG = 10 * WINDOW
ON = Message("line/1", b"on")


def sensors(count: int, *, payload: bytes = b"20.0") -> list[Message]:
    return [Message(f"plant/sensor/{number}", payload) for number in range(count)]


def every(
    seconds: float, messages: Sequence[Message], *, until: float = LONG
) -> Iterator[list[Message]]:
    """Yield the batches of sensors that publish each at this interval, in turns."""
    sent = 0
    for tick in range(1, int(until / TICK)):
        due = int(tick * TICK / seconds * len(messages))
        yield [messages[number % len(messages)] for number in range(sent, due)]
        sent = due


def changing(rate: int) -> Iterator[list[Message]]:
    """Yield the batches of a plant whose values change."""
    for tick in range(int(LONG / TICK)):
        yield [Message("a/b", b"%d" % (tick * rate + number)) for number in range(int(rate * TICK))]


def together(*plants: Iterable[list[Message]]) -> Iterator[list[Message]]:
    for batches in zip(*plants, strict=False):
        yield [message for batch in batches for message in batch]


def suspected(batches: Iterable[list[Message]]) -> list[FastRepeat]:
    watch = RepeatWatch(random.Random(1).random)  # noqa: S311
    found = (watch.add(batch, 1_000 + number * TICK) for number, batch in enumerate(batches))
    return [each for each in found if each is not None]


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param(every(1.0, [ON]), id="on-each-second"),
        pytest.param(every(0.1, [ON]), id="on-ten-times-a-second"),
        pytest.param(every(1.0, sensors(5_000)), id="thousands-of-constant-sensors"),
        pytest.param(every(0.2, sensors(2_000)), id="constant-sensors-at-five-hertz"),
        pytest.param(every(1.0, sensors(512)), id="as-many-sensors-as-the-sample-has"),
        pytest.param(changing(20_000), id="changing-values"),
        pytest.param(together(changing(3_000), every(1.0, sensors(1_000))), id="both"),
        pytest.param(together(every(1.0, sensors(9)), [[ON] * 9_000] + [[]] * 999), id="burst"),
        pytest.param(every(0.01, [replace(ON, headers=Headers(redelivered=True))]), id="again"),
        pytest.param(every(0.01, [replace(ON, headers=Headers(origin=("g/r",)))]), id="path"),
        pytest.param(every(0.01, [ON], until=2.5 * WINDOW), id="too-short"),
        pytest.param(iter([[ON] * 500] + [[]] * 150 + [[ON] * 500] + [[]] * 150), id="bursts"),
    ],
)  # fmt: skip
def test_a_plant_that_repeats_itself_is_no_loop(batches: Iterable[list[Message]]) -> None:
    assert not suspected(batches)


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param([], id="alone"),
        pytest.param([every(1.0, sensors(1_000))], id="among-constant-sensors"),
        pytest.param([changing(2_000)], id="among-changing-values"),
    ],
)
def test_three_messages_that_circle_are_suspected(plant: list[Iterable[list[Message]]]) -> None:
    """Each goes round in 5 ms, and comes twice in a ring in both directions."""
    ring = [Message("a/b", b"%d" % number) for number in range(3)]
    found = suspected(together(*plant, every(0.005, ring)))

    assert len(found) >= LONG // WINDOW - FAST_WINDOWS - 1
    assert {each.name for each in found} == {"a/b"}
    assert all(FAST < each.rate < 600 for each in found)


def test_a_name_is_kept_in_part_only() -> None:
    def fill() -> RepeatWatch:
        watch = RepeatWatch(random.Random(1).random)  # noqa: S311
        for number in range(20 * SAMPLE):
            watch.add([Message("x" * 60_000 + str(number), b"")], 1_000.0)
        return watch

    assert taken(fill) < SAMPLE * (MAX_NAME + 400)
