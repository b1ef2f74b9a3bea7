"""The echoes that all targets note and all sources look for."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from time import monotonic

from gateway.model.message import Message
from gateway.runtime.delivery.echoes import Echoes, EchoKey, SentCopy
from gateway.runtime.record.rows import fingerprint


class EchoCache:
    """The copies sent to echo brokers that have not come back.

    Thread-safe: guarded by self._lock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._echoes = Echoes()

    def note_sent(self, broker: str, messages: Iterable[Message]) -> None:
        """Remember copies about to be sent to `broker`, with the origin path in their headers."""
        self.remember([(_key(broker, message), message.headers.origin) for message in messages])

    def note_lost(self, broker: str, messages: Iterable[Message]) -> None:
        """Forget copies that were sent to `broker` and have no answer."""
        keys = [_key(broker, message) for message in messages]
        with self._lock:
            self._echoes.lost(keys)

    def remember(self, copies: Sequence[SentCopy]) -> None:
        with self._lock:
            self._echoes.sent(copies, monotonic())

    def waiting(self) -> list[SentCopy]:
        """The copies whose echo may still come."""
        with self._lock:
            return self._echoes.waiting(monotonic())

    def take_origin(self, broker: str, message: Message) -> tuple[str, ...]:
        """Remove and return the origin path of an echo from `broker`; empty for other messages."""
        with self._lock:
            return self._echoes.returned(_key(broker, message), monotonic())


def _key(broker: str, message: Message) -> EchoKey:
    return broker, message.address, fingerprint(message.payload)[1]
