"""The continuity of a source: what its broker keeps meanwhile, and reported losses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Protocol, runtime_checkable

from gateway.clock import Clock, now

COUNT_INTERVAL: Final = 60_000_000  # microseconds; brokers publish their counts more often
MAX_LOST: Final = 2**63 - 1  # messages; a row of the archive holds no more
BROKER_DROPPED: Final = "the broker counted dropped messages, for all its clients together"


class Retention(Enum):
    """The broker's treatment of the messages for a source that was not connected."""

    NOTHING = "nothing"  # it keeps none: at most once, or no session, queue or subscription
    KEPT = "kept"  # it kept them for the source
    NEW = "new"  # it had no session of the source, and made one


@dataclass(frozen=True, slots=True)
class DroppedMessages:
    """Messages that were dropped before they reached the source, by the broker or the driver.

    `messages` is None when their number is unknown.
    Units: microseconds since 1970-01-01 UTC.
    """

    begin: int
    end: int
    reason: str
    messages: int | None = None


class Continuity:
    """The state of one source that the runtime reads to record gaps.

    `retention` is set before the first `open`, as the settings promise it, and by each `open`.
    `heard` is the time of the last sign of the broker, 0 without one. `dropped` is the broker's own
    count of dropped messages, None without one. The runtime sets `clock` to that of the rows, and
    calls `on_told` when rows say durably what `retention` said.
    Thread-safe: guarded by self._lock.
    Units: microseconds since 1970-01-01 UTC.
    """

    def __init__(self, retention: Retention) -> None:
        self.retention = retention
        self.clock: Clock = now
        self.on_told: Callable[[], None] = lambda: None
        self.heard = 0
        self.dropped: int | None = None
        self._opened = self._away_since = 0
        self._losses: dict[str, DroppedMessages] = {}  # by reason
        self._lock = threading.Lock()

    def begin_counting(self) -> None:
        """Note a new connection: the first change of the count may be from the time before it."""
        at = self.clock()
        if at - self._opened > COUNT_INTERVAL:
            self._away_since = self.heard
        self._opened = at

    def count_dropped(self, total: int) -> None:
        """Note the broker's count of dropped messages, and report those since the last count.

        A broker that restarts counts from 0.
        """
        before, self.dropped = self.dropped, total
        new = total if before is None or total < before else total - before
        if before is None or not new:
            return
        at = self.clock()
        since = self._away_since if at - self._opened <= COUNT_INTERVAL else at - COUNT_INTERVAL
        self.report_loss(BROKER_DROPPED, new, since)

    def report_loss(self, reason: str, messages: int | None = None, since: int = 0) -> None:
        """Report messages that were dropped since `since`, or the last sign of the broker."""
        at = self.clock()
        with self._lock:
            found = self._losses.get(reason)
            if found is None:
                begin = min(since or self.heard or at, at)
                self._losses[reason] = DroppedMessages(begin, at, reason, messages)
                return
            total = None
            if found.messages is not None and messages is not None:
                total = min(found.messages + messages, MAX_LOST)  # any client may publish counts
            self._losses[reason] = replace(found, end=at, messages=total)

    def take_losses(self) -> list[DroppedMessages]:
        """Return the losses reported since the last call, one for each reason."""
        with self._lock:
            losses, self._losses = self._losses, {}
        return list(losses.values())


@runtime_checkable
class ReportsContinuity(Protocol):
    """A source that reports its continuity; a broker inside this process has nothing to report."""

    @property
    def continuity(self) -> Continuity:
        """The state of this source; always the same object."""
