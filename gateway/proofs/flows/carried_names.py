"""Names that copies carry beside their own, as flows: a channel at a broker for each function.

A route with `names_of` takes names in the dialect of another source, from what its writer makes of
them. So it begins at a *channel*: the names in the headers of all that one pattern and its
templates write to a broker. Each flow that makes names in that way leads to the channel too, and
keeps its name there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.proofs.finding import RouteFinding
from gateway.proofs.flows.flow import Flow
from gateway.proofs.flows.target_expressions import channel_of, function_of, make_flow
from gateway.routing.route import Route
from gateway.translate.names import Renderer


@dataclass(frozen=True, eq=False, slots=True)
class CarriedNames:
    """A flow to a broker, and the same names in their own form, to a channel there."""

    flow: Flow
    names: Flow


def carried_names(
    flows: Sequence[Flow], routes: Sequence[Route], brokers: Mapping[str, str]
) -> list[CarriedNames]:
    """Return the flows of which routes with `names_of` take the names at their sources."""
    channels: dict[tuple[str, str], set[str]] = {}
    for route in routes:
        if (writer := route.names_of) is not None:
            broker = brokers[route.endpoint]
            for target in writer.targets:
                key = broker, function_of(writer, target)
                channels.setdefault(key, set()).add(channel_of(broker, writer))
    return [
        CarriedNames(flow, _names(flow, channel))
        for flow in flows
        if flow.target.carries_name
        for channel in sorted(
            channels.get((flow.broker, function_of(flow.source.route, flow.target)), ())
        )
    ]


def _names(flow: Flow, channel: str) -> Flow:
    renderer = Renderer(flow.source.route.dialect)
    target = replace(flow.target, templates=(), allow=(), renderer=renderer)
    return make_flow(flow.source, flow.target_index, target, channel, flow.pattern)


def ways_back(routes: Sequence[Route]) -> dict[tuple[str, str], str]:
    """Return the route that takes the names of a target back, by route and label of the target."""
    return {
        (writer.name, target.label): route.name
        for route in routes
        if (writer := route.names_of) is not None
        for target in writer.targets
    }


def returned(routes: Sequence[Route], back: Mapping[tuple[str, str], str]) -> Iterator[Route]:
    """Yield the routes; a target with a way back loses no name, whatever its template."""
    for route in routes:
        targets = tuple(
            replace(each, lossy=True) if (route.name, each.label) in back else each
            for each in route.targets
        )
        yield route if targets == route.targets else replace(route, targets=targets)


def with_ways_back(
    findings: Sequence[RouteFinding],
    routes: Sequence[Route],
    back: Mapping[tuple[str, str], str],
) -> Iterator[RouteFinding]:
    """Yield the findings; a note about names that become one says which route has them again."""
    labels = {
        (route.name, index): each.label
        for route in routes
        for index, each in enumerate(route.targets)
    }
    for each in findings:
        label = labels.get((each.route, -1 if each.target is None else each.target), "")
        name = back.get((each.route, label))
        if name is not None and each.rule == "not-injective":
            yield replace(each, hint=f"route {name!r} brings the names back")
        elif name is None or each.rule != "capture-unused":
            yield each
