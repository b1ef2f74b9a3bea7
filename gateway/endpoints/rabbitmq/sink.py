"""A RabbitMQ sink: the server's confirms settle messages, its returns reject them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from time import monotonic
from typing import Final, NamedTuple, TypeAlias

from pika.exceptions import AMQPError, ChannelClosedByBroker

from gateway.clock import now
from gateway.endpoints.base import NamesAnswer, Settle
from gateway.endpoints.rabbitmq.blocks import HEADER_START, Confirm, publish_method
from gateway.endpoints.rabbitmq.connection import ACCESS_REFUSED, RabbitmqConnection
from gateway.endpoints.rabbitmq.headers import PropertyWriter
from gateway.endpoints.rabbitmq.topology import find_exchange
from gateway.endpoints.sent_messages import CHECK_INTERVAL, SendWindow, SentBatch, write_each
from gateway.endpoints.settings.rabbitmq import MAX_SHORT, QUEUE, RabbitmqSettings
from gateway.errors import NotConnectedError, TranslationError, first_line
from gateway.model.dead_letter_rule import (
    EMPTY_NAME,
    HEADER_BYTES,
    MESSAGE_BYTES,
    NOT_AUTHORISED,
    PAYLOAD_KIND,
    SURROGATE,
    TOO_LONG,
    UNROUTABLE,
    WILDCARD_IN_NAME,
)
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import text_size
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, NO_ROOM, Settlement, rejected
from gateway.terminal.units import counted
from gateway.untyped import Untyped

log = logging.getLogger(__name__)

REFUSED_FOR: Final = 60.0  # seconds until a key that the user may not write is tried again
MAX_REFUSED: Final = 10_000  # such keys; with one more all are tried again
_MAX_CACHED: Final = 16 << 20  # bytes of addresses


class _Place(NamedTuple):
    """Where a message is published, and the method that does it."""

    exchange: str
    key: str
    method: bytes


class _Outgoing(NamedTuple):
    """A message as it is sent, and as it may be returned."""

    place: _Place
    properties: bytes
    payload: bytes

    def is_like(self, other: _Outgoing) -> bool:
        """Return whether they differ in nothing but properties, which a server may change."""
        return (self.place, self.payload) == (other.place, other.payload)


_Written: TypeAlias = Sequence[tuple[int, _Outgoing]]  # with the positions in the batch


class RabbitmqSink:
    """Publishes over one channel; delivery tags are the numbers of its window.

    Thread-safe: each connection has a window of its own.
    """

    def __init__(self, settings: RabbitmqSettings, instance: str = "") -> None:
        del instance  # its connection has no name
        self._settings = settings
        self._properties = PropertyWriter(settings)
        self._places: LimitedCache[str, _Place] = LimitedCache(_MAX_CACHED)
        self._refused: dict[_Place, tuple[float, str]] = {}  # until when, and why
        self._connection: RabbitmqConnection | None = None
        self._window: SendWindow[_Outgoing] = SendWindow(settings.send_window)
        self._returned = 0  # the tag of the last returned message
        self._returns_equal = True  # the server has changed nothing in what it returned
        self.counts = {"unroutable": 0}

    @property
    def address(self) -> str:
        """HOST:PORT of the server; empty without a connection."""
        return "" if self._connection is None else self._connection.address

    def open(self) -> None:
        self.close()
        window = self._window = SendWindow(self._settings.send_window)
        lost = partial(self._lost, window)
        connection = RabbitmqConnection(self._settings, lost, self._settings.max_message)
        take = partial(self._take_confirms, connection, window)
        returned = partial(self._take_return, connection, window)
        try:
            find_exchange(connection)
            connection.confirm(take)
            connection.channel.add_on_return_callback(returned)
        except BaseException:
            connection.close()
            raise
        self._returned, self._returns_equal = 0, True
        self._connection = connection
        connection.spawn(lambda: self._look(connection, window))

    def ask_about(self, patterns: Sequence[str]) -> Iterator[NamesAnswer]:
        """Say that `open` has found the exchange; AMQP 0-9-1 does not tell its bindings."""
        exchange = self._settings.exchange
        for each in patterns:
            if not each.startswith(QUEUE):
                yield NamesAnswer(
                    f"the exchange {exchange!r} is there; only a message shows whether a queue is"
                    f" bound to it for {each!r}: without one it becomes a dead letter `unroutable`"
                )

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        connection, window = self._connection, self._window
        if connection is None:
            raise NotConnectedError(f"{self._settings.name}: not connected")
        connection.check()
        write = partial(self._write, limit=connection.max_header, at=now())
        written, refused = write_each(self._settings.name, messages, write)
        if connection.blocked:
            refused |= {position: NO_ROOM for position, _ in written}
            written = []
        window.send(
            SentBatch(len(messages), settled, refused),
            written,
            connection.check,
            lambda _: connection.spawn(lambda: self._publish(connection, written)),
        )

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            self._window.fail()

    def _write(self, message: Message, limit: int, at: int) -> _Outgoing:
        """Return a message as it is sent; `limit` is that of a header frame, in bytes.

        Raises:
            TranslationError: RabbitMQ or this server cannot carry it.
        """
        address, payload = message.address, message.payload
        place = self._places.get(address)
        if place is None:
            place = _place_of(address, self._settings.exchange)
            self._places.add(address, place, 3 * text_size(address))
        if self._refused and (reason := self._refusal_of(place)):
            raise TranslationError("rabbitmq", address, NOT_AUTHORISED, reason)
        if isinstance(payload, str):
            payload = payload.encode()
        if not isinstance(payload, bytes):
            reason = "RabbitMQ carries bytes or text"
            raise TranslationError("rabbitmq", address, PAYLOAD_KIND, reason)
        if len(payload) > self._settings.max_message:
            reason = f"the payload is {len(payload)} bytes, limit {self._settings.max_message}"
            raise TranslationError("rabbitmq", address, MESSAGE_BYTES, reason)
        properties = self._properties.write(message.headers, at, message.proof)
        size = len(properties) + HEADER_START
        if size > limit:
            reason = f"the headers are {size} bytes, and a frame has {limit}"
            raise TranslationError("rabbitmq", address, HEADER_BYTES, reason)
        return _Outgoing(place, properties, payload)

    def _refusal_of(self, place: _Place) -> str:
        """Return why the user may not write a key; empty if that is not known now.

        The server would close the channel again, and what it has not confirmed would be sent twice.
        """
        until, reason = self._refused.get(place, (0.0, ""))
        return reason if monotonic() < until else ""

    @staticmethod
    def _publish(connection: RabbitmqConnection, written: _Written) -> None:
        messages = (
            (place.method, properties, payload) for _, (place, properties, payload) in written
        )
        try:
            connection.publish(messages)
        except (AMQPError, OSError) as error:
            connection.end(first_line(error))

    @staticmethod
    def _take_confirms(
        connection: RabbitmqConnection, window: SendWindow[_Outgoing], confirms: list[Confirm]
    ) -> None:
        """Settle what the server confirms, or what it has no room for or no success with."""
        last = window.last
        if not all(0 < each.tag <= last for each in confirms):
            connection.end("the server confirmed a message that was not sent")
            return
        for is_taken, run in groupby(confirms, attrgetter("is_taken")):
            window.settle(_tags(window, run), None if is_taken else NO_ROOM)

    def _take_return(  # the driver's
        self,
        connection: RabbitmqConnection,
        window: SendWindow[_Outgoing],
        _channel: object,
        method: Untyped,
        properties: Untyped,
        payload: bytes,
    ) -> None:
        """Note that no queue has the message; its confirm follows.

        A return has no tag. Returns come in the order of publication.
        """
        place = _place(method.exchange, method.routing_key)
        message = _Outgoing(place, properties.encoded, payload)
        settlement, tag = self._unroutable(message), self._returned
        if self._returns_equal:
            tag = window.note(message.__eq__, self._returned, settlement)
            self._returns_equal = tag > self._returned
        if not self._returns_equal:
            tag = window.note(message.is_like, self._returned, settlement)
        if tag == self._returned:  # its confirm would count as its arrival
            connection.end("the server returned a message that was not sent")
            return
        self.counts["unroutable"] += 1
        self._returned = tag

    def _unroutable(self, message: _Outgoing) -> Settlement:
        if self._settings.on_unroutable == "drop":
            return ACCEPTED
        exchange, key, _ = message.place
        reason = f"no queue is bound to {exchange!r} for {key!r}"
        if not exchange:
            reason = f"there is no queue {key!r}"
        return rejected(UNROUTABLE, f"{self._settings.name}: {reason}")

    def _lost(self, window: SendWindow[_Outgoing], failure: NotConnectedError) -> None:
        """Settle what has no answer; a key that the user may not write is its messages' fault.

        The server closes the channel for one message, and names its key and exchange in the text.
        """
        error = failure.__cause__
        if isinstance(error, ChannelClosedByBroker) and error.reply_code == ACCESS_REFUSED:
            sent = [(number, each.content) for number, each in window.messages()]
            refused = [(n, each) for n, each in sent if _is_refused(each, error.reply_text)]
            reason = f"{self._settings.name}: {error.reply_text}"
            window.settle([number for number, _ in refused], rejected(NOT_AUTHORISED, reason))
            for place in {each.place for _, each in refused}:
                if len(self._refused) >= MAX_REFUSED:
                    self._refused.clear()
                self._refused[place] = monotonic() + REFUSED_FOR, error.reply_text
            log.warning("%s (%s)", reason, counted(len(refused), "message"))
        window.fail(failure)

    def _look(self, connection: RabbitmqConnection, window: SendWindow[_Outgoing]) -> None:
        """End the connection when the oldest message has had no answer for too long."""
        if connection.blocked:  # the server has not read what was sent
            window.restart_wait()
        if window.is_overdue(self._settings.answer_timeout):
            connection.end(f"no answer for {self._settings.answer_timeout} s")
        if not connection.is_over:
            connection.loop.call_later(CHECK_INTERVAL, lambda: self._look(connection, window))


def _is_refused(message: _Outgoing, text: str) -> bool:
    """Return whether the server says that the user may not write the key of this message."""
    exchange, key, _ = message.place
    said = text.removeprefix("ACCESS_REFUSED - ").removeprefix("write ")  # 4.0 has the verb
    return said.startswith(f"access to topic '{key}' in exchange '{exchange}' in vhost ")


def _tags(window: SendWindow[_Outgoing], confirms: Iterable[Confirm]) -> Iterator[int]:
    """Yield the numbers that confirms stand for; one may come twice."""
    for each in confirms:
        if each.multiple:
            yield from window.up_to(each.tag)
        else:
            yield each.tag


def _place(exchange: str, key: str) -> _Place:
    return _Place(exchange, key, publish_method(exchange, key))


def _place_of(address: str, exchange: str) -> _Place:
    """Return the exchange and the routing key of a message.

    Raises:
        TranslationError: no message can be sent there; the dialect has the rules of keys.
    """
    name = address.removeprefix(QUEUE)
    if not name:
        raise TranslationError("rabbitmq", address, EMPTY_NAME, "it is empty")
    try:
        size = len(name.encode())
    except UnicodeEncodeError as error:
        raise TranslationError("rabbitmq", address, SURROGATE, "it has no UTF-8") from error
    if size > MAX_SHORT:
        raise TranslationError("rabbitmq", address, TOO_LONG, f"is {size} bytes, limit 255")
    if name is not address:
        return _place("", name)
    if not {"*", "#"}.isdisjoint(name.split(".")):
        raise TranslationError("rabbitmq", address, WILDCARD_IN_NAME, "a word is a wildcard")
    return _place(exchange, name)
