"""A JMS sink: packs what it is given, and sends all that waits in one call of Java.

A batch with a persistent message in it is one transaction, so that its commit answers for all and
the order stays. For the rest nobody answers: they count as taken once the library has them.
"""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Condition, Thread, current_thread
from time import monotonic
from typing import Protocol

from gateway.endpoints.base import Settle
from gateway.endpoints.jms import jvm, names
from gateway.endpoints.jms.jvm import JavaError, Library
from gateway.endpoints.jms.provider import Link, as_failure, connect, describe, open_library
from gateway.endpoints.jms.values import UnsendableError
from gateway.endpoints.jms.writer import MessageWriter
from gateway.endpoints.settings.jms import JmsSettings
from gateway.errors import NotConnectedError
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, RETRY, Settlement, rejected

log = logging.getLogger(__name__)

COPIES = 8  # of a message that Java makes on its way, garbage included: 8 MB pass through 64
TICK = 1.0  # seconds between looks at the connection while there is no room
COUNTED = (
    "calls",  # of Java; of persistent messages a transaction each
    "sent",  # messages in them
)


class JavaSender(Protocol):
    """Sender.java."""

    def send(self, data: bytes, count: int, transacted: bool) -> Sequence[object] | None: ...


@dataclass(slots=True)
class Parcel:
    """One call of `send`; mutable while its answers come in."""

    settled: Settle
    settlements: list[Settlement]
    records: list[bytes] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # of the records in `settlements`
    size: int = 0
    persistent: bool = False


class JmsSink:
    """Sends in a thread of its own; mutable: it is open or closed, and holds what waits."""

    def __init__(self, settings: JmsSettings) -> None:
        self._settings = settings
        self._writer = MessageWriter(settings, names.KINDS[settings.destination])
        self._library: Library | None = None
        self._room = sys.maxsize  # bytes of the longest message that Java's heap can take
        self._state = Condition()  # guards all below
        self._link: Link | None = None
        self._waiting: deque[Parcel] = deque()
        self._count = 0  # messages that wait or are being sent
        self._size = 0
        self._sending: list[Parcel] = []
        self._since: float | None = None  # when the call of Java began that sends them
        self.counts: dict[str, int] = dict.fromkeys(COUNTED, 0)
        self._thread: Thread | None = None

    def open(self) -> None:
        self.close()
        if self._library is None:
            self._library = open_library(self._settings)
            self._room = jvm.heap() // COPIES
        link = connect(self._settings, self._library, "")
        try:
            sender: JavaSender = self._library.run(partial(self._start, link))
        except JavaError as error:
            link.close(self._settings.close_timeout)
            raise as_failure(self._settings.name, error) from error
        with self._state:
            self._link = link
            self._thread = Thread(
                target=self._run,
                args=(link, sender),
                name=f"{self._settings.name}-sink",
                daemon=True,
            )
            self._thread.start()

    def _start(self, link: Link) -> JavaSender:
        sender: JavaSender = link.library.helper("Sender")(link.connection, link.watch)
        link.connection.start()
        return sender

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        if not messages:
            self._look()
        parcel = self._pack(messages, settled)
        if not parcel.records:
            settled(parcel.settlements)
            return
        while not self._put(parcel):
            self._look()

    def _put(self, parcel: Parcel) -> bool:
        """Queue the parcel; False when there was no room for a while, or nobody to send it."""
        with self._state:
            self._state.wait_for(lambda: self._link is None or self._has_room(parcel), TICK)
            if self._link is None or not self._has_room(parcel):
                return False
            self._waiting.append(parcel)
            self._count += len(parcel.records)
            self._size += parcel.size
            self._state.notify_all()
            return True

    def _look(self) -> None:
        """Raise when the connection is known to be broken, or a call of Java does not return."""
        link, since = self._link, self._since
        failure = "not connected" if link is None else link.watch.failure()
        if since is not None and monotonic() - since > self._settings.answer_timeout:
            failure = f"no answer for {self._settings.answer_timeout} s"
        if failure is not None:
            self._end(link)
            raise NotConnectedError(f"{self._settings.name}: {failure}")

    def close(self) -> None:
        self._end(self._link)

    def _has_room(self, parcel: Parcel) -> bool:
        return not self._count or (
            self._count + len(parcel.records) <= self._settings.window
            and self._size + parcel.size <= self._settings.window_bytes
        )

    def _pack(self, messages: Sequence[Message], settled: Settle) -> Parcel:
        parcel = Parcel(settled, [RETRY] * len(messages))
        write = self._writer.write
        for place, message in enumerate(messages):
            try:
                record, persistent = write(message)
            except UnsendableError as error:
                text = f"{self._settings.name}: {error}"
                parcel.settlements[place] = rejected(error.rule, text)
                continue
            if len(record) > self._room:
                text = (
                    f"{self._settings.name}: {len(record)} bytes, more than an eighth of Java's"
                    " heap: raise -Xmx in `jvm_options`"
                )
                parcel.settlements[place] = rejected("message-size", text)
                continue
            parcel.records.append(record)
            parcel.places.append(place)
            parcel.size += len(record)
            parcel.persistent |= persistent
        return parcel

    def _run(self, link: Link, sender: JavaSender) -> None:
        while True:
            with self._state:
                self._state.wait_for(lambda: self._waiting or self._link is not link)
                if self._link is not link:
                    return
                parcels = self._sending = self._take()
                self._since = monotonic()
            settlements, answered = self._send(link, sender, parcels)
            if not answered:
                self._end(link)
            self._finish(parcels, settlements)

    def _finish(self, parcels: list[Parcel], settlements: Sequence[Settlement]) -> None:
        """Report what is being sent, unless it was given back in the meantime."""
        with self._state:
            if self._sending is not parcels:
                return
            self._sending, self._since = [], None
            self._release(parcels)
        answers = iter(settlements)
        for parcel in parcels:
            for place in parcel.places:
                parcel.settlements[place] = next(answers, RETRY)
            parcel.settled(parcel.settlements)

    def _release(self, parcels: Sequence[Parcel]) -> None:
        self._count -= sum(len(each.records) for each in parcels)
        self._size -= sum(each.size for each in parcels)
        self._state.notify_all()

    def _take(self) -> list[Parcel]:
        """Parcels that wait, in order and of one kind: together they are one transaction.

        Half the window at most, so that the other half fills while this one is sent.
        """
        most = max(self._settings.batch, self._settings.window // 2)
        parcels = [self._waiting.popleft()]
        count = len(parcels[0].records)
        while self._waiting and self._waiting[0].persistent == parcels[0].persistent:
            count += len(self._waiting[0].records)
            if count > most:
                break
            parcels.append(self._waiting.popleft())
        return parcels

    def _send(
        self, link: Link, sender: JavaSender, parcels: Sequence[Parcel]
    ) -> tuple[Sequence[Settlement], bool]:
        """One settlement for each record; False when the connection is gone."""
        records = [record for parcel in parcels for record in parcel.records]
        self.counts["calls"] += 1
        self.counts["sent"] += len(records)
        try:
            data = jvm.byte_array(b"".join(records))
            faults = sender.send(data, len(records), parcels[0].persistent)
            lost = link.watch.failure() is not None
        except JavaError as error:
            log.warning("%s: %s", self._settings.name, describe(error))
            return (), False
        if faults is None:
            return [ACCEPTED] * len(records), not lost
        return [self._read(fault) for fault in faults], not lost

    def _read(self, fault: object) -> Settlement:
        if fault is None:
            return ACCEPTED
        rule, _, reason = str(fault).partition("\n")
        return RETRY if rule == "retry" else rejected(rule, f"{self._settings.name}: {reason}")

    def _end(self, link: Link | None) -> None:
        """Let go of the connection; what has no answer is reported to be tried again."""
        with self._state:
            if link is None or self._link is not link:
                return
            self._link = None
            left, self._waiting = list(self._waiting), deque()
            sending, thread = self._sending, self._thread
            self._release(left)
        link.close(self._settings.close_timeout)
        if thread is not None and thread is not current_thread():
            thread.join(self._settings.close_timeout)
            self._finish(sending, ())
        for parcel in left:
            parcel.settled(parcel.settlements)
