"""One connection of a source of RabbitMQ: consumers on one channel, and what they brought.

Acknowledgements leave in the order of arrival. A queue gives back in its order what was not
acknowledged; a stream keeps everything, and the source remembers its place.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Final, TypeAlias

from pika.exceptions import AMQPError, ChannelClosedByBroker

from gateway.endpoints.base import Batch
from gateway.endpoints.continuity import Retention
from gateway.endpoints.made import Made
from gateway.endpoints.rabbitmq import topology
from gateway.endpoints.rabbitmq.connection import NOT_FOUND, RabbitmqConnection, refusal
from gateway.endpoints.rabbitmq.headers import STREAM_OFFSET, PropertyReader
from gateway.endpoints.rabbitmq.stream_place import StreamPlace
from gateway.endpoints.rabbitmq.wanted import WantedQueues
from gateway.endpoints.receipts import ReceiptQueue, ReceivedMessage
from gateway.endpoints.received_queue import mark_redelivered
from gateway.endpoints.settings.rabbitmq import QUEUE
from gateway.endpoints.source_memory import Position, read_texts
from gateway.endpoints.source_shell import not_open
from gateway.errors import NotConnectedError, SubscriptionRefusedError, first_line
from gateway.model.message import DroppedPayload, Message, Value
from gateway.untyped import Untyped

NO_BINDINGS: Final[Sequence[topology.Binding]] = ()
BIND_INTERVAL: Final = 30.0  # seconds; no server tells that a binding is gone
_CHUNK: Final = 8_192  # messages; a server of 3.x sends a chunk of a stream whole
PATIENCE: Final = 20.0  # seconds without room until what comes is skipped
EXCHANGE_GONE: Final = "somebody deleted the exchange, and with it the bindings of the queue"
CANCELLED: Final = "the server cancelled the consumer: its queue was deleted, or its node is down"

Receipt: TypeAlias = tuple[int, StreamPlace | None]  # delivery tag, and the place in a stream
AmqpMessage: TypeAlias = ReceivedMessage[Receipt]


class RabbitmqIntake:
    """An intake (`endpoints.source_shell`) of the queues `wanted`.

    Thread-safe: arrivals are added in the connection's thread; the queue guards them.
    """

    ended = True  # the broker keeps what is not taken in

    def __init__(self, wanted: WantedQueues) -> None:
        self._wanted, self._settings = wanted, wanted.settings
        self.queue: ReceiptQueue[Receipt] = ReceiptQueue(
            self._settings.receive_window_bytes, self._confirm
        )
        self._properties = PropertyReader(self._settings)
        self._fresh: list[AmqpMessage] = []
        self._last_tag = self._pauses = 0
        self._connection: RabbitmqConnection | None = None

    @property
    def address(self) -> str:
        return "" if self._connection is None else self._connection.address

    def open(self) -> None:
        """Connect, and consume. Raises as `Source.open` does."""
        connection = self._connection = RabbitmqConnection(
            self._settings, self.queue.fail, self._settings.max_message_in
        )
        try:
            self._start(connection)
        except ChannelClosedByBroker as error:
            raise self._refused(error) from error
        self._wanted.known.made = False

    def receive(self, timeout: float) -> Batch | None:
        return self.queue.receive(timeout)

    def end(self) -> None:
        """Do nothing: the broker keeps what is not taken in."""

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self.queue.fail(not_open(self._settings.name))
        if connection is not None:
            connection.close()

    def _refused(self, error: ChannelClosedByBroker) -> Exception:
        """Return the error of a consumer that the server does not accept."""
        text = f"{self._settings.name}: {error.reply_text}"
        if error.reply_code == NOT_FOUND or "exclusive" in error.reply_text:
            return NotConnectedError(text)  # somebody may create it, or leave it
        found = refusal(self._settings, error)
        return found if found.retryable else SubscriptionRefusedError(str(found))

    def _start(self, connection: RabbitmqConnection) -> None:
        channel, window = connection.channel, self._settings.receive_window
        continuity, known = self._wanted.continuity, self._wanted.known
        self._bind(connection)
        continuity.retention = Retention.NEW if known.made else Retention.KEPT
        channel.add_on_cancel_callback(lambda _frame: self._cancelled(connection))
        connection.ask(partial(channel.basic_qos, prefetch_count=window))
        for name, address in self._wanted.addresses:
            place = self._find_place(connection, name)
            take = partial(self._take, connection, address, place)
            if place is None:
                connection.ask(partial(channel.basic_consume, name, take), channel)
                continue
            if place.skips_messages:
                continuity.retention = Retention.NEW
            place.attach(connection, take, continuity)
        if self._wanted.bindings:
            connection.spawn(lambda: self._bind_later(connection))

    def _bind_later(self, connection: RabbitmqConnection) -> None:
        connection.loop.call_later(BIND_INTERVAL, lambda: self._bind_again(connection))

    def _bind_again(self, connection: RabbitmqConnection) -> None:
        """Look for the exchange, and bind again what somebody may have unbound."""

        def opened(channel: Untyped) -> None:
            channel.exchange_declare(self._settings.exchange, passive=True)
            for exchange, pattern in self._wanted.bindings:
                channel.queue_bind(self._wanted.own, exchange, pattern)
            channel.close()  # behind their answers
            self._bind_later(connection)

        def refused(error: ChannelClosedByBroker) -> None:
            if error.reply_code == NOT_FOUND and not connection.is_over:
                self._wanted.continuity.report_loss(EXCHANGE_GONE)
                connection.end(error.reply_text)

        if not connection.is_over:
            connection.begin_channel(opened, refused)

    def _bind(self, connection: RabbitmqConnection) -> None:
        """Make the queue have the bindings of this source, and no others of an earlier one."""
        own, memory = self._wanted.own, self._wanted.memory
        known, wanted = self._wanted.known, {*self._wanted.bindings}
        fact = f"bindings {own}"
        saved = {*(memory.get(fact, _read_bindings, NO_BINDINGS) or NO_BINDINGS)}
        if wanted:
            if not topology.find_exchange(connection, binds=True) and saved:
                self._wanted.continuity.report_loss(EXCHANGE_GONE)
            if not topology.find_queue(connection, own):
                made = Made("queue", own, self._settings.broker_key)
                memory.note_made(made)
                if not topology.make_queue(connection, own):
                    memory.forget_made(made)
                known.made = True
                known.others.discard(own)
                if self._settings.queue_type == "stream":
                    self._position(own).begin_anew("")
                else:
                    known.others.add(own)
            memory.put(fact, _texts(saved | wanted))
            topology.bind(connection, own, self._wanted.bindings)
        if gone := sorted(saved - wanted):
            left = topology.unbind(connection, own, gone)
            memory.put(fact, _texts({*wanted, *left}))

    def _find_place(self, connection: RabbitmqConnection, queue: str) -> StreamPlace | None:
        """Return the place in a stream; None for a queue of another type."""
        others = self._wanted.known.others
        if queue in others or not topology.is_stream(connection, queue):
            others.add(queue)
            return None
        return StreamPlace(queue, self._position(queue), self._settings.start)

    def _position(self, queue: str) -> Position:
        return self._wanted.memory.position(f"stream {queue}", self._settings.receive_window)

    def _take(  # a delivery of the driver
        self,
        connection: RabbitmqConnection,
        address: str,
        place: StreamPlace | None,
        _channel: object,
        method: Untyped,
        properties: Untyped,
        payload: bytes,
    ) -> None:
        if (fault := self._find_fault(method.delivery_tag)) and not connection.is_over:
            connection.end(fault)
        if connection.is_over or connection.skipping:
            return
        continuity = self._wanted.continuity
        at = continuity.heard = continuity.clock()
        key = _read_key(method.routing_key)
        origin: dict[str, Value] = {}
        if address:
            origin = {"amqp_exchange": _read_key(method.exchange), "amqp_routing_key": key}
        headers, proof, of_server = self._properties.read(
            properties.encoded, origin, now=at, redelivered=method.redelivered
        )
        content = DroppedPayload(properties.dropped) if properties.dropped else payload
        message, offset, identity = Message(address or key, content, headers, proof), -1, ""
        found = of_server.get(STREAM_OFFSET)  # a shovel copies it to other queues
        queue = address.removeprefix(QUEUE) or self._wanted.own
        if place is None and found is not None and self._wanted.known.doubt(queue):
            connection.end("a queue may have become a stream")
            return
        if place is not None and isinstance(found, int):
            offset = found
            identity = place.arrived(offset, payload, continuity)
            if not identity:
                self._skip(connection, method.delivery_tag)
                return
            if place.is_doubtful(offset):
                message = mark_redelivered(message)
        if not self._fresh:
            connection.loop.call_later(0, lambda: self._put(connection))
        receipt = method.delivery_tag, place
        self._fresh.append(ReceivedMessage(message, receipt, offset, identity))

    def _find_fault(self, tag: int) -> str:
        """Return what is wrong with the tag of a delivery; an empty text if nothing is.

        An acknowledgement stands for all earlier tags, so a message that never came must not have
        one of them.
        """
        expected, self._last_tag = self._last_tag + 1, tag
        if tag != expected:
            return f"the server sent delivery {tag} in place of {expected}"
        most = self._settings.receive_window * len(self._wanted.addresses)
        if self._settings.queue_type == "stream":
            most += _CHUNK
        if len(self.queue.unanswered) + len(self._fresh) >= most:
            return f"the server sent more messages than the {most} that were asked for"
        return ""

    def _put(self, connection: RabbitmqConnection) -> None:
        """Hand over what was read together, and read no more until an answer makes room.

        The server has sent up to `receive_window` messages, however large.
        """
        fresh, self._fresh = self._fresh, []
        self.queue.put(fresh)
        if self.queue.full and not connection.paused:
            connection.pause()
            self._pauses += 1
            connection.loop.call_later(PATIENCE, partial(self._skip_rest, connection, self._pauses))

    def _skip_rest(self, connection: RabbitmqConnection, pause: int) -> None:
        """Read without keeping anything, when a pause lasts: the server ends it after 30 s.

        What is skipped comes again, in its order, over the connection after this one, which ends
        once all that was kept has its answer. Measured with RabbitMQ 3.10.8.
        """
        if connection.paused and pause == self._pauses and not connection.is_over:
            connection.resume(skipping=True)

    def _confirm(self, settled: Sequence[AmqpMessage]) -> None:
        """Answer for messages; the queue calls this in order."""
        connection = self._connection
        if connection is not None:
            connection.spawn(lambda: self._answer(connection, settled))

    def _answer(self, connection: RabbitmqConnection, settled: Sequence[AmqpMessage]) -> None:
        """Acknowledge, dead letters too: a dead-letter exchange would get them a second time.

        A message whose payload was dropped goes there: else its payload is lost.
        """
        channel = connection.channel
        if not self.queue.full:
            connection.resume()
        try:
            for whole, run in groupby(settled, _is_whole):
                tags = [each.receipt[0] for each in run]
                if whole:
                    channel.basic_ack(tags[-1], multiple=True)
                else:
                    for tag in tags:
                        channel.basic_reject(tag, requeue=False)
        except (AMQPError, OSError) as error:
            connection.end(first_line(error))
            return
        if connection.skipping and not self.queue.unanswered:
            connection.end("there is room again for messages that were skipped")
        last = {place: each for each in settled if (place := each.receipt[1]) is not None}
        for place, each in last.items():
            place.settled(each.number, each.message.payload)

    @staticmethod
    def _skip(connection: RabbitmqConnection, tag: int) -> None:
        """Acknowledge a message that is not handed out."""
        try:
            connection.channel.basic_ack(tag)
        except (AMQPError, OSError) as error:
            connection.end(first_line(error))

    def _cancelled(self, connection: RabbitmqConnection) -> None:
        self._wanted.continuity.report_loss(CANCELLED)
        connection.end(CANCELLED)


def _is_whole(received: AmqpMessage) -> bool:
    return not isinstance(received.message.payload, DroppedPayload)


def _texts(bindings: set[topology.Binding]) -> list[str]:
    return sorted(map(json.dumps, bindings))


def _read_bindings(saved: object) -> Sequence[topology.Binding]:
    found = [json.loads(each) for each in read_texts(saved)]
    return [(str(exchange), str(pattern)) for exchange, pattern in found]


def _read_key(key: str | bytes) -> str:
    """Return a received routing key; one that is not UTF-8 gets surrogates, which no name has."""
    return key if isinstance(key, str) else key.decode("utf-8", "surrogateescape")
