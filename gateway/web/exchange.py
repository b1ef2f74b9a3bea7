"""One HTTP request and its response as values; it opens no socket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qs

FIELDS: Final = 8  # parameters of one request
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
JSON_TYPE: Final = "application/json"
TEXT_TYPE: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks; `headers` have their names in lower case."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """What it is told; `headers` beside those that every response has."""

    status: int
    body: bytes
    type: str = TEXT_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)


class RefusedError(Exception):
    """A request that is refused, with the HTTP status that says so."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] = NO_HEADERS) -> None:
        super().__init__(reason)
        self.status, self.headers = status, headers

    def response(self) -> Response:
        return as_json({"error": str(self)}, self.status, self.headers)


def request_of(method: str, target: str, headers: Mapping[str, str]) -> Request:
    """A request for `target`, the path and the query as they stand in the first line."""
    path, _, query = target.partition("?")
    return Request(method, path, query, headers)


def parameters(request: Request) -> dict[str, str]:
    """The parameters of the query, each once.

    Raises:
        RefusedError: one comes twice, there are too many, or one is not UTF-8.
    """
    try:
        found = parse_qs(
            request.query, keep_blank_values=True, errors="strict", max_num_fields=FIELDS
        )
    except ValueError as error:
        raise RefusedError(400, "the query is no list of parameters in UTF-8") from error
    if twice := [key for key, values in found.items() if len(values) > 1]:
        raise RefusedError(400, f"parameter {twice[0]!r} comes twice")
    return {key: values[0] for key, values in found.items()}


def as_json(value: object, status: int = 200, headers: Mapping[str, str] = NO_HEADERS) -> Response:
    body = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
    return Response(status, body, JSON_TYPE, headers)


def as_text(text: str, status: int = 200) -> Response:
    return Response(status, text.encode("utf-8", "backslashreplace"))
