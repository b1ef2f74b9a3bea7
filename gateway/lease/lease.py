"""The decisions about a lease: when an instance takes, renews and loses it.

No clock and no store is known here: each event bears the time, each answer says what to do next.

The rule that lets no two instances hold it at once: a holder counts its time from *before* it asked
the store, another instance counts it from *after* it saw the last renewal, and both need only
clocks that run at about the same speed, never the same time of day. `LeaseStore` is the seam of a
store that keeps a lease.

An instance has one lease. A holder may still have messages that it took before the next holder
began.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol, TypeAlias

from gateway.errors import GatewayError

MARGIN: Final = 0.02  # of the time, by which a holder stops early: for clocks of different speed
TICK: Final = 1e-6  # seconds; the clock shows no shorter time
RENEWALS: Final = 3  # within the time of a lease


@dataclass(frozen=True, slots=True)
class Record:
    """A lease as a store has it.

    `renewal` is a text that each renewal changes; `given` says that its holder gave it away.
    `standby` has such texts by the name of each instance that waits. `wanted` is the number of the
    lease that somebody asked to give away, 0 when nobody did. `identity` has 32
    hexadecimal digits that belong only to this lease, from its first holder on.
    """

    number: int
    holder: str
    renewal: str = ""
    given: bool = False
    standby: Mapping[str, str] = field(default_factory=dict)
    wanted: int = 0
    identity: str = ""


NO_RECORD: Final = Record(0, "", given=True)


class Role(Enum):
    """The part of an instance in its pair."""

    STANDBY = "standby"
    HOLDER = "holder"


@dataclass(frozen=True, slots=True)
class Look:
    """Read the record and say that this instance waits."""


@dataclass(frozen=True, slots=True)
class Take:
    """Make the record after `seen`, if that is still as it was seen; only one instance can."""

    seen: Record


@dataclass(frozen=True, slots=True)
class Renew:
    """Renew the record `number`, and read it."""

    number: int


@dataclass(frozen=True, slots=True)
class Give:
    """State in the record `number` that its holder gave it away."""

    number: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing is to be done for `seconds`."""

    seconds: float


Step: TypeAlias = Look | Take | Renew | Give | Pause


class Lease:
    """The view that one instance has of the lease.

    Mutable, without a lock: the thread of a `LeaseHolder` owns it; `holds` may be asked by any.
    Units: seconds of one clock that never stops and is never set.
    """

    def __init__(self, instance: str, seconds: float, look_every: float) -> None:
        """Wait for a lease of `seconds`, looking for it every `look_every` seconds."""
        self.instance = instance
        self.record = NO_RECORD
        self.number = 0  # of the lease that this instance holds, or held last
        self._time = seconds
        self._look_every = look_every
        self._until = float("-inf")  # the end of our time
        self._next = float("-inf")  # when a store is asked again
        self._unchanged_since: float | None = None  # of the record, as we saw it
        self._standby: dict[str, tuple[str, float]] = {}  # last text, and since when
        self._leaving = False

    def holds(self, now: float) -> bool:
        """Return whether this instance may hand messages over."""
        return now < self._until and not self._leaving

    @property
    def wanted(self) -> bool:
        """Whether somebody asked this holder to give its lease away."""
        return self.number > 0 and self.record.wanted == self.number

    @property
    def left(self) -> bool:
        """Whether this instance takes no lease any more: it lost its own, or gave it away."""
        return self._leaving and self._until == float("-inf")

    def standby(self, now: float) -> list[str]:
        """Return the others that wait, in the last `seconds` at least once."""
        return sorted(
            name
            for name, (_, since) in self._standby.items()
            if name != self.instance and now - since < self._time
        )

    def give(self) -> None:
        """Hold the lease no more, give it away if it was held, and take none any more."""
        self._leaving = True
        self._next = float("-inf")

    def next(self, now: float) -> Step:
        """Return what to do at `now`."""
        if self._until != float("-inf") and now >= self._until:  # frozen, or the store was away
            self._lose()
        if self._leaving and not self.left:
            return Give(self.number)
        if now + TICK < self._next:
            return Pause(self._next - now)
        if self._until != float("-inf"):
            return Renew(self.number)
        if self._free(now) and not self._leaving:
            return Take(self.record)
        return Look()

    def looked(self, now: float, record: Record) -> None:
        """Note the answer to `Look`, at a time after it: the record that is in the store."""
        self._see(now, record)
        self._next = now if self._free(now) and not self._leaving else now + self._look_every

    def taken(self, asked: float, record: Record | None) -> None:
        """Note the answer to `Take`, asked at `asked`: None if another instance was earlier."""
        self._unchanged_since = None
        self._next = float("-inf")
        if record is not None:
            self.record, self.number = record, record.number
            self._extend(asked)

    def renewed(self, asked: float, now: float, record: Record) -> None:
        """Note the answer to `Renew`, asked at `asked`: the record that is in the store."""
        self._see(now, record)
        if record.number != self.number or record.holder != self.instance:
            self._lose()
        else:
            self._extend(asked)

    def gave(self) -> None:
        """Note that the lease was given away."""
        self._until = float("-inf")

    def failed(self, now: float) -> None:
        """Note that the store did not answer; it is asked again within the time of the lease."""
        if self._leaving:
            self.gave()  # the end of its time tells the others
        self._next = now + self._look_every

    def _extend(self, asked: float) -> None:
        self._until = asked + self._time * (1 - MARGIN)
        self._next = asked + self._time / RENEWALS

    def _lose(self) -> None:
        self._leaving = True
        self._until = self._next = float("-inf")

    def _free(self, now: float) -> bool:
        """Return whether nobody holds the record, if it is still as it was seen last."""
        if self._unchanged_since is None:
            return False
        return self.record.given or now - self._unchanged_since >= self._time

    def _see(self, now: float, record: Record) -> None:
        old = self.record
        same = (old.number, old.renewal, old.given) == (record.number, record.renewal, record.given)
        if not same or self._unchanged_since is None:
            self._unchanged_since = now
        for name in self._standby.keys() - record.standby.keys():
            del self._standby[name]
        for name, text in record.standby.items():
            if name not in self._standby:  # perhaps left by one that ended long ago
                self._standby[name] = (text, float("-inf"))
            elif self._standby[name][0] != text:
                self._standby[name] = (text, now)
        self.record = record


class LeaseError(GatewayError):
    """The store of a lease did not answer, or refused; the text says where and why."""

    retryable = True


class LeaseStore(Protocol):
    """The place where the instances of a pair keep their lease.

    Each call raises LeaseError when the store does not answer. A call may block: nothing that
    decides about a message waits for one.
    """

    look_every: float  # seconds between two looks of a standby

    def look(self, instance: str = "") -> Record:
        """Return the record; with a name, state that this instance waits."""

    def take(self, seen: Record, instance: str) -> Record | None:
        """Make the next record; return None when the last one is not `seen` any more.

        A renewal of `seen` that arrives later must not be answered as one.
        """

    def renew(self, number: int, instance: str) -> Record:
        """Change the record `number` if it is the last; return the last one."""

    def give(self, number: int, instance: str) -> None:
        """State that the record `number` was given away, if it is the last."""

    def want(self, number: int) -> None:
        """Ask the holder of the record `number` to give it away."""

    def read_memory(self) -> str | None:
        """Return the text that the last holder kept beside the lease; None without one."""

    def write_memory(self, number: int, instance: str, text: str) -> None:
        """Keep a text for the next holder; one of a lease that was taken has no effect on it."""
