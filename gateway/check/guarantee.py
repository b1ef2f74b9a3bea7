"""The delivery guarantee of a route and the headers that cannot cross."""

from __future__ import annotations

from gateway.config.load import Configuration
from gateway.model.message import DeliveryMode
from gateway.routing.route import Route, Target


def effective_mode(route: Route, target: Target, configuration: Configuration) -> DeliveryMode:
    """Return the guarantee from the source to `target`: the weaker of its two endpoints."""
    endpoints = (route.endpoint, target.endpoint)
    return min(configuration.endpoints[name].settings.mode for name in endpoints)


def lost_fields(route: Route, target: Target, configuration: Configuration) -> list[str]:
    """Return the header fields that the source's system carries and the target's does not."""
    source, end = (
        configuration.endpoints[name].settings.carries for name in (route.endpoint, target.endpoint)
    )
    return sorted(source - end - {"redelivered"})
