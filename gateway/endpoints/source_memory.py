"""The memory of a source: what it knows of its broker beyond a connection, and beyond its process.

    facts       values of JSON by name: the filters that were subscribed, a place in a stream, ...
    position    one such fact: how far the source has come in what its broker numbers
    made        one such fact: what the source made at its broker, and leaves there at its end
    beside      one such fact: a digest of the memory of the endpoint's present name, as it was when
                the source had read again what was read under that name (`second_reading`)

Made: with the source. Read: once, at its first connection. Written: when a fact changes; a position
*ahead* of what is received, every second while it is behind, once more when the source falls quiet,
and exactly when the source is closed. After a crash a position is too high: messages below it are
marked as redelivered, some of them without need, and none comes twice without a mark. A pair shares
the memory through its lease.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from gateway.endpoints.made import Made
from gateway.untyped import Untyped

T = TypeVar("T")
Facts: TypeAlias = Mapping[str, Any]  # values of JSON

MADE: Final = "made"  # a fact
BESIDE: Final = "beside"  # a fact
WRITE_INTERVAL: Final = 1.0  # seconds after which a position that is behind is written again
NO_TEXTS: Final[Sequence[str]] = ()
MAX_NUMBER: Final = 1 << 64  # of a message in a stream
ALL_THERE: Final = MAX_NUMBER - 1  # `seen` where all that is there may have been received
MAX_STEP: Final = 64  # times `ahead`: the longest step of a source that receives fast
DAMAGE: Final = (LookupError, ValueError, TypeError, OverflowError, RecursionError)


class MemoryStore(Protocol):
    """Keeps the memories of a gateway by role: kind and first name of an endpoint, or a tap.

    Thread-safe; never raises.
    """

    def load(self, role: str) -> Facts | None:
        """Return the facts of a role; empty for none.

        None when they are damaged, or when there may be some of another name: act as if
        everything could have been received before.
        """

    def save(self, role: str, facts: Facts) -> None:
        """Keep the facts of a role in place of earlier ones."""

    def beside(self, role: str) -> str:
        """Return a digest of the memory that an endpoint with `was` has under its present name.

        Empty where it has none.
        """

    def say_damaged(self, role: str, error: Exception) -> None:
        """Tell that the facts of a role cannot be read."""


class SourceMemory:
    """The facts of one source. Thread-safe: guarded by self._lock."""

    def __init__(self) -> None:
        self._store: MemoryStore | None = None
        self._role = ""
        self._facts: dict[str, Any] | None = None
        self._beside = ""
        self._is_damaged = False
        self._waits_to_write = False
        self._positions: list[Position] = []
        self._lock = threading.RLock()

    def keep_in(self, store: MemoryStore | None, role: str) -> None:
        """Use `store` under the name `role`. Before `open`."""
        self._store, self._role = store, role

    def get(self, fact: str, parse: Callable[[Any], T], absent: T) -> T | None:
        """Return a fact, or `absent` when none was ever kept.

        None when it is not known: the memory is damaged, or `parse` raises.
        """
        with self._lock:
            facts = self._loaded()
            if fact not in facts:
                return None if self._is_damaged else absent
            try:
                return parse(facts[fact])
            except DAMAGE as error:
                if self._store is not None:
                    self._store.say_damaged(self._role, error)
                return None

    def put(self, fact: str, value: Untyped) -> None:
        """Keep a fact; it is durable when this returns, as far as the store can make it so."""
        with self._lock:
            facts = self._loaded()
            if fact in facts and facts[fact] == value:
                return
            facts[fact] = value
            self._save()

    @contextmanager
    def written_together(self) -> Iterator[None]:
        """Write what is put meanwhile once, at the end. Not nested."""
        with self._lock:
            self._loaded()
            self._waits_to_write = True
        try:
            yield
        finally:
            with self._lock:
                self._waits_to_write = False
                self._save()

    def _save(self) -> None:
        if self._store is not None and not self._waits_to_write:
            self._store.save(self._role, self._loaded())

    @property
    def may_repeat(self) -> bool:
        """Whether the endpoint was read under its present name, and not again since."""
        return self._beside != (self._facts or {}).get(BESIDE, "") and bool(self._beside)

    def note_repeated(self) -> None:
        """Note that the source has read what it may have read under the present name."""
        self.put(BESIDE, self._beside)

    def note_made(self, made: Made) -> None:
        """Note what the source is about to make; durable when this returns, as by `put`."""
        if made not in (known := self._made()):
            self.put(MADE, sorted(map(list, {*known, made})))

    def forget_made(self, made: Made) -> None:
        """Note that the broker does not have `made` any more."""
        if made in (known := self._made()):
            self.put(MADE, sorted(map(list, {*known} - {made})))

    def _made(self) -> Sequence[Made]:
        return self.get(MADE, read_made, ()) or ()

    def position(self, fact: str, ahead: int) -> Position:
        """Return the position that `fact` keeps, made when it is asked for first."""
        with self._lock:
            for each in self._positions:
                if each.fact == fact:
                    return each
            self._positions.append(Position(self, fact, ahead))
            return self._positions[-1]

    def positions_of(self, prefix: str) -> list[str]:
        """Return the facts that keep positions and begin with `prefix`."""
        with self._lock:
            return [each for each in self._loaded() if each.startswith(prefix)]

    def forget_position(self, fact: str) -> None:
        """Forget a position of which nothing can be read any more."""
        with self._lock:
            self._positions = [each for each in self._positions if each.fact != fact]
            if self._loaded().pop(fact, None) is not None:
                self._save()

    def write_late(self, *, quiet: bool) -> None:
        """Write the positions that are behind; exactly when the source is `quiet`."""
        for each in self._positions:
            each.write_late(quiet=quiet)

    def write_exactly(self) -> None:
        """Write the positions as they are: nothing more is received."""
        for each in self._positions:
            each.write_exactly()

    def _loaded(self) -> dict[str, Any]:
        if self._facts is None:
            found = {} if self._store is None else self._store.load(self._role)
            self._is_damaged = found is None
            self._facts = dict(found or {})
            self._beside = "" if self._store is None else self._store.beside(self._role)
        return self._facts


class Position:
    """How far a source has come in a stream, whose messages its broker numbers upwards.

    `settled` is the number of the last settled message, -1 for none, and `proof` what tells the
    stream from another one of its name, such as a checksum of that message, or the time at which
    the stream was made. Messages up to `seen` may have been received over earlier connections;
    `ALL_THERE` are those that come until the source falls quiet with all of them settled.
    `highest` has been received. `is_known` is false when the memory of it is damaged.
    Thread-safe: guarded by self._lock.
    """

    def __init__(self, memory: SourceMemory, fact: str, ahead: int) -> None:
        self.fact = fact
        self._memory, self._ahead, self._step = memory, ahead, ahead
        self._lock = threading.RLock()
        saved = memory.get(fact, _read_position, ("", -1, -1))
        self.is_known = saved is not None
        self.proof, self.settled, self.seen = saved or ("", -1, -1)
        self.highest = -1
        self._reach = self.seen  # as the memory has it: messages up to it may have been received
        self._written = (self.proof, self.settled, self._reach)
        self._written_at = self._ahead_at = self._received_at = float("-inf")

    @property
    def is_new(self) -> bool:
        """Whether nothing of this stream is remembered."""
        return self.is_known and self.seen < 0 and self.settled < 0

    def begin(self) -> None:
        """Begin another connection: what came over earlier ones may come again."""
        with self._lock:
            self.seen = max(self.seen, self.highest)

    def begin_anew(self, proof: str, seen: int = -1) -> None:
        """Begin another stream, of which messages up to `seen` may have been received before."""
        with self._lock:
            self.proof, self.settled, self.seen, self.highest = proof, -1, seen, -1
            self.is_known = True
            self._write(seen)

    def received(self, number: int) -> bool:
        """Note a message before it is handed out; return whether it may have been before."""
        with self._lock:
            if number > self.highest:
                self.highest = number
                if number > self._reach:
                    self._write_ahead(number)
                self._received_at = monotonic()
            return number <= self.seen

    def settle(self, number: int, proof: str | None = None) -> None:
        """Note that messages up to `number` are settled; `proof` is that of this message."""
        with self._lock:
            self.settled = number
            if proof is not None:
                self.proof = proof

    def write_late(self, *, quiet: bool) -> None:
        with self._lock:
            now = monotonic()
            if now - max(self._written_at, self._received_at if quiet else 0.0) < WRITE_INTERVAL:
                return
            if quiet and self.seen == ALL_THERE and self.settled >= self.highest:
                self.seen = self.highest  # it has come
            self._write(max(self.seen, self.highest) if quiet else self._reach)

    def write_exactly(self) -> None:
        with self._lock:
            self._write(max(self.seen, self.highest))

    def _write_ahead(self, number: int) -> None:
        """Write the position ahead of `number`: about twice a second, however fast they come."""
        now = monotonic()
        often, self._ahead_at = now - self._ahead_at < WRITE_INTERVAL / 2, now
        wanted = self._step * 2 if often else self._step // 2
        self._step = min(max(wanted, self._ahead), self._ahead * MAX_STEP)
        self._write(number + self._step)

    def _write(self, reach: int) -> None:
        self._reach = reach
        self._written_at = monotonic()
        wanted = (self.proof, self.settled, reach)
        if wanted != self._written:
            self._written = wanted
            self._memory.put(self.fact, list(wanted))


@runtime_checkable
class KeepsMemory(Protocol):
    """A source with a memory; the runtime says where it is kept."""

    @property
    def memory(self) -> SourceMemory:
        """The memory of this source; always the same object."""


def read_count(saved: Untyped) -> int:
    """Return a number of messages, or of one. Raises ValueError when it is none."""
    if not isinstance(saved, int) or not -1 <= saved < MAX_NUMBER:
        raise ValueError(f"{saved!r:.40} is no number of messages")
    return saved


def read_text(saved: Untyped) -> str:
    """Return a text. Raises ValueError when it is none."""
    if not isinstance(saved, str):
        raise ValueError(f"{saved!r:.40} is no text")  # noqa: TRY004  # damage, as all of it
    return saved


def read_texts(saved: Untyped) -> Sequence[str]:
    """Return a list of texts. Raises ValueError when it is none."""
    if not isinstance(saved, list) or not all(isinstance(each, str) for each in saved):
        raise ValueError(f"{saved!r:.40} is no list of texts")
    return saved


def read_made(saved: Untyped) -> Sequence[Made]:
    """Return what a source made. Raises ValueError, TypeError when it is not a list of that."""
    return [Made(*read_texts(each)) for each in saved]


def _read_position(saved: Untyped) -> tuple[str, int, int]:
    proof, settled, reach = saved
    return str(proof), read_count(settled), read_count(reach)
