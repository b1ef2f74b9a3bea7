"""What a target that is away still has to get, on disk, in order and within bounds."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from gateway.clock import now
from gateway.errors import SpoolError
from gateway.model.message import Message
from gateway.model.outcome import SPOOLED, Settlement, rejected
from gateway.routing.route import WhenFull
from gateway.runtime.outbound.backlog import Item, Parcel
from gateway.runtime.outbound.spool_codec import End, pack_parcel, part_of, unpack_parcel
from gateway.runtime.outbound.spool_db import Change, Store
from gateway.runtime.record.ledger import Ledger, Spooled

log = logging.getLogger(__name__)

CHUNK: Final = 4 << 20  # bytes read from disk at once
JOINED: Final = 1_000  # messages of small parcels that are handed out as one
OVERHEAD: Final = 300  # bytes a message costs beside its payload while it is in memory
PATIENCE: Final = 10.0  # seconds for the disk while a parcel that waits for it is asked for

_INSERT: Final = (
    "INSERT INTO parcels (number, endpoint, messages, size, time, body) VALUES (?, ?, ?, ?, ?, ?)"
)
_HANDED: Final = (
    "INSERT INTO handed (endpoint, number) VALUES (?, ?)"
    " ON CONFLICT (endpoint) DO UPDATE SET number = excluded.number"
)
_REMOVE: Final = "DELETE FROM parcels WHERE number = ?"
_HELD: Final = (
    "SELECT COALESCE(MAX(number), 0), COALESCE(SUM(messages), 0), COALESCE(SUM(size), 0)"
    " FROM parcels WHERE endpoint = ?"
)
_NEXT: Final = (
    "SELECT number, time, body FROM parcels WHERE endpoint = ? AND number > ? ORDER BY number"
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much one target's spool may hold: bytes on disk, messages, and seconds of age."""

    bytes: int
    messages: int | None = None
    seconds: float | None = None


@dataclass(slots=True)
class _Row:
    """A parcel that was read; `size` is its bytes on disk."""

    number: int
    size: int
    messages: list[Message]
    ends: list[End]


class Spool:
    """The backlog of one target on disk; mutable, it knows what it holds and what it handed out.

    A parcel is its responsibility from the moment its row is durable, and until the target has
    answered and that is recorded. `on_disk` is true: what it takes need not stay at its source.
    """

    on_disk = True

    def __init__(self, endpoint: str, store: Store, ledger: Ledger, bounds: Bounds) -> None:
        self.bounds = bounds
        self._endpoint = endpoint
        self._store = store
        self._ledger = ledger
        self._room = threading.Condition()
        self._stopping = False
        self._taking = threading.Lock()  # guards what is read and handed out
        self._again: deque[Item] = deque()  # handed out, and given back
        self._cursor = 0  # the last row that was handed out
        # `_last` is the last row that was put
        self._ready: deque[tuple[int, int, bytes]] = deque()
        found = store.rows(_HELD, [endpoint])[0]
        self._last, self.messages, self.bytes = (int(str(each)) for each in found)
        self._inherited = self._last  # up to here an earlier run has put them
        handed = store.rows("SELECT number FROM handed WHERE endpoint = ?", [endpoint])
        self._handed = int(str(handed[0][0])) if handed else 0  # on disk; perhaps sent before
        self._tried = self._handed

    def number(self) -> int:
        return self._store.number()

    def admit(self, parcel: Parcel) -> bool:
        """Wait until there is room, or set aside what the parcel says.

        A parcel that is itself set aside is done when this returns false.
        """
        self._store.wait_for_room()
        if self._fits(parcel):
            return True
        match parcel.when_full:
            case WhenFull.SLOW:
                with self._room:
                    self._room.wait_for(lambda: self._stopping or self._fits(parcel))
                return not self._stopping
            case WhenFull.NEWEST:
                reason = f"the spool of {self._endpoint} is full"
                _end_all(Item(parcel, 0), rejected("spool-full", reason))
                return False
            case WhenFull.OLDEST:
                reason = f"the spool of {self._endpoint} is full, and this was its oldest"
                while not self._fits(parcel) and (oldest := self._oldest_item()) is not None:
                    _end_all(oldest, rejected("spool-full", reason))
                return True

    def put(self, item: Item) -> None:
        """Take the item behind all others; its parcel is done, as spooled, when it is durable."""
        self._write(item, self._body(item))

    def put_back(self, items: Iterable[Item]) -> None:
        """Keep what comes from disk for the next `take`, and put on disk what does not.

        The latter gets the place it had, before what came meanwhile; hence it waits for the disk.
        """
        given = list(items)
        with self._taking:
            self._again.extendleft(reversed([item for item in given if item.stored]))
        unstored = [item for item in given if not item.stored]
        for item in unstored:
            self._write(item, self._body(item))
        while unstored and not self._stopping and not self._store.flush(PATIENCE):
            log.warning("the spool of %s waits for the disk", self._endpoint)

    def take(self) -> Item | None:
        """The next parcels, small ones joined; None when nothing is durable that was not taken."""
        with self._taking:
            return self._take()

    def _take(self) -> Item | None:
        if self._again:
            return self._again.popleft()
        if not self._ready:
            self._read()
        taken: list[_Row] = []
        count = 0
        while self._ready and count < JOINED:
            if taken and self._past(self._ready[0][0]) != self._past(taken[0].number):
                break  # what may have been sent before, or is inherited, is told apart
            row = self._next_row()
            taken.append(row)
            count += len(row.messages)
        return self._item(taken) if taken else None

    def empty(self) -> bool:
        return not self._again and not self._ready and self._cursor >= self._last

    def stop(self) -> None:
        with self._room:
            self._stopping = True
            self._room.notify_all()

    def tend(self) -> None:
        if self.bounds.seconds is None:
            return
        oldest = now() - int(self.bounds.seconds * 1_000_000)
        while (item := self._older_than(oldest)) is not None:
            reason = f"it waited longer than {self.bounds.seconds:g} s for {self._endpoint}"
            _end_all(item, rejected("spool-age", reason))

    def _older_than(self, time: int) -> Item | None:
        """The first parcel on disk, if it was put before `time`."""
        with self._taking:
            if self._again or not (self._ready or self._read()) or self._ready[0][1] >= time:
                return None
            return self._item([self._next_row()])

    def oldest(self) -> int | None:
        """When the oldest parcel was put, in microseconds; None when there is none."""
        query = "SELECT time FROM parcels WHERE endpoint = ? ORDER BY number LIMIT 1"
        found = self._store.rows(query, [self._endpoint])
        return int(str(found[0][0])) if found else None

    def _fits(self, parcel: Parcel) -> bool:
        most = self.bounds.messages
        many = most is not None and self.messages + len(parcel.messages) > most
        return not self.messages or not (many or self.bytes + parcel.size > self.bounds.bytes)

    def _oldest_item(self) -> Item | None:
        item = self.take()
        if item is None and self.messages:  # what is on its way to the disk
            self._store.flush(PATIENCE)
            item = self.take()
        return item

    def _body(self, item: Item) -> bytes:
        ends = part_of(item.parcel.ends(), item.open_, item.attempts)
        return pack_parcel(item.messages(item.open_), ends)

    def _write(self, item: Item, body: bytes) -> None:
        number, messages = item.number, len(item.open_)
        item.settle(item.open_, [SPOOLED] * messages)
        with self._room:
            self.messages += messages
            self.bytes += len(body)
        self._last = max(self._last, number)
        row = (number, self._endpoint, messages, len(body), now(), body)
        with suppress(SpoolError):  # it is closed: the source keeps the batch
            self._store.put([(_INSERT, row)], item.finish, len(body))

    def _read(self) -> bool:
        """Read the next rows, and note on disk that they are about to be handed out."""
        found = self._store.some_rows(_NEXT, [self._endpoint, self._cursor], CHUNK)
        if not found:
            return False
        rows = [(int(str(number)), int(str(time)), body) for number, time, body in found]
        self._ready.extend((number, time, _bytes(body)) for number, time, body in rows)
        self._cursor = rows[-1][0]
        if self._cursor > self._handed:
            self._handed = self._cursor
            written = threading.Event()
            self._store.put([(_HANDED, (self._endpoint, self._handed))], written.set)
            written.wait(PATIENCE)
        return True

    def _past(self, number: int) -> tuple[bool, bool]:
        """Whether an earlier run put this row, and whether one may have sent it."""
        return number <= self._inherited, number <= self._tried

    def _next_row(self) -> _Row:
        number, _, body = self._ready.popleft()
        messages, ends = unpack_parcel(body)
        return _Row(number, len(body), messages, ends)

    def _item(self, rows: Sequence[_Row]) -> Item:
        messages = [message for row in rows for message in row.messages]
        ends: list[End] = []
        before = 0
        for row in rows:
            for end in row.ends:
                moved = tuple(position + before for position in end.positions)
                ends.append(End(moved, end.rows, end.source))
            before += len(row.messages)
        numbers = [row.number for row in rows]
        held = sum(row.size for row in rows)
        size = sum(len(message.payload) + OVERHEAD for message in messages)
        inherited, tried = self._past(numbers[0])

        def done(settlements: Sequence[Settlement], attempts: int) -> None:
            self._forget(len(messages), held)
            spooled = Spooled(messages, ends, inherited)
            self._ledger.end_spooled(spooled, settlements, attempts, removed)

        def removed() -> None:
            changes: list[Change] = [(_REMOVE, (number,)) for number in numbers]
            with suppress(SpoolError):  # it is closed: they are sent again, marked
                self._store.put(changes, _nothing)

        parcel = Parcel(messages, size, done, lambda: ends)
        # what an earlier run may have sent is at its second attempt at least
        return Item(parcel, numbers[0], stored=True, attempts=int(tried))

    def _forget(self, messages: int, size: int) -> None:
        with self._room:
            self.messages -= messages
            self.bytes -= size
            self._room.notify_all()


def _end_all(item: Item, settlement: Settlement) -> None:
    item.settle(item.open_, [settlement] * len(item.open_))
    item.finish()


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("a parcel's body is no blob; the spool's file is damaged")
    return value


def _nothing() -> None:
    """Called when a removal is durable."""
