"""What the running gateway says of itself: connections and counters, for people and for metrics."""

from __future__ import annotations

import logging
import threading
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from time import monotonic
from typing import Final

from gateway.errors import GatewayError

log = logging.getLogger(__name__)


LATENCIES: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0,
)  # fmt: skip  # seconds: upper bounds of what is counted together
REFUSALS: Final = 20  # dead letters of a route that are kept to show


class Connection(Enum):
    CONNECTING = "connecting"
    CONNECTED = "connected"
    LOST = "lost"
    REFUSED = "refused"


@dataclass(slots=True)
class EndpointState:
    """One side of an endpoint; mutable because it follows the connection."""

    name: str
    side: str  # source or sink
    connection: Connection = Connection.CONNECTING
    reconnects: int = 0
    reason: str = ""
    since: float = field(default_factory=monotonic)  # of the connection; monotonic seconds
    messages: int = 0  # received from it, or taken by it

    def connected(self) -> None:
        again = self.connection is not Connection.CONNECTED and self.reason
        self.connection = Connection.CONNECTED
        self.since = monotonic()
        self.reason = ""
        self.reconnects += bool(again)
        log.info("connected", extra={"endpoint": self.name, "side": self.side})

    def lost(self, error: GatewayError) -> None:
        if self.connection is Connection.CONNECTED:
            self.since = monotonic()
        self.connection = Connection.LOST if error.retryable else Connection.REFUSED
        said = str(error)
        if said != self.reason or not error.retryable:
            level = logging.WARNING if error.retryable else logging.ERROR
            log.log(level, "%s", said, extra={"endpoint": self.name, "side": self.side})
        self.reason = said


@dataclass(frozen=True, slots=True)
class Refusal:
    """One dead letter, to show; `time` is microseconds since 1970-01-01 UTC."""

    time: int
    name: str
    rule: str
    reason: str


class RouteCounters:
    """Messages and bytes of one route since the start; mutable, counted from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.received = 0
        self.received_bytes = 0
        self.delivered = 0
        self.spooled = 0
        self.latencies = [0] * (len(LATENCIES) + 1)  # deliveries, each in its bucket alone
        self.latency_sum = 0.0  # seconds
        self.ignored = 0  # retained messages that the route leaves alone
        self.unselected = 0  # messages for which the route's selector is not true
        self.loops = 0  # messages that came back by themselves
        self.duplicates = 0  # messages that the source gave before
        self.rules: dict[str, int] = {}  # dead letters by rule
        self.lost_fields: dict[str, int] = {}  # headers that could not cross
        self.refusals: deque[Refusal] = deque(maxlen=REFUSALS)  # the latest dead letters

    @property
    def dead(self) -> int:
        """Dead letters, one a message and target."""
        return sum(self.rules.values())

    def took(self, messages: int, size: int) -> None:
        with self._lock:
            self.received += messages
            self.received_bytes += size

    def delivers(self, messages: int, seconds: float) -> None:
        """Count deliveries that took `seconds` each since their receipt.

        A clock that was set back meanwhile makes that negative: it counts as no time at all.
        """
        seconds = max(0.0, seconds)
        with self._lock:
            self.delivered += messages
            self.latencies[bisect_left(LATENCIES, seconds)] += messages
            self.latency_sum += seconds * messages

    def spools(self, messages: int) -> None:
        with self._lock:
            self.spooled += messages

    def ignores(self) -> None:
        with self._lock:
            self.ignored += 1

    def passes_over(self) -> None:
        with self._lock:
            self.unselected += 1

    def cuts(self) -> None:
        with self._lock:
            self.loops += 1

    def doubles(self) -> None:
        with self._lock:
            self.duplicates += 1

    def set_aside(self, refusal: Refusal) -> bool:
        """Count a dead letter; whether it is the first of its rule."""
        rule = refusal.rule
        with self._lock:
            self.refusals.append(refusal)
            self.rules[rule] = self.rules.get(rule, 0) + 1
            return self.rules[rule] == 1

    def lost(self, field: str) -> None:
        with self._lock:
            self.lost_fields[field] = self.lost_fields.get(field, 0) + 1
