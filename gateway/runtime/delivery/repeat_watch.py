"""The suspicion of a loop that no path shows: one name and payload comes very often, for long.

A round of a loop adds to the messages of a source and not to its distinct names and payloads, and
it takes milliseconds. A window of `WINDOW` seconds counts the messages and keeps a sample of them.
A window is fast when one name and payload came at least `FAST` times a second in it, by the sample.
`FAST_WINDOWS` of them in a row are a suspicion. A plant that repeats a value each second, with
however many sensors, has none.
Not seen: rounds that take longer, or that carry so many messages that each comes seldom. Wrongly
seen: an application that repeats a value so fast. A heartbeat of the route tells them apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from gateway.model.message import Message
from gateway.runtime.delivery.rows import fingerprint

WINDOW: Final = 10.0  # seconds
FAST: Final = 20.0  # equal messages a second
FAST_WINDOWS: Final = 3  # in a row
SAMPLE: Final = 512  # messages of a window, then every second of them is dropped
MIN_STEP: Final = 2  # of so many messages about one is in a sample, or of more
MIN_EQUAL: Final = 8  # messages of a sample: fewer are chance
MAX_NAME: Final = 1_000  # characters of a name in the sample

_Key: TypeAlias = tuple[str, int, bytes]  # begin of the name, hash of the name, payload hash


@dataclass(frozen=True, slots=True)
class FastRepeat:
    """One name and payload that comes very often, about `rate` times a second.

    `name` has at most `MAX_NAME` characters.
    """

    name: str
    rate: float


class RepeatWatch:
    """Watches the messages of one source endpoint; they carry no origin path.

    Mutable: owned by the source's thread. Units: seconds of a monotonic clock.
    """

    def __init__(self, random: Callable[[], float]) -> None:
        """`random` gives numbers from 0 to 1: messages that come in turns must not fool a step."""
        self._random = random
        self._begun = 0.0
        self._fast_windows = 0
        self._step = MIN_STEP  # of this many messages about one is in the sample
        self._next = 0  # the next message of the sample, counted from the next batch
        self._sample: list[_Key] = []

    def add(self, messages: Sequence[Message], now: float) -> FastRepeat | None:
        """Add messages that come at `now`; return what is suspicious when a window ends with them.

        A message with an origin path, and one that is delivered again, is none of a silent loop.
        """
        found = None
        if now - self._begun >= WINDOW:
            found = self._end_window(now)
        at = self._next
        while at < len(messages):
            message = messages[at]
            if not (message.headers.origin or message.headers.redelivered):
                self._sample.append(_key(message))
            if len(self._sample) >= SAMPLE:
                del self._sample[::2]
                self._step *= 2
            at += 1 + int(self._random() * (2 * self._step - 1))
        self._next = at - len(messages)
        return found

    def _end_window(self, now: float) -> FastRepeat | None:
        """Judge the window that has ended, and begin the next one at `now`."""
        seconds, fast = now - self._begun, None
        if self._sample and seconds < 2 * WINDOW:  # else the source was quiet
            (name, _, _), equal = Counter(self._sample).most_common(1)[0]
            rate = equal * self._step / seconds
            if equal >= MIN_EQUAL and rate >= FAST:
                fast = FastRepeat(name, rate)
        self._fast_windows = self._fast_windows + 1 if fast else 0
        self._begun, self._next = now, 0
        self._step = max(MIN_STEP, self._step // 2)
        self._sample.clear()
        return fast if self._fast_windows >= FAST_WINDOWS else None


def _key(message: Message) -> _Key:
    name = message.address
    return name[:MAX_NAME], hash(name), fingerprint(message.payload)[1]
