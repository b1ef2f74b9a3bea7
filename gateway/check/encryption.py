"""Connections that others can read or pretend to be: a finding for each; it opens none of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gateway.config.build import At, Endpoint
from gateway.config.section_checks import is_loopback
from gateway.endpoints.settings.base import EndpointSettings

_URL = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?:[^/@\s,()]*@)?(?P<host>\[[^\]]*\]|[^:/?,()\s]*)"
)
_ENCRYPTED = re.compile(r"ssl|tls|tcps|smfs|mqtts|amqps|https|wss")  # nio+ssl is one too


@dataclass(frozen=True, slots=True)
class Exposure:
    """What others can do at a connection, and where the configuration lets them."""

    at: At
    rule: str
    reason: str
    hint: str
    severity: str


def exposures(endpoints: Mapping[str, Endpoint]) -> Iterator[Exposure]:
    """A warning where nobody checks who answers, a note where a password goes in plain text."""
    for name, endpoint in endpoints.items():
        settings = endpoint.settings
        if getattr(getattr(settings, "tls", None), "verify", True) is False:
            at: At = ("endpoints", name, "tls", "verify")
            reason = f"endpoint {name!r}: anyone can pretend to be the broker"
            hint = "remove `verify: false`, and name the authority in `ca_file`"
            yield Exposure(at, "tls-unverified", reason, hint, "warning")
        if getattr(settings, "password", None) is None:
            continue
        for host in plain_hosts(settings):
            at = ("endpoints", name, "password")
            reason = f"endpoint {name!r}: the password goes to {host!r} in plain text"
            hint = "use TLS, unless the network between is yours alone"
            yield Exposure(at, "no-tls", reason, hint, "note")


def plain_hosts(settings: EndpointSettings) -> list[str]:
    """Hosts on other machines that are spoken to without TLS, each once."""
    hosts = [host for scheme, host in _addresses(settings) if not _ENCRYPTED.search(scheme)]
    return [host for host in dict.fromkeys(hosts) if host and not is_loopback(host.strip("[]"))]


def _addresses(settings: EndpointSettings) -> Iterator[tuple[str, str]]:
    """Scheme and host of every address, however the kind of endpoint writes them."""
    host = getattr(settings, "host", None)
    if host is not None:
        yield "mqtts" if getattr(settings, "tls", None) is not None else "mqtt", host
    urls = (*getattr(settings, "urls", ()), getattr(settings, "url", ""))
    for url in (*urls, getattr(settings, "jndi_url", "")):
        for found in _URL.finditer(url):
            yield found["scheme"], found["host"]
