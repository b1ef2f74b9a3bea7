"""Warn of brokers that take fewer names than their system, where the host name tells them."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.check.encryption import scheme_and_host_of
from gateway.check.key_location import key_location
from gateway.config.load import Configuration
from gateway.dialects.brokers import BROKERS
from gateway.errors import ConfigError


def unlimited_brokers(configuration: Configuration) -> Iterator[ConfigError]:
    """Yield a warning for each known broker that is a target and whose endpoint sets no limits."""
    targets = {target.endpoint for route in configuration.routes for target in route.targets}
    for name in sorted(targets):
        if ("endpoints", name, "limits") in configuration.locations:
            continue
        hosts = {host for _, host in scheme_and_host_of(configuration.endpoints[name].settings)}
        for known in BROKERS.values():
            if known.hosts is not None and any(map(known.hosts.fullmatch, hosts)):
                location = key_location(("endpoints", name), configuration)
                reason = (
                    f"endpoint {name!r}: {known.title} closes the connection for a name past its"
                    " limits, which are tighter than those of its system"
                )
                hint = f"write `limits: {known.name}`, so that such names become dead letters"
                yield location.error("broker-limits", reason, hint, "warning")
