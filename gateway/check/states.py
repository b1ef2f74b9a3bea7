"""Warn of routes that read the state which the gateway tells at a broker."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.config.load import Configuration
from gateway.dialects.base import parse_subject
from gateway.errors import ConfigError


def states_read(configuration: Configuration) -> Iterator[ConfigError]:
    """Yield a warning for each route whose source would carry on a state of `state`."""
    brokers = configuration.brokers
    for number, state in enumerate(configuration.state):
        for name in state.endpoint:
            levels = parse_subject(state.name, configuration.endpoints[name].dialect).levels
            for route in configuration.routes:
                if brokers[route.endpoint] == brokers[name] and route.takes(levels):
                    location = configuration.location_of(("state", number, "name"))
                    reason = f"route {route.name!r} reads {state.name!r}, and carries the state on"
                    hint = "write another name, or an `exclude` at the route"
                    yield location.error("state-read", reason, hint, "warning")
