"""The lane of one target: sends batches in order, and again in order after a lost connection."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.endpoints.base import Sink
from gateway.errors import GatewayError, NotConnectedError, unexpected_error
from gateway.model.message import Message
from gateway.model.outcome import Settlement, rejected
from gateway.runtime.monitor.counters import ConnectionState, EndpointState
from gateway.runtime.outbound.backlog import Backlog, MemoryBacklog, OutboundBatch, QueuedBatch
from gateway.runtime.outbound.backoff import Backoff

log = logging.getLogger(__name__)

MAX_HELD_BYTES: Final = 64 << 20
IDLE_CHECK_INTERVAL: Final = 1.0  # seconds between checks of an idle connection
MAX_SOLO_LOSSES: Final = 2  # connections a message may break alone; then it is poisoned
POISON_WINDOW: Final = 5.0  # seconds after a send; a later loss is not the message's fault
POLL_INTERVAL: Final = 0.05  # seconds between checks for batches about to be on disk


@dataclass(frozen=True, slots=True)
class SinkBinding:
    """A sink with the fields its system carries and its limits."""

    sink: Sink
    system: str
    carries: frozenset[str]
    backoff: tuple[float, float]
    capacity: int = MAX_HELD_BYTES  # bytes in flight and waiting in memory
    isolate_after: int = 3  # attempts after which the messages of a batch are sent one by one
    stuck_after_seconds: float = 60.0  # silence after which an unanswered target is stuck
    before_send: Callable[[Sequence[Message]], None] | None = None  # called with every send


@dataclass(frozen=True, slots=True)
class _UnansweredSend:
    """Part of a batch that was sent at a moment of the monotonic clock."""

    queued: QueuedBatch
    positions: Sequence[int]
    since: float


class Lane:
    """The sink of one endpoint, with the thread that connects it.

    `deliver` sends at once while the sink is connected and the backlog is empty. Otherwise the
    batch goes to the backlog: on disk with a spool, else in memory, where `capacity` limits the
    bytes waiting and in flight. A full lane blocks `deliver`, which slows the source. After a lost
    connection every unanswered batch is sent again before any newer one.

    A batch that was in flight at several losses is sent message by message. A message that breaks
    the connection alone is rejected as poisoned; the other messages are sent.

    Thread-safe: self._lock guards the fields and is never held during a call; self._send_lock
    keeps the order and may be held while a send or a spool blocks.
    """

    def __init__(
        self, binding: SinkBinding, state: EndpointState, backlog: Backlog | None = None
    ) -> None:
        self.state = state
        self.binding = binding
        self.backlog = backlog or MemoryBacklog()
        self.held = 0  # unanswered bytes in memory
        self._connected = False
        self._direct = False  # connected, and the backlog is empty
        self.draining = False  # stopping: batches on disk stay there
        self._stopping = False
        self._closed_by_us = False  # so that no message is suspected
        self._unanswered: dict[int, _UnansweredSend] = {}
        self._next_send = 0
        self._last_answer = time.monotonic()
        self._send_lock = threading.Lock()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._disconnected = threading.Condition(self._lock)  # or stopping; answers do not notify
        self._thread = threading.Thread(target=self._run, name=f"lane-{state.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def deliver(self, batch: OutboundBatch) -> None:
        """Accept the batch; batches are sent in the order of the calls."""
        with self._changed:  # before the send lock, which the thread that makes room may need
            self._changed.wait_for(lambda: self._has_room(batch.size))
            direct = self._direct
        if not direct and not self.backlog.admit(batch):
            return
        with self._send_lock:
            queued = QueuedBatch(batch, self.backlog.next_number())
            with self._lock:
                direct = self._direct
                if direct or not self.backlog.on_disk:
                    self.held += batch.size
            if direct:
                self._send(queued, queued.unsettled)
            else:
                self.backlog.put(queued)

    def offer(self, batch: OutboundBatch) -> bool:
        """Send the batch if that is possible at once, and never again; return whether it was."""
        if not self._direct or not self._send_lock.acquire(blocking=False):
            return False
        try:
            with self._lock:
                fits = self.direct and self._fits(batch.size)
                self.held += batch.size if fits else 0
            if fits:
                self._send(QueuedBatch(batch, 0, resend=False), range(len(batch.messages)))
        finally:
            self._send_lock.release()
        return fits

    @property
    def direct(self) -> bool:
        """Whether the target is connected and its backlog is empty."""
        return self._direct

    def idle(self) -> bool:
        """Return whether no batch in memory is unanswered; batches on disk do not count."""
        with self._lock:
            return self._idle()

    def rebind(self, binding: SinkBinding) -> None:
        """Replace the sink; unanswered batches are sent again through the new one."""
        with self._changed:
            old, self.binding = self.binding, binding
            self._closed_by_us = self._connected
        self._disconnect(NotConnectedError(f"{self.state.name}: its settings changed"))
        old.sink.close()

    def check_answers(self) -> None:
        """Reconnect if sends have been unanswered for too long; the watchdog calls this."""
        with self._lock:
            silence = time.monotonic() - self._last_answer
            waiting = self._connected and len(self._unanswered) > 0
        if waiting and silence > self.binding.stuck_after_seconds:
            self.reconnect(f"no answer for {silence:.0f} s")

    def reconnect(self, reason: str) -> None:
        """Replace the connection."""
        with self._lock:
            self._closed_by_us = self._connected
        self._disconnect(NotConnectedError(f"{self.state.name}: {reason}; reconnecting"))
        self.binding.sink.close()  # wakes a blocked send

    def stop(self, seconds: float = 0.0) -> None:
        """Wait up to `seconds` for outstanding answers, then close the sink.

        Unanswered batches stay at their source or on disk, and are sent again later.
        """
        with self._changed:
            self.draining = self.backlog.on_disk
            self._changed.wait_for(self._idle, timeout=seconds)
            self._stopping = True
            self._set_disconnected()
        self.backlog.stop()
        self.binding.sink.close()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _idle(self) -> bool:
        return not self._unanswered and (self.backlog.on_disk or self.backlog.empty())

    def _has_room(self, size: int) -> bool:
        to_disk = self.backlog.on_disk and not self._direct
        return self._stopping or to_disk or self._fits(size)

    def _fits(self, size: int) -> bool:
        return not self.held or self.held + size <= self.binding.capacity

    def _send(self, queued: QueuedBatch, positions: Sequence[int]) -> int:
        """Send part of a batch and return the number of the send."""
        with self._lock:
            number = self._next_send
            self._next_send += 1
            if not self._unanswered:
                self._last_answer = time.monotonic()
            self._unanswered[number] = _UnansweredSend(queued, positions, time.monotonic())
        queued.attempts += 1
        messages = queued.messages(positions)
        try:
            if self.binding.before_send is not None:
                self.binding.before_send(messages)
            self.binding.sink.send(messages, lambda answers: self._answered(number, answers))
        except GatewayError as error:
            self._disconnect(error)
        except Exception as error:  # a fault of the driver, perhaps caused by this message
            log.exception("unexpected error in a driver", extra={"endpoint": self.state.name})
            self._disconnect(unexpected_error(self.state.name, error))
        return number

    def _answered(self, number: int, settlements: Sequence[Settlement]) -> None:
        with self._changed:
            send = self._unanswered.get(number)
            if send is None:
                return  # a late answer, from a connection that was given up
            self._last_answer = time.monotonic()
            queued = send.queued
            final = queued.settle(send.positions, settlements)
            if final:
                del self._unanswered[number]
            done = not queued.unsettled
            if done:
                self.held -= queued.batch.size
                self.state.messages += len(queued.settlements)
            self._changed.notify_all()
        if done:
            queued.finish()
        elif not final:
            self._disconnect(NotConnectedError(f"{self.state.name}: messages were not answered"))

    def _disconnect(self, error: GatewayError) -> None:
        with self._changed:
            if not self._connected:
                return
            self._set_disconnected()
        self.state.lost(error)

    def _set_disconnected(self) -> None:
        """Note a lost connection, under the lock, and wake the waiting threads."""
        self._connected = self._direct = False
        self._changed.notify_all()
        self._disconnected.notify_all()

    def _run(self) -> None:
        backoff, pause = Backoff(), 0.0
        while not self._stopping:
            try:
                if self._connect(pause):
                    backoff.connected()
                    if self._drain():
                        self._hold()
                error: GatewayError | None = None
            except GatewayError as failure:
                error = failure
            except Exception as failure:  # a driver's fault must not end this thread
                log.exception("unexpected error in a driver", extra={"endpoint": self.state.name})
                error = unexpected_error(self.state.name, failure)
            if error is not None:
                self._connected = self._direct = False
                self.state.lost(error)
            self._put_back_unanswered([])
            refused = error is not None and not error.retryable
            pause = backoff.pause(self.binding.backoff, refused=refused)

    def _connect(self, pause: float) -> bool:
        """Open the sink after `pause` seconds; return whether it is connected."""
        self._wait(self._disconnected, lambda: False, pause)
        if self._stopping:
            return False
        self.backlog.expire()
        self.state.connection = ConnectionState.CONNECTING
        self.binding.sink.close()
        self.binding.sink.open()
        with self._changed:
            self._connected = not self._stopping
        self.state.connected()
        return self._connected

    def _hold(self) -> None:
        """Check the connection while it is idle; return when it is lost or the lane stops."""
        while not self._wait(self._disconnected, lambda: not self._connected, IDLE_CHECK_INTERVAL):
            if self._send_lock.acquire(blocking=False):  # otherwise a send checks it
                try:
                    self.binding.sink.send((), _ignore)
                finally:
                    self._send_lock.release()

    def _wait(
        self, condition: threading.Condition, done: Callable[[], bool], seconds: float | None
    ) -> bool:
        with condition:
            return condition.wait_for(lambda: self._stopping or done(), timeout=seconds)

    def _put_back_unanswered(self, more: Sequence[QueuedBatch]) -> None:
        """Put the unanswered batches, then `more`, back at the front of the backlog."""
        self.binding.sink.close()  # wakes a blocked send
        with self._send_lock:
            with self._changed:
                sends, self._unanswered = list(self._unanswered.values()), {}
                if not self._closed_by_us:
                    _suspect(sends)
                self._closed_by_us = False
                distinct = {id(each): each for each in [*(send.queued for send in sends), *more]}
                left = [each for each in distinct.values() if each.unsettled]
                freed = left if self.backlog.on_disk else [each for each in left if not each.resend]
                self.held -= sum(each.batch.size for each in freed)
                self._changed.notify_all()
            self.backlog.put_back([each for each in left if each.resend])

    def _drain(self) -> bool:
        """Send the backlog in order until it is empty; return false if the connection is lost."""
        while self._connected and not self._stopping:
            queued = None if self.draining else self.backlog.take()
            if queued is None:
                if self._switch_to_direct():
                    return True
            elif not self._send_queued(queued):
                self._put_back_unanswered([queued])
                return False
        return False

    def _switch_to_direct(self) -> bool:
        """If the backlog is empty, let `deliver` send directly; return whether it is."""
        with self._send_lock:
            if self.backlog.empty():
                with self._changed:
                    self._direct = self._connected
                    self._changed.notify_all()
                return True
        self._wait(self._disconnected, lambda: not self._connected, POLL_INTERVAL)
        return False

    def _send_queued(self, queued: QueuedBatch) -> bool:
        """Send a batch from the backlog; return false if the connection is lost."""
        with self._changed:
            size = queued.batch.size
            if self.backlog.on_disk:
                self._changed.wait_for(
                    lambda: self._stopping or not self._connected or self._fits(size)
                )
            if self.backlog.on_disk:
                self.held += size
            if self._stopping or not self._connected:
                return False
        if queued.attempts < self.binding.isolate_after:
            self._send(queued, queued.unsettled)
            return True
        return self._send_one_by_one(queued)

    def _send_one_by_one(self, queued: QueuedBatch) -> bool:
        """Send each message of a batch alone, without the poisoned ones; return as `_drain`."""
        stuck_after_seconds = self.binding.stuck_after_seconds
        self._wait(
            self._changed, lambda: not self._unanswered or not self._connected, stuck_after_seconds
        )
        poisoned = [
            each for each in queued.unsettled if queued.solo_losses[each] >= MAX_SOLO_LOSSES
        ]
        reason = f"the connection to {self.state.name} broke each time it was sent"
        queued.settle(poisoned, [rejected("poisoned", reason)] * len(poisoned))
        if not queued.unsettled:
            with self._changed:
                self.held -= queued.batch.size
                self._changed.notify_all()
            queued.finish()
            return True
        attempts = queued.attempts + 1
        for position in list(queued.unsettled):
            number = self._send(queued, [position])
            queued.attempts = attempts  # counted for the batch, not for each message
            self._wait(
                self._changed,
                lambda: number not in self._unanswered or not self._connected,  # noqa: B023
                None,
            )
            if not self._connected:
                return False
        return True


def _suspect(sends: Sequence[_UnansweredSend]) -> None:
    """Count a lost connection for a message that was the only one sent, shortly before."""
    if len(sends) != 1 or len(sends[0].positions) != 1:
        return
    if time.monotonic() - sends[0].since < POISON_WINDOW:
        sends[0].queued.solo_losses[sends[0].positions[0]] += 1


def _ignore(_: Sequence[Settlement]) -> None:
    """Accept the answer to an empty send."""
