"""A client of a running gateway's web server; it uses no proxy."""

from __future__ import annotations

import json
import ssl
from contextlib import closing, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Final, cast
from urllib.parse import SplitResult, urlsplit

from gateway.deadline import answered_within
from gateway.errors import NoAnswerError, WebError
from gateway.web.snapshot import Json

RESPONSE_TIMEOUT: Final = 10.0  # seconds
REDIRECTS: Final = (301, 302, 303, 307, 308)
MAX_RESPONSE_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """The URL of a gateway, and the credentials to present; files are PEM."""

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    token: str = ""  # used without a file


class StatusClient:
    """Reads the status of one gateway.

    Raises:
        WebError: the URL is invalid, or a file of `options` cannot be used.
    """

    def __init__(self, options: ConnectionOptions) -> None:
        self._url = options.url.rstrip("/")
        self._parts = _split(options.url)
        self._token = _read_token(options.token_file) or options.token
        self._tls = _make_context(options)

    def status(self) -> Json:
        """Return the response of `/api/status`.

        Raises:
            WebError: there is no response, or its status is an error.
        """
        with closing(self._connected()) as connection:
            try:
                with answered_within(RESPONSE_TIMEOUT, connection.sock):
                    response, content = self._ask(connection)
                found = json.loads(content) if response.status == HTTPStatus.OK else None
            except (OSError, HTTPException, ValueError, RecursionError) as error:
                raise WebError(f"{self._url}: not the answer of a gateway: {error}") from error
        if response.status != HTTPStatus.OK:
            raise WebError(f"{self._url}: {_describe(response, token=self._token)}")
        if not isinstance(found, dict) or "routes" not in found:
            raise WebError(f"{self._url}: not the answer of a gateway: it has no routes")
        return cast("Json", found)

    def _connected(self) -> HTTPConnection:
        """Raises NoAnswerError when nobody answers at the address."""
        host, port = self._parts.hostname or "", self._parts.port
        connection = (
            HTTPConnection(host, port, timeout=RESPONSE_TIMEOUT)
            if self._parts.scheme == "http"
            else HTTPSConnection(host, port, timeout=RESPONSE_TIMEOUT, context=self._tls)
        )
        try:
            connection.connect()
        except OSError as error:
            hint = "is it running with a section `web`? CONFIG or --url says where"
            reason = error.strerror or error
            raise NoAnswerError(f"{self._url}: no answer: {reason}; {hint}") from error
        return connection

    def _ask(self, connection: HTTPConnection) -> tuple[HTTPResponse, bytes]:
        """Return the answer. No redirect is followed: the token is for this server only."""
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        connection.request("GET", f"{self._parts.path.rstrip('/')}/api/status", headers=headers)
        response = connection.getresponse()
        return response, response.read(MAX_RESPONSE_BYTES)


def _describe(response: HTTPResponse, *, token: str) -> str:
    if response.status in REDIRECTS:
        return f"the answer is a redirect ({response.status}); write the address of the gateway"
    if response.status == HTTPStatus.UNAUTHORIZED:
        reason = "the token is wrong" if token else "it needs a token"
        return (
            f"{reason}; give CONFIG, and the variable or file that its `web.token` names, or a file"
            " with --token-file"
        )
    return f"the gateway answers {response.status} {response.reason}"


def _read_token(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise WebError(f"{path}: cannot read the token: {error}") from error


def _split(url: str) -> SplitResult:
    with suppress(ValueError):  # an IPv6 address without its brackets, a port that is not a number
        parts = urlsplit(url)
        if parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0:
            return parts
    raise WebError(f"{url}: not the URL of a gateway; write http:// or https://")


def _make_context(options: ConnectionOptions) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.ca_file)
        if options.cert_file is not None:
            context.load_cert_chain(options.cert_file, options.key_file)
    except OSError as error:  # includes ssl.SSLError
        raise WebError(
            f"{options.ca_file or options.cert_file}: cannot be used: {error}"
        ) from error
    return context
