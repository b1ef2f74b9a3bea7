"""A tap: an independent subscriber at a target, whose rows say what really arrived there."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.archive.journal.records import Rows
from gateway.archive.schema import Leg, Step
from gateway.clock import now
from gateway.endpoints.base import Batch, Source
from gateway.errors import ArchiveError, GatewayError, NotConnectedError
from gateway.model.message import GATEWAY_ID, Message
from gateway.model.outcome import ACCEPTED
from gateway.runtime.context import Identities
from gateway.runtime.monitor.counters import Connection, EndpointState
from gateway.runtime.outbound.backoff import Attempts
from gateway.runtime.record.ledger import Archive
from gateway.runtime.record.rows import fingerprint

log = logging.getLogger(__name__)
WAIT = 0.25  # seconds that a stop may have to wait for a quiet target


@dataclass(frozen=True, slots=True)
class Tapped:
    """What a tap listens to: the target `label` of `route`, at an endpoint, by a subscription."""

    route: str
    label: str
    endpoint: str
    system: str
    pattern: str


class Tap:
    """The thread of one tap; mutable, it owns its connection.

    It settles what it has seen when the rows are durable, and counts nothing among the routes.
    """

    def __init__(
        self,
        tapped: Tapped,
        source: Source,
        backoff: tuple[float, float],
        archive: Archive,
        identities: Identities,
    ) -> None:
        self.tapped = tapped
        self.state = EndpointState(tapped.endpoint, "tap")
        self._source = source
        self._backoff = backoff
        self._archive = archive
        self._identities = identities
        self._stop = threading.Event()
        name = f"tap-{tapped.route}-{tapped.label}"
        self._thread = threading.Thread(target=self._listen, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=4 * WAIT)
        self._source.close()

    def _listen(self) -> None:
        attempts = Attempts()
        while not self._stop.is_set():
            try:
                if self.state.connection is not Connection.CONNECTED:
                    self._source.open()
                    self.state.connected()
                    attempts.connected()
                batch = self._source.receive(WAIT)
                if batch is not None:
                    self._record(batch)
                continue
            except ArchiveError:
                return  # it is closed, and so are we
            except GatewayError as failure:
                error = failure
            except Exception as failure:  # a driver's fault must not end this thread
                log.exception("a fault in the driver", extra={"endpoint": self.state.name})
                error = NotConnectedError(f"{self.state.name}: {type(failure).__name__}: {failure}")
            self.state.lost(error)
            self._source.close()
            self._stop.wait(attempts.pause(self._backoff, refused=not error.retryable))

    def _record(self, batch: Batch) -> None:
        messages = batch.messages
        self.state.messages += len(messages)
        rows = observed(self.tapped, messages, self._identities, now())
        self._archive([rows], lambda: batch.settle([ACCEPTED] * len(messages)))


def observed(tapped: Tapped, messages: Sequence[Message], identities: Identities, at: int) -> Rows:
    """The rows of messages seen at `at`; each with the id the gateway gave it, if it carries it."""
    first = identities.take(len(messages))
    run = identities.run.to_bytes(8, "big")
    prints = [fingerprint(message.payload) for message in messages]
    return Rows(
        len(messages),
        {
            "route": tapped.route,
            "leg": Leg.OBSERVED.value,
            "endpoint": tapped.endpoint,
            "system": tapped.system,
            "target": tapped.label,
            "attempt": 1,
            "time": at,
            "received": at,
            "outcome": Step.ACCEPTED.value,
        },
        {
            "name": [message.address for message in messages],
            "id": [run + (first + number).to_bytes(8, "big") for number in range(len(messages))],
            "origin_id": [_given(message) for message in messages],
            "mode": [int(message.headers.mode) for message in messages],
            "size": [size for size, _ in prints],
            "hash": [digest for _, digest in prints],
        },
    )


def _given(message: Message) -> str | None:
    given = message.headers.properties.get(GATEWAY_ID)
    return given if isinstance(given, str) else None
