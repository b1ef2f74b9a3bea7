"""The echoes that all targets note and all sources look for."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from time import monotonic

from gateway.model.message import Message
from gateway.runtime.delivery.echoes import Echoes, SentCopy
from gateway.runtime.record.rows import fingerprint


class EchoCache:
    """The copies sent to echo brokers that have not come back.

    Thread-safe: guarded by self._lock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._echoes = Echoes()

    def note_sent(self, broker: str, messages: Iterable[Message], *, again: bool = False) -> None:
        """Remember copies about to be sent to `broker`, with the origin path in their headers."""
        self.remember(
            [
                ((broker, message.address, fingerprint(message.payload)[1]), message.headers.origin)
                for message in messages
            ],
            again=again,
        )

    def remember(self, copies: Sequence[SentCopy], *, again: bool = False) -> None:
        with self._lock:
            self._echoes.sent(copies, monotonic(), again=again)

    def waiting(self) -> list[SentCopy]:
        """The copies whose echo may still come."""
        with self._lock:
            return self._echoes.waiting(monotonic())

    def take_origin(self, broker: str, message: Message) -> tuple[str, ...]:
        """Remove and return the origin path of an echo from `broker`; empty for other messages."""
        key = (broker, message.address, fingerprint(message.payload)[1])
        with self._lock:
            return self._echoes.returned(key, monotonic())
