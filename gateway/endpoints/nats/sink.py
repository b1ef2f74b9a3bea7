"""A NATS sink: the stream's answers settle messages; core NATS settles them once flushed."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from secrets import token_bytes, token_hex
from typing import Any, Final, TypeAlias

from nats.errors import Error as NatsError
from nats.js.errors import NotFoundError

from gateway.endpoints.base import NamesAnswer, Settle
from gateway.endpoints.nats.connection import NatsConnection
from gateway.endpoints.nats.headers import MESSAGE_ID, HeaderWriter
from gateway.endpoints.nats.subjects import refuse_long_line, refuse_reply, refuse_subject
from gateway.endpoints.sent_messages import CHECK_INTERVAL, SendWindow, SentBatch, write_each
from gateway.endpoints.settings.nats import NatsSettings
from gateway.errors import GatewayError, NotConnectedError, TranslationError
from gateway.model.dead_letter_rule import (
    MESSAGE_BYTES,
    NO_STREAM,
    NOT_AUTHORISED,
    PAYLOAD_KIND,
    STREAM,
)
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import text_size
from gateway.model.message import Message, identity_of
from gateway.model.outcome import ACCEPTED, NO_ROOM, REPEATED, Outcome, Settlement, rejected
from gateway.untyped import Untyped

_SERVER_FAULT: Final = 500  # and above: the stream is full or away, or the server has a fault
_OF_THE_MOMENT: Final = {  # server/errors.json: refusals below 500 that pass with the moment
    10_002,  # resource limits exceeded for account
    10_158,  # duplicate message id is in process: an earlier copy has no majority yet
    10_167,  # too many requests: the stream's buffer is full
}
_TOO_LARGE: Final = re.compile("too? large")  # a fault of the message; old servers write "to"
TOKEN_BYTES: Final = 6
MAX_DIGITS: Final = 18  # of a number in a window
_MAX_CACHED: Final = 16 << 20  # bytes of subjects
_NO_STREAM: Final = "each message there becomes a dead letter `no-stream`"


@dataclass(slots=True)
class _Outgoing:
    """A message as it is sent. Mutable: the token of its answer.

    An answer counts with the token of the last sending. A refusal counts when a second sending gets
    one as well: everybody who may subscribe to a subject can answer a message there.
    """

    subject: str
    payload: bytes
    headers: dict[str, str]
    reply: str
    token: str = field(default_factory=lambda: token_hex(TOKEN_BYTES))
    is_doubted: bool = False  # it was refused, and sent again


_Written: TypeAlias = Sequence[tuple[int, _Outgoing]]  # with the positions in the batch


class NatsSink:
    """Publishes.

    Thread-safe: each connection has a window of its own.
    """

    def __init__(self, settings: NatsSettings, instance: str = "") -> None:
        del instance  # its connection has no name
        self._settings = settings
        self._faults: LimitedCache[str, Settlement] = LimitedCache(_MAX_CACHED)
        self._connection: NatsConnection | None = None
        self._window: SendWindow[_Outgoing] = SendWindow(settings.send_window)
        self.id_key = token_bytes(32)
        self._headers = HeaderWriter()
        self._inbox = ""
        self._order = asyncio.Lock()
        self.counts = {"repeats": 0}  # messages that the stream knew by their id

    @property
    def address(self) -> str:
        """HOST:PORT of the server; empty without a connection."""
        return "" if self._connection is None else self._connection.address

    def open(self) -> None:
        self.close()
        self._order = asyncio.Lock()
        window = self._window = SendWindow(self._settings.send_window)
        deny = partial(self._deny, window)
        connection = NatsConnection(self._settings, window.fail, deny)
        try:
            connection.call(self._start(connection, window))
            connection.refuse_denied()
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    async def _start(self, connection: NatsConnection, window: SendWindow[_Outgoing]) -> None:
        if not self._settings.jetstream:
            return
        await connection.make_stream()
        self._inbox = connection.client.new_inbox()
        take = partial(self._take_answer, connection, window, [])
        await connection.client.subscribe(f"{self._inbox}.*", cb=take)
        await connection.client.flush(self._settings.answer_timeout)
        connection.run(self._look(connection, window))

    def ask_about(self, patterns: Sequence[str]) -> Iterator[NamesAnswer]:
        """Ask JetStream which streams have the subjects; core NATS has none."""
        connection = self._connection
        if connection is None or not self._settings.jetstream:
            return
        for each in patterns:
            try:
                streams = connection.call(connection.find_streams(each))
            except GatewayError as error:
                yield NamesAnswer(f"it is not known which stream has {each!r}: {error}")
                continue
            if streams:
                yield NamesAnswer(f"{each!r} is in the stream {', '.join(streams)}")
            else:
                todo = "create one, or write `stream`, `subjects` and `create_stream: true`"
                yield NamesAnswer(f"no stream has {each!r}: {_NO_STREAM}; {todo}", missing=True)

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        connection, window = self._connection, self._window
        if connection is None:
            raise NotConnectedError(f"{self._settings.name}: not connected")
        connection.check()
        write = partial(self._write, limit=connection.client.max_payload)
        written, refused = write_each(self._settings.name, messages, write)
        window.send(
            SentBatch(len(messages), settled, refused),
            written,
            connection.check,
            lambda numbers: connection.run(self._publish(connection, window, numbers, written)),
        )

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            self._window.fail()

    def _write(self, message: Message, limit: int) -> _Outgoing:
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
            raise TranslationError("nats", subject, PAYLOAD_KIND, "NATS carries bytes or text")
        headers = self._headers.write(message.headers, message.proof)
        reply = ""
        if self._settings.jetstream:
            if (identity := identity_of(message.headers)) is not None:
                headers[MESSAGE_ID] = _message_id(self.id_key, identity, message, payload)
            if self._settings.stream:
                headers["Nats-Expected-Stream"] = self._settings.stream
        elif message.headers.reply_to is not None:
            reply = message.headers.reply_to
            refuse_reply(reply)
            refuse_long_line(subject, reply)
        size = len(payload) + sum(len(key) + len(value) + 4 for key, value in headers.items()) + 12
        if size > limit:
            reason = f"payload and headers are {size} bytes, limit {limit}"
            raise TranslationError("nats", subject, MESSAGE_BYTES, reason)
        return _Outgoing(subject, payload, headers, reply)

    async def _publish(
        self,
        connection: NatsConnection,
        window: SendWindow[_Outgoing],
        numbers: range,
        written: _Written,
    ) -> None:
        jetstream = self._settings.jetstream
        try:
            async with self._order:
                for number, (_, outgoing) in zip(numbers, written, strict=True):
                    await self._publish_one(connection, number, outgoing)
                if not jetstream:
                    await connection.client.flush(self._settings.answer_timeout)
        except (NatsError, OSError) as error:
            connection.end(str(error) or type(error).__name__)
            return
        if not jetstream:
            window.settle(numbers, ACCEPTED)

    async def _publish_one(
        self, connection: NatsConnection, number: int, outgoing: _Outgoing
    ) -> None:
        reply = outgoing.reply
        if self._settings.jetstream:
            reply = f"{self._inbox}.{number}-{outgoing.token}"
        headers = outgoing.headers or None
        await connection.client.publish(outgoing.subject, outgoing.payload, reply, headers)

    async def _take_answer(
        self,
        connection: NatsConnection,
        window: SendWindow[_Outgoing],
        accepted: list[int],
        message: Untyped,
    ) -> None:
        """Settle by an answer; what is `accepted` is settled once all answers are read."""
        name, _, token = message.subject.rpartition(".")[2].partition("-")
        number = int(name) if name.isdecimal() and len(name) <= MAX_DIGITS else 0
        outgoing = window.content(number)
        if outgoing is None or outgoing.token != token:
            return
        nobody = (message.headers or {}).get("Status") == "503"
        if (answer := _read_answer(message.data)) is None:
            settlement = await self._explain(connection, outgoing.subject)
            if not nobody and settlement.outcome is not Outcome.REJECTED:
                return  # a service also has the subject; the stream's answer comes
        else:
            settlement = _settlement(self._settings.name, answer)
            if settlement.outcome is Outcome.REJECTED and not outgoing.is_doubted:
                outgoing.is_doubted, outgoing.token = True, token_hex(TOKEN_BYTES)
                connection.run(self._publish_one(connection, number, outgoing))
                return
            self.counts["repeats"] += settlement is REPEATED
            if settlement is ACCEPTED:
                if not accepted:
                    asyncio.get_running_loop().call_soon(_accept, window, accepted)
                accepted.append(number)
                return
        window.settle((number,), settlement)

    async def _explain(self, connection: NatsConnection, subject: str) -> Settlement:
        """Settle a message that nobody took: no stream has its subject, or it has no leader now.

        A stream without a leader has no room: as a lost connection, it would make the message the
        one that breaks connections.
        """
        try:
            await connection.jetstream.find_stream_name_by_subject(subject)
        except NotFoundError:
            reason = f"no stream has the subject {subject!r}"
            return rejected(NO_STREAM, f"{self._settings.name}: {reason}")
        except (TimeoutError, NatsError, OSError):
            pass  # JetStream itself does not answer: the message is sent again
        return replace(NO_ROOM, reason="the stream has no leader now")

    def _deny(self, window: SendWindow[_Outgoing], denied: str) -> None:
        """Refuse what was published to `denied`, in small letters; the server answers nothing."""
        sent = [(number, each.content.subject) for number, each in window.messages()]
        found = {number: subject for number, subject in sent if subject.lower() == denied}
        if len(subjects := {*found.values()}) == 1:  # of others, the connection's end tells nothing
            reason = f"no permission to publish to {subjects.pop()!r}"
            window.settle(found, rejected(NOT_AUTHORISED, f"{self._settings.name}: {reason}"))

    async def _look(self, connection: NatsConnection, window: SendWindow[_Outgoing]) -> None:
        """End the connection when the oldest message has had no answer for too long."""
        while not connection.is_over:
            await asyncio.sleep(CHECK_INTERVAL)
            if window.is_overdue(self._settings.answer_timeout):
                await self._explain_silence(connection, window)

    async def _explain_silence(
        self, connection: NatsConnection, window: SendWindow[_Outgoing]
    ) -> None:
        """Refuse a subject of no stream, which a subscriber hears silently; else end."""
        sent = [(number, each.content.subject) for number, each in window.messages()]
        if not sent:
            return
        subject = sent[0][1]
        settlement = await self._explain(connection, subject)
        if settlement.outcome is Outcome.REJECTED:
            same = [number for number, each in sent if each == subject]
            window.settle(same, settlement)
        else:
            connection.end(f"no answer for {self._settings.answer_timeout} s")


def _accept(window: SendWindow[_Outgoing], accepted: list[int]) -> None:
    numbers = accepted.copy()
    accepted.clear()
    window.settle(numbers, ACCEPTED)


def _message_id(key: bytes, identity: str, message: Message, payload: bytes) -> str:
    """Return an id that is equal only for copies of one message, and that only `key` tells.

    A stream looks for it over all its subjects, and not every source has unique ids.
    """
    parts = (identity.encode("utf-8", "surrogatepass"), message.address.encode(), payload)
    digest = blake2b(digest_size=16, key=key)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def _read_answer(data: bytes) -> dict[str, Any] | None:
    """Return an answer of a stream; any subscriber of a subject may give others."""
    try:
        answer = json.loads(data.decode())  # of bytes it would guess the encoding first
    except ValueError:
        return None
    ours = isinstance(answer, dict) and (
        "stream" in answer or isinstance(answer.get("error"), dict)
    )
    return answer if ours else None


def _settlement(name: str, answer: dict[str, Any]) -> Settlement:
    """Return the settlement that an answer of the stream stands for."""
    if answer.get("duplicate"):
        return REPEATED
    if (error := answer.get("error")) is None:
        return ACCEPTED
    reason = str(error.get("description", ""))
    code, number = (
        each if isinstance(each := error.get(key), int) else 0 for key in ("code", "err_code")
    )
    passes = code >= _SERVER_FAULT or number in _OF_THE_MOMENT
    if passes and not _TOO_LARGE.search(reason):
        return replace(NO_ROOM, reason=reason)
    return rejected(STREAM, f"{name}: {reason}")
