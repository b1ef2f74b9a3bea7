"""Checks of the sections `archive`, `standby`, `web` and `tracing`."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from gateway.archive.location import parse_location
from gateway.config import process
from gateway.config.place import Place
from gateway.config.schema import is_legal_name
from gateway.errors import ArchiveError

MIN_TOKEN_LENGTH = 16  # characters; 16 random ones cannot be guessed


def _check_archive(archive: process.ArchiveSettings, place: Place) -> None:
    """Report a path that is not a location, and a key that can be guessed."""
    try:
        parse_location(archive.path)
    except ArchiveError as error:
        place["path"].report("bad-path", str(error))
    for key in ("seal_key", "previous_seal_key"):
        _check_length(getattr(archive, key), "key", place[key])
    if archive.previous_seal_key is not None and archive.seal_key is None:
        reason = "'previous_seal_key' without `seal_key`"
        place["previous_seal_key"].report("unused", reason, "write it as `seal_key`")


def _check_standby(standby: process.StandbySettings, place: Place) -> None:
    """Report a lease in a folder without the folder, and keys of the other kind."""
    lease, place = standby.lease, place["lease"]
    if lease.kind == "file" and lease.path is None:
        hint = "write `path: /shared/lease`, a folder that both hosts reach"
        place.report("missing", "a lease of `kind: file` needs a `path`", hint)
    for key in ("path",) if lease.kind == "kubernetes" else ("name", "namespace"):
        if getattr(lease, key) is not None:
            place[key].report("unused", f"`kind: {lease.kind}` has no {key!r}", "remove it")


def _check_web(web: process.WebSettings, place: Place) -> None:
    """Report settings that make the page unsafe, or impossible to serve."""
    host, _, port = web.address.rpartition(":")
    is_unknown = place["token"].at in place.reader.not_found
    is_guarded = web.token is not None or web.client_ca_file is not None or is_unknown
    if port.isdecimal() and host and not _is_address(web.address):
        hint = f"write `address: {host}` and `port: {port}`"
        place["address"].report("value", f"{web.address!r} has a port, which is a key", hint)
    elif not is_loopback(web.address) and not is_guarded:
        reason = f"{web.address!r} is reachable from other machines without authentication"
        hint = "set `token` or `client_ca_file`, or listen at 127.0.0.1"
        place["address"].report("open-page", reason, hint)
    for key in ("token", "previous_token"):
        _check_length(getattr(web, key), "token", place[key])
        _check_characters(getattr(web, key), place[key])
    if web.previous_token is not None and web.token is None and not is_unknown:
        reason = "'previous_token' without `token`"
        place["previous_token"].report("unused", reason, "write it as `token`")
    for key in ("key_file", "client_ca_file"):
        if getattr(web, key) is not None and web.cert_file is None:
            reason = f"{key!r} without `cert_file`: connections are not encrypted"
            place[key].report("no-certificate", reason, "set `cert_file`")


def is_loopback(address: str) -> bool:
    """Return whether `address` is reachable only from this machine, or this pod."""
    if address == "localhost":
        return True
    return _is_address(address) and ipaddress.ip_address(address).is_loopback


def _is_address(text: str) -> bool:
    """Return whether it is an address of IP, and no name of a host."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _check_length(text: str | None, what: str, place: Place) -> None:
    """Report a secret that can be guessed."""
    if text is not None and len(text) < MIN_TOKEN_LENGTH:
        reason = f"the {what} has {len(text)} characters, fewer than {MIN_TOKEN_LENGTH}"
        place.report(f"weak-{what}", reason, "make one with `openssl rand -hex 32`")


def _check_characters(token: str | None, place: Place, *, spaces: bool = False) -> None:
    text = (token or "").replace(" ", "" if spaces else "\n")
    if not (text.isascii() and text.isprintable()):
        reason = "the token has characters that an HTTP header cannot carry"
        place.report("bad-token", reason, "use letters, digits, '-', '_' and '.'")


def _check_tracing(tracing: process.TracingSettings, place: Place) -> None:
    """Report faults of the collector's address and of the credentials for it."""
    try:
        url = urlsplit(tracing.otlp)
        complete = url.scheme in {"http", "https"} and url.hostname and url.port != 0
    except ValueError:  # a port that is not a number, an invalid IPv6 address
        url, complete = urlsplit(""), False
    if not complete:
        hint = "write http://HOST:4318 or https://HOST:4318"
        place["otlp"].report("bad-url", "the collector's address is not an HTTP URL", hint)
    elif url.username is not None or url.password is not None:
        reason = "the collector's address contains a user name or password"
        place["otlp"].report("bad-url", reason, "set `token`")
    if tracing.ca_file is not None and url.scheme == "http":
        reason = "`ca_file` without https: the connection is not encrypted"
        place["ca_file"].report("no-certificate", reason, "write https://")
    _check_characters(tracing.token, place["token"], spaces=True)


def _check_gateway(gateway: process.GatewaySettings, place: Place) -> None:
    for key, name in (("name", gateway.name), ("instance", gateway.instance)):
        if not is_legal_name(name) and (name or key == "name"):
            report_name(place[key], name)
    for key in ("path_key", "previous_path_key"):
        _check_length(getattr(gateway, key), "key", place[key])
    if gateway.previous_path_key is not None and gateway.path_key is None:
        reason = "'previous_path_key' without `path_key`"
        place["previous_path_key"].report("unused", reason, "write it as `path_key`")


def report_name(place: Place, name: str) -> None:
    hint = "use letters, digits, '-', '_' and '.', at most 64, the first a letter or digit"
    place.report("bad-name", f"{name!r} is not a legal name", hint)


SECTION_CHECKS: Final[Mapping[str, Callable[[Any, Place], None]]] = {
    "gateway": _check_gateway,
    "standby": _check_standby,
    "archive": _check_archive,
    "web": _check_web,
    "tracing": _check_tracing,
}
