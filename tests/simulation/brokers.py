"""Simulated brokers: their faults, and the protocol of their clients.

A broker survives every gateway. It keeps a session for each source: pending messages, and those in
flight, which it delivers again with a mark after a lost connection. Messages and answers travel
with a latency, and a fault may strike while they do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final
from unicodedata import category
from zlib import crc32

from gateway.dialects.base import Dialect, read_pattern, read_tags
from gateway.dialects.registry import find_dialect
from gateway.endpoints.continuity import Retention
from gateway.endpoints.yami4.bodies import BodyReader
from gateway.errors import EndpointError, NotConnectedError
from gateway.model.dead_letter_rule import PUBLISH_ACL, UNROUTABLE
from gateway.model.matching import matches
from gateway.model.message import Message, Payload
from gateway.model.outcome import ACCEPTED, NO_ROOM, REPEATED, Settlement, rejected
from gateway.wire.mqtt.packets import PINGREQ, PUBCOMP, PUBREL
from gateway.wire.yami4.frames import Packet
from gateway.wire.yami4.messages import encode_exception, encode_reply, read_header
from tests.simulation.connections import Connection
from tests.simulation.run_log import RunLog
from tests.simulation.scheduler import Process, Scheduler
from tests.simulation.semantics import ACK_WAIT, PLAIN, Semantics
from tests.simulation.sessions import Entry, Session, is_tap

_REASONS: Final = {ACCEPTED.rule: 0x00, NO_ROOM.rule: 0x97, PUBLISH_ACL: 0x87}  # of an answer
KEEPALIVE: Final = 2.0  # seconds until a silent connection counts as lost


def is_malformed(message: Message) -> bool:
    """Whether a text of the message has a control character (MQTT 5.0, 1.5.4)."""
    texts = [message.address, *message.headers.properties]
    texts += [each for each in message.headers.properties.values() if isinstance(each, str)]
    return any(category(each) == "Cc" for text in texts for each in text)


def _yami4_answer(number: int, settlement: Settlement) -> bytes:
    """The header of an answer."""
    if settlement is ACCEPTED:
        return encode_reply(number)
    full = settlement is NO_ROOM
    return encode_exception(number, b"Message queue overflow" if full else b"refused")


class Broker:
    """One broker: its sessions, its faults, and who published what.

    Mutable: faults set the fields; used by the running task only.
    """

    def __init__(
        self,
        run: Scheduler,
        name: str,
        dialect: str,
        process: Process,
        log: RunLog,
        semantics: Semantics = PLAIN,
    ) -> None:
        self.run, self.name, self.process, self.log = run, name, process, log
        self.semantics = semantics
        self.dialect: Dialect = find_dialect(dialect)
        self.latency: Callable[[], float] = lambda: 0.001
        self.sessions: dict[str, Session] = {}
        self.connections: dict[str, Connection] = {}
        self.away = False
        self.only_accepts = False  # a load balancer, which closes each connection: no broker
        self.refusing: EndpointError | None = None
        self.failing = 0  # further sends that raise a driver's fault
        self.blocked = False
        self.retrying = False
        self.unbound = False  # no queue has a binding: publishers get their messages back
        self.losing_acks = False
        self.stream: list[Entry] = []  # of a system that keeps what was acknowledged
        self.handed: dict[str, set[int]] = {}  # numbers that a client of Kafka handed out
        # of clients in partitions: next offset, claim
        self.commits: dict[tuple[str, int], tuple[int, str]] = {}
        self.log_begins = [0] * semantics.partitions
        self.log_ends = [0] * semantics.partitions
        self.borrowed: dict[int, float] = {}  # partitions that another member has, and its share
        self.purged: set[int] = set()  # numbers
        self.unordered: set[Payload] = set()  # refused for room, while later ones were accepted
        self.deleted: set[str] = set()  # clients whose consumer was deleted
        self._ids: dict[str, float] = {}  # of messages, with the time of the first
        self.poison: set[Payload] = set()
        self.hangs_up_for = ""  # a part of the names that it does not take
        self.denied: set[bytes] = set()
        self.senders: set[str] = set()  # clients that sent anything
        self.on_accepted: Callable[[str, Message], None] = lambda _client, _message: None
        self.on_confirmed: Callable[[str, Entry], None] = lambda _client, _entry: None
        self.on_repeated: Callable[[str, Entry], None] = lambda _client, _entry: None
        self.on_lost: Callable[[str, Entry], None] = lambda _client, _entry: None
        self.on_malformed: Callable[[str], None] = lambda _text: None
        self._bodies = BodyReader()
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

    def leave_load_balancer(self) -> None:
        self.only_accepts = True
        self.cut("the load balancer has no broker")

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
            exactly = session.exactly_once or self.semantics.partitions
            if session.connection is not None and not exactly:
                again = [replace(e, redelivered=True) for e in session.in_flight.values()
                         if share() < 0.5]  # fmt: skip
                if again:
                    session.connection.down.put(("again", again))

    def holes(self, client: str) -> int:
        """Return how many removed messages a source sees as missing numbers."""
        session = self.sessions.get(client)
        return 0 if session is None else sum(each < session.last for each in self.purged)

    def expire(self) -> None:
        """Drop the messages that no source has got yet."""
        for session in self.sessions.values():
            for entry in session.pending:
                self.on_lost(session.client, entry)
            session.pending.clear()

    @property
    def first_number(self) -> int:
        """The number of the first message of the stream, or of the next one."""
        return self.stream[0].number if self.stream else self._numbers + 1

    @property
    def last_number(self) -> int:
        """The number of the last message that was ever in the stream."""
        return self._numbers

    def delete_consumers(self) -> None:
        """Forget the sessions and keep the stream, so that new consumers read it again."""
        self.cut("the consumer was deleted")
        self.deleted.update(self.sessions)
        self.sessions.clear()

    def delete_groups(self) -> None:
        """Forget the commits, as an administrator does while no source is there."""
        self.cut("the group was deleted")
        self.commits.clear()

    def retain(self, share: float) -> None:
        """Remove the oldest messages of the log, read or not."""
        self.cut("a log has another begin")
        count = round(share * len(self.stream))
        removed, self.stream = self.stream[:count], self.stream[count:]
        for entry in removed:
            self.log_begins[entry.partition] = entry.offset + 1
            for client in {client for client, _ in self.commits}:
                if entry.offset >= self.commits.get((client, entry.partition), (0, ""))[0]:
                    self.on_lost(client, entry)

    def lend(self, partition: int, share: float) -> None:
        """Give a partition of each group to another member, which reads a share of what waits."""
        self.cut("the group divided its partitions again")
        self.borrowed[partition] = share

    def give_back(self) -> None:
        """Take the partitions from the other members, which have committed half of what they read.

        A member commits before it reads.
        """
        if not self.borrowed:
            return
        self.cut("the group divided its partitions again")
        for partition, share in self.borrowed.items():
            for client in {client for client, _ in self.commits}:
                begin, _ = self.commits.get((client, partition), (self.log_begins[partition], ""))
                waiting = [each for each in self.stream
                           if each.partition == partition and each.offset >= begin]  # fmt: skip
                read = waiting[: round(share * len(waiting))]
                taken = read[: len(read) // 2]
                self.handed.setdefault(client, set()).update(each.number for each in read)
                for entry in taken:
                    self.on_lost(client, entry)
                end = taken[-1].offset + 1 if taken else begin
                self.commits[client, partition] = end, "another"
        self.borrowed.clear()

    def purge(self) -> None:
        """Remove from the stream what a source has not got yet."""
        for session in self.sessions.values():
            self.purged.update(each.number for each in session.pending)
        self.stream = [each for each in self.stream if each.number not in self.purged]
        self.expire()

    def lose_acks(self, seconds: float) -> None:
        """Lose acknowledgements for so long; then their messages come again."""
        self.losing_acks = True
        self.run.at(self.run.now + seconds, partial(setattr, self, "losing_acks", False))
        self.run.at(self.run.now + seconds + ACK_WAIT, self._deliver_again)

    def _deliver_again(self) -> None:
        for session in self.sessions.values():
            again = [replace(session.in_flight[each], redelivered=True)
                     for each in sorted(session.unheard & session.in_flight.keys())]  # fmt: skip
            session.unheard.clear()
            if again and session.connection is not None:
                session.connection.down.put(("messages", again))

    # The protocol.

    def is_tapped(self, address: str) -> bool:
        """Whether a tap receives the message; it does not subscribe to dead letters."""
        sessions = self.sessions.values()
        return any(is_tap(each.client) and each.selects(address) for each in sessions)

    def check(self, client: str, *, accepts: bool = False) -> None:
        """Raise the error that an opening client gets.

        With `accepts` it is content with a load balancer; others wait for the broker's answer.
        """
        if self.away or (self.only_accepts and not accepts):
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
        begins: Mapping[int, int] | None = None,
    ) -> Retention:
        """Give a client its messages; `begins` has its partitions, and the first offset of each."""
        client = connection.client
        found = [read_pattern(text, self.dialect) for text in patterns]
        flat = [pattern for each in found for pattern in each]

        def selects(address: str) -> bool:
            if begins is not None and self.partition_of(address) not in begins:
                return False
            names = read_tags(address, self.dialect)
            return any(matches(pattern, levels) for pattern in flat for levels in names)

        session = self.sessions.get(client)
        retention = Retention.KEPT if session else Retention.NEW
        if session is None:
            session = self.sessions[client] = Session(
                client, selects, kept, window, exactly_once=exactly_once
            )
            if not is_tap(client):
                again = client in self.deleted  # the product's source marks them
                first = begins or {}
                old = [each for each in self.stream
                       if selects(each.message.address)
                       and each.offset >= first.get(each.partition, 0)]  # fmt: skip
                session.pending.extend(replace(each, redelivered=again) for each in old)
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
        headers = replace(
            message.headers, redelivered=False, retained=False,
            source_id=f"{self.name}-{self._numbers}",
        )  # fmt: skip
        entry = Entry(self._numbers, replace(message, headers=headers), self.run.now)
        if self.semantics.partitions:
            entry.partition = self.partition_of(message.address)
            entry.offset = self.log_ends[entry.partition]
            self.log_ends[entry.partition] += 1
        if self.semantics.keeps:
            self.stream.append(entry)
        for session in list(self.sessions.values()):
            if session.selects(message.address):
                session.pending.append(replace(entry))
                self.push(session)
        self.on_accepted(client, message)

    def partition_of(self, address: str) -> int:
        return crc32(address.encode()) % self.semantics.partitions

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
        if kind in {"ack", "commit", "pubrec", "pubcomp"}:
            self._acknowledged(connection, kind, content)
            return
        if kind == "mqtt":
            self._received_bytes(connection, content)
            return
        if kind == "yami4":
            self._received_frames(connection, content)
            return
        answers: list[Settlement] = []
        for message in content:
            if self._hangs_up(message):
                connection.down.put(("answers", number, answers))
                self._break(connection)
                return
            answers.append(self._answer(connection, message))
            if self.semantics.ends and answers[-1].rule == PUBLISH_ACL:
                self.log.coverage["ended"] += 1
                connection.up.close()
                connection.down.put(("answers", number, answers))
                connection.down.put(("ended", 0, ()))
                return
        connection.down.put(("answers", number, answers))

    def _hangs_up(self, message: Message) -> bool:
        name = self.hangs_up_for
        if self.dialect.name == "mqtt" and is_malformed(message):
            return True
        return message.payload in self.poison or (bool(name) and name in message.address)

    def _break(self, connection: Connection) -> None:
        self.log("poison", f"{self.name}: breaks on a message")
        connection.lose("a poison message")

    def _acknowledged(self, connection: Connection, kind: str, content: Any) -> None:  # noqa: ANN401  # by its kind
        """Take numbers of messages or packets, or commits, from the client of a session."""
        session = self.sessions.get(connection.client)
        if session is None or session.connection is not connection:
            return
        self.log.coverage[kind] += 1
        match kind:
            case "commit" if self.losing_acks:
                pass
            case "commit":
                self.commits.update(content)
            case "pubrec":
                session.release(content)
                connection.down.put(("pubrel", list(content)))
            case "pubcomp":
                session.complete(content)
            case _ if self.losing_acks and not self.semantics.partitions:
                session.unheard.update(content)
            case _:
                for number in content:
                    session.in_flight.pop(number, None)
        self.push(session)

    def _received_bytes(self, connection: Connection, data: bytes) -> None:
        """Handle packets of a sink of QoS 2: a message is accepted once for each packet id."""
        packets = connection.decoder.feed(data)
        answers: list[tuple[int, int, int]] = []
        for message, ack in zip(packets.messages, packets.acks, strict=True):
            if is_malformed(message):
                self.on_malformed(f"{self.name}: a packet with the name {message.address!r}")
            if self._hangs_up(message):
                connection.down.put(("answers", 0, answers))
                self._break(connection)
                return
            reason = _REASONS[self._answer(connection, message).rule]
            if ack:  # not of QoS 0
                answers.append((ack >> 28, ack & 0xFFFF, reason))  # PUBACK or PUBREC
        released = [each for kind, each, _ in packets.responses if kind == PUBREL]
        self.log.coverage["pubrel"] += len(released)
        answers += [(PUBCOMP, each, 0) for each in released]
        pings = packets.session.count(PINGREQ)  # each follows the messages that it came with
        self.log.coverage["ping"] += pings
        connection.down.put(("answers", pings, answers))

    def _received_frames(self, connection: Connection, data: bytes) -> None:
        """Handle requests of a YAMI4 sink; only what it wants confirmed is answered."""
        answers: list[Packet] = []
        for header, body in connection.frames.feed(data):
            found = read_header(header)
            assert found is not None, f"{self.name}: no header of YAMI4"
            heading, number = found
            settlement = ACCEPTED
            if heading.message_name != b"get":  # of statistics
                message = Message(heading.object_name.decode(), *self._bodies.read(body))
                if self._hangs_up(message):
                    connection.down.put(("answers", 0, answers))
                    self._break(connection)
                    return
                settlement = self._answer(connection, message)
            if heading.message_name != b"publish":
                answers.append((_yami4_answer(number, settlement), b""))
        connection.down.put(("answers", 0, answers))

    def _answer(self, connection: Connection, message: Message) -> Settlement:
        payload = message.payload
        if isinstance(payload, bytes) and any(each in payload for each in self.denied):
            self.log("denied", f"{self.name}: denies a message")
            return rejected(PUBLISH_ACL, f"{self.name}: not allowed")
        if self.unbound:
            return rejected(UNROUTABLE, f"{self.name}: no queue has a binding")
        if self.retrying or connection.refusing:
            connection.refusing = self.semantics.sticky
            if not self.semantics.sticky:
                self.unordered.add(payload)
            return NO_ROOM
        if self._is_known(message):
            self.log.coverage["known"] += 1
            return REPEATED
        self.publish(message, connection.client)
        return ACCEPTED

    def _is_known(self, message: Message) -> bool:
        """Whether a message with this id came within the window; note the id of another one."""
        key, now = message.headers.source_id, self.run.now
        if not self.semantics.knows or key is None:
            return False
        first = self._ids.get(key)
        if first is not None and now - first < self.semantics.knows:
            return True
        self._ids[key] = now
        return False
