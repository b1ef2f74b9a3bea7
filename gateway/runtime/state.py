"""What the running gateway says of itself: connections and counters, for people and for metrics."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from enum import Enum

from gateway.errors import GatewayError

log = logging.getLogger(__name__)


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

    def connected(self) -> None:
        again = self.connection is not Connection.CONNECTED and self.reason
        self.connection = Connection.CONNECTED
        self.reason = ""
        self.reconnects += bool(again)
        log.info("connected", extra={"endpoint": self.name, "side": self.side})

    def lost(self, error: GatewayError) -> None:
        self.connection = Connection.LOST if error.retryable else Connection.REFUSED
        said = str(error)
        if said != self.reason or not error.retryable:
            level = logging.WARNING if error.retryable else logging.ERROR
            log.log(level, "%s", said, extra={"endpoint": self.name, "side": self.side})
        self.reason = said


class RouteCounters:
    """Messages and bytes of one route since the start; mutable, counted from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.received = 0
        self.received_bytes = 0
        self.delivered = 0
        self.ignored = 0  # retained messages that the route leaves alone
        self.unselected = 0  # messages for which the route's selector is not true
        self.loops = 0  # messages that came back by themselves
        self.rules: dict[str, int] = {}  # dead letters by rule
        self.lost_fields: dict[str, int] = {}  # headers that could not cross

    @property
    def dead(self) -> int:
        """Dead letters, one a message and target."""
        return sum(self.rules.values())

    def took(self, messages: int, size: int) -> None:
        with self._lock:
            self.received += messages
            self.received_bytes += size

    def delivers(self, messages: int) -> None:
        with self._lock:
            self.delivered += messages

    def ignores(self) -> None:
        with self._lock:
            self.ignored += 1

    def passes_over(self) -> None:
        with self._lock:
            self.unselected += 1

    def cuts(self) -> None:
        with self._lock:
            self.loops += 1

    def set_aside(self, rule: str) -> bool:
        """Count a dead letter; whether it is the first of its rule."""
        with self._lock:
            self.rules[rule] = self.rules.get(rule, 0) + 1
            return self.rules[rule] == 1

    def lost(self, field: str) -> None:
        with self._lock:
            self.lost_fields[field] = self.lost_fields.get(field, 0) + 1
