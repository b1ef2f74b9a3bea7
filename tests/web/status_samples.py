"""Sample statuses, and a web server that serves them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from types import MappingProxyType

from gateway.config.process import WebSettings
from gateway.endpoints.settings.base import EndpointSettings
from gateway.routing.route import Route
from gateway.runtime.record.counters import LATENCY_BUCKETS, Refusal, RouteTotals
from gateway.runtime.record.loop_suspicions import SuspectedLoop
from gateway.runtime.record.recent_names import SeenMessage
from gateway.runtime.status import EndpointStatus, PairStatus, RouteStatus, Status
from gateway.web.application import WebApplication
from gateway.web.rate_history import RateHistory
from gateway.web.readiness import reasons
from gateway.web.server import WebServer
from gateway.web.snapshot import StatusSnapshot, latest_refusals
from gateway.web.status_cache import StatusCache

START = 1_790_000_000
LOCAL = {"host": "127.0.0.1:8047"}


SUSPECTED = SuspectedLoop(
    "plant", "telemetry", "line/1", "is its heartbeat, and came back", START * 1_000_000
)
HOLDER = PairStatus("a", "holder", 7, 60.0, "a", ("b",))
STANDBY = PairStatus("b", "standby", 6, 60.0, "a", (), "lease: the disk is away")


def route(name: str = "telemetry", **facts: object) -> RouteStatus:
    totals = RouteTotals(
        received=10,
        received_bytes=1_000,
        delivered=9,
        latency_sum=0.009,
        latencies=[9, *[0] * len(LATENCY_BUCKETS)],
    )
    pattern = "plant line/{line}/{rest...}"
    names = ("office hall/{line}/{rest...}",)
    plain = RouteStatus(
        name, pattern, ("office",), "at_least_once", totals, heartbeat_age=None, target_names=names
    )
    return changed(plain, **facts)


def changed(status: RouteStatus, **facts: object) -> RouteStatus:
    """The status with other values; they may be totals."""
    own = {each.name: facts.pop(each.name) for each in fields(RouteTotals) if each.name in facts}
    totals = replace(status.totals, **own)  # type: ignore[arg-type]  # the fields of a table's row
    return replace(status, totals=totals, **facts)  # type: ignore[arg-type]  # likewise


def endpoint(name: str = "plant", side: str = "source", **facts: object) -> EndpointStatus:
    plain = EndpointStatus(name, side, "mqtt", "connected", "", 0, 60.0)
    return replace(plain, **facts)  # type: ignore[arg-type]  # as above


def status(**facts: object) -> Status:
    plain = Status(
        gateway="plant-1",
        version="1.2.3",
        started=START * 1_000_000,
        reloaded=START * 1_000_000,
        heartbeat_seconds=10.0,
        endpoints=(endpoint(), endpoint("office", "sink", system="ems")),
        routes=(route(),),
        archive_queued=0,
        archive_failure="",
        spool_failure="",
        thread_failure="",
        dead_letters=0,
        dead_letter_bytes=0,
        dead_letters_dropped=0,
        dead_letters_sent_again=0,
    )
    return replace(plain, **facts)  # type: ignore[arg-type]  # as above


def refusal(name: str = "line/1/x", at: int = START, **facts: str) -> Refusal:
    plain = Refusal(at * 1_000_000, name, "too-long", "ems: is 300 characters, limit 246")
    return replace(plain, **facts)  # type: ignore[arg-type]  # as above


def busy(turn: int) -> Status:
    """Return 1,000 routes, 100 of them with traffic since the previous turn."""
    routes = (
        route(f"route-{n}", received=10 + (turn if n < 100 else 0), heartbeat_age=3.0)
        for n in range(1_000)
    )
    return status(routes=tuple(routes))


class FakeStatus(StatusCache):
    """A cache with a given status.

    Mutable: a test replaces `status`; the next snapshot has it.
    """

    def __init__(
        self,
        status: Status,
        routes: Sequence[Route] = (),
        settings: Mapping[str, EndpointSettings] = MappingProxyType({}),
    ) -> None:
        """`settings` by endpoint."""
        self.status = status
        self._routes, self._settings = routes, settings
        self.seen: dict[str, Sequence[SeenMessage]] = {}  # by route
        self.seconds = 0.0  # of the clock of the history
        self.history = RateHistory(self._counts, lambda: self.seconds)

    def snapshot(self) -> StatusSnapshot:
        unready = tuple(reasons(self.status, 80))
        refusals = latest_refusals(self.status.routes)
        expiries = {"web.cert_file": START + 86_400.0}
        return StatusSnapshot(self.status, time.time(), "gateway.yaml", unready, refusals, expiries)

    def routes(self) -> Sequence[Route]:
        return self._routes

    def settings(self, endpoint: str) -> EndpointSettings:
        return self._settings[endpoint]

    def recent_names(self, route: str) -> Sequence[SeenMessage]:
        return self.seen.get(route, ())

    def hide(self, text: str) -> str:
        return text

    def redact(self, text: str) -> str:
        return text

    def thread_failure(self) -> str:
        return self.status.thread_failure

    def _counts(self) -> dict[str, int]:
        counts = {f"route {each.name}": each.totals.received for each in self.status.routes}
        return counts | {f"{end.side} {end.name}": end.messages for end in self.status.endpoints}


@contextmanager
def served(shown: FakeStatus, ref: WebSettings | None = None) -> Iterator[WebServer]:
    """Run a server on a free port of loopback."""
    ref = ref or WebSettings(port=0)
    mutual_tls = ref.client_ca_file is not None
    server = WebServer(WebApplication(shown, ref.tokens, mutual_tls=mutual_tls), ref)
    server.start()
    try:
        yield server
    finally:
        server.stop()
