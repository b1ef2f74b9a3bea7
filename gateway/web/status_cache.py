"""A cache of the status: one snapshot serves all clients for half a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from gateway.config.load import Configuration
from gateway.endpoints.settings.base import EndpointSettings
from gateway.logs.redaction import Redactor, secrets_of
from gateway.routing.route import Route
from gateway.runtime.gateway import Gateway
from gateway.runtime.record.recent_names import SeenMessage
from gateway.runtime.status import Status, take_status
from gateway.web.certificates import expiries
from gateway.web.rate_history import RateHistory, message_counts
from gateway.web.readiness import reasons
from gateway.web.snapshot import StatusSnapshot, latest_refusals

MAX_AGE: Final = 0.5  # seconds
MAX_AGE_NOT_READY: Final = 0.05  # seconds; a client that waits for readiness sees it at once
MIN_AGE_FACTOR: Final = 10  # a snapshot is kept at least this many times as long as it took


class StatusCache:
    """Caches the status of a running gateway, and has its routes and its history of rates.

    Thread-safe: guarded by self._lock.
    """

    def __init__(
        self,
        running: Gateway,
        config: str,
        spool_percent: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._running = running
        self._config = config
        self._spool_percent = spool_percent
        self._clock = clock
        self._lock = threading.Lock()
        self._snapshot: StatusSnapshot | None = None
        self._expires = 0.0
        self._redacted: Configuration | None = None  # the configuration whose secrets are redacted
        self._redactor = Redactor()
        self._expiries: dict[str, float] = {}
        self.history = RateHistory(partial(message_counts, running))

    def snapshot(self) -> StatusSnapshot:
        """Return a status that is at most half a second old."""
        with self._lock:
            if self._snapshot is None or self._clock() >= self._expires:
                started = self._clock()
                self._snapshot = self._take()
                ended = self._clock()
                age = max(MAX_AGE_NOT_READY, MIN_AGE_FACTOR * (ended - started))
                self._expires = ended + (min(age, MAX_AGE) if self._snapshot.reasons else MAX_AGE)
            return self._snapshot

    def routes(self) -> Sequence[Route]:
        """Return the active routes."""
        return self._running.configuration.routes

    def settings(self, endpoint: str) -> EndpointSettings:
        """Return the settings of an active endpoint."""
        return self._running.configuration.endpoints[endpoint].settings

    def recent_names(self, route: str) -> Sequence[SeenMessage]:
        """Return the latest messages of a route since somebody looks, newest first."""
        return self._running.recent_names.ask(route)

    def hide(self, text: str) -> str:
        """Return a text of a route without the values of references."""
        return self._running.configuration.hidden.hide(text, ("routes",))

    def redact(self, text: str) -> str:
        """Return a text of a driver, a broker or a message without secrets."""
        return self._redactor.redact(text)

    def thread_failure(self) -> str:
        """Return why a thread ended, without secrets; empty while all run. It never waits."""
        return self.redact(self._running.thread_failure)

    def _take(self) -> StatusSnapshot:
        configuration = self._running.configuration
        if configuration is not self._redacted:
            self._redacted = configuration
            self._redactor.hide(secrets_of(configuration))
            self._expiries = expiries(configuration.paths)  # a reload takes other files into use
        status = redacted(take_status(self._running), self.redact)
        hide = configuration.hidden.hide
        routes = (
            replace(
                each,
                source=hide(each.source, ("routes", each.name)),
                target_names=tuple(hide(one, ("routes", each.name)) for one in each.target_names),
            )
            for each in status.routes
        )
        endpoints = (
            replace(each, address=hide(each.address, ("endpoints", each.name)))
            for each in status.endpoints
        )
        status = replace(status, routes=tuple(routes), endpoints=tuple(endpoints))
        unready = tuple(reasons(status, self._spool_percent))
        refusals = latest_refusals(status.routes, self.redact)
        return StatusSnapshot(status, time.time(), self._config, unready, refusals, self._expiries)


def redacted(status: Status, redact: Callable[[str], str]) -> Status:
    """Return the status without secrets, which a driver or a broker may repeat in its errors."""
    return replace(
        status,
        endpoints=tuple(replace(end, reason=redact(end.reason)) for end in status.endpoints),
        suspected_loops=tuple(
            replace(loop, name=redact(loop.name)) for loop in status.suspected_loops
        ),
        archive_failure=redact(status.archive_failure),
        spool_failure=redact(status.spool_failure),
        thread_failure=redact(status.thread_failure),
        reload_refused=redact(status.reload_refused),
        pair=status.pair and replace(status.pair, failure=redact(status.pair.failure)),
    )
