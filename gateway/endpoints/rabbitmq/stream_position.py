"""The place of a source in a stream: the offset after which it reads on, beyond its process.

A queue tells at a connection whether it is a stream; its owner may have made it.
"""

from __future__ import annotations

import json
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from secrets import token_hex
from time import monotonic
from typing import Any, Final
from zlib import crc32

from gateway.endpoints.continuity import Continuity, Retention, SubscriptionStore
from gateway.endpoints.rabbitmq.connection import RabbitmqConnection
from gateway.endpoints.rabbitmq.headers import STREAM_OFFSET, read_properties
from gateway.endpoints.rabbitmq.topology import close_channel, is_empty

SAVE_INTERVAL: Final = 1.0  # seconds between saved places
DROPPED: Final = "the stream's retention removed messages before they were read"
MADE_AGAIN: Final = "the stream was made again, or lost its end: the last message read is not in it"
NOTHING: Final = (-1, 0)  # the first and the last message of an empty stream


@dataclass(slots=True)
class StreamPosition:
    """The place of a source in the stream `queue`; `last` is the offset of the last settled one.

    `begin` says where a source without a place begins. `token` distinguishes a stream from a later
    one of its name, as offsets begin again. `first` is the offset of its first message, with a
    checksum of the payload: another version of the server may write the headers in another way.
    Messages up to `doubtful` may have been read before. Mutable: owned by the source.
    """

    queue: str
    key: str  # in the store
    begin: str | int
    token: str = field(default_factory=lambda: token_hex(4))
    last: int = -1
    first: tuple[int, int] = NOTHING
    doubtful: int = -1
    saved: int = -1
    saved_at: float = 0.0

    @property
    def offset(self) -> str | int:
        """The first message to read."""
        return self.last + 1 if self.last >= 0 else self.begin

    def arrived(self, offset: int, payload: bytes) -> str:
        """Note a message; return its identity."""
        if not offset:
            self.first = (0, crc32(payload))
        return f"rabbitmq {self.queue} {self.token} {offset}"

    def settled(self, offset: int, store: SubscriptionStore | None) -> None:
        """Note that this message is settled, and save the place when that is due."""
        self.last = max(self.last, offset)
        if monotonic() - self.saved_at > SAVE_INTERVAL:
            self.save(store)

    def save(self, store: SubscriptionStore | None) -> None:
        if store is not None and self.last != self.saved:
            self.saved, self.saved_at = self.last, monotonic()
            store.save(self.key, [json.dumps([self.token, self.last, self.first])])

    def load(self, store: SubscriptionStore, connection: RabbitmqConnection) -> None:
        """Take the place of an earlier process; without it, everything may have been read."""
        saved = store.load(self.key, _read)
        if saved is None:
            self.doubtful, _ = _chunk(connection, self.queue, "last")[-1]
        elif saved:
            self.token, self.last, self.first = saved[0]

    def checked(self, connection: RabbitmqConnection, continuity: Continuity) -> StreamPosition:
        """Report messages that are gone; return the place at which to read on.

        The server does not tell a stream that was made again from one that lost its end in a
        crash. So from offset 0 on, everything is read again, and marked.
        """
        if self.last < 0:
            if self.begin != "first":
                continuity.retention = Retention.NEW
            return self
        known, first = self.first, _chunk(connection, self.queue, "first")[0]
        if first == NOTHING and not is_empty(connection, self.queue):
            return self  # it did not answer in time
        last = first if first == NOTHING else _chunk(connection, self.queue, "last")[-1]
        if last[0] < self.last or (known[0] == first[0] and known != first):
            continuity.report_loss(MADE_AGAIN)
            end = last[0] if first[0] > 0 else -1
            return StreamPosition(
                self.queue, self.key, 0, last=end, first=first, doubtful=self.last
            )
        if first[0] > self.last + 1:
            continuity.report_loss(DROPPED)  # the server's own entries have offsets, too
        return replace(self, first=first)


def _read(text: str) -> tuple[str, int, tuple[int, int]]:
    token, last, (offset, checksum) = json.loads(text)
    return str(token), int(last), (int(offset), int(checksum))


def _chunk(connection: RabbitmqConnection, queue: str, place: str) -> list[tuple[int, int]]:
    """Return offset and checksum of the stream's first or last messages."""
    settings, channel = connection.settings, connection.open_channel(prefetch=1)
    chunk: list[tuple[int, int]] = []
    found: Future[None] = Future()

    def take(_channel: object, _method: object, properties: Any, payload: bytes) -> None:  # noqa: ANN401
        *_, of_server = read_properties(properties.encoded, settings, {}, now=0, redelivered=False)
        offset = of_server.get(STREAM_OFFSET)
        number = offset if isinstance(offset, int) else 0
        chunk.append((number, crc32(payload)))
        if not found.done():  # a stream sends a whole chunk
            found.set_result(None)

    arguments = {STREAM_OFFSET: place}
    connection.ask(partial(channel.basic_consume, queue, take, arguments=arguments), channel)
    with suppress(TimeoutError):
        found.result(settings.answer_timeout)
    close_channel(connection, channel)  # the whole chunk comes before the answer
    return chunk or [NOTHING]
