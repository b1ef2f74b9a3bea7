"""Messages seen before, by the identity that their source gives them; never guessed from content.

The exception is an endpoint with `echo_seconds`: there the user says that the same name and payload
within that time is the same message, come back through brokers that carry no origin path.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from time import monotonic
from typing import Final

WINDOW: Final = 50_000  # identities of one source endpoint that are remembered
AT_ONCE: Final = 1_000  # that are forgotten together, when there are so many more


class Landing:
    """When a batch came, and whether it has reached its end, for those that wait; mutable."""

    def __init__(self) -> None:
        self.since = monotonic()
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
        _here.call(followers or ())


class _Here(threading.local):
    """The calling thread, and what it has to call before it goes on."""

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()
        self._calling = False

    def call(self, followers: Iterable[Callable[[], None]]) -> None:
        """Call one after the other, whatever one raises, and what they cause to be called.

        One within the other would be too deep: thousands of batches may wait each for the one
        before, when that waits for a target that was away.
        """
        self._due.extend(followers)
        if self._calling:
            return
        self._calling = True
        failures: list[Exception] = []
        try:
            while self._due:
                try:
                    self._due.popleft()()
                except Exception as error:  # noqa: BLE001  # raised when all had their turn
                    failures.append(error)
        finally:
            self._calling = False
        if failures:
            raise failures[0]


_here = _Here()


class Seen:
    """The last identities of one source endpoint and what became of them.

    Mutable; used by the thread of its pump alone.
    """

    def __init__(self) -> None:
        self._landings: dict[Hashable, Landing] = {}

    def remember(self, identities: Iterable[Hashable]) -> None:
        """Take what an earlier run has delivered and recorded."""
        done = Landing()
        done.land()
        self._landings.update(dict.fromkeys(identities, done))

    def find(
        self, identity: Hashable, landing: Landing, seconds: float = float("inf")
    ) -> Landing | None:
        """The batch that had `identity` within `seconds`; if none had, `landing` has it now."""
        found = self._landings.get(identity)
        if found is not None and landing.since - found.since <= seconds:
            return found
        self._landings.pop(identity, None)
        self._landings[identity] = landing
        if len(self._landings) >= WINDOW + AT_ONCE:
            self._forget()
        return None

    def _forget(self) -> None:
        """Drop the oldest; one by one, each look for the first would pass over all dropped ones."""
        for identity in list(islice(self._landings, AT_ONCE)):
            del self._landings[identity]
