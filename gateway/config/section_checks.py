"""Checks of the sections `web` and `tracing`: exposure of the page, address of the collector."""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import urlsplit

from gateway.config.process import TracingRef, WebRef
from gateway.config.reader import Reader

SHORTEST: Final = 16  # characters of a token; one of 16 random ones is not found by trying
_At = tuple[str | int, ...]


def check_web(ref: WebRef, reader: Reader, at: _At) -> None:
    """Report what makes the page of `ref` unsafe, or impossible to serve."""
    _check_address(ref, reader, at)
    _check_token(ref, reader, at)
    _check_files(ref, reader, at)


def is_loopback(address: str) -> bool:
    """Whether only this machine, or this pod, reaches `address`."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _check_address(ref: WebRef, reader: Reader, at: _At) -> None:
    if is_loopback(ref.address) or ref.token is not None or ref.client_ca_file is not None:
        return
    reason = f"{ref.address!r} can be reached from elsewhere, and everyone may ask"
    hint = "set `token` or `client_ca_file`, or listen at 127.0.0.1"
    reader.report((*at, "address"), "open-page", reason, hint)


def _check_token(ref: WebRef, reader: Reader, at: _At) -> None:
    token = ref.token
    if token is None:
        return
    if len(token) < SHORTEST:
        reason = f"the token has {len(token)} characters, fewer than {SHORTEST}"
        hint = "make one with `openssl rand -hex 32`"
        reader.report((*at, "token"), "weak-token", reason, hint)
    elif not (token.isascii() and token.isprintable()) or " " in token:
        reason = "the token has characters that no header carries as they are"
        reader.report((*at, "token"), "bad-token", reason, "use letters, digits, '-', '_' and '.'")


def _check_files(ref: WebRef, reader: Reader, at: _At) -> None:
    for key in ("key_file", "client_ca_file"):
        if getattr(ref, key) is not None and ref.cert_file is None:
            reason = f"{key!r} without `cert_file`: nothing is encrypted"
            reader.report((*at, key), "no-certificate", reason, "set `cert_file`")


def check_tracing(ref: TracingRef, reader: Reader, at: _At) -> None:
    """Report what is wrong with the collector's address, and with how it is spoken to."""
    hint = "write http://HOST:4318 or https://HOST:4318"
    try:
        url = urlsplit(ref.otlp)
        known = url.scheme in {"http", "https"} and url.hostname and url.port != 0
    except ValueError:  # a port that is no number, a broken IPv6 address
        reader.report((*at, "otlp"), "bad-url", "the collector's address is no URL", hint)
        return
    if not known:
        reader.report((*at, "otlp"), "bad-url", "the collector's address is no URL", hint)
    elif url.username is not None or url.password is not None:
        reason = "the collector's address holds a name or a password"
        reader.report((*at, "otlp"), "bad-url", reason, "set `token`")
    if ref.ca_file is not None and url.scheme == "http":
        reason = "`ca_file` without https: nothing is encrypted"
        reader.report((*at, "ca_file"), "no-certificate", reason, "write https://")
    if ref.token is not None and not (ref.token.isascii() and ref.token.isprintable()):
        reason = "the token has characters that no header carries as they are"
        reader.report((*at, "token"), "bad-token", reason, "use letters, digits, '-', '_' and '.'")
