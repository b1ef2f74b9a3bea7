"""One connection of a source of AMQP 1.0: its links, and what they brought.

Messages are settled in the order of arrival, several at once. The server gets credit for messages
and a window of frames: as much as has room, so that it never sends more than that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, TypeAlias

from gateway.endpoints.amqp import topology
from gateway.endpoints.amqp.addresses import capabilities, has_selector, selector_filter
from gateway.endpoints.amqp.bodies import read_body
from gateway.endpoints.amqp.connection import AmqpConnection, answer, fail
from gateway.endpoints.amqp.headers import MALFORMED, HeadReader
from gateway.endpoints.amqp.log_in import refusal, shown
from gateway.endpoints.amqp.management import BAD, Answer, Management
from gateway.endpoints.amqp.wanted import WantedAddresses
from gateway.endpoints.base import Batch
from gateway.endpoints.continuity import Retention
from gateway.endpoints.made import Made
from gateway.endpoints.receipts import ReceiptQueue, ReceivedMessage
from gateway.endpoints.settings.amqp import QUEUE
from gateway.endpoints.source_memory import read_texts
from gateway.endpoints.source_shell import not_open
from gateway.errors import SubscriptionRefusedError, WireError
from gateway.model.message import DeliveryMode, DroppedPayload, Headers, Message
from gateway.wire.amqp import frames, sections
from gateway.wire.amqp.session import ACCEPT, FRAME, REJECT, Receiver, terminus
from gateway.wire.amqp.values import symbol, uint

BIND_INTERVAL: Final = 30.0  # seconds; no server tells that a binding is gone
HEAD_ROOM: Final = 1 << 20  # bytes of a message that are taken before its payload
CANCELLED: Final = "the server ended the link: its queue was deleted, or its node is down"
NOT_FILTERED: Final = "the server does not evaluate the selector; check `known`"
UNBOUND: Final = "somebody removed a binding of the queue"
_DURABLE: Final = uint(2)  # a terminus that outlives its link, with what is unsettled
_NO_BINDINGS: Final[Sequence[tuple[str, str]]] = ()

Receipt: TypeAlias = tuple[int, Receiver]  # number of the message on the wire, and its link
AmqpMessage: TypeAlias = ReceivedMessage[Receipt]


class AmqpIntake:
    """An intake (`endpoints.source_shell`) of the addresses `wanted`.

    Thread-safe: arrivals are added in the connection's thread; the queue guards them.
    """

    ended = True  # the broker keeps what is not taken in

    def __init__(self, wanted: WantedAddresses) -> None:
        self._wanted, self._settings = wanted, wanted.settings
        self.queue: ReceiptQueue[Receipt] = ReceiptQueue(
            self._settings.receive_window_bytes, self._confirm
        )
        self._heads = HeadReader(self._settings)
        self._fresh: list[AmqpMessage] = []
        self._unsettled: dict[Receiver, int] = {}  # messages, by link
        self._connection = AmqpConnection(self._settings, self.queue.fail)

    @property
    def address(self) -> str:
        return self._connection.address

    def open(self) -> None:
        """Connect, and ask for links. Raises as `Source.open` does."""
        connection, continuity = self._connection, self._wanted.continuity
        connection.open()
        if self._settings.product.has_exchanges:
            self._bind(Management(connection))
        continuity.retention = Retention.NEW if self._wanted.made else Retention.KEPT
        connection.ask(self._attach)
        self._wanted.made = False

    def receive(self, timeout: float) -> Batch | None:
        return self.queue.receive(timeout)

    def end(self) -> None:
        """Do nothing: the broker keeps what is not taken in."""

    def close(self) -> None:
        self.queue.fail(not_open(self._settings.name))
        self._connection.close()

    def _bind(self, management: Management) -> None:
        """Make the queue have the bindings of this source, and no others of an earlier one."""
        wanted, memory, settings = self._wanted, self._wanted.memory, self._settings
        own, fact = wanted.own, f"bindings {wanted.own}"
        bindings = {(settings.exchange, each) for each in wanted.bindings}
        saved = {*(memory.get(fact, _read_bindings, _NO_BINDINGS) or _NO_BINDINGS)}
        for pattern in wanted.patterns:
            if pattern.startswith(QUEUE):
                topology.find_queue(management, pattern.removeprefix(QUEUE))
        if bindings:
            if topology.find_queue(management, own) < 0:
                made = Made("queue", own, settings.broker_key)
                memory.note_made(made)
                if not topology.make_queue(management, settings, own):
                    memory.forget_made(made)
                wanted.made = True
            elif not topology.is_bound(management, settings, own, _patterns(saved & bindings)):
                wanted.continuity.report_loss(UNBOUND)
            memory.put(fact, _texts(saved | bindings))
            if not topology.bind(management, settings, own, wanted.bindings) and saved:
                wanted.continuity.report_loss(topology.EXCHANGE_GONE)
            connection = self._connection
            connection.spawn(lambda: self._look_later(connection, management))
        if gone := sorted(saved - bindings):
            left = topology.unbind(management, own, gone)
            memory.put(fact, _texts({*bindings, *left}))

    def _look_later(self, connection: AmqpConnection, management: Management) -> None:
        connection.call_later(BIND_INTERVAL, lambda: self._look(connection, management))

    def _look(self, connection: AmqpConnection, management: Management) -> None:
        """Look for the bindings, and bind again what somebody has unbound."""
        settings, own = self._settings, self._wanted.own
        for pattern in self._wanted.bindings:
            path = topology.asked_binding(settings, own, pattern)
            body = topology.binding(settings, own, pattern)
            found = partial(self._found, connection, management, body)
            management.begin("GET", path, None, found)
        self._look_later(connection, management)

    def _found(
        self,
        connection: AmqpConnection,
        management: Management,
        body: dict[str, object],
        found: Answer,
    ) -> None:
        if found.body != []:
            return

        def bound(again: Answer) -> None:
            gone = again.status == BAD
            self._wanted.continuity.report_loss(topology.EXCHANGE_GONE if gone else UNBOUND)
            if gone:
                connection.end(again.text)

        management.begin("POST", "/bindings", body, bound)

    def _attach(self, future: Future[Any]) -> None:
        """Ask for all links; `future` gets the answer of the last one, or the first refusal."""
        connection = self._connection
        waiting: list[Receiver] = []

        def attached(link: Receiver) -> None:
            if self._wanted.selector and not has_selector(link.source):
                fail(future, SubscriptionRefusedError(f"{self._settings.name}: {NOT_FILTERED}"))
                return
            waiting.remove(link)
            link.detached = self._detached
            if not waiting:
                self._replenish()
                answer(future, None)

        def refused(condition: str, text: str) -> None:
            error = refusal(self._settings.name, condition, text)
            fail(future, error if error.retryable else SubscriptionRefusedError(str(error)))

        for number, (address, pattern) in enumerate(self._wanted.addresses):
            link = Receiver(
                f"{self._wanted.own}-{number}" if number else self._wanted.own,
                (self._source(address, pattern), terminus(frames.TARGET, None)),
                refused,
                max_size=self._settings.max_message_in + HEAD_ROOM,
                starving=self._replenish,
            )
            link.attached = partial(attached, link)
            link.arrived = partial(self._take, connection, link, pattern)
            waiting.append(link)
            self._unsettled[link] = 0
        for link in (*waiting,):
            connection.session.attach(link)

    def _source(self, address: str, pattern: str) -> bytes:
        """Return the source of a link; topics keep their messages for its name."""
        product = self._settings.product
        is_queue = product.has_exchanges or product.divides or pattern.startswith(QUEUE)
        lasting = [None, None] if is_queue else [_DURABLE, symbol("never")]
        selector, kind = (
            selector_filter(self._wanted.selector),
            capabilities(pattern, self._settings),
        )
        fields = [*lasting, None, None, None, None, selector, None, None, kind]
        return terminus(frames.SOURCE, address, *fields)

    def _detached(self, condition: str, text: str) -> None:
        self._wanted.continuity.report_loss(CANCELLED)
        self._connection.end(shown(condition, text) or CANCELLED)

    def _take(  # a delivery
        self,
        connection: AmqpConnection,
        link: Receiver,
        pattern: str,
        number: int,
        data: bytes,
        size: int,
    ) -> None:
        if connection.is_over:
            return
        continuity = self._wanted.continuity
        continuity.heard = continuity.clock()
        if not self._fresh:
            connection.spawn(self._put)
        message = self._read(pattern, data, size)
        self._fresh.append(ReceivedMessage(message, (number, link)))
        self._unsettled[link] += 1

    def _read(self, pattern: str, data: bytes, size: int) -> Message:
        """Return a message; one that is malformed has the reason in a property, and no name."""
        address = pattern if pattern.startswith(QUEUE) else ""
        try:
            parts = sections.find_parts(data)
            payload, kind = read_body(data, parts, size, self._settings.max_message_in)
        except WireError as error:
            kept = data if size == len(data) else DroppedPayload(size)
            mode, reason = DeliveryMode.AT_LEAST_ONCE, {MALFORMED: str(error)}
            return Message(address, kept, Headers(mode=mode, properties=reason))
        name, headers, proof = self._heads.read(parts.head, self._wanted.continuity.clock())
        if kind:
            headers = headers.with_properties({**headers.properties, **kind})
        return Message(address or name or _plain_name(pattern), payload, headers, proof)

    def _put(self) -> None:
        """Hand over what was read together."""
        fresh, self._fresh = self._fresh, []
        self.queue.put(fresh)
        self._replenish()

    def _replenish(self) -> None:
        """Give credit and a window where half of it is used up."""
        session, most = self._connection.session, self._settings.receive_window
        if session.is_over:
            return
        capacity = self._settings.receive_window_bytes
        partial_size = sum(min(link.size, link.max_size) for link in self._unsettled)
        room = max(1, (capacity - self.queue.held - partial_size) // FRAME)
        window = 0 if self.queue.full else room
        low = window > 0 and 2 * session.window <= max(window, 1)
        for link, unsettled in self._unsettled.items():
            credit = most - unsettled
            if link.is_attached and (low or 2 * (credit - link.credit) >= most):
                session.grant(link, credit, window)

    def _confirm(self, settled: Sequence[AmqpMessage]) -> None:
        """Settle messages; the queue calls this in order."""
        self._connection.spawn(lambda: self._answer(settled))

    def _answer(self, settled: Sequence[AmqpMessage]) -> None:
        """Accept, also dead letters: a dead-letter exchange would get them a second time.

        A message whose payload was dropped goes there: else its payload is lost.
        """
        session = self._connection.session
        if session.is_over:
            return
        for each in settled:
            self._unsettled[each.receipt[1]] -= 1
        for first, last, state in _runs(settled):
            session.settle(first, last, state)
        self._replenish()


def _runs(settled: Sequence[AmqpMessage]) -> Iterator[tuple[int, int, bytes]]:
    """Yield first and last number of messages that follow one another, and their outcome."""
    first = last = -1
    state = ACCEPT
    for each in settled:
        number, own = each.receipt[0], ACCEPT
        if isinstance(each.message.payload, DroppedPayload):
            own = REJECT
        if first >= 0 and (number != last + 1 or own is not state):
            yield first, last, state
            first = -1
        if first < 0:
            first, state = number, own
        last = number
    if first >= 0:
        yield first, last, state


def _plain_name(pattern: str) -> str:
    """Return the name of a message that tells none: the only one that its link can bring."""
    return "" if {"*", "#", "+", ">"} & {*pattern} else pattern


def _patterns(bindings: set[tuple[str, str]]) -> list[str]:
    return sorted(pattern for _, pattern in bindings)


def _texts(bindings: set[tuple[str, str]]) -> list[str]:
    return sorted(map(json.dumps, bindings))


def _read_bindings(saved: object) -> Sequence[tuple[str, str]]:
    found = [json.loads(each) for each in read_texts(saved)]
    return [(str(exchange), str(pattern)) for exchange, pattern in found]
