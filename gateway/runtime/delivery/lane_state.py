"""The lane of one target: which batch is sent when, and again in order after a lost connection.

While the target is connected and nothing waits, the lane is direct: a batch is sent as soon as it
is accepted. Otherwise it joins the backlog. After a lost connection every unanswered batch is sent
again before any newer one.

A batch that was in flight at several losses is searched by halves, without pauses while the target
answers between the losses. A message that breaks connections alone is rejected as poisoned; the
other messages are sent. For a while after one, a single loss is enough to search a batch.

A target without room gets one message after each pause, until it accepts one. It may copy a message
to several queues before one of them refuses it, and all of them get it again at each attempt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.model.dead_letter_rule import SPOOL_FULL, TARGET_REMOVED
from gateway.model.outcome import NO_ROOM, Outcome, Settlement, rejected
from gateway.routing.route import WhenFull
from gateway.runtime.delivery.actions import Action, Finish, Lost, Mark, Read, Send, Step, Wait
from gateway.runtime.delivery.backlog import Backlog, SpoolBacklog
from gateway.runtime.delivery.backoff import Backoff, Pace
from gateway.runtime.delivery.isolation import Isolation, Search, reject_poisoned
from gateway.runtime.delivery.lane_limits import LaneLimits
from gateway.runtime.delivery.lane_phase import CONNECTED, ENDED, TRANSITIONS, Event, Phase
from gateway.runtime.delivery.outbound_batch import OutboundBatch

IDLE_CHECK_INTERVAL: Final = 1.0  # seconds between checks of an idle connection
SOURCES_SECONDS: Final = 60.0  # beside the longest back-off; for the sources at the same broker
SOURCES_CHECK_INTERVAL: Final = 0.1  # seconds


@dataclass(frozen=True, slots=True)
class Burst:
    """A batch whose first messages were sent, as many as the rate allowed; `rest` follows."""

    batch: OutboundBatch
    rest: Sequence[int]


class LaneState:
    """The state of one lane.

    Events are methods; most return the action that follows. `now` is a monotonic clock, `wall` the
    time in microseconds since 1970-01-01 UTC.
    Mutable: owned by the lane, which calls one method at a time.
    """

    def __init__(self, name: str, limits: LaneLimits, backlog: Backlog, now: float) -> None:
        self.limits = limits
        self.backlog = backlog
        self._disk = backlog if isinstance(backlog, SpoolBacklog) else None
        self.phase = Phase.AWAY
        self.held = 0  # unanswered bytes in memory
        self.stopping = False  # what waits is not sent over this connection
        self.opened_at = 0.0  # monotonic seconds
        self.name = name
        self._backoff = Backoff()
        self._retry_at = self._check_at = self._last_answer = self._held_until = now
        self._hastened = False  # during an attempt, or before the pause behind a loss
        self._ours = False  # no message broke the connection, so none is suspected
        self._unanswered: dict[int, Send] = {}  # by number
        self._sends = 0
        # from the backlog, and not sent yet: as a whole, in bursts, or part by part
        self._taken: OutboundBatch | Burst | Isolation | None = None
        self._pace = Pace()
        self._probes = False  # one message is sent, and no other before its answer
        self._search = Search()

    @property
    def retry_at(self) -> float | None:
        """When the next attempt to connect begins; None unless the lane waits for it."""
        return self._retry_at if self.phase is Phase.AWAY else None

    # Batches that arrive

    def has_room(self, batch: OutboundBatch) -> bool:
        """Return whether `accept` takes the batch now, or never; if not, its source is slowed."""
        if self.phase in ENDED:
            return True
        if self.phase is Phase.DIRECT or self._disk is None:
            return self._fits(batch.size)
        if self.phase is Phase.BROKEN or self._disk.puts_back:
            return False  # the unanswered batches are older, and must be put back first
        return batch.when_full is not WhenFull.SLOW or self._disk.fits(batch)

    def accept(self, batch: OutboundBatch, now: float) -> Action | None:
        """Send the batch or let it wait; a batch that has no room yet gets no number."""
        if self.phase in ENDED:
            batch.number = self.backlog.next_number()
            return self._refuse_removed(batch) if self.phase is Phase.REMOVED else None
        if self.limits.rate and self._is_paced(batch, now):
            self._move(Event.PACED)
        if self.phase is Phase.DIRECT:
            if not self._fits(batch.size):
                return None
            self.held += batch.size
            batch.number = self.backlog.next_number()
            batch.attempts += 1
            return self._send(batch, batch.unsettled, now)
        if not self.has_room(batch):
            return None
        if self._disk is None:
            self.held += batch.size
        elif not self._disk.fits(batch):
            return self._make_room(batch, self._disk)
        batch.number = self.backlog.next_number()
        return self.backlog.put(batch)

    def offer(self, batch: OutboundBatch, now: float) -> Send | None:
        """Send the batch if that is possible at once, and never again."""
        paced = self.limits.rate and self._is_paced(batch, now)
        if paced or self.phase is not Phase.DIRECT:
            return None
        batch.resend = False
        action = self.accept(batch, now)
        return action if isinstance(action, Send) else None

    # Answers and lost connections

    def answered(
        self, number: int, settlements: Sequence[Settlement], now: float
    ) -> Finish | Lost | None:
        """The target answered a send; it must be sent again if an answer is not final."""
        send = self._unanswered.get(number)
        if send is None:
            return None  # a late answer, from a connection that was given up
        self._last_answer = now
        batch = send.batch
        if batch.settle(send.positions, settlements, now):
            self._search.fruitless = 0
            self._probes = self._probes and self.phase is Phase.BROKEN
            del self._unanswered[number]
            if batch.unsettled:
                return None
            self.held -= batch.size
            return Finish(batch)
        refusals = [each for each in settlements if each.outcome is Outcome.RETRY]
        if len(refusals) < len(settlements):
            self._search.fruitless = 0
        full = [each.reason for each in refusals if each.rule == NO_ROOM.rule]
        if not self.broken(ours=len(full) == len(refusals)):
            return None
        self._probes = bool(full)
        return Lost(full[0] if full else "messages were not answered")

    def broken(self, *, ours: bool = False) -> bool:
        """The connection is lost, or is replaced for a reason of `ours` or for want of room.

        Return False if it was not up.
        """
        if not self._move(Event.LOST):
            return False
        self._ours = ours
        return True

    def hasten(self, now: float) -> None:
        """Connect without the rest of a pause, or without the next one while none is known."""
        self._hastened = self.phase in {Phase.OPENING, Phase.BROKEN}
        if self.phase is Phase.AWAY:
            self._retry_at = now

    def silence(self, now: float) -> float:
        """Return for how many seconds a connected target has owed an answer; 0 if it owes none."""
        if self.phase not in CONNECTED or not self._unanswered:
            return 0.0
        return now - self._last_answer

    def prepare_loss(self) -> None:
        """Send nothing more over this connection, which is about to be replaced."""
        self._move(Event.PACED)
        self.stopping = True

    def owes_nothing(self) -> bool:
        """Return whether all that was sent over this connection is answered, or it is lost."""
        done = not self._unanswered and not isinstance(self._taken, Burst | Isolation)
        return done or self.phase not in CONNECTED

    def recover(self, now: float, jitter: float) -> None:
        """No send is in progress any more: put all that has no answer back, in order."""
        if not self._move(Event.RECOVERED):
            return
        sends, on_disk = list(self._unanswered.values()), self._disk is not None
        taken = self._taken  # a whole one from the disk is not held yet
        isolation = taken if isinstance(taken, Isolation) else None
        searching = self._search.lost(sends, isolation, now, ours=self._ours)
        left = [each for each in self._give_up() if each.unsettled]
        freed = [each for each in left if each is not taken and (on_disk or not each.resend)]
        self.held -= sum(each.size for each in freed)
        self.backlog.put_back(each for each in left if each.resend)
        if searching:
            self._backoff.forgive()
            self._retry_at = now
        else:
            self._pause(now, jitter, refused=False)

    # The connection

    def opened(self, now: float) -> Step | None:
        """The sink is open; it is closed again if the lane has ended meanwhile."""
        if not self._move(Event.OPENED):
            return Step.CLOSE
        self._ours = self._hastened = False
        self._backoff.connected(now)
        self._check_at = now + IDLE_CHECK_INTERVAL
        self.opened_at = now
        self._held_until = now + SOURCES_SECONDS + self.limits.backoff[1]
        return None

    def failed(self, now: float, jitter: float, *, refused: bool) -> None:
        """The sink could not be opened; `refused` if its broker does not want us."""
        if self._move(Event.FAILED):
            self._pause(now, jitter, refused=refused)

    def next(self, now: float, wall: int, *, sources_ready: bool = True) -> Action:
        """Return the next step of the lane's own thread.

        `sources_ready`: no source of the gateway misses what the target's broker gets now.
        """
        if self.phase in ENDED:
            return Step.END
        if self.phase is Phase.BROKEN:
            return Step.RECOVER
        if step := self._next_on_disk(wall):
            return step
        if self.phase not in CONNECTED:
            return self._next_attempt(now)
        if self.phase is Phase.HELD:
            if not sources_ready and now < self._held_until:
                return self._wait(SOURCES_CHECK_INTERVAL, now)
            self._move(Event.READY)
        return self._drain(now) or self._next_check(now)

    # The end

    def idle(self) -> bool:
        """Return whether no batch in memory is unanswered; batches on disk do not count."""
        in_memory = self._disk is None
        waiting = self._taken or not self.backlog.empty()
        is_burst = isinstance(self._taken, Burst)
        return not self._unanswered and not is_burst and not (in_memory and waiting)

    def prepare_stop(self) -> None:
        """Send nothing more from the disk: the lane is about to stop."""
        self.stopping = self._disk is not None

    def stop(self) -> list[Action]:
        """Stop; what has no answer stays at its source or on disk, and is sent again later."""
        self._move(Event.STOP)
        return [Step.CLOSE]

    def remove(self) -> list[Action]:
        """A reload removed the target: what is not on disk becomes dead letters.

        Their sources would otherwise wait for it for ever.
        """
        waiting = self._give_up()
        if self._disk is None:
            while isinstance(batch := self.backlog.take(), OutboundBatch):
                waiting.append(batch)
        else:
            while (store := self._disk.next_store()) is not None:
                waiting.append(store.batch)
        self._move(Event.REMOVE)
        return [Step.CLOSE, *(self._refuse_removed(each) for each in waiting if not each.rows)]

    # Within

    def _give_up(self) -> list[OutboundBatch]:
        """Forget all that was taken or sent; return its batches."""
        batches = [send.batch for send in self._unanswered.values()]
        if (taken := self._taken) is not None:
            batches.append(taken if isinstance(taken, OutboundBatch) else taken.batch)
        self._unanswered, self._taken = {}, None
        return [*{id(each): each for each in batches}.values()]

    def _move(self, event: Event) -> bool:
        """Take up the phase after an event; return whether the event concerns this phase."""
        phase = TRANSITIONS.get((self.phase, event))
        self.phase = phase or self.phase
        return phase is not None

    def _fits(self, size: int) -> bool:
        return not self.held or self.held + size <= self.limits.capacity

    def _is_paced(self, batch: OutboundBatch, now: float) -> bool:
        """Return whether the batch is too much for this moment."""
        rate, count = self.limits.rate, len(batch.unsettled)
        return self._pace.pause(rate, now) > 0 or self._pace.burst(rate, count) < count

    def _make_room(self, batch: OutboundBatch, disk: SpoolBacklog) -> Finish | Read | Wait:
        """The next step for a full spool: it gives up its oldest batch, or this one."""
        if batch.when_full is WhenFull.OLDEST:
            return disk.take_oldest() or Wait(None)
        batch.number = self.backlog.next_number()
        batch.settle_rest(rejected(SPOOL_FULL, f"the spool of {self.name} is full"))
        return Finish(batch)

    def _pause(self, now: float, jitter: float, *, refused: bool) -> None:
        pause = self._backoff.pause(self.limits.backoff, now, jitter, refused=refused)
        self._retry_at = now if self._hastened else now + pause
        self._hastened = False

    def _send(self, batch: OutboundBatch, positions: Sequence[int], now: float) -> Send:
        self._sends += 1
        if not self._unanswered:
            self._last_answer = now
        send = self._unanswered[self._sends] = Send(self._sends, batch, positions, now)
        if self.limits.rate:
            self._pace.sent(len(positions), self.limits.rate, now)
        return send

    def _next_on_disk(self, wall: int) -> Action | None:
        """Write what was put back; reject what waited too long."""
        if self._disk is None:
            return None
        store = self._disk.next_store()
        if store or self.phase is Phase.DIRECT or self._taken:
            return store
        return self._disk.take_expired(wall)

    def _next_attempt(self, now: float) -> Action:
        if now < self._retry_at:
            return Wait(self._retry_at - now)
        self._move(Event.ATTEMPT)
        return Step.OPEN

    def _wait(self, seconds: float, now: float) -> Action:
        """Wait, unless the connection is to be checked."""
        check = self._next_check(now)
        return Wait(min(seconds, check.seconds or 0.0)) if isinstance(check, Wait) else check

    def _next_check(self, now: float) -> Action:
        if now < self._check_at:
            return Wait(self._check_at - now)
        self._check_at = now + IDLE_CHECK_INTERVAL
        return Step.CHECK

    def _drain(self, now: float) -> Action | None:
        """The next step until the backlog is empty; None if the lane is direct."""
        if self.phase is Phase.DIRECT:
            return None
        if pause := self._pace.pause(self.limits.rate, now):
            return self._wait(pause, now)
        if action := self._send_more(now):
            return action
        if self.stopping:
            return Wait(None)
        if self._taken is None and (action := self._take()):
            return action
        return (
            self._send_taken(taken, now)
            if isinstance(taken := self._taken, OutboundBatch)
            else None
        )

    def _send_more(self, now: float) -> Action | None:
        """The next step for a batch of which a part was sent; None if there is none, or no more."""
        if self._probes and self._unanswered:
            return Wait(None)
        match self._taken:
            case Burst(batch, rest):
                return self._send_burst(batch, rest, now)
            case Isolation() as isolation:
                return self._send_part(isolation, now)
            case _:
                return None

    def _take(self) -> Action | None:
        """Take the next batch, or return what must happen before; neither if none is left."""
        found = self.backlog.take()
        if isinstance(found, Read | Mark):
            return found
        self._taken = found
        if found is None and self.backlog.empty():
            self._move(Event.EMPTY)
        return Wait(None) if found is None and self.phase is not Phase.DIRECT else None

    def _send_taken(self, batch: OutboundBatch, now: float) -> Action:
        if not batch.unsettled:  # its rows are damaged
            self._taken = None
            return Finish(batch)
        if self._disk is not None:
            if not self._fits(batch.size):
                return Wait(None)
            self.held += batch.size
        isolate_after = 1 if self._search.is_wary(now) else self.limits.isolate_after
        if self._probes or (batch.attempts < isolate_after and not batch.parts):
            batch.attempts += 1
            return self._send_burst(batch, batch.unsettled, now)
        self._taken = Isolation(batch, now + self.limits.stuck_after_seconds)
        return self._send_part(self._taken, now) or Wait(0.0)

    def _send_burst(self, batch: OutboundBatch, positions: Sequence[int], now: float) -> Send:
        """Send the first of `positions` of the taken batch: a probe, or what its rate allows."""
        count = 1 if self._probes else self._pace.burst(self.limits.rate, len(positions))
        self._taken = Burst(batch, rest) if (rest := positions[count:]) else None
        return self._send(batch, positions[:count], now)

    def _send_part(self, isolation: Isolation, now: float) -> Action | None:
        """The next step for a batch that is sent part by part; None when it is done."""
        batch = isolation.batch
        if isolation.parts is None:
            if self._unanswered and now < isolation.until:
                return Wait(isolation.until - now)
            if reject_poisoned(batch, self.name):
                self._search.found(now)
            if not batch.unsettled:
                self._taken = None
                self.held -= batch.size
                return Finish(batch)
            isolation.begin()
        elif isolation.number in self._unanswered:
            return Wait(None)
        if not isolation.parts:
            self._taken = None
            return None
        send = self._send(batch, isolation.parts.popleft(), now)
        isolation.number = send.number
        return send

    def _refuse_removed(self, batch: OutboundBatch) -> Finish:
        reason = f"a reload removed the target {self.name}"
        batch.settle_rest(rejected(TARGET_REMOVED, reason))
        return Finish(batch)
