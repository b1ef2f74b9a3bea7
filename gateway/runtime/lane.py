"""One target's way out: sends in order, and after a break sends again in order."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gateway.endpoints.base import Sink
from gateway.errors import GatewayError, NotConnectedError
from gateway.model.message import Message
from gateway.model.outcome import Outcome, Settlement
from gateway.routing.retry import delay
from gateway.runtime.state import Connection, EndpointState

CAPACITY = 64 << 20  # bytes
WATCH = 1.0  # seconds between looks at an idle connection


@dataclass(frozen=True, slots=True)
class Parcel:
    """Messages for one target; `done` is called once with a final settlement for each.

    `attempts` tells `done` how often the parcel was handed over.
    """

    messages: Sequence[Message]
    size: int  # bytes it counts for in the lane's bound
    done: Callable[[Sequence[Settlement], int], None]


class _Unanswered:
    """A parcel on its way; mutable because answers come in several attempts."""

    __slots__ = ("attempts", "final", "open_", "parcel")

    def __init__(self, parcel: Parcel) -> None:
        self.parcel = parcel
        self.attempts = 0
        self.open_ = list(range(len(parcel.messages)))  # positions without a final settlement
        self.final: list[Settlement | None] = [None] * len(parcel.messages)

    def messages(self) -> Sequence[Message]:
        if len(self.open_) == len(self.parcel.messages):
            return self.parcel.messages
        return [self.parcel.messages[position] for position in self.open_]


class Lane:
    """Owns the sink of one endpoint and the thread that opens it and opens it again.

    `deliver` hands over at once while the sink is up. When it breaks, everything unanswered stays
    here in order, at most `capacity` bytes, and is sent again after the next `open`, before
    anything newer. A full lane makes `deliver` wait, which slows the source.
    """

    def __init__(  # noqa: PLR0913  # the facts of one target
        self,
        sink: Sink,
        state: EndpointState,
        *,
        system: str,
        carries: frozenset[str],
        backoff: tuple[float, float],
        capacity: int = CAPACITY,
    ) -> None:
        self.system = system
        self.carries = carries
        self._sink = sink
        self._state = state
        self._backoff = backoff
        self._capacity = capacity
        self._held = 0
        self._up = False
        self._stopping = False
        self._unanswered: dict[int, _Unanswered] = {}
        self._next = 0
        self._send_lock = threading.Lock()  # keeps sends in order; may be held while a send waits
        self._lock = threading.Lock()  # guards the fields; never held during a call
        self._changed = threading.Condition(self._lock)
        self._keeper = threading.Thread(
            target=self._keep_open, name=f"lane-{state.name}", daemon=True
        )

    def start(self) -> None:
        self._keeper.start()

    def deliver(self, parcel: Parcel) -> None:
        """Take the parcel; its order among all parcels of this lane is the order of the calls."""
        item = _Unanswered(parcel)
        with self._changed:  # not under the send lock: what makes room may need that
            self._changed.wait_for(lambda: self._stopping or self._fits(parcel.size))
            self._held += parcel.size
        with self._send_lock:
            with self._lock:
                number = self._next
                self._next += 1
                self._unanswered[number] = item
                up = self._up
            if up:
                self._send(number, item)

    def idle(self) -> bool:
        with self._lock:
            return not self._unanswered

    def stop(self) -> None:
        """Close the sink; what is unanswered stays unsettled at its source and comes again."""
        with self._changed:
            self._stopping = True
            self._up = False
            self._changed.notify_all()
        self._sink.close()
        if self._keeper.is_alive():
            self._keeper.join(timeout=5)

    def _fits(self, size: int) -> bool:
        return not self._held or self._held + size <= self._capacity

    def _send(self, number: int, item: _Unanswered) -> None:
        item.attempts += 1
        attempt = item.attempts
        try:
            self._sink.send(
                item.messages(), lambda settlements: self._answered(number, attempt, settlements)
            )
        except GatewayError as error:
            self._break(error)

    def _answered(self, number: int, attempt: int, settlements: Sequence[Settlement]) -> None:
        with self._changed:
            item = self._unanswered.get(number)
            if item is None or item.attempts != attempt:
                return  # the late answer of an attempt that was given up
            still_open = [
                position
                for position, settlement in zip(item.open_, settlements, strict=True)
                if not _settle(item.final, position, settlement)
            ]
            item.open_ = still_open
            if not still_open:
                del self._unanswered[number]
                self._held -= item.parcel.size
                self._changed.notify_all()
        if still_open:
            self._break(NotConnectedError(f"{self._state.name}: messages came back unanswered"))
        else:
            item.parcel.done([each for each in item.final if each is not None], item.attempts)

    def _break(self, error: GatewayError) -> None:
        with self._changed:
            if not self._up:
                return
            self._up = False
            self._changed.notify_all()
        self._state.lost(error)

    def _keep_open(self) -> None:
        attempt = 0
        while self._wait_for_work(attempt):
            attempt += 1
            self._sink.close()  # wakes a send that waits in the broken connection
            self._state.connection = Connection.CONNECTING
            try:
                self._sink.open()
            except GatewayError as error:
                self._state.lost(error)
                if not error.retryable:
                    attempt = 99  # a refusal: ask again at the longest pause, loudly each time
                continue
            if self._resend():
                attempt = 0

    def _wait_for_work(self, attempt: int) -> bool:
        """Wait until the sink is down and its pause is over; False when the lane stops."""
        while not self._wait(lambda: not self._up, WATCH):
            self._look()
        if attempt:
            pause = delay(attempt, *self._backoff, random.random())  # noqa: S311  # jitter
            self._wait(lambda: False, pause)
        return not self._stopping

    def _wait(self, done: Callable[[], bool], seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._stopping or done(), timeout=seconds)

    def _look(self) -> None:
        """Notice that an idle connection is gone; a send that is under way notices by itself."""
        if not self._send_lock.acquire(blocking=False):
            return
        try:
            if self._up:
                self._sink.send((), _ignore)
        except GatewayError as error:
            self._break(error)
        finally:
            self._send_lock.release()

    def _resend(self) -> bool:
        with self._send_lock:
            with self._lock:
                if self._stopping:
                    return False
                self._up = True
                waiting = list(self._unanswered.items())
            self._state.connected()
            for number, item in waiting:
                with self._lock:
                    if not self._up:
                        return False
                self._send(number, item)
        return True


def _ignore(_: Sequence[Settlement]) -> None:
    """The answer for no messages."""


def _settle(final: list[Settlement | None], position: int, settlement: Settlement) -> bool:
    if settlement.outcome is Outcome.RETRY:
        return False
    final[position] = settlement
    return True
