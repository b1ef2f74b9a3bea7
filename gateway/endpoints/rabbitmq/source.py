"""A RabbitMQ source: a durable queue bound to the patterns, and queues that patterns name.

Acknowledgements leave in the order of arrival. A queue gives back in its order what was not
acknowledged; a stream keeps everything, and the source remembers its position beside the gateway.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import partial
from secrets import token_hex
from time import monotonic
from typing import Any, Final, TypeAlias
from zlib import crc32

from pika.exceptions import AMQPError, ChannelClosedByBroker

from gateway.endpoints.base import Batch, Subscription
from gateway.endpoints.continuity import Continuity, Retention, SubscriptionStore
from gateway.endpoints.rabbitmq.addresses import read_key
from gateway.endpoints.rabbitmq.connection import NOT_FOUND, RabbitmqConnection, refusal
from gateway.endpoints.rabbitmq.headers import STREAM_OFFSET, read_properties
from gateway.endpoints.rabbitmq.topology import (
    Binding,
    bind,
    close_channel,
    find_exchange,
    find_queue,
    unbind,
)
from gateway.endpoints.received_messages import ReceivedMessage, ReceivedMessages
from gateway.endpoints.redelivery_queue import mark_redelivered
from gateway.endpoints.settings.rabbitmq import QUEUE, RabbitmqSettings
from gateway.errors import NotConnectedError, SubscriptionRefusedError, first_line
from gateway.model.message import Message, Value

SAVE_INTERVAL: Final = 1.0  # seconds between saved positions in a stream
CANCELLED: Final = "the server cancelled the consumer: its queue was deleted, or its node is down"
DROPPED: Final = "the stream's retention removed messages before they were read"
MADE_AGAIN: Final = "the stream was made again, or lost its end: the last message read is not in it"


NOTHING: Final = (-1, 0)  # the first and the last message of an empty stream
AmqpMessage: TypeAlias = ReceivedMessage[int]  # its receipt is the delivery tag


@dataclass(slots=True)
class Position:
    """The place of a source in its stream: `last` is the offset of the last settled message.

    `stream` distinguishes a stream from a later one of its name, as offsets begin again; `first` is
    the offset of its first message, with a checksum. Mutable: owned by the source.
    """

    stream: str = ""
    last: int = -1
    first: tuple[int, int] = NOTHING


class RabbitmqSource:
    """Receives over one channel.

    Thread-safe: arrivals are added in the connection's thread; the queue guards them.
    """

    def __init__(
        self, settings: RabbitmqSettings, subscriptions: Sequence[Subscription], instance: str = ""
    ) -> None:
        self._settings = settings
        patterns = list(dict.fromkeys(each.pattern for each in subscriptions))
        self._queues = [each.removeprefix(QUEUE) for each in patterns if each.startswith(QUEUE)]
        self._bindings = [
            (settings.exchange, each) for each in patterns if not each.startswith(QUEUE)
        ]
        own = settings.queue or f"gateway-{settings.name}"
        self._queue_name = f"{own}-{instance}" if instance else own
        self._session = f"{settings.broker_key} {self._queue_name}"
        self.continuity = Continuity(Retention.KEPT)
        self.subscription_store: SubscriptionStore | None = None
        self._connection: RabbitmqConnection | None = None
        self._queue_is_new = False  # made since the last successful `open`
        self._is_stream = settings.queue_type == "stream"
        self._position = Position()
        self._begin: str | int = settings.start  # without a place
        self._saved = -1  # offset of the saved position
        self._saved_at = 0.0
        self._doubtful = -1  # offset up to which an earlier process may have read a stream
        self._fresh: list[AmqpMessage] = []
        self._queue = self._new_queue()
        self._queue.fail(NotConnectedError(f"{settings.name}: is closed; open it first"))

    @property
    def address(self) -> str:
        """HOST:PORT of the server; empty without a connection."""
        return "" if self._connection is None else self._connection.address

    def open(self) -> None:
        self.close()
        queue = self._queue = self._new_queue()
        self._fresh = []
        connection = self._connection = RabbitmqConnection(self._settings, queue.fail)
        try:
            self._start(connection, queue)
            self._queue_is_new = False
        except ChannelClosedByBroker as error:
            self.close()
            raise self._refused(error) from error
        except BaseException:
            self.close()
            raise

    def receive(self, timeout: float) -> Batch | None:
        return self._queue.receive(timeout)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self._queue.fail(NotConnectedError(f"{self._settings.name}: is closed; open it first"))
        if connection is not None:
            connection.close()
            self._save_position()

    def _new_queue(self) -> ReceivedMessages[int]:
        return ReceivedMessages(self._settings.receive_window_bytes, self._confirm)

    def _refused(self, error: ChannelClosedByBroker) -> Exception:
        """Return the error of a consumer that the server does not accept."""
        text = f"{self._settings.name}: {error.reply_text}"
        if error.reply_code == NOT_FOUND or "exclusive" in error.reply_text:
            return NotConnectedError(text)  # somebody may create it, or leave it
        found = refusal(self._settings, error)
        return found if found.retryable else SubscriptionRefusedError(str(found))

    def _start(self, connection: RabbitmqConnection, queue: ReceivedMessages[int]) -> None:
        settings, channel = self._settings, connection.channel
        self._find_queue(connection)
        channel.add_on_cancel_callback(lambda _frame: self._cancelled(connection))
        window = settings.receive_window
        connection.ask(lambda done: channel.basic_qos(prefetch_count=window, callback=done))
        wanted = [(name, QUEUE + name) for name in self._queues]
        if self._bindings:
            wanted.insert(0, (self._queue_name, ""))
        for name, address in wanted:
            arguments: dict[str, Any] = {}
            if not address and self._is_stream:
                last = self._position.last
                arguments[STREAM_OFFSET] = last + 1 if last >= 0 else self._begin
            take = partial(self._take, connection, queue, address)
            connection.ask(_consumer(channel, name, take, arguments), channel)

    def _find_queue(self, connection: RabbitmqConnection) -> None:
        """Make the queue have the bindings of this source, and no others of an earlier one."""
        settings, store = self._settings, self.subscription_store
        known: set[Binding] = set()
        if store is not None:
            known = {*(store.load(self._session, _read_binding) or ())}
        self.continuity.retention = Retention.KEPT
        if self._bindings:
            find_exchange(connection, settings, binds=True)
            is_old = find_queue(connection, settings, self._queue_name)
            if not is_old:
                self._queue_is_new = True
            if self._queue_is_new:
                self.continuity.retention = Retention.NEW
            if self._is_stream:
                self._find_position(connection, is_old=is_old)
            if store is not None:
                store.save(self._session, _texts(known | {*self._bindings}))
            bind(connection, settings, self._queue_name, self._bindings)
        gone = sorted(known.difference(self._bindings))
        left = unbind(connection, self._queue_name, gone)
        if store is not None and gone:
            store.save(self._session, _texts({*self._bindings, *left}))

    def _find_position(self, connection: RabbitmqConnection, *, is_old: bool) -> None:
        """Find the place in the stream; a new stream begins at its first message."""
        if self.subscription_store is not None and not self._position.stream:
            saved = self.subscription_store.load(f"{self._session} position", _read_position)
            if saved is None and is_old:
                self._doubtful, _ = self._chunk(connection, "last")[-1]
            elif saved:
                self._position = saved[0]
        if not is_old:
            self._position, self._doubtful = Position(), -1
        elif self._position.last < 0 and self._settings.start != "first":
            self.continuity.retention = Retention.NEW
        if not self._position.stream:
            self._position.stream = token_hex(4)
        if self._position.last >= 0:
            self._check_position(connection)

    def _check_position(self, connection: RabbitmqConnection) -> None:
        """Report messages that are gone; leave the place of a stream that was made again.

        One that ends before the place may also have lost its end in a crash. So from offset 0 on
        everything is read again, and marked.
        """
        place, known = self._position.last, self._position.first
        first = self._position.first = self._chunk(connection, "first")[0]
        last = NOTHING if first == NOTHING else self._chunk(connection, "last")[-1]
        if last[0] < place or (known[0] == first[0] and known != first):
            begins = last[0] if first[0] > 0 else -1
            self._position, self._doubtful = Position(token_hex(4), begins, first), place
            self._begin = 0
            self.continuity.report_loss(MADE_AGAIN)
        elif first[0] > place + 1:
            self.continuity.report_loss(DROPPED)  # the server's own entries have offsets, too

    def _chunk(self, connection: RabbitmqConnection, place: str) -> list[tuple[int, int]]:
        """Return offset and checksum of the stream's first or last messages."""
        channel = connection.open_channel()
        chunk: list[tuple[int, int]] = []
        found: Future[None] = Future()

        def take(_channel: object, _method: object, properties: Any, payload: bytes) -> None:  # noqa: ANN401
            _, of_server = read_properties(
                properties.encoded, self._settings, {}, now=0, redelivered=False
            )
            offset = of_server.get(STREAM_OFFSET)
            number = offset if isinstance(offset, int) else 0
            chunk.append((number, _checksum(properties, payload)))
            if not found.done():  # a stream sends a whole chunk
                found.set_result(None)

        connection.ask(lambda done: channel.basic_qos(prefetch_count=1, callback=done))
        connection.ask(_consumer(channel, self._queue_name, take, {STREAM_OFFSET: place}), channel)
        with suppress(TimeoutError):
            found.result(self._settings.answer_timeout)
        close_channel(connection, channel)  # the whole chunk comes before the answer
        return chunk or [NOTHING]

    def _take(  # noqa: PLR0913, PLR0917  # a delivery of the driver
        self,
        connection: RabbitmqConnection,
        queue: ReceivedMessages[int],
        address: str,
        _channel: object,
        method: Any,  # noqa: ANN401
        properties: Any,  # noqa: ANN401
        payload: bytes,
    ) -> None:
        at = self.continuity.heard = self.continuity.clock()
        key = read_key(method.routing_key)
        place: dict[str, Value] = {}
        if address:
            place = {"amqp_exchange": read_key(method.exchange), "amqp_routing_key": key}
        headers, of_server = read_properties(
            properties.encoded, self._settings, place, now=at, redelivered=method.redelivered
        )
        message, offset, identity = Message(address or key, payload, headers), -1, ""
        if not address and isinstance(found := of_server.get(STREAM_OFFSET), int):
            offset = found
            if self._is_stream:
                identity = f"rabbitmq {self._queue_name} {self._position.stream} {offset}"
                if not offset:
                    self._position.first = (0, _checksum(properties, payload))
            if offset <= self._doubtful:
                message = mark_redelivered(message)
        if not self._fresh:
            connection.loop.call_later(0, lambda: self._put(queue))
        self._fresh.append(ReceivedMessage(message, method.delivery_tag, offset, identity))

    def _put(self, queue: ReceivedMessages[int]) -> None:
        """Hand over what was read together, and read no more without room.

        The server has sent up to `receive_window` messages, however large; it takes the silence of
        two heartbeats for the end of the connection, so the wait is shorter.
        """
        fresh, self._fresh = self._fresh, []
        queue.put(fresh)
        if queue.full:
            queue.wait_for_room(self._settings.heartbeat / 2)

    def _confirm(self, settled: Sequence[AmqpMessage]) -> None:
        """Answer for messages; the queue calls this in order."""
        connection = self._connection
        if connection is not None:
            connection.spawn(lambda: self._answer(connection, settled))

    def _answer(self, connection: RabbitmqConnection, settled: Sequence[AmqpMessage]) -> None:
        """Acknowledge; a dead letter of ours goes to the queue's dead-letter exchange, if any."""
        channel, last = connection.channel, 0
        try:
            for each in settled:
                if not each.is_dead:
                    last = each.receipt
                    continue
                if last:
                    channel.basic_ack(last, multiple=True)
                channel.basic_reject(each.receipt, requeue=False)
                last = 0
            if last:
                channel.basic_ack(last, multiple=True)
        except (AMQPError, OSError) as error:
            connection.end(first_line(error))
            return
        self._position.last = max(self._position.last, *(each.number for each in settled))
        if monotonic() - self._saved_at > SAVE_INTERVAL:
            self._save_position()

    def _save_position(self) -> None:
        store, position = self.subscription_store, self._position
        if store is None or position.last == self._saved:
            return
        self._saved, self._saved_at = position.last, monotonic()
        store.save(f"{self._session} position", [json.dumps([*astuple(position)])])

    def _cancelled(self, connection: RabbitmqConnection) -> None:
        self.continuity.report_loss(CANCELLED)
        connection.end(CANCELLED)


def _consumer(
    channel: Any,  # noqa: ANN401  # the driver's
    queue: str,
    take: Callable[..., None],
    arguments: dict[str, Any],
) -> Callable[[Callable[[Any], None]], object]:
    return lambda done: channel.basic_consume(queue, take, arguments=arguments, callback=done)


def _checksum(properties: Any, payload: bytes) -> int:  # noqa: ANN401  # of the driver
    return crc32(payload, crc32(properties.encoded))


def _texts(bindings: set[Binding]) -> list[str]:
    return sorted(map(json.dumps, bindings))


def _read_binding(text: str) -> Binding:
    exchange, pattern = json.loads(text)
    return str(exchange), str(pattern)


def _read_position(text: str) -> Position:
    stream, last, (offset, checksum) = json.loads(text)
    return Position(str(stream), int(last), (int(offset), int(checksum)))
