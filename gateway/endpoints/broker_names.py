"""The `broker_id` to propose for an endpoint, and hosts that only their own machine knows."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable


def is_local_host(host: str) -> bool:
    """Return whether `host` may be another machine elsewhere: loopback, or a name without a dot."""
    name = host.strip().rstrip(".").lower()
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return "." not in name or name.endswith((".localhost", ".localdomain"))
    return address.is_loopback or address.is_unspecified


def proposed_broker_id(gateway: str, key: str, hosts: Iterable[str]) -> str:
    """Return an identifier for the broker with this key and these hosts.

    It is the address without its scheme, behind the name of the gateway where the address is local.
    """
    address = key.partition("://")[2] or key
    names = list(hosts)
    return address if names and not any(map(is_local_host, names)) else f"{gateway}/{address}"
