"""One connection of a source of NATS, and what both kinds of NATS have in common of it.

intake    the connection; its end, for whatever reason, ends the queue
reader    asks for messages over this connection and puts them into the queue
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from gateway.endpoints.base import Batch
from gateway.endpoints.nats.connection import NatsConnection
from gateway.endpoints.receipts import ReceiptQueue, ReceivedMessage
from gateway.endpoints.settings.nats import NatsSettings
from gateway.endpoints.source_shell import not_open
from gateway.errors import GatewayError, SubjectError, SubscriptionRefusedError

NatsMessage: TypeAlias = ReceivedMessage[str]  # its receipt is the reply subject, if any
Inbox: TypeAlias = ReceiptQueue[str]


class NatsReader(Protocol):
    """Reads over one connection. Owned by the connection's thread."""

    queue: Inbox

    async def start(self, connection: NatsConnection) -> None:
        """Begin to read. Raises as `NatsConnection.call` does."""

    def end(self) -> None:
        """Take in only what was sent before, where the server keeps nothing."""


class NatsIntake:
    """An intake (`endpoints.source_shell`) that reads with `reader`. Thread-safe."""

    def __init__(self, settings: NatsSettings, reader: NatsReader) -> None:
        self._settings, self._reader = settings, reader
        self.queue = reader.queue
        self.connection: NatsConnection | None = None

    @property
    def address(self) -> str:
        return "" if self.connection is None else self.connection.address

    @property
    def ended(self) -> bool:
        return self._settings.jetstream or self.queue.ended

    def open(self) -> None:
        """Connect and begin to read. Raises as `Source.open` does."""
        connection = self.connection = NatsConnection(self._settings, self._fail)
        try:
            connection.call(self._reader.start(connection))
        except SubjectError as error:
            raise SubscriptionRefusedError(f"{self._settings.name}: {error}") from error

    def receive(self, timeout: float) -> Batch | None:
        return self.queue.receive(timeout)

    def end(self) -> None:
        self._reader.end()

    def close(self) -> None:
        connection, self.connection = self.connection, None
        self._fail(not_open(self._settings.name))
        if connection is not None:
            connection.close()

    def _fail(self, failure: GatewayError) -> None:
        """End the queue; messages of core NATS can still be received: they do not come again."""
        self.queue.fail(failure, lambda _received: not self._settings.jetstream)
