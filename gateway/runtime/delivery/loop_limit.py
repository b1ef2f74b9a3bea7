"""The end of loops that no origin path shows: a limit on the rounds of one message.

Gateways in a ring over MQTT 3.1.1 alone pass a message on for ever: it carries no path, and to each
gateway it looks new. It is always the same name and payload, though, and it returns as fast as the
ring is. So each message is counted that equals the one before it and follows it closely.

An application may repeat itself as well. Three facts keep its messages: few repeat themselves more
than ten times a second; messages in one batch count once, as a copy in a ring never overtakes
itself; and only one message in MAX_ROUNDS is cut, which ends a loop as surely as a cut of all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

from xxhash import xxh3_128_digest

from gateway.model.message import Message
from gateway.runtime.record.rows import fingerprint

MAX_ROUNDS: Final = 1_000  # of one message; the next is cut
MAX_SIZE: Final = 16 << 20  # bytes of the rounds of a source endpoint
_OVERHEAD: Final = 400  # bytes of a name and payload hash beside the characters of the name

_Rounds: TypeAlias = tuple[float, int]  # time of the latest, number


class LoopLimit:
    """The rounds of the latest messages of one source endpoint.

    Mutable: owned by the source's thread. Units: seconds of a monotonic clock.
    """

    def __init__(self) -> None:
        self._latest: dict[tuple[str, bytes], _Rounds] = {}
        self._earlier: dict[tuple[str, bytes], _Rounds] = {}  # rounds of the window before
        self._size = 0  # bytes of `_latest`
        self._since = 0.0  # begin of `_latest`

    def exceeded(
        self, messages: Sequence[Message], without: Collection[int], now: float, window: float
    ) -> list[int]:
        """The positions of the messages of a batch that have gone round too often.

        A message starts a round when an equal one came in an earlier batch, at most `window`
        seconds ago. Positions in `without` are left out: they go no further anyway.
        """
        self._age(now, window)
        latest, earlier, found = self._latest, self._earlier, list[int]()
        for position, message in enumerate(messages):
            if position in without or message.headers.redelivered:  # its broker sent it again
                continue
            payload = message.payload
            digest = (  # the usual payload without a call of ours
                xxh3_128_digest(payload) if isinstance(payload, bytes) else fingerprint(payload)[1]
            )
            key = message.address, digest
            before = latest.get(key)
            if before is None:
                before = earlier.get(key)
                self._size += _OVERHEAD + 4 * len(message.address)
            if before is None or now - before[0] > window:
                latest[key] = now, 0
            elif before[0] < now:
                rounds = before[1] + 1
                if rounds >= MAX_ROUNDS:
                    found.append(position)
                    rounds = 0
                latest[key] = now, rounds
        return found

    def _age(self, now: float, window: float) -> None:
        """Forget what is older than a window, at latest after two, or the oldest half."""
        if now - self._since <= window and self._size <= MAX_SIZE // 2:
            return
        self._earlier = self._latest if now - self._since <= 2 * window else {}
        self._latest, self._size, self._since = {}, 0, now
