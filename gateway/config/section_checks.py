"""Checks of the sections `archive`, `standby`, `web` and `tracing`."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from gateway.config.nodes import KeyPath
from gateway.config.process import LeaseSettings, TracingSettings, WebSettings
from gateway.config.value_reader import ConfigReader

MIN_TOKEN_LENGTH = 16  # characters; 16 random ones cannot be guessed


def check_seal_key(key: str, reader: ConfigReader, at: KeyPath) -> None:
    """Report a key that can be guessed."""
    if len(key) < MIN_TOKEN_LENGTH:
        reason = f"the key has {len(key)} characters, fewer than {MIN_TOKEN_LENGTH}"
        reader.report(at, "weak-key", reason, "make one with `openssl rand -hex 32`")


def check_lease(lease: LeaseSettings, reader: ConfigReader, at: KeyPath) -> None:
    """Report a lease in a folder without the folder, and keys of the other kind."""
    if lease.kind == "file" and lease.path is None:
        hint = "write `path: /shared/lease`, a folder that both hosts reach"
        reader.report(at, "missing", "a lease of `kind: file` needs a `path`", hint)
    for key in ("path",) if lease.kind == "kubernetes" else ("name", "namespace"):
        if getattr(lease, key) is not None:
            reader.report((*at, key), "unused", f"`kind: {lease.kind}` has no {key!r}", "remove it")


def check_web(web: WebSettings, reader: ConfigReader, at: KeyPath) -> None:
    """Report settings that make the page unsafe, or impossible to serve."""
    _check_address(web, reader, at)
    for key in ("token", "previous_token"):
        _check_token(getattr(web, key), reader, (*at, key))
    if web.previous_token is not None and web.token is None:
        reason = "'previous_token' without `token`"
        reader.report((*at, "previous_token"), "unused", reason, "write it as `token`")
    _check_files(web, reader, at)


def is_loopback(address: str) -> bool:
    """Return whether `address` is reachable only from this machine, or this pod."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _check_address(web: WebSettings, reader: ConfigReader, at: KeyPath) -> None:
    if is_loopback(web.address) or web.token is not None or web.client_ca_file is not None:
        return
    reason = f"{web.address!r} is reachable from other machines without authentication"
    hint = "set `token` or `client_ca_file`, or listen at 127.0.0.1"
    reader.report((*at, "address"), "open-page", reason, hint)


def _check_token(token: str | None, reader: ConfigReader, at: KeyPath) -> None:
    if token is None:
        return
    if len(token) < MIN_TOKEN_LENGTH:
        reason = f"the token has {len(token)} characters, fewer than {MIN_TOKEN_LENGTH}"
        hint = "make one with `openssl rand -hex 32`"
        reader.report(at, "weak-token", reason, hint)
    elif not (token.isascii() and token.isprintable()) or " " in token:
        reason = "the token has characters that an HTTP header cannot carry"
        reader.report(at, "bad-token", reason, "use letters, digits, '-', '_' and '.'")


def _check_files(web: WebSettings, reader: ConfigReader, at: KeyPath) -> None:
    for key in ("key_file", "client_ca_file"):
        if getattr(web, key) is not None and web.cert_file is None:
            reason = f"{key!r} without `cert_file`: connections are not encrypted"
            reader.report((*at, key), "no-certificate", reason, "set `cert_file`")


def check_tracing(tracing: TracingSettings, reader: ConfigReader, at: KeyPath) -> None:
    """Report faults of the collector's address and of the credentials for it."""
    hint = "write http://HOST:4318 or https://HOST:4318"
    try:
        url = urlsplit(tracing.otlp)
        complete = url.scheme in {"http", "https"} and url.hostname and url.port != 0
    except ValueError:  # a port that is not a number, an invalid IPv6 address
        reader.report((*at, "otlp"), "bad-url", "the collector's address is not an HTTP URL", hint)
        return
    if not complete:
        reader.report((*at, "otlp"), "bad-url", "the collector's address is not an HTTP URL", hint)
    elif url.username is not None or url.password is not None:
        reason = "the collector's address contains a user name or password"
        reader.report((*at, "otlp"), "bad-url", reason, "set `token`")
    if tracing.ca_file is not None and url.scheme == "http":
        reason = "`ca_file` without https: the connection is not encrypted"
        reader.report((*at, "ca_file"), "no-certificate", reason, "write https://")
    if tracing.token is not None and not (tracing.token.isascii() and tracing.token.isprintable()):
        reason = "the token has characters that an HTTP header cannot carry"
        reader.report((*at, "token"), "bad-token", reason, "use letters, digits, '-', '_' and '.'")
