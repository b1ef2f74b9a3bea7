"""A NATS sink: the stream's answers settle messages; core NATS settles them once flushed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from threading import Condition
from time import monotonic
from typing import Any, Final

from nats.errors import Error as NatsError
from nats.js.errors import NotFoundError

from gateway.endpoints.base import Settle, unwritable
from gateway.endpoints.nats.connection import NatsConnection
from gateway.endpoints.nats.headers import MESSAGE_ID, write_headers
from gateway.endpoints.nats.subjects import refuse_long_line, refuse_reply, refuse_subject
from gateway.endpoints.settings.nats import NatsSettings
from gateway.errors import NotConnectedError, TranslationError
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import text_size
from gateway.model.message import Message, identity_of
from gateway.model.outcome import ACCEPTED, NO_ROOM, REPEATED, RETRY, Settlement, rejected

_FULL: Final = (
    "maximum messages",
    "maximum bytes",
    "insufficient resources",
    "insufficient storage",
)
_CHECK: Final = 0.5  # seconds between looks at late answers and a full window
_SERVER_FAULT: Final = 500
_MAX_CACHED: Final = 16 << 20  # bytes of subjects


@dataclass(slots=True)
class _SentBatch:
    """A call of `send`. Mutable: guarded by the sink's lock."""

    settled: Settle
    settlements: list[Settlement]
    left: int


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A published message that the stream has not answered."""

    batch: _SentBatch
    position: int
    subject: str
    since: float


class NatsSink:
    """Publishes.

    `repeats` counts messages that the stream knew by their id. Thread-safe: guarded by
    self._changed.
    """

    def __init__(self, settings: NatsSettings) -> None:
        self._settings = settings
        self._faults: LimitedCache[str, Settlement] = LimitedCache(_MAX_CACHED)
        self._changed = Condition()
        self._connection: NatsConnection | None = None
        self._failure: NotConnectedError | None = None
        self._waiting: dict[int, _Waiting] = {}  # by the number in the reply subject
        self._next = 0
        self._inbox = ""
        self._order = asyncio.Lock()
        self.repeats = 0

    @property
    def counts(self) -> dict[str, int]:
        return {"repeats": self.repeats}

    @property
    def address(self) -> str:
        """HOST:PORT of the server; empty without a connection."""
        return "" if self._connection is None else self._connection.address

    def open(self) -> None:
        self.close()
        self._failure = None
        self._order = asyncio.Lock()
        connection = NatsConnection(self._settings, self._fail, self._deny)
        try:
            connection.call(self._start(connection))
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    async def _start(self, connection: NatsConnection) -> None:
        if not self._settings.jetstream:
            return
        await connection.make_stream()
        self._inbox = connection.client.new_inbox()
        await connection.client.subscribe(f"{self._inbox}.*", cb=self._take_answer)
        await connection.client.flush(self._settings.answer_timeout)
        connection.run(self._look(connection))

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        connection = self._connection
        if connection is None or connection.is_over:
            raise NotConnectedError(f"{self._settings.name}: not connected")
        batch = _SentBatch(settled, [ACCEPTED] * len(messages), 0)
        limit = connection.client.max_payload
        ready: list[tuple[int, str, bytes, dict[str, str], str]] = []
        for position, message in enumerate(messages):
            try:
                ready.append((position, *self._write(message, limit)))
            except TranslationError as error:
                batch.settlements[position] = rejected(error.rule, str(error))
            except Exception as error:  # noqa: BLE001  # of this message; the others are sent
                batch.settlements[position] = unwritable(self._settings.name, error)
        if not ready:
            settled(batch.settlements)
            return
        batch.left = len(ready)
        numbers = self._reserve(connection, batch, ready)
        connection.run(self._publish(connection, ready, numbers))

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            self._fail(NotConnectedError(f"{self._settings.name}: is closed"))

    def _reserve(
        self,
        connection: NatsConnection,
        batch: _SentBatch,
        ready: Sequence[tuple[int, str, bytes, dict[str, str], str]],
    ) -> range:
        """Wait for room in the window, and note what is about to be published."""
        with self._changed:
            while self._waiting and len(self._waiting) + len(ready) > self._settings.send_window:
                if connection.is_over:
                    raise NotConnectedError(f"{self._settings.name}: the connection was lost")
                self._changed.wait(_CHECK)
            if connection.is_over:
                raise NotConnectedError(f"{self._settings.name}: the connection was lost")
            first, now = self._next, monotonic()
            self._next += len(ready)
            for number, (position, subject, *_) in enumerate(ready, first):
                self._waiting[number] = _Waiting(batch, position, subject, now)
        return range(first, self._next)

    def _write(self, message: Message, limit: int) -> tuple[str, bytes, dict[str, str], str]:
        """Return subject, payload, headers and reply subject of a message.

        Raises:
            TranslationError: NATS or this server cannot carry it.
        """
        subject, payload = message.address, message.payload
        if self._faults.get(subject) is None:
            refuse_subject(subject)
            self._faults.add(subject, ACCEPTED, 2 * text_size(subject))
        if isinstance(payload, str):
            payload = payload.encode()
        if not isinstance(payload, bytes):
            raise TranslationError("nats", subject, "payload-kind", "NATS carries bytes or text")
        headers = write_headers(message.headers)
        reply = ""
        if self._settings.jetstream:
            if (identity := identity_of(message.headers)) is not None:
                headers[MESSAGE_ID] = _message_id(identity, message, payload)
            if self._settings.stream:
                headers["Nats-Expected-Stream"] = self._settings.stream
        elif message.headers.reply_to is not None:
            reply = message.headers.reply_to
            refuse_reply(reply)
            refuse_long_line(subject, reply)
        size = len(payload) + sum(len(key) + len(value) + 4 for key, value in headers.items()) + 12
        if size > limit:
            reason = f"payload and headers are {size} bytes, limit {limit}"
            raise TranslationError("nats", subject, "message-bytes", reason)
        return subject, payload, headers, reply

    async def _publish(
        self,
        connection: NatsConnection,
        ready: Sequence[tuple[int, str, bytes, dict[str, str], str]],
        numbers: range,
    ) -> None:
        client = connection.client
        try:
            async with self._order:
                for number, (_, subject, payload, headers, reply) in zip(
                    numbers, ready, strict=True
                ):
                    to = f"{self._inbox}.{number}" if self._settings.jetstream else reply
                    await client.publish(subject, payload, reply=to, headers=headers or None)
                if not self._settings.jetstream:
                    await client.flush(self._settings.answer_timeout)
        except (NatsError, OSError) as error:
            connection.end(str(error) or type(error).__name__)
            return
        if not self._settings.jetstream:
            self._settle([(number, ACCEPTED) for number in numbers])

    async def _take_answer(self, message: Any) -> None:  # noqa: ANN401  # the driver's message
        number = int(message.subject.rpartition(".")[2])
        if (message.headers or {}).get("Status") == "503":
            await self._explain(number)
            return
        answer = json.loads(message.data)
        if answer.get("duplicate"):
            self.repeats += 1
            self._settle([(number, REPEATED)])
            return
        self._settle([(number, _settlement(self._settings.name, answer.get("error")))])

    async def _explain(self, number: int) -> None:
        """Settle a message that nobody took: no stream has its subject, or it has no leader now."""
        connection, waiting = self._connection, self._waiting.get(number)
        if connection is None or waiting is None:
            return
        settlement = RETRY
        try:
            await connection.jetstream.find_stream_name_by_subject(waiting.subject)
        except NotFoundError:
            reason = f"no stream has the subject {waiting.subject!r}"
            settlement = rejected("no-stream", f"{self._settings.name}: {reason}")
        except (TimeoutError, NatsError, OSError):
            pass  # JetStream itself does not answer: the message is sent again
        self._settle([(number, settlement)])

    def _deny(self, subject: str) -> None:
        """Refuse what was published to `subject`, in small letters; the server answers nothing."""
        with self._changed:
            found = [
                (number, each.subject)
                for number, each in self._waiting.items()
                if each.subject.lower() == subject
            ]
        if len({each for _, each in found}) == 1:  # of others, the connection's end tells nothing
            reason = f"no permission to publish to {found[0][1]!r}"
            refused = rejected("not-authorised", f"{self._settings.name}: {reason}")
            self._settle([(number, refused) for number, _ in found])

    def _settle(self, answers: Sequence[tuple[int, Settlement]]) -> None:
        complete: list[_SentBatch] = []
        with self._changed:
            for number, settlement in answers:
                waiting = self._waiting.pop(number, None)
                if waiting is None:
                    continue
                batch = waiting.batch
                batch.settlements[waiting.position] = settlement
                batch.left -= 1
                if not batch.left:
                    complete.append(batch)
            self._changed.notify_all()
        for batch in complete:
            batch.settled(batch.settlements)

    def _fail(self, failure: NotConnectedError) -> None:
        """Settle every message without an answer as `RETRY`."""
        self._failure = failure
        self._settle([(number, RETRY) for number in tuple(self._waiting)])

    async def _look(self, connection: NatsConnection) -> None:
        """End the connection when the oldest message has had no answer for too long."""
        while not connection.is_over:
            await asyncio.sleep(_CHECK)
            oldest = next(iter(tuple(self._waiting.values())), None)
            if oldest and monotonic() - oldest.since > self._settings.answer_timeout:
                connection.end(f"no answer for {self._settings.answer_timeout} s")


def _message_id(identity: str, message: Message, payload: bytes) -> str:
    """Return an id that is equal for copies of one message alone.

    A stream looks for it over all its subjects, and not every source has unique ids.
    """
    parts = (identity.encode("utf-8", "surrogatepass"), message.address.encode(), payload)
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def _settlement(name: str, error: dict[str, Any] | None) -> Settlement:
    if error is None:
        return ACCEPTED
    reason = str(error.get("description", ""))
    if any(text in reason for text in _FULL):
        return NO_ROOM
    if error.get("code", 0) >= _SERVER_FAULT:
        return RETRY
    return rejected("stream", f"{name}: {reason}")
