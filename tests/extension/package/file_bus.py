"""A naming system and a kind of endpoint for the gateway: a bus in an SQLite file."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from time import monotonic
from typing import ClassVar

from gateway.dialects.base import Dialect, check_name, matches_text
from gateway.dialects.dialect import NUL_FORBIDDEN, wildcards_forbidden
from gateway.endpoints.base import Batch, Settle, Subscription
from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.kind import EndpointKind
from gateway.endpoints.received_queue import MAX_BATCH, message_queue
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.source_memory import SourceMemory
from gateway.endpoints.source_shell import Opening, SourceShell, not_open
from gateway.errors import IllegalNameError, NotConnectedError
from gateway.model.dead_letter_rule import PAYLOAD
from gateway.model.limits import Limit, Unit
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, Settlement, rejected
from gateway.setting import setting

DIALECT = Dialect(
    name="filebus",
    level_noun="step",
    separator=":",
    any_one="?",
    any_many="??",
    any_many_minimum=0,
    reference="Rules of the file bus",
    empty_levels=False,
    empty_levels_in_patterns=False,
    forbidden={**wildcards_forbidden("?"), **NUL_FORBIDDEN},
    limits=(Limit(Unit.BYTES, 512, "Rules of the file bus"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(EndpointSettings):
    """Bus in an SQLite file, for the processes of one machine."""

    name: str = setting("name of the endpoint in the configuration", "filebus")
    path: str = setting("file of the bus", "bus.db", path="state")
    dialect: ClassVar[str] = "filebus"
    addresses: ClassVar[tuple[str, ...]] = ()
    carries: ClassVar[frozenset[str]] = frozenset()  # a name and a payload, and no header
    mode: ClassVar[DeliveryMode] = DeliveryMode.AT_LEAST_ONCE

    @property
    def broker_key(self) -> str:
        return self.path


KIND = EndpointKind("filebus", Settings, module="file_bus")


TABLES = """
CREATE TABLE IF NOT EXISTS queues (queue, pattern);
CREATE TABLE IF NOT EXISTS messages
    (id INTEGER PRIMARY KEY AUTOINCREMENT, queue, name, payload, given);
"""


@contextmanager
def transaction(settings: Settings) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(settings.path)) as file, file:
            yield file
    except sqlite3.Error as error:
        raise NotConnectedError(f"{settings.name}: {error}") from error


class Intake:
    """Reads one queue; a message stays in it until it is settled. Mutable: until it is closed."""

    address = ""  # the bus has none
    ended = True  # it keeps what is not taken in

    def __init__(self, settings: Settings, patterns: Sequence[str], queue: str) -> None:
        self._settings, self._patterns, self._queue = settings, patterns, queue
        self._last = 0  # id of the message that was read last
        self._received = message_queue(1 << 24, self._confirm)

    def open(self) -> None:
        with transaction(self._settings) as file:
            file.executescript(TABLES)
            file.execute("DELETE FROM queues WHERE queue = ?", [self._queue])
            rows = [(self._queue, pattern) for pattern in self._patterns]
            file.executemany("INSERT INTO queues VALUES (?, ?)", rows)

    def receive(self, timeout: float) -> Batch | None:
        until = monotonic() + timeout
        while True:
            if not self._received.full and self._received.failure is None:
                self._read()
            batch = self._received.take(MAX_BATCH, min(timeout, 0.02))
            if batch or monotonic() >= until:
                return batch

    def end(self) -> None:
        pass  # what is not taken in stays

    def close(self) -> None:
        self._received.fail(not_open(self._settings.name))

    def _read(self) -> None:
        with transaction(self._settings) as file:
            rows = file.execute(
                "SELECT name, payload, given, id FROM messages WHERE queue = ? AND id > ?"
                " ORDER BY id LIMIT 1000",
                [self._queue, self._last],
            ).fetchall()
            last = rows[-1][-1] if rows else self._last
            file.execute(
                "UPDATE messages SET given = 1 WHERE queue = ? AND id > ? AND id <= ?",
                [self._queue, self._last, last],
            )
        self._last = last
        given = [Headers(mode=Settings.mode, redelivered=again) for again in (False, True)]
        self._received.put(
            [Message(name, payload, given[again]) for name, payload, again, _ in rows]
        )

    def _confirm(self, count: int) -> None:
        """Remove the oldest messages; one that stays is delivered again."""
        with suppress(NotConnectedError), transaction(self._settings) as file:
            file.execute(
                "DELETE FROM messages WHERE id IN (SELECT id FROM messages"
                " WHERE queue = ? ORDER BY id LIMIT ?)",
                [self._queue, count],
            )


class Sink:
    """Puts each message into the queues with a pattern for it. Mutable: open or closed."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._is_open = settings, False

    def open(self) -> None:
        with transaction(self._settings) as file:
            file.executescript(TABLES)
        self._is_open = True

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        if not self._is_open:
            raise NotConnectedError(f"{self._settings.name}: is closed; open it first")
        answers = [_answer(message) for message in messages]
        sent = [each for each, answer in zip(messages, answers, strict=True) if answer is ACCEPTED]
        with transaction(self._settings) as file:
            queues = file.execute("SELECT queue, pattern FROM queues").fetchall()
            for each in sent:
                found = {
                    queue for queue, text in queues if matches_text(text, each.address, DIALECT)
                }
                rows = [(queue, each.address, each.payload, 0) for queue in found]
                file.executemany("INSERT INTO messages VALUES (NULL, ?, ?, ?, ?)", rows)
        settled(answers)

    def close(self) -> None:
        self._is_open = False


def _answer(message: Message) -> Settlement:
    try:
        check_name(message.address, DIALECT)
    except IllegalNameError as error:
        return rejected(error.rule, str(error))
    is_legal = isinstance(message.payload, bytes)
    return ACCEPTED if is_legal else rejected(PAYLOAD, "the bus carries bytes alone")


def open_source(
    settings: Settings, subscriptions: Sequence[Subscription], *, instance: str = ""
) -> SourceShell:
    """Return a closed source; its queue is named after the endpoint and the route."""
    patterns, queue = [each.pattern for each in subscriptions], f"{settings.name}/{instance}"
    return SourceShell(
        settings.name,
        Opening(lambda: Intake(settings, patterns, queue)).connect,
        SourceMemory(),  # the bus marks what it has given before
        Continuity(Retention.KEPT),
        settings.removes,
    )


def open_sink(settings: Settings, *, instance: str = "") -> Sink:
    """Return a closed sink."""
    del instance
    return Sink(settings)
