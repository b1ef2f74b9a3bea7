"""The loops that a gateway suspects: it says so, and drops no message for it.

A suspicion: source and route -> an example name, the reason, its begin, its last sign. Begun: by a
heartbeat that came back, or by a name and payload that come very often. Ended: `FORGET` seconds
after its last sign.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final

from gateway.clock import now

log = logging.getLogger(__name__)

FORGET: Final = 300.0  # seconds after the last sign
LOG_INTERVAL: Final = 60.0  # seconds between two log lines about one route
MAX_SUSPICIONS: Final = 1_000


@dataclass(frozen=True, slots=True)
class SuspectedLoop:
    """A loop that a route may be a part of; `reason` is a clause about `name`, an example.

    Units: microseconds since 1970-01-01 UTC.
    """

    endpoint: str  # the source
    route: str
    name: str
    reason: str
    since: int
    proven: bool = False  # by a heartbeat that came back


@dataclass(slots=True)
class _Sign:
    """The times of one suspicion, in seconds of the monotonic clock. Mutable: owned by below."""

    loop: SuspectedLoop
    seen: float
    logged: float


class LoopSuspicions:
    """The suspicions of a gateway, by source and route.

    Thread-safe: guarded by self._lock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._signs: dict[tuple[str, str], _Sign] = {}

    def note(
        self, endpoint: str, route: str, name: str, reason: str, *, proven: bool = False
    ) -> None:
        """Note a sign of a loop through `route`, and say it once a minute.

        The first sign is shown, and a proof in its place.
        """
        at = monotonic()
        with self._lock:
            self._forget(at)
            sign = self._signs.get((endpoint, route))
            if sign is None:
                if len(self._signs) >= MAX_SUSPICIONS:
                    return
                loop = SuspectedLoop(endpoint, route, name, reason, now(), proven)
                sign = self._signs[endpoint, route] = _Sign(loop, at, at - LOG_INTERVAL)
            sign.seen = at
            if proven and not sign.loop.proven:
                sign.loop = replace(sign.loop, name=name, reason=reason, proven=True)
            if at - sign.logged < LOG_INTERVAL:
                return
            sign.logged = at
        log.warning(
            "a loop is suspected: route %r, %r %s; `gateway check A.yaml B.yaml ...` with the files"
            " of all gateways finds it; `broker_id` at each endpoint says which brokers are one",
            route,
            name,
            reason,
            extra={"endpoint": endpoint},
        )

    def current(self) -> tuple[SuspectedLoop, ...]:
        """The suspicions whose last sign is not long ago, by their begin."""
        with self._lock:
            self._forget(monotonic())
            found = [sign.loop for sign in self._signs.values()]
        return tuple(sorted(found, key=lambda loop: (loop.since, loop.route)))

    def _forget(self, at: float) -> None:
        for key in [key for key, sign in self._signs.items() if at - sign.seen >= FORGET]:
            del self._signs[key]
