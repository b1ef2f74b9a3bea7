"""Simulated brokers, with their sessions and connections.

A broker survives every gateway. It keeps a session for each source: pending messages, and those in
flight, which it delivers again with a mark after a lost connection. Messages and answers travel
with a latency, and a fault may strike while they do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Final, TypeAlias

from gateway.dialects.base import Dialect, read_pattern, read_tags
from gateway.dialects.registry import find_dialect
from gateway.endpoints.continuity import Retention
from gateway.endpoints.mqtt.packets import PUBCOMP, PUBREL, PacketDecoder
from gateway.errors import EndpointError, NotConnectedError
from gateway.model.matching import matches
from gateway.model.message import Message, Payload
from gateway.model.outcome import ACCEPTED, NO_ROOM, Settlement, rejected
from tests.simulation.run_log import RunLog
from tests.simulation.scheduler import Process, Scheduler

_REASONS: Final = {ACCEPTED.rule: 0x00, NO_ROOM.rule: 0x97, "acl": 0x87}  # of an answer
KEEPALIVE: Final = 2.0  # seconds until a silent connection counts as lost
Selects: TypeAlias = Callable[[str], bool]


def is_tap(client: str) -> bool:
    """Whether a client is a tap at a target; it has a source of its own."""
    return "tap-" in client


@dataclass(slots=True)
class Entry:
    """A message in a session; `number` counts the arrivals of its broker."""

    number: int
    message: Message
    time: float = 0.0  # of its arrival at the broker
    redelivered: bool = False
    packet_id: int = 0  # of QoS 2, once it was sent
    received: bool = False  # by its source, at QoS 2

    @property
    def content(self) -> tuple[str, object]:
        """Name and payload."""
        return self.message.address, self.message.payload


@dataclass(slots=True)
class Session:
    """The messages that a broker has for one source.

    With `exactly_once` each has a packet id until its PUBCOMP (MQTT 5.0, 4.3.3); `unreleased` are
    those with a PUBREC and without a PUBCOMP. Ids are used again as soon as they are free. A
    message with an id that a restart abandoned gets a new one after a lost connection if it equals
    the message before and its source has not received it: the source could not tell them apart.
    Mutable: owned by its broker.
    """

    client: str
    selects: Selects
    kept: bool
    window: int
    pending: deque[Entry] = field(default_factory=deque)
    in_flight: dict[int, Entry] = field(default_factory=dict)
    connection: Connection | None = None
    exactly_once: bool = False
    unreleased: dict[int, tuple[str, object]] = field(default_factory=dict)
    abandoned: dict[int, tuple[str, object]] = field(default_factory=dict)

    def take(self) -> list[Entry]:
        """The pending messages that the window allows, which are in flight from now on."""
        sent: list[Entry] = []
        while self.pending and len(self.in_flight) + len(self.unreleased) < self.window:
            entry = self.pending.popleft()
            if self.exactly_once and not entry.packet_id:
                entry.packet_id = self._free_id()
            self.in_flight[entry.number] = entry
            sent.append(entry)
        return sent

    def _free_id(self) -> int:
        used = {each.packet_id for each in (*self.in_flight.values(), *self.pending)}
        return next(each for each in count(1) if each not in used and each not in self.unreleased)

    def release(self, packet_ids: Sequence[int]) -> None:
        """Note PUBRECs: the messages are delivered."""
        for number, entry in list(self.in_flight.items()):
            if entry.packet_id in packet_ids:
                del self.in_flight[number]
                self.unreleased[entry.packet_id] = entry.content

    def complete(self, packet_ids: Sequence[int]) -> None:
        """Note PUBCOMPs: the ids are free."""
        for each in packet_ids:
            self.unreleased.pop(each, None)

    def requeue(self) -> None:
        """Put the unacknowledged messages back, marked, in their order."""
        for entry in reversed(self.in_flight.values()):
            if self.abandoned.get(entry.packet_id) == entry.content and not entry.received:
                entry.packet_id = 0
            else:
                entry.redelivered = True
            self.pending.appendleft(entry)
        self.in_flight.clear()
        self.pending = deque(sorted(self.pending, key=lambda each: each.number))


class Pipe:
    """One direction of a connection: items in order, each with its latency.

    `handle` runs in a task of `process`.
    """

    def __init__(
        self,
        run: Scheduler,
        name: str,
        process: Process,
        handle: Callable[[object], None],
        latency: Callable[[], float],
    ) -> None:
        self._run, self._handle, self._latency = run, handle, latency
        self.items: deque[tuple[float, object]] = deque()
        self.closed = False
        self.dropping = False  # a cut that nobody notices yet
        self.last: Callable[[], None] = lambda: None
        self._idle = False
        self._task = run.spawn(name, process, self._work)

    def put(self, item: object) -> None:
        if not self.closed and not self.dropping:
            self.items.append((self._run.now + self._latency(), item))
            self._notify()

    def close(self) -> None:
        self.closed = True
        self._notify()

    def _notify(self) -> None:
        if self._idle:
            self._run.wake(self._task)

    def _work(self) -> None:
        run = self._run
        while not self.closed:
            if not self.items:
                self._idle = True
                run.wait()
                self._idle = False
                continue
            due = self.items[0][0]
            if due > run.now:
                self._idle = True
                run.wait(due)
                self._idle = False
                continue
            self._handle(self.items.popleft()[1])
        self.last()


class Connection:
    """A connection of a client to a broker; `broken` once the client may know that it is lost."""

    def __init__(
        self,
        broker: Broker,
        client: str,
        process: Process,
        received: Callable[[object], None],
        lost: Callable[[], None],
    ) -> None:
        self.broker, self.client = broker, client
        self.process = process
        self.broken = False
        self.reason = ""
        self.decoder = PacketDecoder("5", lambda: 0)  # of a sink of QoS 2
        self.refusing = False  # everything after an answer RETRY gets the same answer
        run, latency = broker.run, broker.latency
        self.up = Pipe(run, f"up-{client}", broker.process, self._arrived, latency)
        self.down = Pipe(run, f"down-{client}", process, received, latency)
        self.down.last = lost
        old = broker.connections.get(client)
        if old is not None:
            old.lose("another connection of this client")
        broker.connections[client] = self

    def _arrived(self, item: object) -> None:
        self.broker.arrived(self, item)

    def lose(self, reason: str) -> None:
        """End the connection at once; what was on its way is lost."""
        if not self.broken:
            self.broken, self.reason = True, reason
        self.up.close()
        self.down.close()
        self.broker.forget(self)

    def leave(self) -> None:
        """Close as a client does: what it has sent may still arrive."""
        if not self.broken:
            self.broken, self.reason = True, "closed"
            self.down.close()
            self.up.put(("end", 0, ()))


class Broker:
    """One broker: its sessions, its faults, and who published what.

    Mutable: faults set the fields; used by the running task only.
    """

    def __init__(
        self, run: Scheduler, name: str, dialect: str, process: Process, log: RunLog
    ) -> None:
        self.run, self.name, self.process, self.log = run, name, process, log
        self.dialect: Dialect = find_dialect(dialect)
        self.latency: Callable[[], float] = lambda: 0.001
        self.sessions: dict[str, Session] = {}
        self.connections: dict[str, Connection] = {}
        self.away = False
        self.refusing: EndpointError | None = None
        self.failing = 0  # further sends that raise a driver's fault
        self.blocked = False
        self.retrying = False
        self.poison: set[Payload] = set()
        self.denied: set[bytes] = set()
        self.senders: set[str] = set()  # clients that sent anything
        self.on_accepted: Callable[[str, Message], None] = lambda _client, _message: None
        self.on_confirmed: Callable[[str, Entry], None] = lambda _client, _entry: None
        self.on_repeated: Callable[[str, Entry], None] = lambda _client, _entry: None
        self.on_lost: Callable[[str, Entry], None] = lambda _client, _entry: None
        self._numbers = 0
        self._selected: dict[tuple[str, str], bool] = {}

    # The faults.

    def cut(self, reason: str) -> None:
        """Lose every connection."""
        for connection in list(self.connections.values()):
            connection.lose(reason)

    def leave(self) -> None:
        self.away = True
        self.cut("the broker is away")

    def cut_silently(self, *, up: bool, down: bool) -> None:
        """Lose everything in some directions; the keepalive notices it later."""
        for connection in list(self.connections.values()):
            connection.up.dropping |= up
            connection.down.dropping |= down
            for pipe in (connection.up,) * up + (connection.down,) * down:
                pipe.items.clear()
            self.run.at(self.run.now + KEEPALIVE, partial(connection.lose, "keepalive"))

    def lose_sessions(self) -> None:
        for session in self.sessions.values():
            session.requeue()
            for entry in session.pending:
                self.on_lost(session.client, entry)
            session.pending.clear()
        self.cut("the broker restarted")
        self.sessions.clear()

    def forget_releases(self) -> None:
        """Restart with an older copy of the sessions, which has no message after its PUBREC."""
        for session in self.sessions.values():
            session.abandoned.update(session.unreleased)
            session.unreleased.clear()
        self.cut("the broker restarted with its saved sessions")

    def repeat(self, share: Callable[[], float]) -> None:
        """Deliver some messages in flight twice, marked; at QoS 2 no broker does."""
        for session in self.sessions.values():
            if session.connection is not None and not session.exactly_once:
                again = [replace(e, redelivered=True) for e in session.in_flight.values()
                         if share() < 0.5]  # fmt: skip
                if again:
                    session.connection.down.put(("again", again))

    def expire(self) -> None:
        """Drop the messages that no source has got yet."""
        for session in self.sessions.values():
            for entry in session.pending:
                self.on_lost(session.client, entry)
            session.pending.clear()

    # The protocol.

    def is_tapped(self, address: str) -> bool:
        """Whether a tap receives the message; it does not subscribe to dead letters."""
        sessions = self.sessions.values()
        return any(is_tap(each.client) and each.selects(address) for each in sessions)

    def check(self, client: str) -> None:
        if self.away:
            raise NotConnectedError(f"{client}: {self.name} is away")
        if self.refusing is not None:
            raise self.refusing

    def subscribe(
        self,
        connection: Connection,
        patterns: Sequence[str],
        *,
        kept: bool,
        window: int,
        exactly_once: bool = False,
    ) -> Retention:
        client = connection.client
        found = [read_pattern(text, self.dialect) for text in patterns]
        flat = [pattern for each in found for pattern in each]

        def selects(address: str) -> bool:
            names = read_tags(address, self.dialect)
            return any(matches(pattern, levels) for pattern in flat for levels in names)

        session = self.sessions.get(client)
        retention = Retention.KEPT if session else Retention.NEW
        if session is None:
            session = self.sessions[client] = Session(
                client, selects, kept, window, exactly_once=exactly_once
            )
        session.selects = selects
        session.requeue()
        session.connection = connection
        if session.unreleased:
            connection.down.put(("pubrel", list(session.unreleased)))
        self.push(session)
        return retention if kept else Retention.NOTHING

    def forget(self, connection: Connection) -> None:
        client = connection.client
        if self.connections.get(client) is connection:
            del self.connections[client]
        session = self.sessions.get(client)
        if session is not None and session.connection is connection:
            session.connection = None
            if not session.kept:
                for entry in [*session.in_flight.values(), *session.pending]:
                    self.on_lost(client, entry)
                del self.sessions[client]

    def publish(self, message: Message, client: str = "") -> None:
        """Route a message to every session, with a number of this broker."""
        self._numbers += 1
        for session in list(self.sessions.values()):
            if session.selects(message.address):
                headers = replace(
                    message.headers, redelivered=False, retained=False,
                    source_id=f"{self.name}-{self._numbers}",
                )  # fmt: skip
                kept = replace(message, headers=headers)
                session.pending.append(Entry(self._numbers, kept, self.run.now))
                self.push(session)
        self.on_accepted(client, message)

    def push(self, session: Session) -> None:
        """Send as many pending messages as the window allows."""
        connection = session.connection
        if connection is not None and (sent := session.take()):
            connection.down.put(("messages", [replace(each) for each in sent]))

    def arrived(self, connection: Connection, item: object) -> None:
        """Handle a packet of a client: a publication or acknowledgements."""
        assert isinstance(item, tuple)
        kind, number, content = item
        if kind == "end":
            connection.up.close()
            self.forget(connection)
            return
        if kind in {"ack", "pubrec", "pubcomp"}:
            self._acknowledged(connection, kind, content)
            return
        if kind == "mqtt":
            self._received_bytes(connection, content)
            return
        answers: list[Settlement] = []
        for message in content:
            if message.payload in self.poison:
                connection.down.put(("answers", number, answers))
                self._break(connection)
                return
            answers.append(self._answer(connection, message))
        connection.down.put(("answers", number, answers))

    def _break(self, connection: Connection) -> None:
        self.log("poison", f"{self.name}: breaks on a message")
        connection.lose("a poison message")

    def _acknowledged(self, connection: Connection, kind: str, content: Sequence[int]) -> None:
        session = self.sessions.get(connection.client)
        if session is None or session.connection is not connection:
            return
        self.log.coverage[kind] += 1
        match kind:
            case "pubrec":
                session.release(content)
                connection.down.put(("pubrel", list(content)))
            case "pubcomp":
                session.complete(content)
            case _:
                for number in content:
                    session.in_flight.pop(number, None)
        self.push(session)

    def _received_bytes(self, connection: Connection, data: bytes) -> None:
        """Handle packets of a sink of QoS 2: a message is accepted once for each packet id."""
        packets = connection.decoder.feed(data)
        answers: list[tuple[int, int, int]] = []
        for message, ack in zip(packets.messages, packets.acks, strict=True):
            if message.payload in self.poison:
                connection.down.put(("answers", 0, answers))
                self._break(connection)
                return
            reason = _REASONS[self._answer(connection, message).rule]
            answers.append((ack >> 28, ack & 0xFFFF, reason))  # PUBACK or PUBREC
        released = [each for kind, each, _ in packets.responses if kind == PUBREL]
        self.log.coverage["pubrel"] += len(released)
        answers += [(PUBCOMP, each, 0) for each in released]
        connection.down.put(("answers", 0, answers))

    def _answer(self, connection: Connection, message: Message) -> Settlement:
        payload = message.payload
        if isinstance(payload, bytes) and any(each in payload for each in self.denied):
            self.log("denied", f"{self.name}: denies a message")
            return rejected("acl", f"{self.name}: not allowed")
        if self.retrying or connection.refusing:
            connection.refusing = True
            return NO_ROOM
        self.publish(message, connection.client)
        return ACCEPTED
