"""Distribution of a routed batch: received groups, copies by lane and refused deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from gateway.routing.route import WhenFull
from gateway.routing.router import Delivery, RouteMatch

ReceivedGroups: TypeAlias = dict[int, tuple[list[int], list[RouteMatch]]]
Copies: TypeAlias = tuple[list[int], list[Delivery]]  # positions, and a delivery for each
ByLane: TypeAlias = dict[tuple[str, WhenFull], Copies]
Refused: TypeAlias = list[tuple[int, Delivery]]


def distribute(
    found: Sequence[tuple[RouteMatch, ...]],
) -> tuple[ReceivedGroups, ByLane, Refused]:
    """Sort the matches: messages to record as received, copies by lane, refused deliveries.

    Each route that archives payloads has its own received group; the other routes share one.
    """
    received: ReceivedGroups = {}
    by_lane: ByLane = {}
    refused: Refused = []
    by_target: dict[int, Copies] = {}
    for position, matches in enumerate(found):
        for match in matches:
            route = match.route
            if route is not None:
                key = id(route) if route.archive_payload else 0
                group = received.get(key)
                if group is None:
                    group = received[key] = ([], [])
                group[0].append(position)
                group[1].append(match)
            for delivery in match.deliveries:
                target = delivery.target
                if target is None or delivery.rule:
                    refused.append((position, delivery))
                    continue
                copies = by_target.get(id(target))
                if copies is None:
                    copies = by_lane.setdefault((target.endpoint, target.when_full), ([], []))
                    by_target[id(target)] = copies
                copies[0].append(position)
                copies[1].append(delivery)
    return received, by_lane, refused
