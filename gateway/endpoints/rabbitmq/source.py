"""A RabbitMQ source: a durable queue bound to the patterns, and queues that patterns name.

Acknowledgements leave in the order of arrival. A queue gives back in its order what was not
acknowledged; a stream keeps everything, and the source remembers its position beside the gateway.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from pika.exceptions import AMQPError, ChannelClosedByBroker

from gateway.endpoints.base import Batch, Subscription
from gateway.endpoints.continuity import Continuity, Retention, SubscriptionStore
from gateway.endpoints.rabbitmq import topology
from gateway.endpoints.rabbitmq.connection import NOT_FOUND, RabbitmqConnection, refusal
from gateway.endpoints.rabbitmq.headers import STREAM_OFFSET, read_properties
from gateway.endpoints.rabbitmq.stream_position import StreamPosition
from gateway.endpoints.received_messages import ReceivedMessage, ReceivedMessages
from gateway.endpoints.redelivery_queue import mark_redelivered
from gateway.endpoints.settings.rabbitmq import QUEUE, RabbitmqSettings
from gateway.errors import NotConnectedError, SubscriptionRefusedError, first_line
from gateway.model.message import Message, Value

CANCELLED: Final = "the server cancelled the consumer: its queue was deleted, or its node is down"

Receipt: TypeAlias = tuple[int, StreamPosition | None]  # delivery tag, and the place in a stream
AmqpMessage: TypeAlias = ReceivedMessage[Receipt]


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
        self._places: dict[str, StreamPosition] = {}  # by the name of a queue that is a stream
        self._others: set[str] = set()  # queues that are none
        self._doubted: set[str] = set()  # of them; asked again, since a message had an offset
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
            for place in self._places.values():
                place.save(self.subscription_store)

    def removes(self, address: str) -> bool:
        """Return whether it is a queue that others fill; a stream keeps what was read."""
        return address.startswith(QUEUE) and address.removeprefix(QUEUE) in self._others

    def _new_queue(self) -> ReceivedMessages[Receipt]:
        return ReceivedMessages(self._settings.receive_window_bytes, self._confirm)

    def _refused(self, error: ChannelClosedByBroker) -> Exception:
        """Return the error of a consumer that the server does not accept."""
        text = f"{self._settings.name}: {error.reply_text}"
        if error.reply_code == NOT_FOUND or "exclusive" in error.reply_text:
            return NotConnectedError(text)  # somebody may create it, or leave it
        found = refusal(self._settings, error)
        return found if found.retryable else SubscriptionRefusedError(str(found))

    def _start(self, connection: RabbitmqConnection, queue: ReceivedMessages[Receipt]) -> None:
        channel, window = connection.channel, self._settings.receive_window
        self._find_queue(connection)
        channel.add_on_cancel_callback(lambda _frame: self._cancelled(connection))
        connection.ask(partial(channel.basic_qos, prefetch_count=window))
        wanted = [(name, QUEUE + name) for name in self._queues]
        if self._bindings:
            wanted.insert(0, (self._queue_name, ""))
        for name, address in wanted:
            place = self._find_place(connection, name)
            arguments = {} if place is None else {STREAM_OFFSET: place.offset}
            take = partial(self._take, connection, queue, address, place)
            consume = partial(channel.basic_consume, name, take, arguments=arguments)
            connection.ask(consume, channel)

    def _find_queue(self, connection: RabbitmqConnection) -> None:
        """Make the queue have the bindings of this source, and no others of an earlier one."""
        store = self.subscription_store
        known: set[topology.Binding] = set()
        if store is not None:
            known = {*(store.load(self._session, _read_binding) or ())}
        self.continuity.retention = Retention.KEPT
        if self._bindings:
            topology.find_exchange(connection, binds=True)
            if not topology.find_queue(connection, self._queue_name):
                self._queue_is_new = True
                if self._settings.queue_type == "stream":
                    self._places[self._queue_name] = self._new_place(self._queue_name)
                    self._others.discard(self._queue_name)
                else:
                    self._others.add(self._queue_name)
            if self._queue_is_new:
                self.continuity.retention = Retention.NEW
            if store is not None:
                store.save(self._session, _texts(known | {*self._bindings}))
            topology.bind(connection, self._queue_name, self._bindings)
        gone = sorted(known.difference(self._bindings))
        left = topology.unbind(connection, self._queue_name, gone)
        if store is not None and gone:
            store.save(self._session, _texts({*self._bindings, *left}))

    def _find_place(self, connection: RabbitmqConnection, queue: str) -> StreamPosition | None:
        """Return the place in a stream; None for a queue of another type."""
        if queue in self._others or not topology.is_stream(connection, queue):
            self._others.add(queue)
            return None
        place = self._places.get(queue)
        if place is None:
            place = self._new_place(queue)
            if self.subscription_store is not None:
                place.load(self.subscription_store, connection)
        place = self._places[queue] = place.checked(connection, self.continuity)
        return place

    def _new_place(self, queue: str) -> StreamPosition:
        return StreamPosition(queue, f"{self._session} position {queue}", self._settings.start)

    def _take(  # noqa: PLR0913, PLR0917  # a delivery of the driver
        self,
        connection: RabbitmqConnection,
        queue: ReceivedMessages[Receipt],
        address: str,
        place: StreamPosition | None,
        _channel: object,
        method: Any,  # noqa: ANN401
        properties: Any,  # noqa: ANN401
        payload: bytes,
    ) -> None:
        at = self.continuity.heard = self.continuity.clock()
        key = _read_key(method.routing_key)
        origin: dict[str, Value] = {}
        if address:
            origin = {"amqp_exchange": _read_key(method.exchange), "amqp_routing_key": key}
        headers, proof, of_server = read_properties(
            properties.encoded, self._settings, origin, now=at, redelivered=method.redelivered
        )
        message, offset, identity = Message(address or key, payload, headers, proof), -1, ""
        found = of_server.get(STREAM_OFFSET)  # a shovel copies it to other queues
        if place is None and found is not None and self._is_doubtful(address):
            connection.end("a queue may have become a stream")
            return
        if place is not None and isinstance(found, int):
            offset = found
            identity = place.arrived(offset, payload)
            if offset <= place.doubtful:
                message = mark_redelivered(message)
        if not self._fresh:
            connection.loop.call_later(0, lambda: self._put(queue))
        receipt = method.delivery_tag, place
        self._fresh.append(ReceivedMessage(message, receipt, offset, identity))

    def _is_doubtful(self, address: str) -> bool:
        """Return whether a queue has to be asked for its type again: once, at the first doubt."""
        name = address.removeprefix(QUEUE) or self._queue_name
        if name in self._doubted:
            return False
        self._doubted.add(name)
        self._others.discard(name)
        return True

    def _put(self, queue: ReceivedMessages[Receipt]) -> None:
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
        """Acknowledge, dead letters too: a dead-letter exchange would get them a second time."""
        try:
            connection.channel.basic_ack(settled[-1].receipt[0], multiple=True)
        except (AMQPError, OSError) as error:
            connection.end(first_line(error))
            return
        for each in settled:
            if (place := each.receipt[1]) is not None:
                place.settled(each.number, self.subscription_store)

    def _cancelled(self, connection: RabbitmqConnection) -> None:
        self.continuity.report_loss(CANCELLED)
        connection.end(CANCELLED)


def _texts(bindings: set[topology.Binding]) -> list[str]:
    return sorted(map(json.dumps, bindings))


def _read_binding(text: str) -> topology.Binding:
    exchange, pattern = json.loads(text)
    return str(exchange), str(pattern)


def _read_key(key: str | bytes) -> str:
    """Return a received routing key; one that is no UTF-8 gets surrogates, which no name has."""
    return key if isinstance(key, str) else key.decode("utf-8", "surrogateescape")
