"""Warn of sources that remove from a queue, or a share, what the gateway does not deliver then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from gateway.config.load import Configuration
from gateway.errors import ConfigError
from gateway.routing.route import Route

_ONE_SELECTOR: Final = "give each selector an endpoint of its own"  # its server evaluates it then
_OTHERS: Final = "add a route without a selector"
_TWO_QUEUES: Final = (
    "write two routes, and let the second send to something that the first does not read"
)


def unselected_removals(configuration: Configuration) -> Iterator[ConfigError]:
    """Yield a warning for each selector that the gateway evaluates where its source removes.

    A route without a selector takes what the others leave out.
    """
    numbers: Counter[str] = Counter()
    for route in configuration.routes:
        number, subscription = numbers[route.name], route.source.subscription
        numbers[route.name] += 1
        if route.selector is None or configuration.broker_selector(route.endpoint):
            continue
        if not _removes(route, configuration) or _takes_all(configuration, route):
            continue
        reason = (
            f"route {route.name!r}: a message of {subscription!r} that no route selects becomes a"
            " dead letter"
        )
        settings = configuration.endpoints[route.endpoint].settings
        hint = _ONE_SELECTOR if settings.evaluates_selectors else _OTHERS
        at = ("routes", route.name, "from", number, "selector")
        yield configuration.location_of(at).error("removes-unselected", reason, hint, "warning")


def removals_of_own_copies(configuration: Configuration) -> Iterator[ConfigError]:
    """Yield a warning for each route in both directions that removes what its reverse sends."""
    for route in configuration.routes:
        if not route.inverse or not _removes(route, configuration):
            continue
        reason = (
            f"route {route.name!r} removes from {route.source.subscription!r} also what"
            f" {route.inverse!r} sends there: such a copy becomes a dead letter `loop`"
        )
        location = configuration.location_of(("routes", route.name, "direction"))
        yield location.error("removes-own", reason, _TWO_QUEUES, "warning")


def _removes(route: Route, configuration: Configuration) -> bool:
    settings = configuration.endpoints[route.endpoint].settings
    return settings.removes(route.source.subscription)


def _takes_all(configuration: Configuration, route: Route) -> bool:
    """Return whether another route takes each message of the subscription of this one."""
    return any(
        each.selector is None
        and each.endpoint == route.endpoint
        and each.source.subscription == route.source.subscription
        for each in configuration.routes
    )
