"""The lane of one target: which batch is sent when, and again in order after a lost connection.

While the target is connected and nothing waits, the lane is direct: a batch is sent as soon as it
is accepted. Otherwise it joins the backlog. After a lost connection every unanswered batch is sent
again before any newer one.

A batch that was in flight at several losses is searched by halves, without pauses while the target
answers between the losses. A message that breaks connections alone is rejected as poisoned; the
other messages are sent. For a while after one, a single loss is enough to search a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from gateway.model.outcome import NO_ROOM, Outcome, Settlement, rejected
from gateway.routing.route import WhenFull
from gateway.runtime.delivery.actions import (
    Action,
    Check,
    Close,
    Finish,
    LaneEnd,
    Mark,
    Open,
    Read,
    Recover,
    Send,
    Wait,
)
from gateway.runtime.delivery.backlog import Backlog, SpoolBacklog, refuse_newest
from gateway.runtime.delivery.backoff import Backoff
from gateway.runtime.delivery.batch import OutboundBatch, QueuedBatch
from gateway.runtime.delivery.isolation import Isolation, Search, UnansweredSend, reject_poisoned

MAX_HELD_BYTES: Final = 64 << 20
IDLE_CHECK_INTERVAL: Final = 1.0  # seconds between checks of an idle connection
SOURCES_SECONDS: Final = 60.0  # beside the longest back-off; for the sources at the same broker
SOURCES_CHECK_INTERVAL: Final = 0.1  # seconds


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """The limits of one lane.

    Units: seconds and bytes.
    """

    backoff: tuple[float, float]
    capacity: int = MAX_HELD_BYTES  # bytes in flight and waiting in memory
    isolate_after: int = 3  # attempts after which a batch is searched by halves
    stuck_after_seconds: float = 60.0  # silence after which an unanswered target is stuck


class Connection(Enum):
    AWAY = auto()  # until the pause before the next attempt is over
    OPENING = auto()
    UP = auto()
    BROKEN = auto()  # until no send is in progress
    ENDED = auto()


class LaneState:
    """The state of one lane.

    Events are methods; most return the actions that follow, in order. `now` is a monotonic clock,
    `wall` the time in microseconds since 1970-01-01 UTC.
    Mutable: owned by the lane, which calls one method at a time.
    """

    def __init__(self, name: str, limits: LaneLimits, backlog: Backlog, now: float) -> None:
        self.limits = limits
        self.backlog = backlog
        self.held = 0  # unanswered bytes in memory
        self.draining = False  # stopping: batches on disk stay there
        self.connection = Connection.AWAY
        self.direct = False  # connected, and nothing waits
        self.opened_at = 0.0  # monotonic seconds
        self._name = name
        self._removed = False  # by a reload
        self._backoff = Backoff()
        self._retry_at = self._check_at = self._last_answer = now
        self._sources_until: float | None = None  # the end of the wait for sources
        self._ours = False  # no message broke the connection, so none is suspected
        self._unanswered: dict[int, UnansweredSend] = {}
        self._sends = 0
        self._taken: QueuedBatch | None = None  # taken from the backlog, and not sent yet
        self._isolation: Isolation | None = None
        self._search = Search()

    @property
    def is_up(self) -> bool:
        return self.connection is Connection.UP

    @property
    def retry_at(self) -> float | None:
        """When the next attempt to connect begins; None unless the lane waits for it."""
        return self._retry_at if self.connection is Connection.AWAY else None

    # Batches that arrive

    def has_room(self, batch: OutboundBatch) -> bool:
        """Return whether `accept` takes the batch now, or never; if not, its source is slowed."""
        if self.connection is Connection.ENDED:
            return True
        if self.direct or not self.backlog.on_disk:
            return self._fits(batch.size)
        if self.connection is Connection.BROKEN or self.backlog.puts_back:
            return False  # the unanswered batches are older, and must be put back first
        return batch.when_full is not WhenFull.SLOW or self.backlog.fits(batch)

    def accept(self, batch: OutboundBatch, now: float) -> list[Action] | None:
        """Send the batch or let it wait; None if there is no room for it yet.

        The oldest batches of a full spool must be rejected before, with `make_room`.
        """
        if self.connection is Connection.ENDED:
            return [self._refuse_removed(batch)] if self._removed else []
        if not self.has_room(batch):
            return None
        queued = QueuedBatch(batch, self.backlog.next_number())
        if self.direct or not self.backlog.on_disk:
            self.held += batch.size
        if self.direct:
            return [self._send(queued, queued.unsettled, now)]
        if not self.backlog.fits(batch):  # only a spool has no room
            return [refuse_newest(queued, self._name)]
        store = self.backlog.put(queued)
        return [store] if store else []

    def make_room(self, batch: OutboundBatch) -> Finish | Read | Wait | None:
        """The next step that makes room for `batch` at the expense of the oldest ones.

        None if it fits, or none must make room for it.
        """
        backlog = self.backlog
        if (
            batch.when_full is not WhenFull.OLDEST or self.direct or backlog.fits(batch)
            or not isinstance(backlog, SpoolBacklog) or self.connection is Connection.ENDED
        ):  # fmt: skip
            return None
        return backlog.take_oldest() or Wait(None)

    def offer(self, batch: OutboundBatch, now: float) -> Send | None:
        """Send the batch if that is possible at once, and never again."""
        if not self.direct or not self._fits(batch.size):
            return None
        self.held += batch.size
        queued = QueuedBatch(batch, self.backlog.next_number(), resend=False)
        return self._send(queued, queued.unsettled, now)

    # Answers and lost connections

    def answered(self, number: int, settlements: Sequence[Settlement], now: float) -> list[Action]:
        """The target answered a send; it must be sent again if an answer is not final."""
        send = self._unanswered.get(number)
        if send is None:
            return []  # a late answer, from a connection that was given up
        self._last_answer = now
        queued = send.queued
        if any(each.outcome is not Outcome.RETRY for each in settlements):
            self._search.answered()
        if not queued.settle(send.positions, settlements):
            refusals = [each for each in settlements if each.outcome is Outcome.RETRY]
            self.broken(ours=all(each.rule == NO_ROOM.rule for each in refusals))
            return []
        del self._unanswered[number]
        if queued.unsettled:
            return []
        self.held -= queued.batch.size
        return [Finish(queued)]

    def broken(self, *, ours: bool = False) -> bool:
        """The connection is lost, or is replaced for a reason of `ours` or for want of room.

        Return False if it was not up.
        """
        if self.connection is not Connection.UP:
            return False
        self.connection, self.direct, self._ours = Connection.BROKEN, False, ours
        return True

    def hasten(self, now: float) -> None:
        """Connect without the rest of a pause."""
        if self.connection is Connection.AWAY:
            self._retry_at = now

    def is_stuck(self, now: float) -> float:
        """Return for how many seconds too long no send has been answered; 0 if it is not so."""
        silence = self.silence(now)
        return silence if silence > self.limits.stuck_after_seconds else 0.0

    def silence(self, now: float) -> float:
        """Return for how many seconds a connected target has owed an answer; 0 if it owes none."""
        if self.connection is not Connection.UP or not self._unanswered:
            return 0.0
        return now - self._last_answer

    def recover(self, now: float, jitter: float) -> None:
        """No send is in progress any more: put all that has no answer back, in order."""
        if self.connection is not Connection.BROKEN:
            return
        sends, self._unanswered = list(self._unanswered.values()), {}
        searching = self._search.lost(sends, self._isolation, now, ours=self._ours)
        queued = [send.queued for send in sends]
        if self._taken is not None:
            queued.append(self._taken)
        if self._isolation is not None:
            queued.append(self._isolation.queued)
        in_memory = {id(send.queued) for send in sends}
        left = [each for each in {id(each): each for each in queued}.values() if each.unsettled]
        if self._isolation is not None and self.backlog.on_disk:
            in_memory.add(id(self._isolation.queued))
        self._taken = self._isolation = None
        freed = [each for each in left if id(each) in in_memory]
        if not self.backlog.on_disk:
            freed = [each for each in freed if not each.resend]
        self.held -= sum(each.batch.size for each in freed)
        self.backlog.put_back(each for each in left if each.resend)
        if searching:
            self._backoff.forgive()
            self.connection, self._retry_at = Connection.AWAY, now
        else:
            self._go_away(now, jitter, refused=False)

    # The connection

    def opened(self, now: float) -> list[Action]:
        if self.connection is not Connection.OPENING:
            return [Close()]
        self.connection, self._ours = Connection.UP, False
        self._backoff.connected(now)
        self._check_at = now + IDLE_CHECK_INTERVAL
        self.opened_at = now
        self._sources_until = now + SOURCES_SECONDS + self.limits.backoff[1]
        return []

    def failed(self, now: float, jitter: float, *, refused: bool) -> None:
        """The sink could not be opened; `refused` if its broker does not want us."""
        if self.connection is Connection.OPENING:
            self._go_away(now, jitter, refused=refused)

    def next(self, now: float, wall: int, *, sources_ready: bool = True) -> Action:
        """Return the next step of the lane's own thread.

        `sources_ready`: no source of the gateway misses what the target's broker gets now.
        """
        match self.connection:
            case Connection.ENDED:
                return LaneEnd()
            case Connection.BROKEN:
                return Recover()
            case Connection.UP:
                step = self._next_on_disk(wall) or self._await_sources(now, ready=sources_ready)
                return step or self._drain(now) or self._next_check(now)
            case _:
                return self._next_on_disk(wall) or self._next_attempt(now)

    # The end

    def idle(self) -> bool:
        """Return whether no batch in memory is unanswered; batches on disk do not count."""
        in_memory = not self.backlog.on_disk
        waiting = self._taken or self._isolation or not self.backlog.empty()
        return not self._unanswered and not (in_memory and waiting)

    def drain(self) -> None:
        """Send nothing more from the disk: the lane is about to stop."""
        self.draining = self.backlog.on_disk

    def end(self) -> list[Action]:
        """Stop; what has no answer stays at its source or on disk, and is sent again later."""
        self.connection, self.direct = Connection.ENDED, False
        return [Close()]

    def remove(self) -> list[Action]:
        """A reload removed the target: what is not on disk becomes dead letters.

        Their sources would otherwise wait for it for ever.
        """
        waiting = [send.queued for send in self._unanswered.values()]
        waiting += [each for each in (self._taken,) if each]
        waiting += [self._isolation.queued] if self._isolation else []
        while (store := self.backlog.next_store()) is not None:
            waiting.append(store.queued)
        if not self.backlog.on_disk:
            while isinstance(queued := self.backlog.take(), QueuedBatch):
                waiting.append(queued)
        self._unanswered, self._taken, self._isolation = {}, None, None
        self._removed = True
        actions = self.end()
        for each in {id(each): each for each in waiting if not each.stored}.values():
            each.settle_rest(self._removal())
            actions.append(Finish(each))
        return actions

    # Within

    def _fits(self, size: int) -> bool:
        return not self.held or self.held + size <= self.limits.capacity

    def _go_away(self, now: float, jitter: float, *, refused: bool) -> None:
        pause = self._backoff.pause(self.limits.backoff, now, jitter, refused=refused)
        self.connection, self._retry_at = Connection.AWAY, now + pause

    def _send(self, queued: QueuedBatch, positions: Sequence[int], now: float) -> Send:
        self._sends += 1
        if not self._unanswered:
            self._last_answer = now
        self._unanswered[self._sends] = UnansweredSend(queued, positions, now)
        queued.attempts += 1
        return Send(self._sends, queued, positions)

    def _next_on_disk(self, wall: int) -> Action | None:
        """Write what was put back; reject what waited too long."""
        return self.backlog.next_store() or (None if self.direct else self._next_expired(wall))

    def _next_attempt(self, now: float) -> Action:
        if now < self._retry_at:
            return Wait(self._retry_at - now)
        self.connection = Connection.OPENING
        return Open()

    def _await_sources(self, now: float, *, ready: bool) -> Action | None:
        """Let nothing pass to a new connection before the sources at its broker have theirs."""
        if self._sources_until is None:
            return None
        if ready or now >= self._sources_until:
            self._sources_until = None
            return None
        check = self._next_check(now)
        return Wait(SOURCES_CHECK_INTERVAL) if isinstance(check, Wait) else check

    def _next_check(self, now: float) -> Action:
        if now < self._check_at:
            return Wait(self._check_at - now)
        self._check_at = now + IDLE_CHECK_INTERVAL
        return Check()

    def _drain(self, now: float) -> Action | None:
        """The next step until the backlog is empty; None if the lane is direct."""
        if self.direct:
            return None
        if self._isolation is not None and (action := self._send_part(self._isolation, now)):
            return action
        if self.draining:
            return Wait(None)
        if self._taken is None and (action := self._take()):
            return action
        return None if self._taken is None else self._send_taken(self._taken, now)

    def _take(self) -> Action | None:
        """Take the next batch, or return what must happen before; neither if none is left."""
        found = self.backlog.take()
        if isinstance(found, Read | Mark):
            return found
        self._taken = found
        self.direct = found is None and self.backlog.empty()
        return Wait(None) if found is None and not self.direct else None

    def _send_taken(self, queued: QueuedBatch, now: float) -> Action:
        if not queued.unsettled:  # its rows are damaged
            self._taken = None
            return Finish(queued)
        if self.backlog.on_disk:
            if not self._fits(queued.batch.size):
                return Wait(None)
            self.held += queued.batch.size
        self._taken = None
        isolate_after = 1 if self._search.is_wary(now) else self.limits.isolate_after
        if queued.attempts < isolate_after and not queued.parts:
            return self._send(queued, queued.unsettled, now)
        until = now + self.limits.stuck_after_seconds
        attempts = queued.attempts if queued.parts else queued.attempts + 1
        self._isolation = Isolation(queued, until, attempts)
        return self._send_part(self._isolation, now) or Wait(0.0)

    def _send_part(self, isolation: Isolation, now: float) -> Action | None:
        """The next step for a batch that is sent part by part; None when it is done."""
        queued = isolation.queued
        if isolation.parts is None:
            if self._unanswered and now < isolation.until:
                return Wait(isolation.until - now)
            if reject_poisoned(queued, self._name):
                self._search.found(now)
            if not queued.unsettled:
                self._isolation = None
                self.held -= queued.batch.size
                return Finish(queued)
            isolation.begin()
        elif isolation.number in self._unanswered:
            return Wait(None)
        if not isolation.parts:
            self._isolation = None
            return None
        send = self._send(queued, isolation.parts.popleft(), now)
        queued.attempts = isolation.attempts  # counted for the batch, not for each part
        isolation.number = send.number
        return send

    def _next_expired(self, wall: int) -> Finish | Read | None:
        backlog = self.backlog
        if not isinstance(backlog, SpoolBacklog) or backlog.limits.seconds is None or self._taken:
            return None
        oldest = wall - int(backlog.limits.seconds * 1_000_000)
        return backlog.take_oldest(older_than=oldest)

    def _refuse_removed(self, batch: OutboundBatch) -> Finish:
        queued = QueuedBatch(batch, 0)
        queued.settle_rest(self._removal())
        return Finish(queued)

    def _removal(self) -> Settlement:
        return rejected("target-removed", f"a reload removed the target {self._name}")
