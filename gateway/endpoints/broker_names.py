"""The `broker_id` to propose for an endpoint, and hosts that only their own machine knows."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

PLACEHOLDER = "SITE"  # of a proposed `broker_id`: a person writes a name of the site in its place


def is_own_machine(host: str) -> bool:
    """Return whether `host` is the machine itself: loopback, or the unspecified address."""
    name = host.strip().rstrip(".").lower()
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name in {"localhost", "localhost.localdomain"} or name.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def is_local_host(host: str) -> bool:
    """Return whether `host` may be another machine elsewhere: loopback, or a name without a dot."""
    name = host.strip().rstrip(".").lower()
    without_dot = "." not in name and ":" not in name
    return is_own_machine(name) or without_dot or name.endswith(".localdomain")


def proposed_broker_id(site: str, key: str, hosts: Iterable[str]) -> str:
    """Return an identifier for the broker with this key and these hosts.

    It is the address without its scheme, behind the name of the site where the address is local.
    """
    address = key.partition("://")[2] or key
    names = list(hosts)
    return address if names and not any(map(is_local_host, names)) else f"{site}/{address}"
