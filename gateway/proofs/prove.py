"""Run all proofs over a set of routes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gateway.errors import SearchBudgetExceeded
from gateway.proofs import budget
from gateway.proofs.budget import SEARCH_TOO_LONG, search_budget, start_question
from gateway.proofs.finding import RouteFinding
from gateway.proofs.flows.carried_names import (
    carried_names,
    returned,
    ways_back,
    with_ways_back,
)
from gateway.proofs.flows.flow import Flow, RouteSource
from gateway.proofs.flows.target_expressions import extract_flows, whole_target_flow
from gateway.proofs.rules.allowed import restrict_to_allowed
from gateway.proofs.rules.cycles import prove_cycles
from gateway.proofs.rules.first_level import prove_first_level
from gateway.proofs.rules.injective import prove_injective
from gateway.proofs.rules.inverse import prove_inverse
from gateway.proofs.rules.limits import prove_limits
from gateway.proofs.rules.named_twice import prove_named_twice
from gateway.proofs.rules.overlap import prove_overlaps
from gateway.proofs.rules.reach import prove_reachable, prove_sendable, unused_captures
from gateway.proofs.rules.refused import prove_not_refused
from gateway.proofs.rules.shares import prove_shares
from gateway.proofs.search.growth import KnownEdges
from gateway.proofs.search.samples import sendable_name
from gateway.routing.route import Route, unrecorded

ONCE_PER_TARGET = (  # rules with at most one finding for a target
    "not-injective",
    "possible-loss",
    "past-limit",
    "forbidden-name",
    "first-place",
    "never-sent",
    "outside-allow",
)


def prove(
    routes: Sequence[Route], brokers: Mapping[str, str], *, only_errors: bool = False
) -> list[RouteFinding]:
    """Return every finding about `routes`, by route, errors first.

    `brokers` maps each endpoint to an identifier of its broker. Routes that name each other as
    `inverse` must translate every name back to itself. `only_errors` omits the proofs that
    give no errors: those about single targets take most of the time of a short file, and those
    about pairs of targets that of a long one.

    Raises:
        KeyError: an endpoint is not in `brokers`.
    """
    back = ways_back(routes)
    routes = [*returned(unrecorded(routes), back)]
    sources, flows = extract_flows(routes, brokers)
    found = [*prove_shares(sources)]
    with search_budget():
        dead = _unreachable_sources(sources, found)
    with search_budget(budget.PER_QUESTION_LARGE):
        reachable = [flow for flow in flows if flow.source not in dead]
        live = _sendable_flows(reachable, found, only_errors=only_errors)
    carried = carried_names(live, routes, brokers)
    with search_budget():
        found += prove_overlaps(live, only_errors=only_errors)
        found += prove_named_twice(live, carried)
    with search_budget():
        found += prove_cycles([*live, *(each.names for each in carried)])
    with search_budget():
        found += _prove_inverses(routes)
    return _sort_findings([*with_ways_back(found, routes, back)], routes)


def _unreachable_sources(
    sources: Sequence[RouteSource], found: list[RouteFinding]
) -> set[RouteSource]:
    """Return the sources that take no name; add the findings about sources to `found`."""
    dead: set[RouteSource] = set()
    for source in sources:
        about = list(prove_reachable(source))
        found += [*about, *unused_captures(source)]
        if any(finding.rule == "unreachable" for finding in about):
            dead.add(source)
    return dead


def _sendable_flows(
    flows: Sequence[Flow], found: list[RouteFinding], *, only_errors: bool
) -> list[Flow]:
    """Return the parts of `flows` that carry names; add findings about single flows to `found`."""
    live: list[Flow] = []
    edges: KnownEdges = {}
    for flow in flows:
        start_question()
        for part in _allowed_parts(flow, found):
            about = list(_prove_target(part, edges, only_errors=only_errors))
            found += about
            if not any(finding.rule == "never-sent" for finding in about):
                live.append(part)
    return live


def _allowed_parts(flow: Flow, found: list[RouteFinding]) -> list[Flow]:
    """Return the allowed part of `flow`; add a finding about the rest to `found`."""
    try:
        parts, outside = restrict_to_allowed(flow)
    except SearchBudgetExceeded:
        found.append(_unproven(flow))
        return [flow]
    found += [] if outside is None else [outside]
    return parts


def _prove_target(flow: Flow, edges: KnownEdges, *, only_errors: bool) -> Iterator[RouteFinding]:
    """Run the proofs about one target."""
    try:
        plain = sendable_name(flow)
        if plain is None and (finding := prove_sendable(flow)) is not None:
            yield finding
            return
        if (finding := prove_injective(whole_target_flow(flow))) is not None:
            yield finding
        if only_errors:
            return
        if plain is not None:
            yield from prove_limits(flow, plain, edges)
            yield from prove_not_refused(flow)
        yield from prove_first_level(flow)
    except SearchBudgetExceeded:
        yield _unproven(flow)


def _unproven(flow: Flow) -> RouteFinding:
    text = f"the names at {flow.target.endpoint!r} are not proved: {SEARCH_TOO_LONG}"
    hint = "use fewer rest wildcards in the pattern"
    return flow.finding("unproven", "warning", text, hint)


def _prove_inverses(routes: Sequence[Route]) -> Iterator[RouteFinding]:
    named = {route.name: route for route in routes}
    for route in routes:
        back = named.get(route.inverse)
        if back is not None and (finding := prove_inverse(route, back)) is not None:
            yield finding


def _sort_findings(found: Sequence[RouteFinding], routes: Sequence[Route]) -> list[RouteFinding]:
    """Sort by route and severity; of findings that differ only in an example keep the first."""
    order = {name: at for at, name in enumerate(dict.fromkeys(route.name for route in routes))}
    weight = {"error": 0, "warning": 1, "note": 2}
    kept: dict[object, RouteFinding] = {}
    not_injective = {_target_of(each) for each in found if each.rule == "not-injective"}
    for each in found:
        if each.rule == "possible-loss" and _target_of(each) in not_injective:
            continue  # another pattern of the same source gave the proof
        key = (*_target_of(each), each.rule) if each.rule in ONCE_PER_TARGET else each
        kept.setdefault(key, each)
    return sorted(kept.values(), key=lambda each: (order[each.route], weight[each.severity]))


def _target_of(finding: RouteFinding) -> tuple[str, int, int | None]:
    return finding.route, finding.source, finding.target
