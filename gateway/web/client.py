"""A client of a running gateway's web server; it uses no proxy."""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Final, cast
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

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
        try:
            scheme = urlsplit(options.url).scheme
        except ValueError:  # brackets without an IPv6 address between them
            scheme = ""
        if scheme not in {"http", "https"}:
            raise WebError(f"{options.url}: not the URL of a gateway; write http:// or https://")
        self._url = options.url.rstrip("/")
        self._token = _read_token(options.token_file) or options.token
        self._opener = _make_opener(options)

    def status(self) -> Json:
        """Return the response of `/api/status`.

        Raises:
            WebError: there is no response, or its status is an error.
        """
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        request = Request(f"{self._url}/api/status", headers=headers)  # noqa: S310  # checked above
        try:
            with self._opener.open(request, timeout=RESPONSE_TIMEOUT) as response:
                found = json.loads(response.read(MAX_RESPONSE_BYTES))
        except HTTPError as error:
            raise WebError(f"{self._url}: {_describe(error, token=self._token)}") from error
        except URLError as error:
            hint = "is it running, with a section `web` in its configuration?"
            reason = getattr(error.reason, "strerror", None) or error.reason
            raise NoAnswerError(f"{self._url}: no answer: {reason}; {hint}") from error
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            raise WebError(f"{self._url}: not the answer of a gateway: {error}") from error
        if not isinstance(found, dict) or "routes" not in found:
            raise WebError(f"{self._url}: not the answer of a gateway: it has no routes")
        return cast("Json", found)


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirect: the token is for the gateway at the URL, and for no other server."""

    def redirect_request(self, *_: object) -> None:
        """Return no request; the redirect becomes an HTTPError."""


def _describe(error: HTTPError, *, token: str) -> str:
    with error:
        if error.code in REDIRECTS:
            return f"the answer is a redirect ({error.code}); write the address of the gateway"
        if error.code == 401:  # noqa: PLR2004  # Unauthorized
            reason = "the token is wrong" if token else "it needs a token"
            return (
                f"{reason}; give the file that `web.token` of its configuration names with"
                " --token-file"
            )
        return f"the gateway answers {error.code} {error.reason}"


def _read_token(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise WebError(f"{path}: cannot read the token: {error}") from error


def _make_opener(options: ConnectionOptions) -> OpenerDirector:
    try:
        context = ssl.create_default_context(cafile=options.ca_file)
        if options.cert_file is not None:
            context.load_cert_chain(options.cert_file, options.key_file)
    except OSError as error:  # includes ssl.SSLError
        raise WebError(
            f"{options.ca_file or options.cert_file}: cannot be used: {error}"
        ) from error
    return build_opener(ProxyHandler({}), HTTPSHandler(context=context), _NoRedirects())
