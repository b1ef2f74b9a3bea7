"""A sink of AMQP 1.0: messages without a settlement, whose outcomes the server tells."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any, Final, NamedTuple, TypeAlias

from gateway.clock import now
from gateway.endpoints.amqp.addresses import address_of, capabilities, refuse_name
from gateway.endpoints.amqp.bodies import write_body
from gateway.endpoints.amqp.connection import AmqpConnection
from gateway.endpoints.amqp.headers import HeadWriter
from gateway.endpoints.amqp.log_in import NOT_FOUND, UNAUTHORISED, shown
from gateway.endpoints.amqp.management import Management
from gateway.endpoints.amqp.sender_links import attach_sender, look_for_exchange, new_sender
from gateway.endpoints.amqp.topology import make_exchange
from gateway.endpoints.base import NamesAnswer, Settle
from gateway.endpoints.sent_messages import CHECK_INTERVAL, SendWindow, SentBatch, write_each
from gateway.endpoints.settings.amqp import QUEUE, AmqpSettings
from gateway.errors import NotConnectedError, TranslationError
from gateway.model.dead_letter_rule import (
    DESTINATION,
    MESSAGE_BYTES,
    NOT_AUTHORISED,
    REFUSED,
    UNROUTABLE,
)
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import text_size
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, NO_ROOM, RETRY, Outcome, Settlement, rejected
from gateway.terminal.units import counted
from gateway.wire.amqp import frames
from gateway.wire.amqp.frames import error_text
from gateway.wire.amqp.session import Sender, terminus
from gateway.wire.amqp.values import Described

log = logging.getLogger(__name__)

RELAY: Final = ""  # the address of the link whose messages say themselves where they go
REFUSED_FOR: Final = 60.0  # seconds until a name that the user may not write is tried again
MAX_REFUSED: Final = 10_000  # such names; with one more all are tried again
MAX_LINKS: Final = 200  # to addresses; one more ends the connection's oldest idle one
FULL: Final = "amqp:resource-limit-exceeded"
_MAX_CACHED: Final = 16 << 20  # bytes of addresses


class _Outgoing(NamedTuple):
    """A message as it is sent, and the address of its link."""

    name: str
    link: str
    data: bytes


_Written: TypeAlias = Sequence[tuple[int, _Outgoing]]  # with the positions in the batch


class AmqpSink:
    """Sends over one connection, with one link for all names, or one for each address.

    Thread-safe: each connection has a window of its own.
    """

    def __init__(self, settings: AmqpSettings, instance: str = "") -> None:
        del instance  # its connection has no name of its own
        self._settings = settings
        self._heads = HeadWriter(settings)
        self._addresses: LimitedCache[str, str] = LimitedCache(_MAX_CACHED)
        self._connection: AmqpConnection | None = None
        self._window: SendWindow[_Outgoing] = SendWindow(settings.send_window)
        self._links: dict[str, Sender] = {}  # by address; owned by the connection's thread
        self._refused: dict[str, tuple[float, str]] = {}  # names: until when, and why
        self._max_message = 0  # bytes that the server takes; 0 where it does not tell
        self._stopped: SendWindow[_Outgoing] | None = None  # that of a connection to be replaced
        self.counts = {"unroutable": 0}

    @property
    def address(self) -> str:
        """HOST:PORT of the server; empty without a connection."""
        return "" if self._connection is None else self._connection.address

    def open(self) -> None:
        self.close()
        window = self._window = SendWindow(self._settings.send_window)
        connection = AmqpConnection(self._settings, partial(self._lost, window))
        self._links, self._max_message = {}, 0
        try:
            connection.open()
            if self._settings.product.has_exchanges:
                if self._settings.create_exchange:
                    make_exchange(Management(connection), self._settings)
                look_for_exchange(connection)
                relay = self._new_link(connection, window, RELAY)
                connection.ask(partial(attach_sender, connection, relay))
                self._max_message = relay.max_message
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        connection.spawn(lambda: self._look(connection, window, -1))

    def ask_about(self, patterns: Sequence[str]) -> Iterator[NamesAnswer]:
        """Say that `open` has found the exchange; the server does not tell its bindings."""
        for each in patterns:
            if self._settings.product.has_exchanges and not each.startswith(QUEUE):
                yield NamesAnswer(
                    f"the exchange {self._settings.exchange!r} is there; only a message shows"
                    f" whether a queue is bound to it for {each!r}: without one it becomes a dead"
                    " letter `unroutable`"
                )

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        connection, window = self._connection, self._window
        if connection is None:
            raise NotConnectedError(f"{self._settings.name}: not connected")
        connection.check()
        write = partial(self._write, at=now())
        written, refused = write_each(self._settings.name, messages, write)
        window.send(
            SentBatch(len(messages), settled, refused),
            written,
            connection.check,
            lambda numbers: connection.spawn(
                partial(self._publish, connection, window, numbers, written)
            ),
        )

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            self._window.fail()

    def _write(self, message: Message, at: int) -> _Outgoing:
        """Return a message as it is sent.

        Raises:
            TranslationError: AMQP or this server cannot carry it.
        """
        name = message.address
        address = self._addresses.get(name)
        if address is None:
            refuse_name(name, self._settings)
            address = address_of(name, self._settings)
            self._addresses.add(name, address, text_size(name) + text_size(address))
        has_relay = self._settings.product.has_exchanges
        if self._refused and (reason := self._refusal_of(name)):
            raise TranslationError("amqp", name, NOT_AUTHORISED, reason)
        body = write_body(message, texts=not has_relay)
        data = self._heads.write(message.headers, address, at, message.proof) + body
        limit = min(self._max_message or self._settings.max_message, self._settings.max_message)
        if len(data) > limit:
            reason = f"the message is {len(data)} bytes, limit {limit}"
            raise TranslationError("amqp", name, MESSAGE_BYTES, reason)
        return _Outgoing(name, RELAY if has_relay else address, data)

    def _refusal_of(self, name: str) -> str:
        """Return why the user may not write a name; empty if that is not known now.

        The server would end the session again, and what has no outcome would be sent twice.
        """
        until, reason = self._refused.get(name, (0.0, ""))
        return reason if monotonic() < until else ""

    def _lost(self, window: SendWindow[_Outgoing], failure: NotConnectedError) -> None:
        """Settle what has no outcome; a name that the user may not write is its messages' fault.

        The server ends the session for one message, and its text has the name.
        """
        text = str(failure)
        if UNAUTHORISED in text:
            sent = [(number, each.content.name) for number, each in window.messages()]
            names = {each for _, each in sent if self._is_refused(each, text)}
            window.settle([n for n, each in sent if each in names], rejected(NOT_AUTHORISED, text))
            for name in names:
                if len(self._refused) >= MAX_REFUSED:
                    self._refused.clear()
                self._refused[name] = monotonic() + REFUSED_FOR, text
            if names:
                log.warning("%s (%s)", text, counted(len(names), "name"))
        window.fail(failure)

    def _is_refused(self, name: str, text: str) -> bool:
        """Return whether the server says that the user may not write this name."""
        return f"to topic '{name}' in exchange '{self._settings.exchange}' in vhost " in text

    def _publish(
        self,
        connection: AmqpConnection,
        window: SendWindow[_Outgoing],
        numbers: range,
        written: _Written,
    ) -> None:
        """Send messages in their order; those that follow one another over a link, together."""
        if connection.is_over:
            return
        if self._stopped is window:
            window.settle(numbers, NO_ROOM)
            return
        for number, (_, outgoing) in zip(numbers, written, strict=True):
            link = self._links.get(outgoing.link)
            if link is None:
                link = self._new_link(connection, window, outgoing.link, outgoing.name)
                connection.session.attach(link)
            connection.session.send(link, [(number, outgoing.data)])

    def _new_link(
        self,
        connection: AmqpConnection,
        window: SendWindow[_Outgoing],
        address: str,
        name: str = "",
    ) -> Sender:
        if len(self._links) >= MAX_LINKS:
            self._drop_link(connection)
        kind = capabilities(name, self._settings)
        target = terminus(frames.TARGET, address or None, *[None] * 5, kind)
        link = new_sender(f"{self._settings.container_id}-{address}", target)
        link.answered = partial(self._answered, connection, window)
        link.detached = partial(self._detached, connection, window, address, link)
        self._links[address] = link
        return link

    def _drop_link(self, connection: AmqpConnection) -> None:
        """End the oldest link that nothing waits for."""
        idle = (each for each, link in self._links.items() if not link.waiting)
        if (address := next(idle, None)) is not None:
            connection.session.detach(self._links.pop(address))

    def _answered(
        self,
        connection: AmqpConnection,
        window: SendWindow[_Outgoing],
        numbers: Sequence[int],
        state: Described | None,
    ) -> None:
        """Settle messages by an outcome of the server; without the exchange, end the connection."""
        has_relay = self._settings.product.has_exchanges
        if has_relay and (reason := _error(state))[0] == NOT_FOUND:
            connection.end(shown(*reason))
            return
        if state is not None and state.descriptor == frames.ACCEPTED:
            window.settle(numbers, ACCEPTED)
            return
        for number in numbers:
            outgoing = window.content(number)
            if outgoing is not None:
                settlement = self._settlement(outgoing.name, state)
                if settlement.outcome is Outcome.RETRY:
                    self._stop_sending(window)
                window.settle((number,), settlement)

    def _settlement(self, name: str, state: Described | None) -> Settlement:
        code = None if state is None else state.descriptor
        fields = _fields(state)
        if code == frames.RELEASED:
            return self._released(name)
        if code == frames.REJECTED:
            return self._rejected(*_error(state))
        if code == frames.MODIFIED and fields[1:2] == [True]:
            reason = f"the server modified it: {name!r} is undeliverable there"
            return rejected(REFUSED, f"{self._settings.name}: {reason}")
        return RETRY

    def _released(self, name: str) -> Settlement:
        """Return the settlement of a message that the server did not take."""
        settings = self._settings
        if not settings.product.has_exchanges:
            return replace(NO_ROOM, reason="the server released it")
        self.counts["unroutable"] += 1
        if settings.on_unroutable == "drop":
            return ACCEPTED
        reason = f"no queue is bound to {settings.exchange!r} for {name!r}"
        if name.startswith(QUEUE):
            reason = f"there is no queue {name.removeprefix(QUEUE)!r}"
        return rejected(UNROUTABLE, f"{settings.name}: {reason}")

    def _rejected(self, condition: str, text: str) -> Settlement:
        if condition in {"", FULL}:  # RabbitMQ: a queue with `reject-publish` is full
            return replace(NO_ROOM, reason=text or "the server rejected it without a reason")
        rules = {NOT_FOUND: DESTINATION, UNAUTHORISED: NOT_AUTHORISED}
        reason = f"{self._settings.name}: {shown(condition, text)}"
        return rejected(rules.get(condition, REFUSED), reason)

    def _detached(  # a link and its fate
        self,
        connection: AmqpConnection,
        window: SendWindow[_Outgoing],
        address: str,
        link: Sender,
        condition: str,
        text: str,
    ) -> None:
        """Settle what waits for a link that the server ended; the link of all names ends it all.

        Messages that were sent may have arrived, and are sent again.
        """
        if self._links.get(address) is link:
            del self._links[address]
        if address == RELAY:
            connection.end(shown(condition, text) or "the server ended the link")
            return
        known = [number for number, each in window.messages() if each.content.link == address]
        unsent = {number for number, _ in link.waiting}
        if sent := [each for each in known if each not in unsent]:
            self._stop_sending(window)
            window.settle(sent, RETRY)
        refused = self._rejected(condition, text)
        window.settle([each for each in known if each in unsent], refused)

    def _stop_sending(self, window: SendWindow[_Outgoing]) -> None:
        """Send nothing more: a message is sent again over another connection, and none passes it.

        The lane makes that connection once it has the answers.
        """
        self._stopped = window
        for link in self._links.values():
            begun = [link.waiting.popleft()] if link.offset else []
            unsent = [number for number, _ in link.waiting]
            link.waiting.clear()
            link.waiting.extend(begun)
            window.settle(unsent, NO_ROOM)

    def _look(self, connection: AmqpConnection, window: SendWindow[_Outgoing], before: int) -> None:
        """Find no room for what the server does not take, and end a connection without answers.

        `before` is the number of the frames that had been sent at the last look.
        """
        if connection.is_over:
            return
        sent = connection.session.sent
        links = self._links.values()
        if sent == before and any(link.waiting and not link.offset for link in links):
            self._stop_sending(window)
        if window.is_overdue(self._settings.answer_timeout):
            connection.end(f"no answer for {self._settings.answer_timeout} s")
        connection.call_later(CHECK_INTERVAL, lambda: self._look(connection, window, sent))


def _fields(state: Described | None) -> list[Any]:
    return state.value if state is not None and isinstance(state.value, list) else []


def _error(state: Described | None) -> tuple[str, str]:
    """Return condition and text of a rejection; empty for another outcome."""
    is_rejected = state is not None and state.descriptor == frames.REJECTED
    return error_text(next(iter(_fields(state)), None) if is_rejected else None)
