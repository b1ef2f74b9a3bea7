"""Dead letters on disk: the whole message with its rule, time and attempts, until someone acts."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gateway.model.message import Message, Value
from gateway.runtime.outbound.spool_codec import pack_message, unpack_message
from gateway.runtime.outbound.spool_db import Change, Durable, Store

log = logging.getLogger(__name__)

COLUMNS: Final = (
    "number", "time", "id", "route", "source", "source_name", "target", "endpoint", "rule",
    "reason", "attempts", "size", "body",
)  # fmt: skip
_INSERT: Final = (
    f"INSERT INTO letters ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608  # constants
)
_SUM: Final = "SELECT COUNT(*), COALESCE(SUM(size), 0) FROM letters"
_TRIM: Final = (
    "DELETE FROM letters WHERE number IN (SELECT number FROM"
    " (SELECT number, SUM(size) OVER (ORDER BY number DESC) AS newer FROM letters)"
    " WHERE newer > ?)"
)
LEFT: Final = 0.9  # of the bytes allowed, when the oldest had to go
REMOVE: Final = "DELETE FROM letters WHERE number = ?"


@dataclass(frozen=True, slots=True)
class Letter:
    """A message set aside.

    With an `endpoint` it is as that target rejected it, and can be sent there as it is; without
    one it is as its source had it, for the mapping could not say its name.
    """

    number: int  # 0 until it is stored
    time: int  # microseconds since 1970-01-01 UTC
    id: bytes
    route: str
    source: str  # the endpoint it came from
    source_name: str
    target: str  # the label of the target; empty when no route took the message
    endpoint: str
    rule: str
    reason: str
    attempts: int
    message: Message

    def as_message(self, name: str) -> Message:
        """A copy to publish to `name`: the payload as it is, what happened in properties."""
        told: dict[str, Value] = {
            "dead_rule": self.rule,
            "dead_reason": self.reason,
            "dead_route": self.route,
            "dead_target": self.target,
            "dead_source": self.source,
            "dead_name": self.source_name,
            "dead_time": self.time,
            "dead_attempts": self.attempts,
        }
        properties = {**self.message.headers.properties, **told}
        headers = replace(self.message.headers, properties=properties, reply_to=None)
        return Message(name, self.message.payload, headers)


def to_row(letter: Letter, number: int) -> tuple[Any, ...]:
    """The columns of COLUMNS."""
    body = pack_message(letter.message)
    return (
        number, letter.time, letter.id, letter.route, letter.source, letter.source_name,
        letter.target, letter.endpoint, letter.rule, letter.reason, letter.attempts,
        len(body), body,
    )  # fmt: skip


def to_letter(row: Sequence[Any]) -> Letter:
    """The reverse of `to_row`.

    Raises:
        SpoolError: the message is damaged.
    """
    (number, time, identity, route, source, source_name, target, endpoint, rule, reason,
     attempts, _, body) = row  # fmt: skip
    return Letter(
        number, time, identity, route, source, source_name, target, endpoint, rule, reason,
        attempts, unpack_message(body),
    )  # fmt: skip


class DeadLetters:
    """Where a running gateway puts them; mutable, it knows how much it holds.

    Past `maximum` bytes the oldest go, counted and said aloud: the newest show what is wrong now.
    """

    def __init__(self, store: Store, maximum: int) -> None:
        self._store = store
        self._maximum = maximum
        self._lock = threading.Lock()
        self.count = self.bytes = self.dropped = 0
        self.refresh()
        self.published: Callable[[Sequence[Letter]], None] = lambda _: None

    def put(self, letters: Sequence[Letter], durable: Durable) -> None:
        """Store the letters; then publish them where that is wanted, and call `durable`."""
        rows = [to_row(letter, self._store.number()) for letter in letters]
        size = sum(len(row[-1]) for row in rows)
        changes: list[Change] = [(_INSERT, row) for row in rows]
        with self._lock:
            self.count += len(rows)
            self.bytes += size
            full = self.bytes > self._maximum
        if full:
            changes.append((_TRIM, (int(self._maximum * LEFT),)))

        def stored() -> None:
            if full:
                self._count_dropped()
            self.published(letters)
            durable()

        self._store.wait_for_room()
        self._store.put(changes, stored, size)

    def refresh(self) -> None:
        """Count anew: commands of other processes take letters away.

        Raises:
            SpoolError: the file cannot be read.
        """
        count, size = (int(str(each)) for each in self._store.rows(_SUM)[0])
        with self._lock:
            self.count, self.bytes = count, size

    def _count_dropped(self) -> None:
        before = self.count
        self.refresh()
        if not self.dropped:
            log.warning("dead letters are full; the oldest go, and from now on are only counted")
        self.dropped += before - self.count
