"""The delivery guarantee of a route and the headers that cannot cross."""

from __future__ import annotations

from typing import Final

from gateway.config.load import Configuration
from gateway.endpoints.registry import find_kind
from gateway.model.message import DeliveryMode
from gateway.routing.route import Route, Target


def effective_mode(route: Route, target: Target, configuration: Configuration) -> DeliveryMode:
    """Return the guarantee from the source to `target`: the weaker of its two endpoints."""
    endpoints = (route.endpoint, target.endpoint)
    return min(configuration.endpoints[name].settings.mode for name in endpoints)


GUARANTEES: Final = {
    DeliveryMode.AT_MOST_ONCE: "at most once",
    DeliveryMode.AT_LEAST_ONCE: "at least once",
    DeliveryMode.EXACTLY_ONCE: (
        "exactly once while both connections last, and at least once across a break"
    ),
}


def repeat_window(route: Route, target: Target, configuration: Configuration) -> float:
    """Return the seconds in which `target` keeps a repeated copy once; 0 where it does not.

    It knows a copy by the id of its message: the source's own, or the one that the gateway adds.
    """
    source, end = (
        configuration.endpoints[name].settings for name in (route.endpoint, target.endpoint)
    )
    has_id = target.add_message_id or find_kind(source).gives_identity
    return end.repeat_window if has_id else 0.0


def lost_fields(route: Route, target: Target, configuration: Configuration) -> list[str]:
    """Return the header fields that the source's system carries and the target's does not.

    Those that a publisher may set there and a source does not receive are among them, unless the
    target's rules set them.
    """
    source, end = (
        configuration.endpoints[name].settings for name in (route.endpoint, target.endpoint)
    )
    decided = {name.text for name, _ in target.rules.sets if name.is_field}
    lost = source.carries - end.carries - {"redelivered"}
    return sorted(lost | source.loses - decided)
