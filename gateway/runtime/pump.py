"""The pump of one source endpoint: connects the source, and relays the batches that it has."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from gateway.endpoints.base import EndsIntake, Source
from gateway.errors import GatewayError, LeaseNotHeldError, NotConnectedError, unexpected_error
from gateway.runtime.context import GatewayContext, SourceBinding
from gateway.runtime.record.counters import ConnectionState, EndpointState
from gateway.runtime.record.gap_recorder import GapRecorder
from gateway.runtime.record.gap_rows import watched_by
from gateway.runtime.relay import Relay

log = logging.getLogger(__name__)

RECEIVE_TIMEOUT: Final = 0.25  # seconds; a stop waits this long for a quiet source
FIRST_POLLS: Final = 1.0  # seconds after a connection with short waits: targets wait for its sign
REBIND_TIMEOUT: Final = 5.0  # seconds for the batches of the old source to be settled
END_MARGIN: Final = 0.1  # seconds for the row of a gap before the archive closes
INTAKE_TIMEOUT: Final = 2.0  # seconds for the answer of a broker that ends an intake
POLL_INTERVAL: Final = 0.02  # seconds between checks for batches in flight


class Pump:
    """The thread of one source endpoint.

    Only this thread calls `receive`; settlements arrive on the threads of the targets.
    Mutable: owned by the pump's thread; other threads call only the public methods.
    """

    def __init__(
        self, binding: SourceBinding, state: EndpointState, context: GatewayContext
    ) -> None:
        self.state = state
        self._context = context
        self._binding = binding
        self._next_binding: SourceBinding | None = None  # set by a reload
        self.begun = False  # to receive from the source of the binding
        self._opening = False  # the source; nobody waits for the end of that at a stop
        watched, recorder = watched_by(binding.rules.router.routes), context.recorder
        self.gaps = GapRecorder(
            binding.source,
            watched,
            recorder,
            context.connections,
            lambda: self._relay.oldest_unsettled,
        )
        self._stop = threading.Event()
        self._relay = Relay(binding, state, context, self._stop)
        self.duplicates = self._relay.duplicates
        self._removed = False  # set before _stop
        self._relay_until = 0.0  # monotonic seconds, after a stop; set before _stop
        self.alive_at = 0.0  # monotonic seconds; the source was connected after it; 0: never
        self._first_polls_until = 0.0  # monotonic seconds
        self._reconnect_reason = ""  # set when the connection must be replaced
        self._thread = threading.Thread(target=self._run, name=f"pump-{state.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop_receiving(self, deadline: float, *, removed: bool = False) -> None:
        """Receive no further batch; batches in flight continue.

        What a source has whose broker keeps nothing is relayed until `deadline`, in monotonic
        seconds. With `removed` a reload took the source away: no gap begins.
        """
        self._removed, self._relay_until = removed, deadline
        self._stop.set()
        self.state.hasten()

    def idle(self) -> bool:
        """Return whether the thread has ended, or only connects, and every batch is settled."""
        return self.settled and not self._is_busy()

    def _is_busy(self) -> bool:
        return self._thread.is_alive() and not self._opening

    @property
    def settled(self) -> bool:
        """Whether every received batch is settled."""
        return not self._relay.in_flight

    @property
    def stopping(self) -> bool:
        """Whether it receives no further batch."""
        return self._stop.is_set()

    @property
    def replaces_source(self) -> bool:
        """Whether a reload gave it another source, which is not in use yet."""
        wanted = self._next_binding
        return wanted is not None and wanted.source is not self._binding.source

    def close(self) -> None:
        """End the thread, then close the source: closing may redeliver unsettled messages."""
        self._stop.set()
        self.state.hasten()
        if self._is_busy():
            self._thread.join(timeout=4 * RECEIVE_TIMEOUT)  # a full lane may block it longer
        self._binding.source.close()
        if self._is_busy():
            self._thread.join(timeout=5)

    def rebind(self, binding: SourceBinding) -> None:
        """Continue with the routes of `binding`, and with its source when it is another one.

        Its routes take effect when the sources that the same reload lets read from their targets
        are ready. A pause between attempts to connect ends: its cause may be mended.
        """
        self._next_binding = binding
        self.state.hasten()

    @property
    def rebinding(self) -> bool:
        """Whether a requested rebind is still outstanding."""
        return self._next_binding is not None and self._thread.is_alive()

    def reconnect(self, reason: str) -> None:
        """Replace the connection; any thread may call this."""
        self._reconnect_reason = reason
        self._binding.source.close()  # wakes a blocked receive

    @property
    def source(self) -> Source:
        return self._binding.source

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._receive_once()
                continue
            except GatewayError as failure:
                error = failure
            except Exception as failure:  # a driver's fault, or ours, must not end this thread
                log.exception("unexpected error", extra={"endpoint": self.state.name})
                self._binding.source.close()
                error = unexpected_error(self.state.name, failure)
            if self._opening and self._stop.is_set():
                break
            self._opening = False
            self._lost(error)
            pause = self.state.next_pause(self._binding.backoff, error)
            if self._next_applicable() is None and not self._stop.is_set():
                self.state.pause(pause)
        self._relay.cut_log.say(time.monotonic(), at_end=True)
        if self._opening:
            return
        with suppress(LeaseNotHeldError):
            self._context.require_lease()
            since = self._context.recorder.clock()
            if self.gaps.keeps_nothing:
                since = self._relay_rest(since)
            self.gaps.stopped(since, removed=self._removed)

    def _lost(self, error: GatewayError) -> None:
        self.state.lost(error)
        with suppress(LeaseNotHeldError):  # without it the new holder receives, and records
            self._context.require_lease()
            self.gaps.lost(error)

    def _relay_rest(self, since: int) -> int:
        """Relay what the source has, and await the answers; return since when it misses messages.

        `since` is now. Nobody delivers these messages again. A source that can ends its intake: one
        whose broker sends faster than the targets take always has more.
        """
        source = self._binding.source
        intake = source if isinstance(source, EndsIntake) and not source.intake_ended else None
        answer_until = time.monotonic() + INTAKE_TIMEOUT
        try:
            if self.begun and intake is not None:
                intake.end_intake()
            while self.begun and time.monotonic() < self._relay_until:
                self._context.require_lease()
                is_open = intake is not None and not intake.intake_ended
                waits = is_open and time.monotonic() < answer_until
                if (batch := source.receive(POLL_INTERVAL if waits else 0)) is not None:
                    self._relay.relay(batch)
                elif not waits:
                    if intake is None:
                        since = self._context.recorder.clock()
                    break
        except GatewayError as error:  # also of another client that takes the session now
            self._lost(error)
        except Exception as failure:
            log.exception("unexpected error", extra={"endpoint": self.state.name})
            self._lost(unexpected_error(self.state.name, failure))
        wait_until(lambda: self.settled, self._relay_until - END_MARGIN)
        return since

    def _receive_once(self) -> None:
        """Open the source if necessary, and relay one batch."""
        if self._next_binding is not None and (wanted := self._next_applicable()) is not None:
            self._apply(wanted)
        if self._reconnect_reason:
            reason, self._reconnect_reason = self._reconnect_reason, ""
            raise NotConnectedError(f"{self.state.name}: {reason}; reconnecting")
        begun = time.monotonic()
        if self.state.connection is not ConnectionState.CONNECTED:
            self._context.require_lease()
            self._opening = True
            self._binding.source.open()
            if self._stop.is_set():  # the gateway may be closed by now
                self._binding.source.close()
                self._context.require_lease()
                self.gaps.note_losses()
                raise NotConnectedError(f"{self.state.name}: stopped while it connected")
            self._opening = False
            self._relay.stop_waiting()
            self.alive_at = begun
            self.gaps.connected()
            self.state.connected()
            self._first_polls_until = time.monotonic() + FIRST_POLLS
        if not self.begun and not self._binding.readers_ready():
            self._stop.wait(POLL_INTERVAL)
            return
        self.begun = True
        timeout = POLL_INTERVAL if begun < self._first_polls_until else RECEIVE_TIMEOUT
        batch = self._binding.source.receive(timeout)
        self.alive_at = begun
        if begun >= self.gaps.next_check:
            self.gaps.check()
        if batch is not None:
            self._relay.relay(batch)
        else:
            self._relay.note_quiet()
        if (cuts := self._relay.cut_log).waiting:
            cuts.say(time.monotonic())

    def _next_applicable(self) -> SourceBinding | None:
        """Return the binding of a reload, unless its routes must wait and its source is ours."""
        wanted = self._next_binding
        if wanted is None or self.replaces_source or wanted.readers_ready():
            return wanted
        return None

    def _apply(self, binding: SourceBinding) -> None:
        """Switch to `binding`; a replaced source is closed when its batches are settled."""
        if binding.source is not self._binding.source:
            deadline = time.monotonic() + REBIND_TIMEOUT
            while not self.settled and time.monotonic() < deadline and not self._stop.is_set():
                self._stop.wait(POLL_INTERVAL)  # a stop ends it at once
            if self.state.connection is ConnectionState.CONNECTED:
                self.gaps.lost(NotConnectedError(f"{self.state.name}: a reload replaced it"))
            self._binding.source.close()
            self.state.connection = ConnectionState.CONNECTING
            self.alive_at = 0.0
            self.begun = False
        self._binding, self._next_binding = binding, None
        self.gaps.attach(binding.source, watched_by(binding.rules.router.routes))
        self._relay.rebind(binding)


def wait_until(done: Callable[[], bool], deadline: float) -> bool:
    """Wait until `done` returns true; return false when `deadline` (monotonic) passes first."""
    tick = threading.Event()
    while not done():
        if time.monotonic() >= deadline:
            return False
        tick.wait(POLL_INTERVAL)
    return True
