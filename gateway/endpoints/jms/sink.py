"""A JMS sink: packs messages, and sends all waiting batches in one call to Java.

Batches with a persistent message are sent in one transaction: its commit answers for all of them
and keeps the order. Other messages get no answer: they count as accepted once the server has
answered a question that follows them on their connection.
"""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Condition, Thread, current_thread
from time import monotonic
from typing import Protocol

from gateway.endpoints.base import Settle
from gateway.endpoints.jms import jvm
from gateway.endpoints.jms.addresses import DESTINATION_KINDS
from gateway.endpoints.jms.connection import JmsConnection, connect
from gateway.endpoints.jms.jvm import JavaError, JmsLibrary, describe, open_library
from gateway.endpoints.jms.message_writer import MessageWriter
from gateway.endpoints.jms.value_codec import UnsendableError
from gateway.endpoints.sent_messages import write_each
from gateway.endpoints.settings.jms import JmsSettings
from gateway.errors import NotConnectedError
from gateway.model.dead_letter_rule import MESSAGE_SIZE, REFUSED, RULES
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, NO_ROOM, RETRY, Outcome, Settlement, rejected

log = logging.getLogger(__name__)

HEAP_COPIES = 8  # of a message that Java makes, garbage included: 8 MB need a heap of 64
CHECK_INTERVAL = 1.0  # seconds between checks of the connection while the window is full


class JavaSender(Protocol):
    """Sender.java."""

    def send(self, data: bytes, count: int, transacted: bool) -> Sequence[object] | None: ...


@dataclass(slots=True)
class PackedBatch:
    """The records and the settlements of one call of `JmsSink.send`.

    Mutable: owned by the sending thread while its answers arrive.
    """

    settled: Settle
    settlements: list[Settlement]
    records: list[bytes]
    positions: list[int]  # of the records in `settlements`
    size: int
    persistent: bool


class JmsSink:
    """Sends waiting batches in its own thread.

    Thread-safe: guarded by self._changed.
    """

    def __init__(self, settings: JmsSettings, instance: str = "") -> None:
        del instance  # its connection has no name
        self._settings = settings
        self._writer = MessageWriter(settings, DESTINATION_KINDS[settings.destination])
        self._library: JmsLibrary | None = None
        self._max_record = sys.maxsize  # bytes that Java's heap can take
        self._changed = Condition()  # guards all below
        self._connection: JmsConnection | None = None
        self._waiting: deque[PackedBatch] = deque()
        self._count = 0  # messages that wait or are being sent
        self._size = 0
        self._sending: list[PackedBatch] = []
        self._call_start: float | None = None  # of the call to Java that sends `_sending`
        # calls to Java, with persistent messages a transaction each, and the messages in them
        self.counts = {"calls": 0, "sent": 0}
        self._thread: Thread | None = None

    @property
    def address(self) -> str:
        """HOST:PORT of the server; empty without a connection, or where the library hides it."""
        connection = self._connection
        return "" if connection is None else connection.address

    def open(self) -> None:
        self.close()
        if self._library is None:
            self._library = open_library(self._settings)
            self._max_record = jvm.max_heap() // HEAP_COPIES
        connection = connect(self._settings, self._library, "")
        sender = connection.set_up(self._start)
        name = f"{self._settings.name}-sink"
        thread = Thread(target=self._run, args=(connection, sender), name=name, daemon=True)
        with self._changed:
            self._connection, self._thread = connection, thread
            thread.start()

    def _start(self, connection: JmsConnection) -> JavaSender:
        sender: JavaSender = connection.library.helper("Sender")(
            connection.connection, connection.monitor
        )
        connection.connection.start()
        return sender

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        if not messages:
            self._check_connection()
        batch = self._pack(messages, settled)
        if not batch.records:
            settled(batch.settlements)
            return
        while not self._enqueue(batch):
            self._check_connection()

    def _enqueue(self, batch: PackedBatch) -> bool:
        """Queue the batch; return False after an interval without room, or when disconnected."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._connection is None or self._has_room(batch), CHECK_INTERVAL
            )
            if self._connection is None or not self._has_room(batch):
                return False
            self._waiting.append(batch)
            self._count += len(batch.records)
            self._size += batch.size
            self._changed.notify_all()
            return True

    def _check_connection(self) -> None:
        """Raise NotConnectedError after a failure, or when a call to Java does not return."""
        connection, start = self._connection, self._call_start
        failure = "not connected" if connection is None else connection.monitor.failure()
        if start is not None and monotonic() - start > self._settings.answer_timeout:
            failure = f"no answer for {self._settings.answer_timeout} s"
        if failure is not None:
            self._disconnect(connection)
            raise NotConnectedError(f"{self._settings.name}: {failure}")

    def close(self) -> None:
        self._disconnect(self._connection)

    def _has_room(self, batch: PackedBatch) -> bool:
        return not self._count or (
            self._count + len(batch.records) <= self._settings.send_window
            and self._size + batch.size <= self._settings.send_window_bytes
        )

    def _pack(self, messages: Sequence[Message], settled: Settle) -> PackedBatch:
        written, refused = write_each(self._settings.name, messages, self._write)
        return PackedBatch(
            settled,
            [refused.get(position, RETRY) for position in range(len(messages))],
            [record for _, (record, _) in written],
            [position for position, _ in written],
            size=sum(len(record) for _, (record, _) in written),
            persistent=any(persistent for _, (_, persistent) in written),
        )

    def _write(self, message: Message) -> tuple[bytes, bool]:
        record, persistent = self._writer.write(message)
        if len(record) > self._max_record:
            reason = f"{len(record)} bytes, more than an eighth of Java's heap: raise -Xmx"
            raise UnsendableError(MESSAGE_SIZE, f"{reason} in `jvm_options`")
        return record, persistent

    def _run(self, connection: JmsConnection, sender: JavaSender) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._connection is not connection)
                if self._connection is not connection:
                    return
                batches = self._sending = self._take()
                self._call_start = monotonic()
            settlements, connected = self._send(connection, sender, batches)
            self._finish(batches, settlements)  # first: once disconnected, it may open again
            if not connected:
                self._disconnect(connection)

    def _finish(self, batches: list[PackedBatch], settlements: Sequence[Settlement]) -> None:
        """Settle the batches that are being sent, unless `_disconnect` has settled them."""
        with self._changed:
            if self._sending is not batches:
                return
            self._sending, self._call_start = [], None
            self._release(batches)
        answers = iter(settlements)
        for batch in batches:
            for position in batch.positions:
                batch.settlements[position] = next(answers, RETRY)
            batch.settled(batch.settlements)

    def _release(self, batches: Sequence[PackedBatch]) -> None:
        self._count -= sum(len(each.records) for each in batches)
        self._size -= sum(each.size for each in batches)
        self._changed.notify_all()

    def _take(self) -> list[PackedBatch]:
        """Take waiting batches for one call: in order, and all persistent or none.

        At most half the window, so that the other half fills while these are sent.
        """
        max_messages = max(self._settings.batch, self._settings.send_window // 2)
        batches = [self._waiting.popleft()]
        count = len(batches[0].records)
        while self._waiting and self._waiting[0].persistent == batches[0].persistent:
            count += len(self._waiting[0].records)
            if count > max_messages:
                break
            batches.append(self._waiting.popleft())
        return batches

    def _send(
        self, connection: JmsConnection, sender: JavaSender, batches: Sequence[PackedBatch]
    ) -> tuple[Sequence[Settlement], bool]:
        """Return one settlement for each record, and whether more can be sent."""
        records = [record for batch in batches for record in batch.records]
        self.counts["calls"] += 1
        self.counts["sent"] += len(records)
        try:
            data = jvm.byte_array(b"".join(records))
            faults = sender.send(data, len(records), batches[0].persistent)
            connected = connection.monitor.failure() is None
        except JavaError as error:
            log.warning("%s: %s", self._settings.name, describe(error))
            return (), False
        if faults is None:
            return [ACCEPTED] * len(records), connected
        found = [self._settlement(fault) for fault in faults]
        # A batch that waits would pass the message that had no room.
        return found, connected and all(each.outcome is not Outcome.RETRY for each in found)

    def _settlement(self, fault: object) -> Settlement:
        if fault is None:
            return ACCEPTED
        rule, _, reason = str(fault).partition("\n")
        if rule == NO_ROOM.rule:
            return replace(NO_ROOM, reason=reason)
        if rule == "retry":
            return RETRY
        # Sender.java gives labels of the table
        return rejected(RULES.get(rule, REFUSED), f"{self._settings.name}: {reason}")

    def _disconnect(self, connection: JmsConnection | None) -> None:
        """Close the connection; settle every message without an answer as `RETRY`."""
        with self._changed:
            if connection is None or self._connection is not connection:
                return
            self._connection = None
            waiting, self._waiting = list(self._waiting), deque()
            sending, thread = self._sending, self._thread
            self._release(waiting)
        connection.close(self._settings.close_timeout)
        if thread is not None and thread is not current_thread():
            thread.join(self._settings.close_timeout)
            self._finish(sending, ())
        for batch in waiting:
            batch.settled(batch.settlements)
