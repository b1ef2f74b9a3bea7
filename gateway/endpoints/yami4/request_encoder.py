"""The requests that a YAMI4 sink writes, and the answers that it then waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import inf

from gateway.endpoints.base import unwritable
from gateway.endpoints.sent_messages import SentBatch, finish_runs
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.yami4.bodies import BodyWriter, find_address_fault
from gateway.errors import LimitError, TranslationError
from gateway.model.dead_letter_rule import MESSAGE_SIZE
from gateway.model.limited_cache import LimitedCache
from gateway.model.message import DeliveryMode, Message
from gateway.model.outcome import Settlement
from gateway.wire.yami4.frames import encode_message, to_wire_id
from gateway.wire.yami4.messages import encode_id, request_head
from gateway.wire.yami4.parameters import EMPTY

_CHUNK_SIZE = 1 << 20  # bytes after which a chunk ends
_MAX_CACHED = 4 << 20  # bytes of heads


@dataclass(slots=True)
class PendingAnswer:
    """An answer to wait for; it frees `weight` messages of the window.

    That to a message without one of its own is the next one on its connection, of weight 0.
    Only its deadline changes, once: it counts from when the request is written.
    """

    weight: int
    batch: SentBatch | None = None  # None for a question for statistics
    position: int = 0
    deadline: float = inf


def settle_all(answered: Sequence[tuple[PendingAnswer, Settlement]]) -> None:
    """Settle the answered messages."""
    finish_runs(
        (answer.batch, answer.position, settlement)
        for answer, settlement in answered
        if answer.batch is not None
    )


@dataclass(slots=True)
class EncodedChunk:
    """Messages ready to be written.

    Mutable: it grows while they are encoded.
    """

    parts: list[bytes] = field(default_factory=list)
    size: int = 0
    messages: int = 0
    answers: dict[int, PendingAnswer] = field(default_factory=dict)  # by message id
    unconfirmed: list[tuple[int, PendingAnswer]] = field(default_factory=list)  # with message ids
    refused: list[tuple[int, Settlement]] = field(default_factory=list)
    next_position: int = 0  # of the first message that is not in here


class RequestEncoder:
    """Encodes messages as requests with consecutive ids.

    Mutable: used by one thread at a time.
    """

    def __init__(self, settings: Yami4Settings) -> None:
        self.unasked = 0  # messages published since the last request that is answered
        self._name, self._limit = settings.name, settings.max_message
        self._question_interval = max(1, settings.send_window // 4)  # messages
        self._bodies = BodyWriter()
        self._heads: Sequence[LimitedCache[str, bytes]]  # [confirm][address]
        self._heads = LimitedCache(_MAX_CACHED), LimitedCache(_MAX_CACHED)
        self._id = 0

    def encode(
        self, messages: Sequence[Message], start: int, room: int, batch: SentBatch
    ) -> EncodedChunk:
        """Encode up to `room` messages from `start` on, at most about a megabyte."""
        chunk = EncodedChunk(next_position=start)
        for position, message in enumerate(islice(messages, start, start + room), start):
            chunk.next_position = position + 1
            confirm = message.headers.mode is not DeliveryMode.AT_MOST_ONCE
            try:
                data = self._encode(message, confirm=confirm)
            except Exception as error:  # noqa: BLE001  # of this message; the others are written
                chunk.refused.append((position, unwritable(self._name, error)))
                continue
            chunk.parts.append(data)
            chunk.size += len(data)
            chunk.messages += 1
            self.unasked += 1
            if confirm:
                chunk.answers[self._id] = PendingAnswer(self.unasked, batch, position)
                self.unasked = 0
            else:
                chunk.unconfirmed.append((self._id, PendingAnswer(0, batch, position)))
                if self.unasked >= self._question_interval:
                    self.ask(chunk)
            if chunk.size >= _CHUNK_SIZE:
                break
        return chunk

    def ask(self, chunk: EncodedChunk) -> None:
        """Add a question for statistics; its answer shows that all before it was read."""
        data = self._frame(request_head(b"stats", b"get"), EMPTY)
        chunk.parts.append(data)
        chunk.size += len(data)
        chunk.answers[self._id] = PendingAnswer(self.unasked)
        self.unasked = 0

    def _encode(self, message: Message, *, confirm: bool) -> bytes:
        address = message.address
        head = self._heads[confirm].get(address) or self._head(address, confirm)
        body = self._bodies.write(message.payload, message.headers, message.proof)
        size = len(head) + len(body)
        if size > self._limit:
            raise LimitError(self._name, address, MESSAGE_SIZE, "bytes", size, self._limit)
        return self._frame(head, body)

    def _frame(self, head: bytes, body: bytes) -> bytes:
        self._id += 1
        return encode_message(to_wire_id(self._id), head + encode_id(self._id), body)

    def _head(self, address: str, confirm: bool) -> bytes:
        if rule := find_address_fault(address):
            raise TranslationError(self._name, address, rule, "is no tag list YAMI4 can carry")
        head = request_head(address.encode(), b"publish_confirm" if confirm else b"publish")
        self._heads[confirm].add(address, head, 2 * len(head))
        return head
