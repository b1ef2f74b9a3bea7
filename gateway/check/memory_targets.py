"""Warn of routes to a memory endpoint that no route takes from: their messages are discarded."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.check.key_location import key_location
from gateway.config.load import Configuration
from gateway.endpoints.settings.memory import MemorySettings
from gateway.errors import ConfigError

HINT = "send to a broker outside of this process, or add a route from this endpoint"


def memory_targets(configuration: Configuration) -> Iterator[ConfigError]:
    """Yield a warning for each memory endpoint whose messages never leave the process."""
    endpoints = configuration.endpoints
    taken = {endpoints[route.endpoint].settings.broker_key for route in configuration.routes}
    for name, endpoint in endpoints.items():
        settings = endpoint.settings
        if not isinstance(settings, MemorySettings) or settings.broker_key in taken:
            continue
        if senders := _senders(name, configuration):
            reason = (
                f"endpoint {name!r}: {senders} count as delivered, stay in this"
                " process and are lost when it ends: no route takes them from there"
            )
            location = key_location(("endpoints", name, "kind"), configuration)
            yield location.error("memory-target", reason, HINT, "warning")


def _senders(name: str, configuration: Configuration) -> str:
    """Return the messages that go to an endpoint, as text; empty when there are none."""
    routes = [
        route.name
        for route in configuration.routes
        if any(target.endpoint == name for target in route.targets)
    ]
    senders = [f"messages of route {each!r}" for each in dict.fromkeys(routes)]
    if configuration.dead_letters.endpoint == name:
        senders.append("the dead letters")
    return " and ".join(senders)
