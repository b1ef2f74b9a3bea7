"""Asks a running gateway over its page's interface; it never goes through a proxy."""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Final, cast
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

from gateway.errors import WebError
from gateway.web.view import Json

PATIENCE: Final = 10.0  # seconds for an answer
MOST: Final = 64 << 20  # bytes of an answer


@dataclass(frozen=True, slots=True)
class Way:
    """How to reach a gateway, and what to show it; files are PEM."""

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None


class Client:
    """Asks one gateway.

    Raises:
        WebError: the address is no URL, or a file of `way` cannot be used.
    """

    def __init__(self, way: Way) -> None:
        if urlsplit(way.url).scheme not in {"http", "https"}:
            raise WebError(f"{way.url}: is no address of a gateway; write http:// or https://")
        self._url = way.url.rstrip("/")
        self._token = _token(way.token_file)
        self._opener = _opener(way)

    def status(self) -> Json:
        """What `/api/status` says.

        Raises:
            WebError: there is no answer, or it is a refusal.
        """
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        request = Request(f"{self._url}/api/status", headers=headers)  # noqa: S310  # checked above
        try:
            with self._opener.open(request, timeout=PATIENCE) as answer:
                found = json.loads(answer.read(MOST))
        except HTTPError as error:
            raise WebError(f"{self._url}: {_refusal(error)}") from error
        except URLError as error:
            hint = "is it running, with a section `web` in its configuration?"
            said = getattr(error.reason, "strerror", None) or error.reason
            raise WebError(f"{self._url}: no answer: {said}; {hint}") from error
        except (OSError, HTTPException, ValueError) as error:
            raise WebError(f"{self._url}: no answer of a gateway: {error}") from error
        if not isinstance(found, dict) or "routes" not in found:
            raise WebError(f"{self._url}: no answer of a gateway: it has no routes")
        return cast("Json", found)


def _refusal(error: HTTPError) -> str:
    with error:
        if error.code == 401:  # noqa: PLR2004  # HTTP's own
            return "it wants another token; give it with --token-file"
        return f"it answers {error.code} {error.reason}"


def _token(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise WebError(f"{path}: cannot read the token: {error}") from error


def _opener(way: Way) -> OpenerDirector:
    try:
        context = ssl.create_default_context(cafile=way.ca_file)
        if way.cert_file is not None:
            context.load_cert_chain(way.cert_file, way.key_file)
    except OSError as error:  # ssl.SSLError is one
        raise WebError(f"{way.ca_file or way.cert_file}: cannot be used: {error}") from error
    return build_opener(ProxyHandler({}), HTTPSHandler(context=context))
