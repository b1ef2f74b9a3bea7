"""Takes the status of a running gateway, at most twice a second however many ask."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from gateway.config.load import Configuration
from gateway.logs.redaction import Redactor, secrets_of
from gateway.routing.route import Route
from gateway.runtime.gateway import Gateway
from gateway.runtime.monitor.counters import Refusal
from gateway.runtime.monitor.status import EndpointStatus, Status, take_status
from gateway.web.readiness import reasons
from gateway.web.view import Moment, Shown, latest

FRESH: Final = 0.5  # seconds for which one status serves everybody
SOON: Final = 0.05  # the same while it is not ready: who waits for that shall not wait for us
SHARE: Final = 10  # but not before this many times what the look took


class Observed(Protocol):
    """What the page shows."""

    def moment(self) -> Moment:
        """The status of now, or of half a second ago at most."""

    def routes(self) -> Sequence[Route]:
        """The routes that run."""


class Observer:
    """Looks at a gateway for many readers; mutable, it keeps the last look."""

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
        self._last: Moment | None = None
        self._until = 0.0
        self._known: Configuration | None = None  # whose secrets are hidden
        self._redactor = Redactor()

    def moment(self) -> Moment:
        with self._lock:
            if self._last is None or self._clock() >= self._until:
                began = self._clock()
                self._last = self._take()
                ended = self._clock()
                soon = max(SOON, SHARE * (ended - began))
                self._until = ended + (min(soon, FRESH) if self._last.reasons else FRESH)
            return self._last

    def routes(self) -> Sequence[Route]:
        configuration: Configuration = self._running.configuration
        return configuration.routes

    def _take(self) -> Moment:
        configuration = self._running.configuration
        if configuration is not self._known:
            self._known = configuration
            self._redactor.hide(secrets_of(configuration))
        status = redacted(take_status(self._running), self._redactor.redact)
        found = tuple(reasons(status, self._spool_percent))
        refusals = tuple(
            Shown(each.route, self._hidden(each.refusal)) for each in latest(status.routes)
        )
        return Moment(status, time.time(), self._config, found, refusals)

    def _hidden(self, refusal: Refusal) -> Refusal:
        redact = self._redactor.redact
        return replace(refusal, name=redact(refusal.name), reason=redact(refusal.reason))


def redacted(status: Status, redact: Callable[[str], str]) -> Status:
    """The status without the secrets that a driver or a broker may have repeated."""

    def end(each: EndpointStatus) -> EndpointStatus:
        return replace(each, reason=redact(each.reason)) if each.reason else each

    return replace(
        status,
        endpoints=tuple(map(end, status.endpoints)),
        archive_failure=redact(status.archive_failure),
        spool_failure=redact(status.spool_failure),
    )
