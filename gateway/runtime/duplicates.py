"""Messages seen before, by the identity that their source gives them; never guessed from content.

The exception is an endpoint with `echo_seconds`: there the user says that the same name and payload
within that time is the same message, come back through brokers that carry no origin path.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from time import monotonic
from typing import Final

WINDOW: Final = 50_000  # identities of one source endpoint that are remembered


class Landing:
    """Whether a batch has reached its end, for those that wait for it; mutable."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._followers: list[Callable[[], None]] | None = []

    def follow(self, landed: Callable[[], None]) -> None:
        """Call `landed` when the batch has landed, at once when it has already."""
        with self._lock:
            if self._followers is not None:
                self._followers.append(landed)
                return
        landed()

    def land(self) -> None:
        with self._lock:
            followers, self._followers = self._followers, None
        for landed in followers or ():
            landed()


class Seen:
    """The last identities of one source endpoint and what became of them.

    Mutable; used by the thread of its pump alone.
    """

    def __init__(self) -> None:
        self._landings: dict[Hashable, tuple[Landing, float]] = {}

    def remember(self, identities: Iterable[Hashable]) -> None:
        """Take what an earlier run has delivered and recorded."""
        done = Landing()
        done.land()
        now = monotonic()
        for identity in identities:
            self._landings[identity] = done, now

    def find(
        self, identity: Hashable, landing: Landing, seconds: float = float("inf")
    ) -> Landing | None:
        """The batch that had `identity` within `seconds`; if none had, `landing` has it now."""
        found = self._landings.get(identity)
        now = monotonic()
        if found is not None and now - found[1] <= seconds:
            return found[0]
        self._landings.pop(identity, None)
        self._landings[identity] = landing, now
        if len(self._landings) > WINDOW:
            del self._landings[next(iter(self._landings))]
        return None
