"""One target's way out: sends in order, and after a break sends again in order."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gateway.endpoints.base import Sink
from gateway.errors import GatewayError, NotConnectedError
from gateway.model.message import Message
from gateway.model.outcome import Settlement, rejected
from gateway.runtime.monitor.counters import Connection, EndpointState
from gateway.runtime.outbound.backlog import Backlog, Item, MemoryBacklog, Parcel
from gateway.runtime.outbound.backoff import Attempts

log = logging.getLogger(__name__)

CAPACITY = 64 << 20  # bytes
WATCH = 1.0  # seconds between looks at an idle connection
ALONE = 2  # breaks with nothing else under way that make a message guilty
GUILTY = 5.0  # seconds after which a break is not the message's fault: a time-out, say
SOON = 0.05  # seconds between looks for what the disk is about to have


@dataclass(frozen=True, slots=True)
class Outlet:
    """Where a lane leads: a sink, what its system can carry, how to come back to it."""

    sink: Sink
    system: str
    carries: frozenset[str]
    backoff: tuple[float, float]
    capacity: int = CAPACITY  # bytes under way and waiting in memory
    suspect_after: int = 3  # breaks after which what was under way is sent one by one
    answer_seconds: float = 60.0  # silence after which a connection with work counts as stuck
    sending: Callable[[Sequence[Message]], None] | None = None  # told of all that is handed over


@dataclass(frozen=True, slots=True)
class _Sent:
    """A part of an item that waits for its answer since a moment of the monotonic clock."""

    item: Item
    positions: Sequence[int]
    since: float


class Lane:
    """Owns the sink of one endpoint and the thread that opens it and opens it again.

    `deliver` hands over at once while the sink is up and nothing waits. Otherwise the parcel goes
    behind what waits: on disk when there is a spool, else in memory, at most `capacity` bytes with
    what is under way; then a full lane makes `deliver` wait, which slows the source. After a break
    all that has no answer is sent again, before anything newer.

    A message that is under way at every break is sent alone; when the connection breaks then
    too, it is set aside and its neighbours go on.
    """

    def __init__(
        self, outlet: Outlet, state: EndpointState, backlog: Backlog | None = None
    ) -> None:
        self.state = state
        self.outlet = outlet
        self.backlog = backlog or MemoryBacklog()
        self.held = 0  # bytes in memory that have no answer
        self._up = False  # the sink is open
        self._direct = False  # and nothing waits
        self.finishing = False  # nothing more is taken from the disk
        self._stopping = False
        self._given_up = False  # we broke the connection, and no message did
        self._sent: dict[int, _Sent] = {}
        self._next = 0
        self._heard = time.monotonic()
        self._send_lock = threading.Lock()  # keeps order; may be held while a send or a spool waits
        self._lock = threading.Lock()  # guards the fields; never held during a call
        self._changed = threading.Condition(self._lock)
        self._ended = threading.Condition(self._lock)  # the connection or the lane; no answer wakes
        self._keeper = threading.Thread(
            target=self._keep_open, name=f"lane-{state.name}", daemon=True
        )

    def start(self) -> None:
        self._keeper.start()

    def deliver(self, parcel: Parcel) -> None:
        """Take the parcel; its order among all parcels of this lane is the order of the calls."""
        with self._changed:  # not under the send lock: what makes room may need that
            self._changed.wait_for(lambda: self._takes(parcel.size))
            direct = self._direct
        if not direct and not self.backlog.admit(parcel):
            return
        with self._send_lock:
            item = Item(parcel, self.backlog.number())
            with self._lock:
                direct = self._direct
                if direct or not self.backlog.on_disk:
                    self.held += parcel.size
            if direct:
                self._send(item, item.open_)
            else:
                self.backlog.put(item)

    def offer(self, parcel: Parcel) -> bool:
        """Send the parcel if that is possible now and at once; it is never kept."""
        if not self._direct or not self._send_lock.acquire(blocking=False):
            return False
        try:
            with self._lock:
                fits = self.direct and self._fits(parcel.size)
                self.held += parcel.size if fits else 0
            if fits:
                self._send(Item(parcel, 0, kept=False), range(len(parcel.messages)))
        finally:
            self._send_lock.release()
        return fits

    @property
    def direct(self) -> bool:
        """Whether the target is there and nothing waits for it."""
        return self._direct

    def idle(self) -> bool:
        """Whether nothing in memory waits for an answer; what is on disk may."""
        with self._lock:
            return self._idle()

    def exchange(self, outlet: Outlet) -> None:
        """Go on with another sink; what has no answer is sent again through it."""
        with self._changed:
            old, self.outlet = self.outlet, outlet
            self._given_up = self._up
        self._break(NotConnectedError(f"{self.state.name}: its settings changed"))
        old.sink.close()

    def look(self) -> None:
        """Break a connection that has work and says nothing; called now and then."""
        with self._lock:
            silent = time.monotonic() - self._heard
            waits = self._up and len(self._sent) > 0
        if waits and silent > self.outlet.answer_seconds:
            self.rebuild(f"no answer for {silent:.0f} s")

    def rebuild(self, reason: str) -> None:
        """Give up the connection and build a new one."""
        text = f"{self.state.name}: {reason}; the connection is built anew"
        with self._lock:
            self._given_up = self._up
        self._break(NotConnectedError(text))
        self.outlet.sink.close()  # frees a send that waits in it

    def stop(self, seconds: float = 0.0) -> None:
        """Wait so long for the answers to what is under way, then close the sink.

        What has no answer stays at its source or on disk, and comes again.
        """
        with self._changed:
            self.finishing = self.backlog.on_disk
            self._changed.wait_for(self._idle, timeout=seconds)
            self._stopping = True
            self._up = self._direct = False
            self._changed.notify_all()
            self._ended.notify_all()
        self.backlog.stop()
        self.outlet.sink.close()
        if self._keeper.is_alive():
            self._keeper.join(timeout=5)

    def _idle(self) -> bool:
        return not self._sent and (self.backlog.on_disk or self.backlog.empty())

    def _takes(self, size: int) -> bool:
        on_disk = self.backlog.on_disk and not self._direct
        return self._stopping or on_disk or self._fits(size)

    def _fits(self, size: int) -> bool:
        return not self.held or self.held + size <= self.outlet.capacity

    def _send(self, item: Item, positions: Sequence[int]) -> int:
        """Hand over a part of an item; the number under which its answer is awaited."""
        with self._lock:
            number = self._next
            self._next += 1
            if not self._sent:
                self._heard = time.monotonic()
            self._sent[number] = _Sent(item, positions, time.monotonic())
        item.attempts += 1
        messages = item.messages(positions)
        try:
            if self.outlet.sending is not None:
                self.outlet.sending(messages)
            self.outlet.sink.send(messages, lambda settlements: self._answered(number, settlements))
        except GatewayError as error:
            self._break(error)
        except Exception as error:  # a fault of the driver, perhaps of this message
            log.exception("a fault in the driver", extra={"endpoint": self.state.name})
            self._break(_fault(self.state.name, error))
        return number

    def _answered(self, number: int, settlements: Sequence[Settlement]) -> None:
        with self._changed:
            sent = self._sent.get(number)
            if sent is None:
                return  # the late answer of an attempt that was given up
            self._heard = time.monotonic()
            item = sent.item
            final = item.settle(sent.positions, settlements)
            if final:
                del self._sent[number]
            done = not item.open_
            if done:
                self.held -= item.parcel.size
                self.state.messages += len(item.final)
            self._changed.notify_all()
        if done:
            item.finish()
        elif not final:
            self._break(NotConnectedError(f"{self.state.name}: messages came back unanswered"))

    def _break(self, error: GatewayError) -> None:
        with self._changed:
            if not self._up:
                return
            self._up = self._direct = False
            self._changed.notify_all()
            self._ended.notify_all()
        self.state.lost(error)

    def _keep_open(self) -> None:
        attempts, pause = Attempts(), 0.0
        while not self._stopping:
            try:
                if self._reopen(pause):
                    attempts.connected()
                    if self._drain():
                        self._watch()
                error: GatewayError | None = None
            except GatewayError as failure:
                error = failure
            except Exception as failure:  # a driver's fault must not end this thread
                log.exception("a fault in the driver", extra={"endpoint": self.state.name})
                error = _fault(self.state.name, failure)
            if error is not None:
                self._up = self._direct = False
                self.state.lost(error)
            self._put_back([])
            refused = error is not None and not error.retryable
            pause = attempts.pause(self.outlet.backoff, refused=refused)

    def _reopen(self, pause: float) -> bool:
        """Open the sink after a pause of so many seconds; whether it is up."""
        self._wait(self._ended, lambda: False, pause)
        if self._stopping:
            return False
        self.backlog.tend()
        self.state.connection = Connection.CONNECTING
        self.outlet.sink.close()
        self.outlet.sink.open()
        with self._changed:
            self._up = not self._stopping
        self.state.connected()
        return self._up

    def _watch(self) -> None:
        """Return when the connection breaks or the lane stops."""
        while not self._wait(self._ended, lambda: not self._up, WATCH):
            if self._send_lock.acquire(blocking=False):  # else a send will notice by itself
                try:
                    self.outlet.sink.send((), _ignore)
                finally:
                    self._send_lock.release()

    def _wait(
        self, told: threading.Condition, done: Callable[[], bool], seconds: float | None
    ) -> bool:
        with told:
            return told.wait_for(lambda: self._stopping or done(), timeout=seconds)

    def _put_back(self, more: Sequence[Item]) -> None:
        """Give the backlog what was under way when the connection broke, and `more` behind it."""
        self.outlet.sink.close()  # wakes a send that waits in the broken connection
        with self._send_lock:
            with self._changed:
                sent, self._sent = list(self._sent.values()), {}
                if not self._given_up:
                    _blame(sent)
                self._given_up = False
                every = {id(item): item for item in [*(each.item for each in sent), *more]}
                left = [item for item in every.values() if item.open_]
                gone = left if self.backlog.on_disk else [each for each in left if not each.kept]
                self.held -= sum(item.parcel.size for item in gone)
                self._changed.notify_all()
            self.backlog.put_back([item for item in left if item.kept])

    def _drain(self) -> bool:
        """Send what waits, in order, until nothing does; False when the connection broke."""
        while self._up and not self._stopping:
            item = None if self.finishing else self.backlog.take()
            if item is None:
                if self._caught_up():
                    return True
            elif not self._send_waiting(item):
                self._put_back([item])
                return False
        return False

    def _caught_up(self) -> bool:
        """Whether nothing waits any more; from then on `deliver` hands over itself."""
        with self._send_lock:
            if self.backlog.empty():
                with self._changed:
                    self._direct = self._up
                    self._changed.notify_all()
                return True
        self._wait(self._ended, lambda: not self._up, SOON)
        return False

    def _send_waiting(self, item: Item) -> bool:
        """Send an item from the backlog, alone when it is suspected; False when it could not be."""
        with self._changed:
            size = item.parcel.size
            if self.backlog.on_disk:
                self._changed.wait_for(lambda: self._stopping or not self._up or self._fits(size))
            if self.backlog.on_disk:
                self.held += size
            if self._stopping or not self._up:
                return False
        if item.attempts < self.outlet.suspect_after:
            self._send(item, item.open_)
            return True
        return self._send_alone(item)

    def _send_alone(self, item: Item) -> bool:
        """Send the messages of an item one by one; those that broke it alone are set aside."""
        answer_seconds = self.outlet.answer_seconds
        self._wait(self._changed, lambda: not self._sent or not self._up, answer_seconds)
        guilty = [position for position in item.open_ if item.alone[position] >= ALONE]
        reason = f"the connection to {self.state.name} broke each time it was sent"
        item.settle(guilty, [rejected("poisoned", reason)] * len(guilty))
        if not item.open_:
            with self._changed:
                self.held -= item.parcel.size
                self._changed.notify_all()
            item.finish()
            return True
        tries = item.attempts + 1
        for position in list(item.open_):
            number = self._send(item, [position])
            item.attempts = tries  # of the item, not of each message
            self._wait(self._changed, lambda: number not in self._sent or not self._up, None)  # noqa: B023
            if not self._up:
                return False
        return True


def _blame(sent: Sequence[_Sent]) -> None:
    """A message that was the only one under way when the connection broke at once is suspect."""
    if len(sent) != 1 or len(sent[0].positions) != 1:
        return
    if time.monotonic() - sent[0].since < GUILTY:
        sent[0].item.alone[sent[0].positions[0]] += 1


def _fault(endpoint: str, error: Exception) -> GatewayError:
    return NotConnectedError(f"{endpoint}: {type(error).__name__}: {error}")


def _ignore(_: Sequence[Settlement]) -> None:
    """The answer for no messages."""
