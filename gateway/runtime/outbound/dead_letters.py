"""Dead letters on disk: the whole message with its rule, reason, time and attempts."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from gateway.errors import SpoolError
from gateway.model.dead_letter_rule import SPOOL_DAMAGED
from gateway.model.message import Headers, Message
from gateway.runtime.delivery.dead_letter import DeadLetter
from gateway.runtime.delivery.rows import header_map, payload_bytes
from gateway.runtime.outbound.spool_codec import check, checksum, pack_message, unpack_message
from gateway.runtime.outbound.spool_db import Change, Durable, SpoolDatabase

log = logging.getLogger(__name__)

COLUMNS: Final = (  # up to `fields` the fields of a dead letter
    "number",
    "time",
    "id",
    "route",
    "source",
    "source_name",
    "target",
    "endpoint",
    "rule",
    "reason",
    "attempts",
    "fields",
    "size",
    "body",
    "checksum",
)
_INSERT: Final = (
    f"INSERT INTO letters ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608  # constants
)
_COUNT: Final = (
    "SELECT COUNT(*), COALESCE(SUM(CAST(size AS INTEGER)), 0),"
    " (SELECT COALESCE(SUM(letters), 0) FROM sent_again) FROM letters"
)
_TRIM: Final = (
    "DELETE FROM letters WHERE number IN (SELECT number FROM"
    " (SELECT number, SUM(size) OVER (ORDER BY number DESC) AS newer FROM letters)"
    " WHERE newer > ?)"
)
_UNREADABLE: Final = b"\xc1"  # msgpack never writes this byte
TRIMMED_SHARE: Final = 0.9  # of the maximum bytes; left after the oldest were deleted
DELETE: Final = "DELETE FROM letters WHERE number = ?"
_ADD_SENT: Final = (
    "INSERT INTO sent_again VALUES (1, ?)"
    " ON CONFLICT (one) DO UPDATE SET letters = letters + excluded.letters"
)


def to_row(letter: DeadLetter, number: int) -> tuple[Any, ...]:
    """The values of COLUMNS.

    A message with a value that has no form on disk is kept as bytes, with its headers as texts. A
    damaged row of the spool is kept as it was read, behind a byte with which no message begins, so
    that no command sends it.
    """
    columns = (
        number,
        letter.time,
        letter.id,
        letter.route,
        letter.source,
        _utf8(letter.source_name),
        letter.target,
        letter.endpoint,
        letter.rule,
        _utf8(letter.reason),
        letter.attempts,
        letter.fields,
    )
    if letter.rule == SPOOL_DAMAGED:
        body = _UNREADABLE + payload_bytes(letter.message.payload)
    else:
        body = _packed(letter.message)
    return (*columns, len(body), body, checksum(body, columns))


def _packed(message: Message) -> bytes:
    try:
        return pack_message(message)
    except SpoolError:
        headers = Headers(mode=message.headers.mode, properties=header_map(message))
        return pack_message(
            replace(message, payload=payload_bytes(message.payload), headers=headers)
        )


def _utf8(text: str) -> str:
    """`text` with half characters escaped, because SQLite refuses them."""
    return text.encode("utf-8", "backslashreplace").decode()


def from_row(row: Sequence[Any]) -> DeadLetter:
    """The dead letter of a row of COLUMNS.

    Raises:
        SpoolError: the message is damaged.
    """
    *facts, _, body, stored = row
    check(body, facts, stored)
    return DeadLetter(**dict(zip(COLUMNS, facts, strict=False)), message=unpack_message(body))


def remove_sent(database: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Delete the letters that a command has sent again, and count them.

    Raises:
        sqlite3.Error: the file cannot be written; it is as before.
    """
    with database:
        database.execute("BEGIN IMMEDIATE")
        database.executemany(DELETE, [(number,) for number in numbers])
        database.execute(_ADD_SENT, (len(numbers),))


class DeadLetters:
    """The dead letters of a running gateway, at most `maximum` bytes.

    Past the maximum the oldest are deleted and counted: the newest show the current fault.
    `sent_again` counts those that commands have sent again since the start.
    Thread-safe: guarded by self._lock.
    """

    def __init__(self, database: SpoolDatabase, maximum: int) -> None:
        self._database = database
        self._maximum = maximum
        self._lock = threading.Lock()
        self.count = self.bytes = self.dropped = self.sent_again = 0
        self._sent_before = 0  # in earlier runs
        self._queued = self._queued_bytes = 0  # letters that are not durable
        self._recount()
        self._sent_before, self.sent_again = self.sent_again, 0
        self.publish: Callable[[Sequence[DeadLetter]], None] = lambda _: None

    def put(self, letters: Sequence[DeadLetter], durable: Durable) -> None:
        """Store the letters, then publish copies if configured, then call `durable`."""
        rows = [to_row(letter, self._database.next_number()) for letter in letters]
        size = sum(row[COLUMNS.index("size")] for row in rows)
        changes: list[Change] = [(_INSERT, row) for row in rows]
        with self._lock:
            self._queued += len(rows)
            self._queued_bytes += size
            self.count += len(rows)
            self.bytes += size
            full = self.bytes > self._maximum
        if full:
            changes.append((_TRIM, (int(self._maximum * TRIMMED_SHARE),)))

        def stored() -> None:
            with self._lock:
                self._queued -= len(rows)
                self._queued_bytes -= size
            if full:
                self._count_dropped()
            self.publish(letters)
            durable()

        # It never waits: the thread that makes room calls it. The sources wait, because their
        # batches are settled when the letters are durable.
        self._database.put(changes, stored, size)

    def refresh(self) -> None:
        """Read count and size again: commands in other processes delete letters.

        Raises:
            SpoolError: the file cannot be read.
        """
        if self.count:
            self._recount()

    def _recount(self) -> None:
        count, size, sent = self._database.rows(_COUNT)[0]
        with self._lock:
            self.count, self.bytes = count + self._queued, size + self._queued_bytes
            self.sent_again = sent - self._sent_before

    def _count_dropped(self) -> None:
        before = self.count
        self._recount()
        if not self.dropped:
            log.warning("dead letters are full: the oldest are deleted, and only counted from now")
        self.dropped += before - self.count
