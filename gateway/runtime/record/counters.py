"""States of connections, and counters of routes, for status and metrics."""

from __future__ import annotations

import logging
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from random import random
from time import monotonic
from typing import Final

from gateway.errors import ClientIdDisputeError, GatewayError, TakenOverError
from gateway.model.cut_class import THINNED
from gateway.model.dead_letter_rule import LOOP, UNSELECTED
from gateway.runtime.delivery.admission import (
    DUPLICATE,
    IGNORED,
)
from gateway.runtime.delivery.backoff import Backoff
from gateway.runtime.delivery.loop_limit import LOOP_LIMIT
from gateway.runtime.delivery.received_batch import Count

log = logging.getLogger(__name__)


LATENCY_BUCKETS: Final = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    60.0,
)  # upper bounds in seconds
DISPUTE_SECONDS: Final = 60.0  # of a connection, after which a dispute over its id has ended
_LEFT_OUT: Final = {  # the counter of each reason
    LOOP: "loops",
    LOOP_LIMIT: "loops",
    DUPLICATE: "duplicates",
    IGNORED: "ignored",
    UNSELECTED: "unselected",
    THINNED: "thinned",
}
MAX_REFUSALS: Final = 20  # latest dead letters of a route, for display
MAX_REFUSAL_TEXT: Final = 2_000  # characters of the name and of the reason of each


class ConnectionState(Enum):
    CONNECTING = "connecting"
    CONNECTED = "connected"
    LOST = "lost"
    REFUSED = "refused"


def _ignore(_name: str) -> None:
    """Do nothing: nobody tells the states of connections."""


@dataclass(slots=True)
class EndpointState:
    """The connection of one side of an endpoint.

    Mutable: owned by the thread that connects; other threads read, and may call `hasten`.
    """

    name: str
    side: str  # source, sink or tap
    connection: ConnectionState = ConnectionState.CONNECTING
    reconnects: int = 0
    reason: str = ""
    since: float = field(default_factory=monotonic)  # of `connection`; monotonic seconds
    messages: int = 0  # received, or answered by the target
    untaken: int = 0  # received and acknowledged without a row, since no route takes them
    retry_at: float | None = None  # the next attempt of a source to connect; monotonic seconds
    is_disputed: bool = False  # another client uses its id, as the last connection ended
    changed: Callable[[str], None] = field(default=_ignore, repr=False, compare=False)
    question: str = ""  # about its broker, for the administrator
    _backoff: Backoff = field(default_factory=Backoff, init=False, repr=False, compare=False)
    _hastened: threading.Event = field(
        default_factory=threading.Event, init=False, repr=False, compare=False
    )

    def connected(self) -> None:
        again = self.connection is not ConnectionState.CONNECTED and self.reason
        self.connection = ConnectionState.CONNECTED
        self.since = monotonic()
        self.retry_at = None
        self._backoff.connected(self.since)
        self._hastened.clear()
        if not self.is_disputed:
            self.reason = ""
        self.reconnects += bool(again)
        log.info("connected", extra={"endpoint": self.name, "side": self.side})
        self.changed(self.name)

    def lost(self, error: GatewayError) -> None:
        if self.connection is ConnectionState.CONNECTED:
            self.since = monotonic()
        self.connection = ConnectionState.LOST if error.retryable else ConnectionState.REFUSED
        self.is_disputed = isinstance(error, TakenOverError | ClientIdDisputeError)
        reason = str(error)
        if reason != self.reason or not error.retryable:
            level = logging.WARNING if error.retryable else logging.ERROR
            log.log(level, "%s", reason, extra={"endpoint": self.name, "side": self.side})
        self.reason = reason
        self.changed(self.name)

    def next_pause(self, backoff: tuple[float, float], error: GatewayError) -> float:
        """Seconds to wait after `error`; `backoff` has the shortest and the longest pause."""
        refused = not error.retryable
        return self._backoff.pause(backoff, monotonic(), random(), refused=refused)  # noqa: S311  # jitter

    def pause(self, seconds: float) -> bool:
        """Wait before the next attempt; return whether `hasten` came in it or since the last."""
        self.retry_at = monotonic() + seconds
        hastened = self._hastened.wait(seconds)
        self._hastened.clear()
        return hastened

    def hasten(self) -> None:
        """Let the next attempt to connect begin now; it has no effect while connected."""
        if self.connection is not ConnectionState.CONNECTED:
            self._hastened.set()

    @property
    def shown_reason(self) -> str:
        """The reason of a lost connection, or a question about the broker of a connected one.

        The reason of a dispute stays while it may go on, as that of the connection before. The
        name, with which an error begins, stands beside it.
        """
        reason = self.reason.removeprefix(f"{self.name}: ")
        if self.connection is not ConnectionState.CONNECTED:
            return reason
        if self.is_disputed and monotonic() - self.since <= DISPUTE_SECONDS:
            return f"the connection before ended: {reason}"
        return self.question


@dataclass(frozen=True, slots=True)
class Refusal:
    """A dead letter for display; `time` is microseconds since 1970-01-01 UTC.

    `target` is its label in the route, or empty for all targets of the route.
    """

    time: int
    name: str
    rule: str
    reason: str
    target: str = ""


def _shortened(refusal: Refusal) -> Refusal:
    """Return `refusal` without the end of a long name or reason, which no display shows."""
    name, reason = refusal.name[:MAX_REFUSAL_TEXT], refusal.reason[:MAX_REFUSAL_TEXT]
    return replace(refusal, name=name, reason=reason)


@dataclass(slots=True)
class RouteTotals:
    """Messages and bytes of one route since the start of the gateway. Units: seconds."""

    received: int = 0
    received_bytes: int = 0
    delivered: int = 0
    spooled: int = 0
    ignored: int = 0  # retained messages that the route does not take
    unselected: int = 0  # messages that the route's selector excludes
    loops: int = 0  # messages not sent on, because the route or target had them before
    duplicates: int = 0  # messages that the source repeated
    thinned: int = 0  # copies that another one of their name stands for
    rules: dict[str, int] = field(default_factory=dict)  # dead letters by rule
    lost_fields: dict[str, int] = field(default_factory=dict)  # that a target cannot carry
    latency_sum: float = 0.0
    latencies: list[int] = field(  # deliveries by bucket of LATENCY_BUCKETS, then slower ones
        default_factory=lambda: [0] * (len(LATENCY_BUCKETS) + 1)
    )
    refusals: deque[Refusal] = field(  # the latest dead letters
        default_factory=lambda: deque(maxlen=MAX_REFUSALS)
    )
    refused: dict[str, Refusal] = field(default_factory=dict)  # the latest one by target endpoint

    @property
    def dead(self) -> int:
        """Dead letters, one for each message and target."""
        return sum(self.rules.values())


class RouteCounters(RouteTotals):
    """Counts the messages of one route.

    Thread-safe: guarded by self._lock.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def totals(self) -> RouteTotals:
        """Return a copy of the values now."""
        with self._lock:
            return RouteTotals(*(copy(getattr(self, each.name)) for each in fields(RouteTotals)))

    def add(self, count: Count) -> None:
        """Add messages; a latency is negative if the clock was set back, and then counts as 0."""
        latency = max(0.0, count.latency)
        with self._lock:
            self.received += count.received
            self.received_bytes += count.size
            self.spooled += count.spooled
            self.delivered += count.delivered
            self.latencies[bisect_left(LATENCY_BUCKETS, latency)] += count.delivered
            self.latency_sum += latency * count.delivered

    def count_left_out(self, reason: str) -> None:
        """Count a message that the route left out, for the rule of its cut."""
        name = _LEFT_OUT[reason]
        with self._lock:
            setattr(self, name, getattr(self, name) + 1)

    def count_refusal(self, refusal: Refusal) -> bool:
        """Count a dead letter; return whether it is the first of its rule."""
        rule, shown = refusal.rule, _shortened(refusal)
        endpoint = refusal.target.partition("#")[0].partition(":")[0]
        with self._lock:
            self.refusals.append(shown)
            self.refused[endpoint] = shown
            self.rules[rule] = self.rules.get(rule, 0) + 1
            return self.rules[rule] == 1

    def count_lost_field(self, field: str) -> None:
        with self._lock:
            self.lost_fields[field] = self.lost_fields.get(field, 0) + 1
