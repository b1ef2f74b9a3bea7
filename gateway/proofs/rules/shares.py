"""Proof: an endpoint receives a message by one shared subscription only (MQTT 5.0, 4.8.2).

A broker sends a message once for each share that selects it, and once more for the client's other
subscriptions. Each route of the endpoint would carry every copy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from gateway.errors import SearchBudgetExceeded
from gateway.model.overlap_index import OverlapIndex
from gateway.model.subject_search import covers, intersection_example
from gateway.proofs.budget import SEARCH_TOO_LONG
from gateway.proofs.finding import RouteFinding
from gateway.proofs.flows.flow import RouteSource
from gateway.proofs.search.translated_name import spell_subject
from gateway.routing.source_pattern import SourcePattern

HINT = (
    "use one share for both, with one pattern that covers the other, "
    "or give one route an endpoint of its own"
)


def prove_shares(sources: Sequence[RouteSource]) -> Iterator[RouteFinding]:
    """Yield a finding for each route with a name that also arrives by another share."""
    by_endpoint: defaultdict[str, list[RouteSource]] = defaultdict(list)
    for source in sources:
        by_endpoint[source.route.endpoint].append(source)
    for group in by_endpoint.values():
        if any(source.route.source.share for source in group):
            yield from _shared_twice(group)


def _shared_twice(group: Sequence[RouteSource]) -> Iterator[RouteFinding]:
    every: OverlapIndex[RouteSource] = OverlapIndex()
    shared: OverlapIndex[RouteSource] = OverlapIndex()
    for source in group:
        share = source.route.source.share
        earlier = every if share else shared  # two routes without a share have one copy
        candidates = {other for pattern in source.patterns for other in earlier.candidates(pattern)}
        try:
            yield from _first_conflict(source, sorted(candidates, key=lambda other: other.number))
        except SearchBudgetExceeded:
            text = f"the shares of {source.route.source.text!r} are not proved: {SEARCH_TOO_LONG}"
            yield source.finding("unproven", "warning", text, HINT)
        for pattern in source.patterns:
            every.add(pattern, source)
            if share:
                shared.add(pattern, source)


def _first_conflict(
    source: RouteSource, candidates: Sequence[RouteSource]
) -> Iterator[RouteFinding]:
    pattern = source.route.source
    for other in candidates:
        earlier = other.route.source
        if _is_one_subscription(pattern, earlier):
            continue
        levels = intersection_example(pattern.patterns, earlier.patterns)
        name = None if levels is None else spell_subject(levels, source.route.dialect)
        if name is not None:
            text = (
                f"{name!r} arrives once by {pattern.text!r} and once by {earlier.text!r} of route"
                f" {other.route.name!r}, and both routes take both copies"
            )
            yield source.finding("shared-twice", "error", text, HINT, (name,))
            return


def _is_one_subscription(one: SourcePattern, other: SourcePattern) -> bool:
    """Return whether one subscription of one share serves both routes."""
    if one.share != other.share:
        return False
    if one.subscription == other.subscription:
        return True
    return covers(one.patterns, other.patterns) or covers(other.patterns, one.patterns)
