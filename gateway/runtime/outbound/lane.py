"""The lane of one target: the threads, the sink and the spool around its state."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Final

from gateway.clock import now
from gateway.dialects.registry import DIALECTS
from gateway.errors import GatewayError, NotConnectedError, SpoolError, unexpected_error
from gateway.model.outcome import Settlement
from gateway.runtime.delivery.actions import Action, Finish, Mark, Read, Send, Step, Store, Wait
from gateway.runtime.delivery.backlog import MemoryBacklog
from gateway.runtime.delivery.expiry import Complete, without_expired
from gateway.runtime.delivery.lane_phase import ENDED, Phase
from gateway.runtime.delivery.lane_state import LaneState
from gateway.runtime.delivery.outbound_batch import OutboundBatch
from gateway.runtime.delivery.poisoned_names import PoisonedNames
from gateway.runtime.outbound.held_copies import HeldCopies
from gateway.runtime.outbound.sink_binding import NotedSends, SinkBinding, open_sink
from gateway.runtime.outbound.spool import Spool
from gateway.runtime.record.counters import ConnectionState, EndpointState
from gateway.terminal.units import counted

log = logging.getLogger(__name__)

FAULT_PAUSE: Final = 1.0  # seconds after an unexpected error, or until the next event
ROOM_INTERVAL: Final = 0.05  # seconds between checks for room that the oldest batches make


class Lane:
    """The sink of one endpoint, with the thread that connects it.

    `deliver` sends at once while the lane is direct. A full lane blocks it, which slows the source.
    Thread-safe: self._lock guards the state and is never held during a call of the sink or the
    disk; self._send_lock keeps the order and may be held while a send blocks. `sources_ready` is
    asked under self._lock before the first send over each connection. `require_lease` raises
    LeaseNotHeldError when another instance of a pair may be the holder.
    """

    def __init__(  # a binding and what it asks of its gateway
        self,
        binding: SinkBinding,
        state: EndpointState,
        spool: Spool | None = None,
        sources_ready: Callable[[float], bool] = lambda _since: True,
        hasten_sources: Callable[[], None] = lambda: None,
        require_lease: Callable[[], None] = lambda: None,
    ) -> None:
        self.binding = binding
        self.state = state
        self.spool = spool
        backlog = MemoryBacklog() if spool is None else spool.backlog
        self._sources_ready, self._hasten_sources = sources_ready, hasten_sources
        self._require_lease = require_lease
        self.thinning = HeldCopies(state, spool, self.deliver, lambda: self.direct)
        self._lane = LaneState(state.name, binding.limits, backlog, monotonic())
        dialect = DIALECTS.get(binding.system)
        self._poisoned = PoisonedNames("/" if dialect is None else dialect.separator)
        self._send_lock = threading.Lock()
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)  # any event that may make room
        self._work = threading.Condition(self._lock)  # any event that concerns the thread
        self._noted = NotedSends()
        self._thread = threading.Thread(target=self._run, name=f"lane-{state.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def held(self) -> int:
        """Unanswered bytes in memory."""
        return self._lane.held

    @property
    def retry_at(self) -> float | None:
        """When the next attempt to connect begins, in monotonic seconds; None if none waits."""
        return self._lane.retry_at

    @property
    def silence(self) -> float:
        """Seconds for which the connected target has owed an answer; 0 if it owes none."""
        return self._lane.silence(monotonic())

    @property
    def direct(self) -> bool:
        """Whether the target is connected and nothing waits for it."""
        return self._lane.phase is Phase.DIRECT

    @property
    def sending(self) -> bool:
        """Whether what it is given is sent: the target is connected, and no source is awaited."""
        return self._lane.phase in {Phase.DRAINING, Phase.DIRECT}

    def deliver(self, batch: OutboundBatch) -> None:
        """Accept the batch; batches are sent in the order of the calls."""
        while not batch.number:
            if self.spool is not None and not self.direct:
                self.spool.wait_for_disk()
            with self._send_lock:  # from the decision to the call, so that sends keep their order
                with self._lock:
                    action = self._lane.accept(batch, monotonic())
                    waits = isinstance(action, Wait)  # the thread would wake us at once again
                    if self._lane.phase is not Phase.DIRECT and not waits:
                        self._work.notify_all()
                if isinstance(action, Send):
                    self._send(action)
                elif isinstance(action, Store):
                    self._perform(action)
            if isinstance(action, Send | Store):
                return
            if waits:
                with self._room:
                    self._room.wait(ROOM_INTERVAL)
            elif action is not None:
                self._perform_or_pause(action)
            elif not batch.number:
                with self._room:
                    self._room.wait_for(partial(self._lane.has_room, batch))

    def offer(self, batch: OutboundBatch) -> bool:
        """Send the batch if that is possible at once, and never again; return whether it was."""
        if not self.direct or not self._send_lock.acquire(blocking=False):
            return False
        try:
            with self._lock:
                send = self._lane.offer(batch, monotonic())
            if send is not None:
                self._send(send)
        finally:
            self._send_lock.release()
        return send is not None

    def rebind(self, binding: SinkBinding, seconds: float) -> None:
        """Replace the sink; what the target has not answered in `seconds` goes to the new one."""
        with self._room:
            self._lane.prepare_loss()
            self._room.wait_for(self._lane.owes_nothing, timeout=seconds)
            old, self.binding, self._lane.limits = self.binding, binding, binding.limits
            was_up = self._lane.broken(ours=True)
            self._lane.stopping = False
            self._notify()
        if was_up:
            self.state.lost(NotConnectedError(f"{self.state.name}: its settings changed"))
        old.sink.close()

    def rename(self, name: str) -> None:
        """Go on as the target `name`: its endpoint has another name now, and is the same one."""
        self.state.name = self._lane.name = name
        if self.spool is not None:
            self.spool.rename(name)

    def hasten(self) -> None:
        """Try to connect without the rest of the pause."""
        with self._lock:
            self._lane.hasten(monotonic())
            self._notify()

    def check_answers(self) -> None:
        """Reconnect if sends have been unanswered for too long; the watchdog calls this."""
        with self._lock:
            silence = self._lane.silence(monotonic())
        if silence > self.binding.limits.stuck_after_seconds:
            self.reconnect(f"no answer for {silence:.0f} s")

    def reconnect(self, reason: str) -> None:
        """Replace the connection."""
        self._lose(NotConnectedError(f"{self.state.name}: {reason}; reconnecting"), ours=True)

    def stop(self, seconds: float = 0.0) -> None:
        """Wait up to `seconds` for outstanding answers, then close the sink.

        Unanswered batches stay at their source or on disk, and are sent again later.
        """
        self.thinning.stop()
        with self._room:
            self._lane.prepare_stop()
            self._room.wait_for(self._lane.idle, timeout=seconds)
        self._end(self._lane.stop)
        self.thinning.join()

    def remove(self, seconds: float) -> None:
        """Stop because a reload removed the target.

        A connected target has `seconds` to answer. Batches that are not on disk then become dead
        letters.
        """
        self.thinning.stop()
        if self.direct:
            with self._room:
                self._room.wait_for(self._lane.idle, timeout=seconds)
        self._end(self._lane.remove)
        self.thinning.join(removed=True)

    def _end(self, event: Callable[[], list[Action]]) -> None:
        with self._lock:
            connects = self._lane.phase is Phase.OPENING  # it closes the sink when it has
            actions = event()
            self._notify()
        for action in actions:
            self._perform(action)
        self._noted.end()
        if self.spool is not None:
            self.spool.stop()
        if self._thread.is_alive() and not connects:
            self._thread.join(timeout=5)

    def _notify(self) -> None:
        self._room.notify_all()
        if self._lane.phase is not Phase.DIRECT:  # otherwise only a timer wakes the thread
            self._work.notify_all()

    def _perform(self, action: Action) -> None:
        spool = self.spool
        match action:
            case Send():
                self._send(action)
            case Finish(batch):
                self._finish(batch)
            case Store(batch) if spool is not None:
                self._store(batch, spool)
            case Read() if spool is not None:
                rows = spool.read(action)
                with self._lock:
                    spool.backlog.read(rows, action)
                    self._notify()
            case Mark(number) if spool is not None:
                marked = spool.mark(number)
                with self._lock:
                    spool.backlog.marked(marked)
            case Step.OPEN:
                self._open()
            case Step.CLOSE:
                self.binding.sink.close()
            case Step.RECOVER:
                self._recover()
            case Step.CHECK:
                self._check()
            case _:
                """Nothing is to be done for a pause or the end."""

    def _perform_or_pause(self, action: Action) -> None:
        """Perform an action that makes room, or pause when the disk cannot be read.

        An error would leave the batch that waits for the room without an outcome.
        """
        try:
            self._perform(action)
        except SpoolError as error:
            log.error("%s; its sources wait", error, extra={"endpoint": self.state.name})  # noqa: TRY400  # the text is complete
            with self._room:
                self._room.wait_for(lambda: self._lane.phase in ENDED, FAULT_PAUSE)

    def _finish(self, batch: OutboundBatch) -> None:
        """Pass the settlements of a batch on to the place that it comes from."""
        self.state.messages += len(batch.settlements)
        if batch.solo_losses or self._poisoned.poisoned:
            self._say_what_poisons(batch)
        if batch.rows and self.spool is not None:
            with self._lock:
                self.spool.backlog.freed(batch)
                self._notify()
        batch.origin.answered(batch)

    def _store(self, batch: OutboundBatch, spool: Spool) -> None:
        """Write the unsettled messages of a batch."""
        packed, messages = spool.pack(batch), len(batch.unsettled)
        with self._lock:
            written = spool.backlog.written(batch, len(packed[0]))
        if written:
            spool.write(batch.number, messages, packed, partial(self._stored, batch, spool))
        else:
            self._finish(batch)
        with self._lock:
            spool.backlog.queued_for_disk(batch)
            self._notify()

    def _stored(self, batch: OutboundBatch, spool: Spool) -> None:
        """The batch is durable; the thread of the database calls this."""
        with self._lock:
            spool.backlog.stored(batch)
            self._notify()
        self._finish(batch)

    def _say_what_poisons(self, batch: OutboundBatch) -> None:
        """Log the limit that would refuse the messages that break this target, when it is new."""
        with self._lock:
            proposal = self._poisoned.finished(batch)
        if proposal:
            log.warning(
                "%s broke its connection and went to the dead letters (poisoned); write"
                " `limits: {%s}` at the endpoint, and such names are refused before they are sent",
                counted(self._poisoned.poisoned, "message"),
                proposal,
                extra={"endpoint": self.state.name},
            )

    def _send(self, send: Send) -> None:
        binding, complete = self.binding, None
        messages = send.batch.messages_at(send.positions)
        if send.batch.expires:
            messages, complete = without_expired(self.state.name, messages, now())
        try:
            self._require_lease()  # last: a frozen process wakes up here, and sends nothing
            if not messages:
                self._answered(send, complete, ())
                return
            if binding.before_send is not None:
                self._noted.waiting[send.number] = binding.before_send(messages), len(messages)
            binding.sink.send(messages, partial(self._answered, send, complete))
        except GatewayError as error:
            self._noted.answered(send.number)
            self._lose(error, ours=error.ours)
        except Exception as error:  # a fault of the driver, perhaps caused by this message
            log.exception("unexpected error in a driver", extra={"endpoint": self.state.name})
            self._noted.answered(send.number)
            self._lose(unexpected_error(self.state.name, error))

    def _answered(
        self, send: Send, complete: Complete | None, settlements: Sequence[Settlement]
    ) -> None:
        if self._noted.waiting:
            self._noted.answered(send.number, settlements)
        if complete is not None:
            settlements = complete(settlements)
        with self._lock:
            action = self._lane.answered(send.number, settlements, monotonic())
            self._notify()
        if isinstance(action, Finish):
            self._finish(action.batch)
        elif action is not None:
            self.state.lost(NotConnectedError(f"{self.state.name}: {action.reason}"))

    def _lose(self, error: GatewayError, *, ours: bool = False) -> None:
        with self._lock:
            was_up = self._lane.broken(ours=ours)
            self._notify()
        if was_up:
            self.state.lost(error)

    def _run(self) -> None:
        while True:
            try:
                action = self._next()
                if action is Step.END:
                    return
                self._perform(action)
            except Exception as failure:  # of the disk, a driver or ours; this thread goes on
                log.exception("unexpected error in a lane", extra={"endpoint": self.state.name})
                self._lose(unexpected_error(self.state.name, failure))
                with self._work:
                    self._work.wait(FAULT_PAUSE)

    def _next(self) -> Action:
        """Wait for the next step of this thread."""
        with self._work:
            while isinstance(action := self._next_step(), Wait):
                self._room.notify_all()  # the lane may be direct now
                self._work.wait(action.seconds)
        return action

    def _next_step(self) -> Action:
        lane = self._lane
        ready = lane.phase is not Phase.HELD or self._sources_ready(lane.opened_at)
        return lane.next(monotonic(), now(), sources_ready=ready)

    def _open(self) -> None:
        """Connect the sink, and tell the state whether that worked."""
        binding = self.binding
        self.state.connection = ConnectionState.CONNECTING
        error = open_sink(binding, self.state.name, self._require_lease)
        if error is not None:
            self.state.lost(error)
            refused = not error.retryable
            with self._lock:
                self._lane.failed(monotonic(), random.random(), refused=refused)  # noqa: S311  # jitter
            return
        self.thinning.forget_changes()
        self.state.connected()
        if not self._sources_ready(0.0):
            self._hasten_sources()
            name = self.state.name
            log.info("nothing is sent until our sources there subscribe", extra={"endpoint": name})
        with self._lock:
            close = self._lane.opened(monotonic())
            self._notify()
        if close is not None:
            binding.sink.close()
        if self.binding is not binding:  # a reload replaced it meanwhile
            self._lose(NotConnectedError(f"{self.state.name}: its settings changed"), ours=True)
            binding.sink.close()

    def _recover(self) -> None:
        self.binding.sink.close()  # ends a send that blocks
        with self._send_lock, self._lock:
            self._lane.recover(monotonic(), random.random())  # noqa: S311  # jitter
            self._room.notify_all()
        self._noted.end()

    def _check(self) -> None:
        """Check the connection while it is idle."""
        if not self._send_lock.acquire(blocking=False):
            return  # a send checks it
        try:
            self.binding.sink.send((), lambda _: None)
        except GatewayError as error:
            self._lose(error)
        finally:
            self._send_lock.release()
