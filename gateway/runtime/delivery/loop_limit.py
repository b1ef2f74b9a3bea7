"""The end of loops that no origin path shows.

Gateways in a ring over MQTT 3.1.1 alone pass a message on for ever: it carries no path, and to each
gateway it looks new. It is always the same name and payload, though, and one more thing crosses
such a ring: the delivery mode. So when equal messages have come MAX_ROUNDS times, one of them is
marked: it goes on with the next weaker mode. If equal messages then come back in that mode, again
and again, they are that copy: they are cut, one for each mark. An application that repeats itself
keeps its mode, and loses nothing, however often or fast it does so.

Three things are no proof: a few messages in the weaker mode, which a gateway before this one may
have marked; messages that came in both modes before; and more cuts than the ring can have copies.

A message of the weakest mode cannot be marked. Each is counted that equals the one before it and
follows it closely, or whose time was full of others that came back; one in MAX_FAST_ROUNDS is cut.
One in MAX_SLOW_ROUNDS is cut at any speed, so that a slow ring ends, too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, Generic, TypeAlias, TypeVar

from xxhash import xxh3_128_digest

from gateway.model.message import DeliveryMode, Message
from gateway.runtime.delivery.rows import fingerprint

MAX_ROUNDS: Final = 128  # of equal messages without a mark; each further mark waits twice as long
MAX_PATIENCE: Final = MAX_ROUNDS << 10  # equal messages before a mark
WEIGHT: Final = 8  # equal messages in their own mode that weigh as much as one in a weaker mode
PROOF: Final = 64  # a loop: eight come back alone, or more among others
MAX_FAST_ROUNDS: Final = 1_000  # of one message of the weakest mode; the next is cut
MAX_SLOW_ROUNDS: Final = MAX_PATIENCE  # as for the marks: an application hardly notices
CROWD: Final = 100  # messages that come back within a window: then the ring is full, not slow
MAX_SIZE: Final = 32 << 20  # bytes of the rounds of a source endpoint
_ENTRY: Final = 320  # bytes of a key and its value

Key: TypeAlias = int  # a hash of name and payload
Value = TypeVar("Value")


class _Finding(Enum):
    PASS = auto()
    MARK = auto()
    CUT = auto()


@dataclass(slots=True)
class _Suspect:
    """Equal messages that have come MAX_ROUNDS times in one mode, and their marks.

    Mutable: owned by the loop limit.
    """

    mode: DeliveryMode
    run: int  # in this mode, since the last mark
    patience: int  # of the run, until the next mark
    others: int = 0  # in a row, in another mode
    marks: int = 0  # that have not come back
    score: int = 0  # of those that came back, less the others
    came: int = 0  # since the first mark: a ring has no more copies
    proven: bool = False

    def see(self, mode: DeliveryMode) -> _Finding:
        self.came += 1 if self.score < PROOF else -2
        if self.came < 0:  # they never end: not a ring, but publishers with two modes
            self._restart(self.mode, 0, MAX_PATIENCE)
        elif mode == self.mode:
            self.run, self.others = self.run + 1, 0
            if self.score:
                self.score -= 1
            if self.score >= PROOF or self.run >= self.patience:
                return self._mark()
        elif mode < self.mode and self.marks:
            return self._see_weaker()
        else:
            self.others += 1
            if self.others >= MAX_ROUNDS and mode:
                self._restart(mode, self.others, MAX_ROUNDS)
            elif not self.proven:
                self.run = self.score = 0
        return _Finding.PASS

    def _restart(self, mode: DeliveryMode, run: int, patience: int) -> None:
        self.mode, self.run, self.patience, self.proven = mode, run, patience, False
        self.others = self.marks = self.score = self.came = 0

    def _mark(self) -> _Finding:
        if self.score < PROOF:
            if self.patience > MAX_ROUNDS:  # nothing came back since the last mark
                self.marks = self.came = 0
            self.run, self.patience = 0, min(2 * self.patience, MAX_PATIENCE)
        self.marks += 1
        return _Finding.MARK

    def _see_weaker(self) -> _Finding:
        self.others, self.patience = self.others + 1, MAX_ROUNDS
        self.score = min(self.score + WEIGHT, PROOF + WEIGHT)
        if self.score < PROOF:
            return _Finding.PASS
        self.marks -= 1
        self.proven = True
        return _Finding.CUT


class _Latest(Generic[Value]):
    """Values by key: put into `new`, found in `new` or `old`. Half of `size` bytes stays.

    Mutable: owned by the loop limit.
    """

    def __init__(self, size: int) -> None:
        self._half = size // 2 // _ENTRY
        self.new: dict[Key, Value] = {}
        self.old: dict[Key, Value] = {}

    def age(self) -> None:
        """Forget the values that were put first when there are too many; called for each batch."""
        if len(self.new) > self._half:
            self.old, self.new = self.new, {}


@dataclass(slots=True)
class LoopFindings:
    """The positions of the messages of a batch that are cut, and the modes of those marked."""

    cut: list[int] = field(default_factory=list)
    marked: dict[int, DeliveryMode] = field(default_factory=dict)

    def add(self, position: int, finding: _Finding, mode: DeliveryMode) -> None:
        if finding is _Finding.CUT:
            self.cut.append(position)
        else:
            self.marked[position] = DeliveryMode(mode - 1)


class LoopLimit:
    """The rounds of the latest messages of one source endpoint.

    Mutable: owned by the source's thread. Units: seconds of a monotonic clock.
    """

    def __init__(self) -> None:
        self._runs: _Latest[int | _Suspect] = _Latest(MAX_SIZE // 4 * 3)  # run * 4 + mode
        # time, `_repeats` then, rounds that were fast, and all rounds
        self._weakest: _Latest[tuple[float, int, int, int]] = _Latest(MAX_SIZE // 4)
        self._repeats = 0  # messages of the weakest mode that equal an earlier one

    def find(
        self, messages: Sequence[Message], without: Collection[int], now: float, window: float
    ) -> LoopFindings:
        """Find the messages of a batch that have gone round too often, or are to be marked.

        `window` is the longest round of a message of the weakest mode. Positions in `without` are
        left out: they go no further anyway.
        """
        self._runs.age()
        self._weakest.age()
        found, runs, old = LoopFindings(), self._runs.new, self._runs.old
        seen, before = self._weakest.new, self._weakest.old
        first = now, self._repeats, 0, 0
        last_run = (MAX_ROUNDS - 1) << 2  # the next equal message makes a suspect
        for position, message in enumerate(messages):
            headers = message.headers
            if position in without or headers.redelivered:  # its broker sent it again
                continue
            payload, mode = message.payload, headers.mode
            digest = (  # the usual payload without a call of ours
                xxh3_128_digest(payload) if isinstance(payload, bytes) else fingerprint(payload)[1]
            )
            key = hash((message.address, digest))
            known = runs.get(key)
            if known is None and (known := old.get(key)) is None:
                if mode:
                    runs[key] = 4 + mode
                    continue
                if key not in seen and key not in before:
                    seen[key] = first
                    continue
                finding = _Finding.PASS
            elif isinstance(known, int):
                if mode and known & 3 == mode and known < last_run:
                    runs[key] = known + 4
                    continue
                finding = self._see_run(key, known, mode)
            else:
                runs[key] = known
                finding = known.see(mode)
            if not mode and finding is _Finding.PASS:
                finding = self._see_weakest(key, now, window)
                first = now, self._repeats, 0, 0
            if finding is not _Finding.PASS:
                found.add(position, finding, mode)
        return found

    def _see_run(self, key: Key, known: int, mode: DeliveryMode) -> _Finding:
        """Count a message behind a run of equal ones in one mode."""
        runs = self._runs.new
        run = known + 4 if known & 3 == mode else 4 + mode
        if not mode:
            runs[key] = 0
        elif run >> 2 < MAX_ROUNDS:
            runs[key] = run
        else:
            runs[key] = suspect = _Suspect(mode, MAX_ROUNDS - 1, MAX_ROUNDS)
            return suspect.see(mode)
        return _Finding.PASS

    def _see_weakest(self, key: Key, now: float, window: float) -> _Finding:
        """Count a message that no mark can tell from others."""
        seen, start = self._weakest.new, (now, self._repeats, 0, 0)
        time, repeats, fast, rounds = seen.get(key) or self._weakest.old.get(key) or start
        if time < now:  # messages of one batch count once: a copy in a ring never overtakes itself
            self._repeats += 1
            soon = now - time <= window * max(1.0, (self._repeats - repeats) / CROWD)
            fast, rounds = fast + 1 if soon else 0, rounds + 1
        is_last = fast >= MAX_FAST_ROUNDS or rounds >= MAX_SLOW_ROUNDS
        seen[key] = now, self._repeats, *((0, 0) if is_last else (fast, rounds))
        return _Finding.CUT if is_last else _Finding.PASS
