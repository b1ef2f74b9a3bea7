"""HTTP requests, responses and errors as values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qs

import h11

from gateway.web.connection_limits import PeerConnection

MAX_PARAMETERS: Final = 8  # of one query
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
JSON_TYPE: Final = "application/json"
TEXT_TYPE: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request; the names of `headers` are in lower case."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    peer: PeerConnection = field(default_factory=lambda: PeerConnection("", 0.0))


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response; `headers` are added to those of every response."""

    status: int
    body: bytes
    type: str = TEXT_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpError(Exception):
    """An error response: its status, its reason, and its headers."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] = NO_HEADERS) -> None:
        super().__init__(reason)
        self.status, self.headers = status, headers

    def response(self) -> HttpResponse:
        return as_json({"error": str(self)}, self.status, self.headers)


def request_of_event(event: h11.Request) -> HttpRequest:
    """Convert a request; header names are in lower case, and the last of a repeated one wins.

    Raises:
        RemoteProtocolError: the end of the body, or the token, could be read in two ways.
    """
    headers = {name.decode("ascii"): value.decode("latin-1") for name, value in event.headers}
    names = [name for name, _ in event.headers]
    if "transfer-encoding" in headers and (  # RFC 9112, 6.1 and 6.3
        "content-length" in headers or event.http_version < b"1.1"
    ):
        raise h11.RemoteProtocolError("two lengths of one body", error_status_hint=400)
    if names.count(b"authorization") > 1:
        raise h11.RemoteProtocolError("two tokens", error_status_hint=400)
    path, _, query = event.target.decode("latin-1").partition("?")
    return HttpRequest(event.method.decode("ascii"), path, query, headers)


def parameters(request: HttpRequest) -> dict[str, str]:
    """Return the parameters of the query.

    Raises:
        HttpError: a parameter is repeated or not UTF-8, or there are too many.
    """
    try:
        found = parse_qs(
            request.query, keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS
        )
    except ValueError as error:
        raise HttpError(400, "the query is not a list of parameters in UTF-8") from error
    if repeated := [key for key, values in found.items() if len(values) > 1]:
        raise HttpError(400, f"parameter {repeated[0]!r} is given twice")
    return {key: values[0] for key, values in found.items()}


def as_json(
    value: object, status: int = 200, headers: Mapping[str, str] = NO_HEADERS
) -> HttpResponse:
    body = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
    return HttpResponse(status, body, JSON_TYPE, headers)


def as_text(text: str, status: int = 200) -> HttpResponse:
    return HttpResponse(status, text.encode("utf-8", "backslashreplace"))
