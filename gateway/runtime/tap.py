"""A tap: an independent subscriber at a target that archives the messages arriving there."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from itertools import islice
from time import monotonic
from typing import Final

from gateway.endpoints.base import Batch, Source
from gateway.errors import ArchiveError, GatewayError, LeaseNotHeldError, unexpected_error
from gateway.model.outcome import ACCEPTED
from gateway.runtime.context import GatewayContext
from gateway.runtime.delivery.received_batch import ReceivedBatch
from gateway.runtime.delivery.rows import BatchOrigin
from gateway.runtime.record.counters import ConnectionState, EndpointState
from gateway.runtime.record.gap_recorder import GapRecorder
from gateway.runtime.record.gap_rows import Watched

log = logging.getLogger(__name__)
RECEIVE_TIMEOUT: Final = 0.25  # seconds; a target that sends nothing for so long has no more


class Tap:
    """The thread and the connection of one tap.

    Messages are settled when their rows are durable. Route counters do not include them.
    Mutable: owned by the tap's thread.
    """

    def __init__(
        self, target: Watched, source: Source, backoff: tuple[float, float], context: GatewayContext
    ) -> None:
        self.target = target
        self.state = EndpointState(target.endpoint, "tap")
        self._source = source
        self._backoff = backoff
        self._context = context
        self._gaps = GapRecorder(source, [target], context.recorder, context.connections)
        self._stop = threading.Event()
        self._read_until = 0.0  # monotonic; of a stop
        self._has_all = False  # since the stop
        self._thread = threading.Thread(target=self._run, name=target.tap_name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Record what the target's broker still has for the tap, for `seconds`, and close.

        The night would call it lost until the next start. Messages that are left have a gap.
        """
        self._read_until = monotonic() + seconds
        self._stop.set()
        self.state.hasten()
        if self._thread.is_alive():
            self._thread.join(timeout=seconds + 4 * RECEIVE_TIMEOUT)
        self._source.close()

    def _reads(self) -> bool:
        if not self._stop.is_set():
            return True
        connected = self.state.connection is ConnectionState.CONNECTED
        return connected and not self._has_all and monotonic() < self._read_until

    def _run(self) -> None:
        while self._reads():
            try:
                self._context.require_lease()
                if self.state.connection is not ConnectionState.CONNECTED:
                    self._source.open()
                    self._gaps.connected()
                    self.state.connected()
                at, stopping = self._context.recorder.clock(), self._stop.is_set()
                if (batch := self._source.receive(RECEIVE_TIMEOUT)) is not None:
                    self._record(batch)
                else:
                    self._gaps.all_until = at
                    self._has_all = stopping
                if monotonic() >= self._gaps.next_check:
                    self._gaps.check()
                continue
            except ArchiveError:
                return  # the archive is closed
            except GatewayError as failure:
                error = failure
            except Exception as failure:  # a driver's fault must not end this thread
                log.exception("unexpected error in a driver", extra={"endpoint": self.state.name})
                error = unexpected_error(self.state.name, failure)
            if not isinstance(error, LeaseNotHeldError):  # else the new holder's tap observes
                self._gaps.lost(error)
            self.state.lost(error)
            self._source.close()
            pause = self.state.next_pause(self._backoff, error)
            if not self._stop.is_set():
                self.state.pause(pause)
        with suppress(LeaseNotHeldError):
            self._context.require_lease()
            self._gaps.stopped(self._context.recorder.clock(), unread=not self._has_all)

    def _record(self, batch: Batch) -> None:
        count, tap = len(batch.messages), self.target
        self.state.messages += count
        recorder, ids = self._context.recorder, self._context.message_ids
        at = recorder.clock()
        self._gaps.last_message = at
        origin = BatchOrigin(tap.endpoint, tap.system, at)
        received = ReceivedBatch(batch.messages, origin, [*islice(ids, count)])
        rows = received.observed_rows(tap.route, tap.target)
        recorder.write([rows], [], lambda: batch.settle([ACCEPTED] * count))
