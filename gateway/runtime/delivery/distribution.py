"""Distribution of a routed batch: received groups, lane batches and refused deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from gateway.routing.route import WhenFull
from gateway.routing.router import Delivery, RouteMatch
from gateway.runtime.delivery.in_flight import LaneBatch

ReceivedGroups: TypeAlias = dict[int, tuple[list[int], list[RouteMatch]]]
LaneBatches: TypeAlias = dict[tuple[str, WhenFull], LaneBatch]
Refused: TypeAlias = list[tuple[int, Delivery]]


def distribute(
    found: Sequence[tuple[RouteMatch, ...]],
) -> tuple[ReceivedGroups, LaneBatches, Refused]:
    """Sort the matches: messages to record as received, batches by lane, refused deliveries.

    Each route that archives payloads has its own received group; the other routes share one.
    """
    received: ReceivedGroups = {}
    lane_batches: LaneBatches = {}
    refused: Refused = []
    by_target: dict[int, LaneBatch] = {}
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
                lane_batch = by_target.get(id(target))
                if lane_batch is None:
                    lane_batch = lane_batches.setdefault(
                        (target.endpoint, target.when_full), LaneBatch()
                    )
                    by_target[id(target)] = lane_batch
                lane_batch.positions.append(position)
                lane_batch.deliveries.append(delivery)
    return received, lane_batches, refused
