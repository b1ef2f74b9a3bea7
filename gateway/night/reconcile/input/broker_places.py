"""The brokers at which the endpoints of all gateways meet, by their archived routes."""

from __future__ import annotations

from collections import defaultdict

from gateway.night.reconcile.input.route_history import RouteHistory
from gateway.routing.route import Route, Target


def broker_places(history: RouteHistory) -> dict[tuple[str, str], str]:
    """Return the broker of each endpoint, by gateway as its files are named, and endpoint.

    An endpoint of a broker that only its machine knows is absent. Where an endpoint moved to
    another broker, both are one place.
    """
    brokers = defaultdict[tuple[str, str], set[str]](set)
    for gateway, route in history.routes():
        ends: tuple[Route | Target, ...] = (route, *route.targets)
        for end in ends:
            if end.access.broker:
                brokers[gateway, end.endpoint].add(end.access.broker)
    first: dict[str, str] = {}  # of the brokers that are one place
    for own in brokers.values():
        joined = own | {first.get(each, each) for each in own}
        least = min(joined)
        first |= dict.fromkeys((*joined, *(k for k, v in first.items() if v in joined)), least)
    return {key: first[min(own)] for key, own in brokers.items()}
