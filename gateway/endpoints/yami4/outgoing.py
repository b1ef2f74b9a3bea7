"""What a YAMI4 sink writes and what it then waits for; it has no socket and no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock

from gateway.endpoints.base import Settle
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.yami4.bodies import BodyWriter, find_fault
from gateway.errors import LimitError, TranslationError
from gateway.model.message import DeliveryMode, Message
from gateway.model.outcome import ACCEPTED, Settlement, rejected
from gateway.wire.yami4.frames import encode_message, to_wire_id
from gateway.wire.yami4.messages import encode_id, request_head
from gateway.wire.yami4.parameters import EMPTY

_ENOUGH = 1 << 20  # bytes after which a chunk ends
_MOST_KEPT = 8_192
_LONGEST_KEPT = 1_024  # characters of an address worth remembering


class Delivery:
    """One batch handed to the sink; its `settled` is called once, with the last settlement."""

    def __init__(self, size: int, settled: Settle) -> None:
        self._settlements: list[Settlement] = [ACCEPTED] * size  # what most of them become
        self._left = size
        self._settled = settled
        self._lock = Lock()

    def settle(self, places: Sequence[int], settlement: Settlement) -> None:
        """Settle the messages at `places`, each of them for the first time."""
        with self._lock:
            if settlement is not ACCEPTED:
                for place in places:
                    self._settlements[place] = settlement
            self._left -= len(places)
            if self._left or not places:
                return
        self._settled(self._settlements)


@dataclass(slots=True)
class Request:
    """An answer to wait for; it frees `weight` messages of the window.

    Nobody changes it, but a frozen one takes four times as long to make, and each message has one.
    """

    deadline: float
    weight: int
    delivery: Delivery | None = None  # none when it was only a question
    place: int = 0


def settle_all(answered: Sequence[tuple[Request, Settlement]]) -> None:
    """Settle what belongs to a delivery, one call for each run of equal settlements."""
    runs: list[tuple[Delivery, Settlement, list[int]]] = []
    for request, settlement in answered:
        delivery = request.delivery
        if delivery is None:
            continue
        if runs and runs[-1][0] is delivery and runs[-1][1] is settlement:
            runs[-1][2].append(request.place)
        else:
            runs.append((delivery, settlement, [request.place]))
    for delivery, settlement, places in runs:
        delivery.settle(places, settlement)


@dataclass(slots=True)
class Chunk:
    """Messages ready to be written; it grows while they are encoded."""

    parts: list[bytes] = field(default_factory=list)
    size: int = 0
    messages: int = 0
    requests: dict[int, Request] = field(default_factory=dict)
    plain: list[tuple[int, int]] = field(default_factory=list)  # place, end of its last byte
    refused: list[tuple[int, Settlement]] = field(default_factory=list)
    following: int = 0  # the first place that is not in here


class Encoder:
    """Turns messages into bytes with ids of their own; one thread at a time."""

    def __init__(self, settings: Yami4Settings) -> None:
        self.unasked = 0  # published since the last request that is answered
        self._name, self._limit = settings.name, settings.max_message
        self._stride = max(1, settings.window // 4)
        self._bodies = BodyWriter()
        self._heads: tuple[dict[str, bytes], dict[str, bytes]] = ({}, {})  # plain, to be confirmed
        self._id = 0

    def encode(
        self, messages: Sequence[Message], start: int, room: int, deadline: float, to: Delivery
    ) -> Chunk:
        """Encode up to `room` messages from `start` on, about a megabyte at most."""
        chunk = Chunk(following=start)
        for place, message in enumerate(islice(messages, start, start + room), start):
            chunk.following = place + 1
            confirm = message.headers.mode is not DeliveryMode.AT_MOST_ONCE
            try:
                data = self._encode(message, confirm=confirm)
            except TranslationError as error:
                chunk.refused.append((place, rejected(error.rule, str(error))))
                continue
            chunk.parts.append(data)
            chunk.size += len(data)
            chunk.messages += 1
            self.unasked += 1
            if confirm:
                chunk.requests[self._id] = Request(deadline, self.unasked, to, place)
                self.unasked = 0
            else:
                chunk.plain.append((place, chunk.size))
                if self.unasked >= self._stride:
                    self.ask(chunk, deadline)
            if chunk.size >= _ENOUGH:
                break
        return chunk

    def ask(self, chunk: Chunk, deadline: float) -> None:
        """Add a question whose answer shows that all before it was read."""
        data = self._frame(request_head(b"stats", b"get"), EMPTY)
        chunk.parts.append(data)
        chunk.size += len(data)
        chunk.requests[self._id] = Request(deadline, self.unasked)
        self.unasked = 0

    def _encode(self, message: Message, *, confirm: bool) -> bytes:
        address = message.address
        head = self._heads[confirm].get(address) or self._head(address, confirm)
        body = self._bodies.write(message.payload, message.headers)
        size = len(head) + len(body)
        if size > self._limit:
            raise LimitError(self._name, address, "message-size", "bytes", size, self._limit)
        return self._frame(head, body)

    def _frame(self, head: bytes, body: bytes) -> bytes:
        self._id += 1
        return encode_message(to_wire_id(self._id), head + encode_id(self._id), body)

    def _head(self, address: str, confirm: bool) -> bytes:
        if rule := find_fault(address):
            raise TranslationError(self._name, address, rule, "is no tag list YAMI4 can carry")
        head = request_head(address.encode(), b"publish_confirm" if confirm else b"publish")
        if len(address) <= _LONGEST_KEPT:
            heads = self._heads[confirm]
            if len(heads) >= _MOST_KEPT:
                heads.clear()
            heads[address] = head
        return head
