"""Checks of the sections `archive`, `standby`, `web` and `tracing`."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from gateway.archive.location import parse_location
from gateway.config.nodes import KeyPath
from gateway.config.process import (
    ArchiveSettings,
    GatewaySettings,
    StandbySettings,
    TracingSettings,
    WebSettings,
)
from gateway.config.schema import is_legal_name
from gateway.config.value_reader import ConfigReader
from gateway.errors import ArchiveError

MIN_TOKEN_LENGTH = 16  # characters; 16 random ones cannot be guessed


def _check_archive(archive: ArchiveSettings, reader: ConfigReader, at: KeyPath) -> None:
    """Report a path that is no location, and a key that can be guessed."""
    try:
        parse_location(archive.path)
    except ArchiveError as error:
        reader.report((*at, "path"), "bad-path", str(error))
    key = archive.seal_key
    if key is not None and len(key) < MIN_TOKEN_LENGTH:
        reason = f"the key has {len(key)} characters, fewer than {MIN_TOKEN_LENGTH}"
        hint = "make one with `openssl rand -hex 32`"
        reader.report((*at, "seal_key"), "weak-key", reason, hint)


def _check_standby(standby: StandbySettings, reader: ConfigReader, at: KeyPath) -> None:
    """Report a lease in a folder without the folder, and keys of the other kind."""
    lease, at = standby.lease, (*at, "lease")
    if lease.kind == "file" and lease.path is None:
        hint = "write `path: /shared/lease`, a folder that both hosts reach"
        reader.report(at, "missing", "a lease of `kind: file` needs a `path`", hint)
    for key in ("path",) if lease.kind == "kubernetes" else ("name", "namespace"):
        if getattr(lease, key) is not None:
            reader.report((*at, key), "unused", f"`kind: {lease.kind}` has no {key!r}", "remove it")


def _check_web(web: WebSettings, reader: ConfigReader, at: KeyPath) -> None:
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


def _check_tracing(tracing: TracingSettings, reader: ConfigReader, at: KeyPath) -> None:
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


def _check_gateway(gateway: GatewaySettings, reader: ConfigReader, at: KeyPath) -> None:
    for key, name in (("name", gateway.name), ("instance", gateway.instance)):
        if not is_legal_name(name) and (name or key == "name"):
            report_name(reader, (*at, key), name)


def report_name(reader: ConfigReader, at: KeyPath, name: str) -> None:
    hint = "use letters, digits, '-', '_' and '.', at most 64, the first a letter or digit"
    reader.report(at, "bad-name", f"{name!r} is not a legal name", hint)


SECTION_CHECKS: Mapping[str, Callable[[Any, ConfigReader, KeyPath], None]] = MappingProxyType(
    {
        "gateway": _check_gateway,
        "standby": _check_standby,
        "archive": _check_archive,
        "web": _check_web,
        "tracing": _check_tracing,
    }
)
