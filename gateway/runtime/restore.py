"""The retained messages of sources, sent again to one target whose broker began empty.

Begun: when the sink is connected and shows that its broker began empty; at most once a connection.
Read: by a connection of its own at each source, so that other targets get nothing. Taken: what the
broker retained, marked as redelivered, by the routes to that target, with rows and counters. Ended:
when nothing retained comes for a while, and each copy has its outcome.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final

from gateway.endpoints.base import Batch, ShowsLoss
from gateway.errors import GatewayError
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, Settlement
from gateway.runtime.context import GatewayContext, SourceBinding
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.record.counters import ConnectionState, EndpointState
from gateway.runtime.relay import Relay

log = logging.getLogger(__name__)

QUIET: Final = 2.0  # seconds without a retained message, after which all have come
POLL_INTERVAL: Final = 0.1  # seconds
RETRY_PAUSE: Final = 5.0  # seconds between attempts to reach a source

Readers = Callable[[str], Mapping[str, SourceBinding]]  # by source, for a target


@dataclass(frozen=True, slots=True)
class _RetainedPart:
    """The retained messages of a batch; the others are settled with them."""

    whole: Batch
    positions: Sequence[int]

    def batch(self) -> Batch:
        taken = [_marked(self.whole.messages[each]) for each in self.positions]
        return Batch(taken, self.settle)

    def settle(self, settlements: Sequence[Settlement]) -> None:
        whole = [ACCEPTED] * len(self.whole.messages)
        for position, settlement in zip(self.positions, settlements, strict=True):
            whole[position] = settlement
        self.whole.settle(whole)


class RetainedRestorer:
    """Restores the targets that began empty, each in a thread of its own.

    Thread-safe: self._lock guards the threads.
    """

    def __init__(self, lanes: Mapping[str, Lane], readers: Readers) -> None:
        self._lanes, self._readers = lanes, readers
        self._lock = threading.Lock()
        self._running: dict[str, threading.Thread] = {}
        self._stop = threading.Event()

    def changed(self, name: str, context: GatewayContext) -> None:
        """Begin to restore the target `name` if it is connected to a broker that began empty."""
        lane = self._lanes.get(name)
        if lane is None or not _began_empty(lane):
            return
        with self._lock:
            before = self._running.get(name)
            if self._stop.is_set() or (before is not None and before.is_alive()):
                return
            thread = threading.Thread(
                target=self._restore,
                args=[name, lane, context],
                name=f"restore-{name}",
                daemon=True,
            )
            self._running[name] = thread
            thread.start()

    def stop(self, seconds: float) -> None:
        """Read nothing more, and wait until the threads have ended."""
        self._stop.set()
        deadline = monotonic() + seconds
        with self._lock:
            threads = [*self._running.values()]
        for each in threads:
            each.join(max(0.0, deadline - monotonic()))

    def _restore(self, name: str, lane: Lane, context: GatewayContext) -> None:
        log.info(
            "its broker began empty: retained messages are sent again", extra={"endpoint": name}
        )
        for source, binding in self._readers(name).items():
            while not self._read(source, binding, lane, context):
                if self._stop.wait(RETRY_PAUSE) or not _began_empty(lane):
                    return  # the next connection tells again
        sink = lane.binding.sink
        if isinstance(sink, ShowsLoss):
            sink.restored()
            log.info("retained messages are restored", extra={"endpoint": name})

    def _read(
        self, source: str, binding: SourceBinding, lane: Lane, context: GatewayContext
    ) -> bool:
        """Relay what is retained at a source; return whether all has an outcome."""
        relay = Relay(binding, EndpointState(source, "restore"), context, self._stop)
        try:
            context.require_lease()
            binding.source.open()
            quiet_since = monotonic()
            while monotonic() - quiet_since < QUIET:
                if self._stop.is_set() or not _began_empty(lane):
                    return False
                batch = binding.source.receive(POLL_INTERVAL)
                found = [] if batch is None else _retained(batch)
                if batch is not None and found:
                    relay.relay(_RetainedPart(batch, found).batch())
                elif batch is not None:
                    batch.settle([ACCEPTED] * len(batch.messages))
                if found or relay.in_flight:
                    quiet_since = monotonic()
        except GatewayError as error:
            log.warning("retained messages cannot be read: %s", error, extra={"endpoint": source})
            return False
        finally:
            binding.source.close()
        return True


def _began_empty(lane: Lane) -> bool:
    sink = lane.binding.sink
    is_connected = lane.state.connection is ConnectionState.CONNECTED
    return is_connected and isinstance(sink, ShowsLoss) and sink.began_empty


def _retained(batch: Batch) -> list[int]:
    """Return the positions of the messages that the broker had retained."""
    return [at for at, message in enumerate(batch.messages) if message.headers.retained]


def _marked(message: Message) -> Message:
    headers = replace(message.headers, redelivered=True)
    return Message(message.address, message.payload, headers, message.proof)
