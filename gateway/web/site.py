"""Which path answers what, to whom, and with which headers; it opens no socket."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from gateway.config.section_checks import is_loopback
from gateway.errors import GatewayError
from gateway.web.document import Document
from gateway.web.exchange import (
    RefusedError,
    Request,
    Response,
    as_json,
    as_text,
    parameters,
)
from gateway.web.exposition import TYPE, exposition
from gateway.web.lookup import LookupRefusedError, look_up
from gateway.web.metrics import make_registry
from gateway.web.observer import Observed
from gateway.web.view import view

Answer: TypeAlias = Callable[[Request], Response]
METHODS: Final = ("GET", "HEAD")
CLOSED: Final = "default-src 'none'; frame-ancestors 'none'"
HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Cache-Control": "no-store",
        "Content-Security-Policy": CLOSED,
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }
)  # of every response
SLOW: Final = frozenset({"/api/explain"})  # paths whose answer may take seconds
CHALLENGE: Final = MappingProxyType({"WWW-Authenticate": "Bearer"})


class Site:
    """Answers requests about one gateway; it changes nothing, and asks no broker.

    Without a token it answers only those who call it by a name of this machine, so that no page
    of another site reaches it through a name that turns into 127.0.0.1. `proven` clients have
    shown a certificate, which does as well as a token.
    """

    def __init__(self, observed: Observed, token: str | None = None, *, proven: bool) -> None:
        self._observed = observed
        self._token = token
        self._proven = proven
        self._registry = make_registry(observed.moment)
        self._document = Document(asks_token=token is not None)
        self._open: Mapping[str, Answer] = {
            "/": self._page,
            "/healthz": self._health,
            "/readyz": self._readiness,
        }
        self._guarded: Mapping[str, Answer] = {
            "/api/status": self._status,
            "/api/explain": self._explain,
            "/metrics": self._metrics,
        }

    def answer(self, request: Request) -> Response:
        """The answer to any request; what is wrong with it becomes a status of 4xx."""
        try:
            return self._answer(request)
        except RefusedError as error:
            return error.response()
        except LookupRefusedError as error:
            return as_json({"error": str(error)}, 400)
        except GatewayError as error:  # the spool's file cannot be read, say
            return as_json({"error": str(error)}, 503)

    def _answer(self, request: Request) -> Response:
        if request.method not in METHODS:
            raise RefusedError(405, "only GET and HEAD", {"Allow": ", ".join(METHODS)})
        self._check_host(request)
        if (answer := self._open.get(request.path)) is not None:
            return answer(request)
        if (answer := self._guarded.get(request.path)) is None:
            raise RefusedError(404, "there is no such page")
        if not self._allowed(request):
            raise RefusedError(401, "show the token as `Authorization: Bearer`", CHALLENGE)
        return answer(request)

    def _check_host(self, request: Request) -> None:
        if self._token is not None or self._proven:
            return
        host = request.headers.get("host", "")
        if not is_loopback(_without_port(host)):
            raise RefusedError(403, "call it by a name of this machine, or set a token")

    def _allowed(self, request: Request) -> bool:
        if self._token is None:
            return True
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(shown.strip().encode(), self._token.encode())
        return scheme.lower() == "bearer" and same

    def _page(self, _: Request) -> Response:
        policy = {"Content-Security-Policy": self._document.policy}
        return Response(200, self._document.body, "text/html; charset=utf-8", policy)

    def _health(self, _: Request) -> Response:
        return as_text("ok\n")

    def _readiness(self, request: Request) -> Response:
        """Why it is not ready is told to those who may know."""
        reasons = self._observed.moment().reasons
        shown = reasons if self._allowed(request) else ()
        text = "\n".join(["not ready" if reasons else "ready", *shown])
        return as_text(text + "\n", 503 if reasons else 200)

    def _status(self, _: Request) -> Response:
        return as_json(view(self._observed.moment()))

    def _explain(self, request: Request) -> Response:
        given = parameters(request)
        if missing := {"text", "system"} - given.keys():
            raise RefusedError(400, f"parameter {min(missing)!r} is missing")
        kind = given.get("kind", "name")
        return as_json(look_up(given["text"], given["system"], kind, self._observed.routes()))

    def _metrics(self, _: Request) -> Response:
        return Response(200, exposition(self._registry), TYPE)


def _without_port(host: str) -> str:
    """The name or address of a Host header: `[::1]:80` is `::1`."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
