"""Our own messages coming back from brokers that carry no origin path: MQTT 3.1.1 above all.

What is sent to such a broker is remembered by broker, name and payload hash, with the path it has
gone. When the gateway receives it there again, once for each time it was sent, it gets that path
back, and the routes cut the loop as they do everywhere.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Final, TypeAlias

from gateway.model.message import Message
from gateway.runtime.record.rows import fingerprint

KEPT: Final = 100_000  # copies that are remembered at most, over all brokers
SECONDS: Final = 30.0  # after which an echo will not come any more

Key: TypeAlias = tuple[str, str, bytes]
_Copy: TypeAlias = tuple[float, tuple[str, ...]]
_Copies: TypeAlias = _Copy | deque[_Copy]  # a queue takes 760 bytes, and most have one copy


class Echoes:
    """Mutable and shared by all threads: what was sent where, and has not come back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: OrderedDict[Key, _Copies] = OrderedDict()
        self._count = 0

    def sending(self, broker: str, messages: Iterable[Message]) -> None:
        """Remember copies on their way to `broker`; their headers have the path they went."""
        noted = [
            ((broker, message.address, fingerprint(message.payload)[1]), message.headers.origin)
            for message in messages
        ]
        self.remember(noted)

    def remember(self, noted: Sequence[tuple[Key, tuple[str, ...]]]) -> None:
        until = monotonic() + SECONDS
        shared: dict[tuple[str, ...], _Copy] = {}
        with self._lock:
            for key, origin in noted:
                self._keep(key, shared.setdefault(origin, (until, origin)))
            self._count += len(noted)
            self._forget()

    def origin(self, broker: str, message: Message) -> tuple[str, ...]:
        """The path of a message that came back from `broker`; empty when it is not ours."""
        key = (broker, message.address, fingerprint(message.payload)[1])
        now = monotonic()
        with self._lock:
            while (copy := self._take(key)) is not None:
                until, origin = copy
                if until >= now:
                    return origin
        return ()

    def _keep(self, key: Key, copy: _Copy) -> None:
        """Add the latest copy under `key`, which is then the last to be forgotten."""
        earlier = self._sent.pop(key, None)
        if earlier is None:
            self._sent[key] = copy
        elif isinstance(earlier, deque):
            earlier.append(copy)
            self._sent[key] = earlier
        else:
            self._sent[key] = deque((earlier, copy))

    def _take(self, key: Key) -> _Copy | None:
        """The oldest copy under `key`, which is not remembered any more."""
        copies = self._sent.get(key)
        if copies is None:
            return None
        self._count -= 1
        if isinstance(copies, deque):
            copy = copies.popleft()
            if copies:
                return copy
        else:
            copy = copies
        del self._sent[key]
        return copy

    def _forget(self) -> None:
        """Drop what is too old, and what is too much; the keys are in the order of their use."""
        now = monotonic()
        while self._sent:
            key, copies = next(iter(self._sent.items()))
            last, many = (copies[-1], len(copies)) if isinstance(copies, deque) else (copies, 1)
            if self._count <= KEPT and last[0] >= now:
                return
            self._count -= many
            del self._sent[key]
