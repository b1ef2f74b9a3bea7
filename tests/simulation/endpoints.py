"""Sources and sinks of simulated brokers, behind the interfaces of `endpoints.base`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gateway.endpoints.base import Batch, Settle, Subscription
from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.received_queue import Form, ReceivedQueue
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.source_memory import SourceMemory
from gateway.endpoints.untold_gap import UntoldGap
from gateway.errors import NotConnectedError
from gateway.model.memory_size import messages_size
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import NO_ROOM, RETRY
from tests.simulation import stand_ins
from tests.simulation.books import REMOVED
from tests.simulation.brokers import Broker
from tests.simulation.connections import Connection
from tests.simulation.semantics import message_id
from tests.simulation.sessions import Entry


@dataclass(frozen=True, slots=True)
class Flavour:
    """The differences between the systems, as far as the interface shows them.

    `identified` gives each message an identity: none, or in a header.
    """

    kept: bool = True
    identified: str = ""
    window: int = 20
    batch: int = 1_000
    capacity: int = 1 << 20


class SimulatedSource:
    """A source of a simulated broker, with the queue that the real sources use.

    Mutable: open or closed.
    """

    def __init__(
        self,
        broker: Broker,
        settings: EndpointSettings,
        subscriptions: Sequence[Subscription],
        flavour: Flavour,
        client: str,
    ) -> None:
        self._broker, self._settings, self._flavour = broker, settings, flavour
        self._patterns = [each.pattern for each in subscriptions]
        self.client = client
        self._queue: ReceivedQueue[Message] | None = None
        self._connection: Connection | None = None
        self._last = 0  # number of the last message
        self.continuity = Continuity(Retention.KEPT if flavour.kept else Retention.NOTHING)
        self.memory = SourceMemory()
        self._untold = UntoldGap(self.memory, self.continuity)

    @property
    def queue(self) -> ReceivedQueue[Message] | None:
        return self._queue

    def open(self) -> None:
        run, broker = stand_ins.scheduler(), self._broker
        if self._connection is not None:
            self.close()
        run.sleep(broker.latency())
        broker.check(self.client)
        unconfirmed: deque[Entry] = deque()
        queue: ReceivedQueue[Message] = ReceivedQueue(
            self._flavour.capacity, Form(messages_size, _marked, Batch),
            lambda count: self._confirm(connection, unconfirmed, count),
        )  # fmt: skip
        process = stand_ins.running_process()

        def received(item: object) -> None:
            assert isinstance(item, tuple)
            if item[0] == "messages" and broker.semantics.counts:
                self._find_holes(item[1])
            if item[0] == "messages":
                unconfirmed.extend(item[1])
                queue.put_when_room([self._message(each) for each in item[1]])
            else:  # a second delivery of messages in flight
                unconfirmed.extend(replace(each, number=-each.number) for each in item[1])
                queue.put_when_room([self._message(each) for each in item[1]])

        def lost() -> None:
            queue.fail(NotConnectedError(f"{self.client}: {connection.reason}"))

        connection = Connection(broker, self.client, process, received, lost)
        self.continuity.retention = self._subscribe(connection)
        self._untold.connected()
        self._queue, self._connection = queue, connection
        broker.log("connected", f"{self.client} to {broker.name}")

    def _subscribe(self, connection: Connection) -> Retention:
        flavour, broker = self._flavour, self._broker
        known = broker.sessions.get(self.client)
        self._last = known.last if known is not None else broker.first_number - 1
        return broker.subscribe(
            connection, self._patterns, kept=flavour.kept, window=flavour.window
        )

    def _find_holes(self, entries: Sequence[Entry]) -> None:
        """Report missing numbers, as the source of NATS does."""
        for entry in entries:
            if not entry.redelivered and entry.number > self._last + 1:
                self.continuity.report_loss(REMOVED, entry.number - self._last - 1)
            self._last = max(entry.number, self._last)

    def _confirm(self, connection: Connection, unconfirmed: deque[Entry], count: int) -> None:
        entries = [unconfirmed.popleft() for _ in range(count)]
        for entry in entries:
            self._broker.on_confirmed(self.client, entry)
        connection.up.put(("ack", 0, [entry.number for entry in entries]))

    def _message(self, entry: Entry) -> Message:
        message, headers = entry.message, entry.message.headers
        source_id = headers.source_id if self._flavour.identified == "header" else None
        headers = replace(headers, redelivered=entry.redelivered, source_id=source_id)
        return replace(message, headers=headers)

    def receive(self, timeout: float) -> Batch | None:
        queue = self._queue
        if queue is None:
            raise NotConnectedError(f"{self.client}: is closed; open it first")
        return queue.take(self._flavour.batch, timeout)

    def close(self) -> None:
        queue, self._queue = self._queue, None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.leave()
        if queue is not None:
            queue.fail(NotConnectedError(f"{self.client}: closed"))


class SimulatedSink:
    """A sink of a simulated broker.

    Mutable: open or closed.
    """

    def __init__(
        self, broker: Broker, settings: EndpointSettings, client: str, *, window: int = 50
    ) -> None:
        self._broker, self._settings, self.client = broker, settings, client
        self._window = window
        self._connection: Connection | None = None
        self._unanswered: dict[int, tuple[int, Settle]] = {}
        self._numbers = 0
        self._room = stand_ins.Event()

    def open(self) -> None:
        run, broker = stand_ins.scheduler(), self._broker
        if self._connection is not None:
            self.close()
        run.sleep(broker.latency())
        broker.check(self.client)
        unanswered: dict[int, tuple[int, Settle]] = {}

        def received(item: object) -> None:
            assert isinstance(item, tuple)
            kind, number, answers = item
            if kind == "ended":
                connection.lose("the broker ended the session")
                return
            found = unanswered.pop(number, None)
            self._room.set()
            if found is not None:
                count, settled = found
                settled([*answers, *[RETRY] * (count - len(answers))])

        def lost() -> None:
            self._retry(unanswered)

        self._unanswered = unanswered
        process = stand_ins.running_process()
        connection = Connection(broker, self.client, process, received, lost)
        self._connection = connection
        broker.log("connected", f"{self.client} to {broker.name}")

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        run, broker = stand_ins.scheduler(), self._broker
        run.point()
        connection = self._check()
        if not messages:
            return
        if broker.failing:
            broker.failing -= 1
            raise ValueError(f"{self.client}: a fault of the driver")
        unanswered = self._unanswered
        if broker.blocked and broker.semantics.deaf:  # the client knows
            settled([NO_ROOM] * len(messages))
            return
        while broker.blocked or len(unanswered) >= self._window:
            self._room.clear()
            self._room.wait(0.5)
            if self._check() is not connection:
                raise NotConnectedError(f"{self.client}: connected again meanwhile")
        self._numbers += 1
        unanswered[self._numbers] = len(messages), settled
        broker.senders.add(self.client)
        wire = [_wire(each, self._settings.carries) for each in messages]
        if broker.semantics.knows:
            wire = [_with_id(each, message_id(sent))
                    for each, sent in zip(wire, messages, strict=True)]  # fmt: skip
        connection.up.put(("publish", self._numbers, wire))

    def _check(self) -> Connection:
        connection = self._connection
        if connection is None:
            raise NotConnectedError(f"{self.client}: is closed; open it first")
        if connection.broken:
            raise NotConnectedError(f"{self.client}: {connection.reason}")
        return connection

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.leave()
            self._room.set()
            self._retry(self._unanswered)

    def _retry(self, unanswered: dict[int, tuple[int, Settle]]) -> None:
        while unanswered:
            number = next(iter(unanswered))
            count, settled = unanswered.pop(number)
            settled([RETRY] * count)


def _marked(message: Message) -> Message:
    return replace(message, headers=replace(message.headers, redelivered=True))


def _wire(message: Message, carries: frozenset[str]) -> Message:
    """The message with the headers that its system carries."""
    if "origin" in carries:
        return message
    return Message(message.address, message.payload, Headers(DeliveryMode(message.headers.mode)))


def _with_id(message: Message, key: str | None) -> Message:
    return replace(message, headers=replace(message.headers, source_id=key))


@dataclass(frozen=True)
class HoldersSink:
    """A sink of a pair: `check` sees each send at the moment at which it is handed over."""

    sink: SimulatedSink
    check: Callable[[], None]

    def open(self) -> None:
        self.sink.open()

    def send(self, messages: Sequence[Message], settle: Settle) -> None:
        if messages:
            self.check()
        self.sink.send(messages, settle)

    def close(self) -> None:
        self.sink.close()
