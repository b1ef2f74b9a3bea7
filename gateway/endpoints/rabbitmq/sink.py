"""A RabbitMQ sink: the server's confirms settle messages, its returns reject them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from threading import Condition
from time import monotonic
from typing import Any, Final

from pika.exceptions import AMQPError
from pika.spec import Basic

from gateway.clock import now
from gateway.endpoints.base import Settle, unwritable
from gateway.endpoints.rabbitmq.addresses import write_address
from gateway.endpoints.rabbitmq.connection import Properties, RabbitmqConnection
from gateway.endpoints.rabbitmq.headers import write_properties
from gateway.endpoints.rabbitmq.topology import find_exchange
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.errors import NotConnectedError, TranslationError, first_line
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import text_size
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, NO_ROOM, RETRY, Settlement, rejected

_CHECK: Final = 0.5  # seconds between looks at late answers and a full window
_MAX_CACHED: Final = 16 << 20  # bytes of addresses
_HEADER_START: Final = 12  # bytes of a header frame before the properties


@dataclass(slots=True)
class _SentBatch:
    """A call of `send`. Mutable: guarded by the sink's lock."""

    settled: Settle
    settlements: list[Settlement]
    left: int


@dataclass(frozen=True, slots=True)
class _Outgoing:
    """A message as it is sent."""

    position: int
    exchange: str
    key: str
    properties: bytes
    payload: bytes


@dataclass(slots=True)
class _Waiting:
    """A published message that the server has not confirmed. Mutable: the settlement."""

    batch: _SentBatch
    message: _Outgoing
    since: float
    settlement: Settlement = ACCEPTED  # a returned message is confirmed, too


class RabbitmqSink:
    """Publishes over one channel; delivery tags count its messages from 1.

    Thread-safe: guarded by self._changed.
    """

    def __init__(self, settings: RabbitmqSettings, instance: str = "") -> None:
        del instance  # its connection has no name
        self._settings = settings
        self._places: LimitedCache[str, tuple[str, str]] = LimitedCache(_MAX_CACHED)
        self._changed = Condition()
        self._connection: RabbitmqConnection | None = None
        self._waiting: dict[int, _Waiting] = {}  # by delivery tag, in their order
        self._next = 1
        self._returned = 0  # the tag of the last returned message
        self.counts = {"unroutable": 0}

    @property
    def address(self) -> str:
        """HOST:PORT of the server; empty without a connection."""
        return "" if self._connection is None else self._connection.address

    def open(self) -> None:
        self.close()
        connection = RabbitmqConnection(self._settings, lambda _failure: self._fail())
        try:
            find_exchange(connection, self._settings)
            connection.ask(
                lambda done: connection.channel.confirm_delivery(self._take_answer, callback=done)
            )
            connection.channel.add_on_return_callback(self._take_return)
        except BaseException:
            connection.close()
            raise
        with self._changed:
            self._next, self._returned = 1, 0
            self._connection = connection
        connection.spawn(lambda: self._look(connection))

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        connection = self._connected()
        batch = _SentBatch(settled, [ACCEPTED] * len(messages), 0)
        ready: list[_Outgoing] = []
        at = now()
        for position, message in enumerate(messages):
            try:
                ready.append(self._write(position, message, connection.max_header, at))
            except TranslationError as error:
                batch.settlements[position] = rejected(
                    error.rule, f"{self._settings.name}: {error.reason}"
                )
            except Exception as error:  # noqa: BLE001  # of this message; the others are sent
                batch.settlements[position] = unwritable(self._settings.name, error)
        if ready and connection.blocked:
            for each in ready:
                batch.settlements[each.position] = NO_ROOM
            ready = []
        if not ready:
            settled(batch.settlements)
            return
        batch.left = len(ready)
        self._publish_when_room(batch, ready)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            self._fail()

    def _connected(self) -> RabbitmqConnection:
        connection = self._connection
        if connection is None or connection.is_over:
            raise NotConnectedError(f"{self._settings.name}: not connected")
        return connection

    def _write(self, position: int, message: Message, limit: int, at: int) -> _Outgoing:
        """Return a message as it is sent; `limit` is that of a header frame, in bytes.

        Raises:
            TranslationError: RabbitMQ or this server cannot carry it.
        """
        address, payload = message.address, message.payload
        place = self._places.get(address)
        if place is None:
            place = write_address(address, self._settings.exchange)
            self._places.add(address, place, 2 * text_size(address))
        if isinstance(payload, str):
            payload = payload.encode()
        if not isinstance(payload, bytes):
            reason = "RabbitMQ carries bytes or text"
            raise TranslationError("rabbitmq", address, "payload-kind", reason)
        if len(payload) > self._settings.max_message:
            reason = f"the payload is {len(payload)} bytes, limit {self._settings.max_message}"
            raise TranslationError("rabbitmq", address, "message-bytes", reason)
        properties = write_properties(message.headers, self._settings, at)
        size = len(properties) + _HEADER_START
        if size > limit:
            reason = f"the headers are {size} bytes, and a frame has {limit}"
            raise TranslationError("rabbitmq", address, "header-bytes", reason)
        return _Outgoing(position, *place, properties, payload)

    def _publish_when_room(self, batch: _SentBatch, ready: Sequence[_Outgoing]) -> None:
        """Wait for room in the window; number the messages, and publish them in that order."""
        with self._changed:
            while True:
                connection = self._connected()
                if len(self._waiting) + len(ready) <= self._settings.send_window:
                    break
                if not self._waiting:  # a batch larger than the window
                    break
                self._changed.wait(_CHECK)
            first, since = self._next, monotonic()
            self._next += len(ready)
            for tag, each in enumerate(ready, first):
                self._waiting[tag] = _Waiting(batch, each, since)
            connection.spawn(lambda: self._publish(connection, ready))

    def _publish(self, connection: RabbitmqConnection, ready: Sequence[_Outgoing]) -> None:
        publish = connection.channel.basic_publish
        try:
            for each in ready:
                publish(
                    each.exchange, each.key, each.payload, Properties(each.properties),
                    mandatory=True,
                )  # fmt: skip
        except (AMQPError, OSError) as error:
            connection.end(first_line(error))

    def _take_answer(self, frame: Any) -> None:  # noqa: ANN401  # the driver's
        """Settle what the server confirms, or what it has no room for or no success with."""
        tag = frame.method.delivery_tag
        with self._changed:
            tags = [tag]
            if frame.method.multiple:
                tags = [*takewhile(tag.__ge__, self._waiting)]
            is_taken = isinstance(frame.method, Basic.Ack)
            answers = [
                (each, self._waiting[each].settlement if is_taken else NO_ROOM)
                for each in tags
                if each in self._waiting
            ]
        self._settle(answers)

    def _take_return(self, _channel: object, method: Any, properties: Any, payload: bytes) -> None:  # noqa: ANN401
        """Note that no queue has the message; its confirm follows.

        A return has no tag. Returns come in the order of publication.
        """
        given = (method.exchange, method.routing_key, properties.encoded, payload)
        with self._changed:
            oldest = next(iter(self._waiting), self._next)
            for tag in range(max(self._returned + 1, oldest), self._next):
                if (waiting := self._waiting.get(tag)) is None:
                    continue
                message = waiting.message
                known = (message.exchange, message.key, message.properties, message.payload)
                if known == given:
                    self._returned = tag
                    waiting.settlement = self._unroutable(message)
                    return

    def _unroutable(self, message: _Outgoing) -> Settlement:
        self.counts["unroutable"] += 1
        if self._settings.on_unroutable == "drop":
            return ACCEPTED
        reason = f"no queue is bound to {message.exchange!r} for {message.key!r}"
        if not message.exchange:
            reason = f"there is no queue {message.key!r}"
        return rejected("unroutable", f"{self._settings.name}: {reason}")

    def _settle(self, answers: Sequence[tuple[int, Settlement]]) -> None:
        complete: list[_SentBatch] = []
        with self._changed:
            for tag, settlement in answers:
                waiting = self._waiting.pop(tag, None)
                if waiting is None:
                    continue
                batch = waiting.batch
                batch.settlements[waiting.message.position] = settlement
                batch.left -= 1
                if not batch.left:
                    complete.append(batch)
            self._changed.notify_all()
        for batch in complete:
            batch.settled(batch.settlements)

    def _fail(self) -> None:
        """Settle every message without an answer as `RETRY`."""
        self._settle([(tag, RETRY) for tag in tuple(self._waiting)])

    def _look(self, connection: RabbitmqConnection) -> None:
        """End the connection when the oldest message has had no answer for too long."""
        with self._changed:
            oldest = next(iter(self._waiting.values()), None)
            if connection.blocked:  # the server has not read what was sent
                for waiting in self._waiting.values():
                    waiting.since = monotonic()
        if oldest and monotonic() - oldest.since > self._settings.answer_timeout:
            connection.end(f"no answer for {self._settings.answer_timeout} s")
        if not connection.is_over:
            connection.loop.call_later(_CHECK, lambda: self._look(connection))
