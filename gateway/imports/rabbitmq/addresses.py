"""URIs of shovels as settings of an endpoint; user and password become references.

An empty host is the node of the definitions. No path is the vhost `/`, whichever vhost the shovel
is in (measured with 3.10.8). A URI of AMQP 1.0 has its vhost in the parameter `hostname`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode

from gateway.endpoints.settings.base import U16
from gateway.imports.document import REFERENCE, EndpointSetting, Value

_URI: Final = re.compile(
    r"(?P<scheme>amqps?)://(?:(?P<user>[^@/?]*)@)?(?P<host>\[[^\]]*\]|[^:/?@]*)(?::(?P<port>\d{1,5}))?"
    r"(?:/(?P<vhost>[^/?]*))?(?:\?(?P<query>.*))?"
)
_TLS: Final[Mapping[str, str]] = {
    "cacertfile": "ca_file",
    "certfile": "cert_file",
    "keyfile": "key_file",
    "server_name_indication": "server_hostname",
}
_NO_EFFECT: Final = frozenset(
    {("verify", "verify_peer"), ("fail_if_no_peer_cert", "true"), ("sasl", "plain")}
)
_VHOST: Final = "vhost:"  # begins the host name of a vhost, AMQP 1.0
OWN_NODE: Final = (
    "The node of the definitions. A shovel needs no user there; the gateway is `guest`, unless you"
    " write `username` and `password`."
)


class AddressError(ValueError):
    """URIs that no endpoint can have; the text is the reason."""


def address_settings(
    uris: Sequence[str], variable: str, lost: list[tuple[str, str]], *, is_1_0: bool = False
) -> Iterator[EndpointSetting]:
    """Yield the settings of one end; parameters without an equivalent are added to `lost`.

    Raises:
        AddressError: a URI is none of AMQP, or they differ in more than the host.
    """
    parts = [_parts(uri) for uri in uris]
    for each in parts if is_1_0 else ():
        _move_vhost(each)
    for key in ("user", "vhost", "query"):
        if len({each[key] for each in parts}) > 1:
            what = "query" if key == "query" else "user" if key == "user" else "vhost"
            raise AddressError(f"its URIs differ in the {what}; an endpoint has one for all nodes")
    first = parts[0]
    urls = [_url(each) for each in parts]
    note = "" if first["host"] else OWN_NODE
    yield EndpointSetting("url", ", ".join(urls), note)
    if first["user"]:
        name, colon, _ = first["user"].partition(":")
        if name:
            yield EndpointSetting("username", f"${{env:{variable}_USERNAME}}")
        if colon:
            yield EndpointSetting("password", f"${{env:{variable}_PASSWORD}}")
    encrypted = first["scheme"] == "amqps"
    yield from _query(first["query"], lost, encrypted=encrypted, is_1_0=is_1_0)


def _parts(uri: str) -> dict[str, str]:
    found = _URI.fullmatch(uri)
    if found is None:
        raise AddressError("a URI does not read amqp://HOST:PORT/VHOST or amqps://...")
    parts = {key: value or "" for key, value in found.groupdict().items()}
    if int(parts["port"] or 0) > U16:
        raise AddressError(f"a port is above {U16}")
    if any(REFERENCE in unquote(parts[key]) for key in ("host", "vhost")):
        raise AddressError(f"a URI contains {REFERENCE!r}, which the configuration would replace")
    return parts


def _move_vhost(parts: dict[str, str]) -> None:
    """Move the vhost of a URI of AMQP 1.0 from its query to its place."""
    query = parse_qsl(parts["query"], keep_blank_values=True)
    for key, value in query:
        if key == "hostname" and value.startswith(_VHOST):
            query.remove((key, value))
            parts["vhost"] = quote(value.removeprefix(_VHOST), safe="")
            parts["query"] = urlencode(query)
            return


def _url(parts: Mapping[str, str]) -> str:
    port = f":{parts['port']}" if parts["port"] else ""
    vhost = quote(unquote(parts["vhost"]), safe="")
    path = "" if vhost in {"", "%2F"} else vhost
    return f"{parts['scheme']}://{parts['host'] or 'localhost'}{port}/{path}"


def _query(
    query: str, lost: list[tuple[str, str]], *, encrypted: bool, is_1_0: bool
) -> Iterator[EndpointSetting]:
    tls: dict[str, Value] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if is_1_0 and key == "idle_time_out" and value.isdecimal():  # milliseconds
            yield EndpointSetting("heartbeat", min(max(int(value[:9]) // 1000, 2), U16))
        elif not is_1_0 and key == "heartbeat" and value.isdecimal() and 0 < int(value[:6]) <= U16:
            yield EndpointSetting("heartbeat", int(value))
        elif key == "connection_timeout" and value.isdecimal() and int(value[:9]) > 0:
            yield EndpointSetting("connect_timeout", max(1, int(value[:9]) // 1000))
        elif is_1_0 and (key, value) == ("sasl", "anon"):
            yield EndpointSetting("login", "anonymous")
        elif encrypted and key in _TLS and REFERENCE not in value:
            tls[_TLS[key]] = value
        elif (key, value) not in _NO_EFFECT:
            lost.append((f"parameter {key!r} of a URI", "an endpoint has no such setting"))
    if tls:
        yield EndpointSetting("tls", tls)
