"""The web application: paths, authorization and response headers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from gateway.check.described_message import DescribedMessage
from gateway.check.given_headers import parse_properties
from gateway.config.section_checks import is_loopback
from gateway.errors import GatewayError
from gateway.lease.lease import Role
from gateway.routing.explain import MessageAt
from gateway.web.exchange import HttpError, HttpRequest, HttpResponse, as_json, as_text, parameters
from gateway.web.lookup import look_up, propose_route
from gateway.web.metrics import make_registry
from gateway.web.readiness import warnings
from gateway.web.route_details import names_json, route_details
from gateway.web.snapshot import StatusSnapshot, snapshot_json
from gateway.web.status_cache import StatusCache
from gateway.web.status_page import StatusPage
from gateway.web.token_guard import INTERVAL, Access, TokenGuard

Handler: TypeAlias = Callable[[HttpRequest], HttpResponse]
METHODS: Final = ("GET", "HEAD")
NO_CONTENT_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"
HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Cache-Control": "no-store",
        "Content-Security-Policy": NO_CONTENT_POLICY,
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }
)  # of every response
SLOW_PATHS: Final = frozenset({"/api/explain"})  # a response may take seconds
_HOST: Final = re.compile(  # RFC 9110, 7.2; without user information and zones
    r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9.-]+))(?::[0-9]{0,5})?", re.ASCII
)
_NUMBER: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
PROBE_PATHS: Final = frozenset({"/healthz", "/readyz"})
CHALLENGE: Final = MappingProxyType({"WWW-Authenticate": "Bearer"})
RETRY: Final = MappingProxyType({"Retry-After": f"{INTERVAL:.0f}"})  # in seconds


class WebApplication:
    """Answers read-only requests about one gateway.

    Without a token and without mutual TLS, only requests to a loopback name or address are
    answered. This prevents DNS rebinding: a page of another site cannot reach the gateway through
    a name that resolves to 127.0.0.1. With `mutual_tls` a client certificate replaces the token.
    """

    def __init__(
        self, statuses: StatusCache, tokens: Sequence[str] = (), *, mutual_tls: bool
    ) -> None:
        self._statuses = statuses
        self._guard = TokenGuard(tokens)
        self._local_only = not tokens and not mutual_tls
        self._registry = make_registry(statuses.snapshot)
        self._status_made: tuple[StatusSnapshot, HttpResponse] | None = None
        self._status_page = StatusPage(needs_token=bool(tokens))
        self._public: Mapping[str, Handler] = {
            "/": self._page,
            "/healthz": self._health,
            "/readyz": self._readiness,
        }
        self._guarded: Mapping[str, Handler] = {
            "/api/status": self._status,
            "/api/route": self._route,
            "/api/tail": self._tail,
            "/api/history": self._rates,
            "/api/explain": self._explain,
            "/metrics": self._metrics,
        }

    def use_tokens(self, tokens: Sequence[str]) -> None:
        """Take other tokens from now on; only for an application that has some."""
        self._guard.use(tokens)

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer any request; errors of the client become a status of 4xx."""
        try:
            return self._answer(request)
        except HttpError as error:
            return error.response()
        except GatewayError as error:  # for example, the spool cannot be read
            return as_json({"error": str(error)}, 503)

    def _answer(self, request: HttpRequest) -> HttpResponse:
        if request.method not in METHODS:
            raise HttpError(405, "only GET and HEAD", {"Allow": ", ".join(METHODS)})
        self._check_host(request)
        if (answer := self._public.get(request.path)) is not None:
            return answer(request)
        if (answer := self._guarded.get(request.path)) is None:
            raise HttpError(404, "no such page")
        access = self._access(request)
        if access is Access.DEFERRED:
            raise HttpError(429, "too many wrong tokens; try again", RETRY)
        if access is Access.REFUSED:
            raise HttpError(401, "send the token as `Authorization: Bearer`", CHALLENGE)
        return answer(request)

    def _check_host(self, request: HttpRequest) -> None:
        if not self._local_only:
            return
        host = _HOST.fullmatch(request.headers.get("host", ""))
        if host is None or not is_loopback(host["address"] or host["name"]):
            raise HttpError(403, "use a loopback name or address, or configure a token")

    def _access(self, request: HttpRequest) -> Access:
        return self._guard.check(request.headers.get("authorization", ""), request.peer)

    def _shows_reasons(self, request: HttpRequest) -> bool:
        return self._access(request) is Access.ALLOWED

    def _page(self, _: HttpRequest) -> HttpResponse:
        policy = {"Content-Security-Policy": self._status_page.policy}
        return HttpResponse(200, self._status_page.body, "text/html; charset=utf-8", policy)

    def _health(self, request: HttpRequest) -> HttpResponse:
        """Return 200, or 503 once a thread has ended; the reason is for authorized clients."""
        failure = self._statuses.thread_failure()
        shown = failure if self._shows_reasons(request) else "a thread ended"
        return as_text(f"{shown}\n", 503) if failure else as_text("ok\n")

    def _readiness(self, request: HttpRequest) -> HttpResponse:
        """Return 200 or 503; the reasons are only for authorized clients.

        A standby is ready for its part, and says so: it has no connection.
        """
        snapshot = self._statuses.snapshot()
        reasons, pair = snapshot.reasons, snapshot.status.pair
        shown: Sequence[str] = ()
        if self._shows_reasons(request):
            shown = (*reasons, *(f"warning: {each}" for each in warnings(snapshot.status)))
        ready = "standby" if pair is not None and pair.role == Role.STANDBY.value else "ready"
        text = "\n".join(["not ready" if reasons else ready, *shown])
        return as_text(text + "\n", 503 if reasons else 200)

    def _status(self, _: HttpRequest) -> HttpResponse:
        """Return the status; all clients get the same bytes of one snapshot."""
        snapshot = self._statuses.snapshot()
        made = self._status_made
        if made is None or made[0] is not snapshot:
            made = self._status_made = (snapshot, as_json(snapshot_json(snapshot)))
        return made[1]

    def _route(self, request: HttpRequest) -> HttpResponse:
        if (name := parameters(request).get("name")) is None:
            raise HttpError(400, "parameter 'name' is missing")
        found = route_details(name, self._statuses.snapshot(), self._statuses)
        if found is None:
            raise HttpError(404, "no such route")
        return as_json(found)

    def _tail(self, request: HttpRequest) -> HttpResponse:
        if (name := parameters(request).get("route")) is None:
            raise HttpError(400, "parameter 'route' is missing")
        if all(each.name != name for each in self._statuses.snapshot().status.routes):
            raise HttpError(404, "no such route")
        return as_json(names_json(name, self._statuses))

    def _rates(self, request: HttpRequest) -> HttpResponse:
        after = parameters(request).get("after", "0")
        if not _NUMBER.fullmatch(after):
            raise HttpError(400, "parameter 'after' is not the number of a sample")
        return as_json(self._statuses.history.since(int(after)))

    def sample(self) -> None:
        """Add a sample to the history of rates."""
        self._statuses.history.sample()

    def _explain(self, request: HttpRequest) -> HttpResponse:
        query = parameters(request)
        if "text" not in query:
            raise HttpError(400, "parameter 'text' is missing")
        kind, system = query.get("kind", "name"), query.get("system", "")
        found: dict[str, Any] = look_up(
            query["text"], system, kind, self._statuses.routes(), self._message_at(query)
        )
        if kind == "name" and (wanted := query.get("wanted")):
            target, routes = query.get("target", ""), self._statuses.routes()
            found["proposal"] = propose_route(
                query["text"], found["system"], wanted, target, routes
            )
        hide = self._statuses.hide
        for route in (*found["routes"], *found["not_taken"]):
            shown = route.keys() & {"pattern", "selector", "why_not"}
            route |= {key: hide(route[key]) for key in shown}
        return as_json(found)

    def _message_at(self, query: Mapping[str, str]) -> MessageAt | None:
        """Return the message of a query at the source of a route; None for a name alone.

        Raises:
            HttpError: a property is illegal.
        """
        try:
            properties = parse_properties(query.get("properties", "").splitlines())
            given = DescribedMessage(query["text"], properties, query.get("payload"))
        except GatewayError as error:
            raise HttpError(400, str(error)) from error
        return (lambda route: given.at(self._statuses.settings(route.endpoint))) if given else None

    def _metrics(self, _: HttpRequest) -> HttpResponse:
        return HttpResponse(200, generate_latest(self._registry), CONTENT_TYPE_PLAIN_0_0_4)
