"""Proof: a route and its inverse translate every name to another and back to itself.

Captures are whole levels without interpretation, so a name with distinct levels represents all
names of its shape. Shapes differ in the number of levels that a rest wildcard matches.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.errors import SearchBudgetExceeded
from gateway.model.pattern import AnyMany
from gateway.proofs.budget import SEARCH_TOO_LONG, start_question
from gateway.proofs.finding import RouteFinding, Severity
from gateway.proofs.flows.flow import Flow, RouteSource, filled
from gateway.proofs.flows.target_expressions import extract_flows
from gateway.proofs.rules.injective import colliding_names
from gateway.proofs.search.equations import source_patterns
from gateway.proofs.search.examples import exact_pattern, examples, names_of
from gateway.proofs.search.translated_name import (
    RefusedName,
    TranslatedName,
    translate_by_flow,
    translate_name,
)
from gateway.routing.route import Route

MAX_ATTEMPTS = 4
MAX_REST_LENGTHS = 4  # numbers of levels for a rest wildcard, from its minimum on
HINT = "make the template of each route equal to the pattern of the other"


def prove_inverse(forward: Route, backward: Route) -> RouteFinding | None:
    """Return a finding with a name that `backward` does not translate back to itself, if any."""
    brokers = {
        endpoint: endpoint
        for route in (forward, backward)
        for endpoint in (route.endpoint, *(target.endpoint for target in route.targets))
    }
    (source, inverse), flows = extract_flows([forward, backward], brokers)
    forward_flows = [
        flow for flow in flows if flow.source is source and flow.broker == backward.endpoint
    ]
    if not forward_flows or all(target.endpoint != forward.endpoint for target in backward.targets):
        text = f"route {backward.name!r} does not lead back to {forward.endpoint!r}"
        hint = f"give it a target at {forward.endpoint!r}"
        return source.finding("not-inverse", "error", text, hint)
    start_question()
    try:
        names = ((flow, levels) for flow in forward_flows for levels in _names(flow, inverse))
        found = (_judge_name(flow, inverse, levels) for flow, levels in names)
        return next(filter(None, found), None)
    except SearchBudgetExceeded:
        text = f"it is not proved that route {backward.name!r} leads back: {SEARCH_TOO_LONG}"
        return source.finding("unproven", "warning", text, HINT)


def _names(flow: Flow, inverse: RouteSource) -> Iterator[tuple[str, ...]]:
    """Yield names to translate: when all of them come back, every name does."""
    unions = [[flow.target_pattern]], [*inverse.patterns]
    excluded = [flow.target_pattern], inverse.excludes
    for made in (*examples(*unions, MAX_ATTEMPTS), *examples(excluded, [], MAX_ATTEMPTS)):
        yield from names_of(flow, source_patterns(flow, exact_pattern(made)))
    yield from _shapes(flow)
    for pair in colliding_names(flow):
        yield from pair


def _shapes(flow: Flow) -> Iterator[tuple[str, ...]]:
    """Yield a plain and a hostile name with distinct levels, for each length of rest wildcards."""
    for more in range(MAX_REST_LENGTHS):
        for word in ("v", "V.a-B_/%2E+"):
            levels: list[str] = []
            for at, level in enumerate(flow.pattern.levels):
                if isinstance(level, AnyMany):
                    numbers = range(level.minimum + more)
                    levels += [f"{word}{at}{number}" for number in numbers]
                else:
                    levels.append(filled(level, f"{word}{at}"))
            yield tuple(levels)


def _judge_name(flow: Flow, inverse: RouteSource, levels: tuple[str, ...]) -> RouteFinding | None:
    """Return a finding when one name does not come back as itself."""
    sent_name = translate_by_flow(flow, levels)
    if sent_name is None:
        return None
    route = inverse.route
    for target in route.targets:
        if target.endpoint != flow.source.route.endpoint:
            continue
        found = translate_name(route, target, sent_name.target_levels)
        if isinstance(found, TranslatedName) and found.target_name == sent_name.source_name:
            continue
        sent = f"{sent_name.source_name!r} is sent as {sent_name.target_name!r}"
        text = f"{sent} and {_return_text(found, route)}"
        names = [sent_name.source_name, sent_name.target_name]
        names += [found.target_name] if isinstance(found, TranslatedName) else []
        severity: Severity = "error" if isinstance(found, TranslatedName) else "warning"
        endpoints = (*flow.endpoints, flow.source.route.endpoint)[: len(names)]
        hint = _hint(found, inverse, sent_name)
        return flow.finding("not-inverse", severity, text, hint, names, endpoints)
    return None


def _hint(
    found: TranslatedName | RefusedName | None, inverse: RouteSource, sent_name: TranslatedName
) -> str:
    if found is None and inverse.route.source.selects(sent_name.target_levels):
        return f"exclude {sent_name.source_name!r} and similar names here too, or write two routes"
    return HINT


def _return_text(found: TranslatedName | RefusedName | None, route: Route) -> str:
    if isinstance(found, TranslatedName):
        return f"comes back by route {route.name!r} as {found.target_name!r}"
    if isinstance(found, RefusedName):
        return f"is refused by route {route.name!r} in the reverse direction: {found.error.reason}"
    return f"does not come back: route {route.name!r} does not take it"
