"""Derive the reverse route of `direction: both`.

Each of the two routes takes exactly the names that the other makes. A name that one route does not
take (because of `exclude`, or because no wildcard of its system matches it) is excluded from the
other: it would arrive there and never return.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gateway.dialects.base import render_pattern
from gateway.errors import TranslationError
from gateway.model.pattern import NO_EXCLUSIONS, AnyMany, Glob, Pattern
from gateway.proofs.flows.flow import Flow
from gateway.proofs.flows.target_expressions import extract_flows, make_flow, selected_patterns
from gateway.proofs.search.equations import exact_source_patterns, source_patterns
from gateway.proofs.search.examples import find_example
from gateway.routing.route import EACH_TAG, Route, Target
from gateway.routing.source_pattern import SourcePattern, parse_source
from gateway.routing.template import parse_template

REVERSE_SUFFIX = ".back"  # ends the name of a derived reverse route


def both_ways(
    forward: Route,
    template: str,
    name: str,
    allow: tuple[SourcePattern, ...] = (),
    payload_encoding: str = "",
) -> tuple[Route, Route]:
    """Return `forward`, which has one target with one template, and its reverse route `name`.

    `allow` are the names that the reverse route may send, to an endpoint with this
    `payload_encoding`.

    Raises:
        SubjectError, TranslationError: the template is not a pattern, or the pattern no template.
        SearchBudgetExceeded: the search for the excluded names became too long.
    """
    target = forward.targets[0]
    pattern = parse_source(template, target.renderer.dialect)
    reverse_target = Target(
        forward.endpoint,
        forward.endpoint,
        replace(target.renderer, dialect=forward.dialect),
        (parse_template(forward.source.text, forward.dialect, pattern),),
        allow,
        rules=target.rules.inverted(),
        when_full=target.when_full,
        broker=forward.broker,
        payload_encoding=payload_encoding,
    )
    reverse = replace(
        forward,
        name=name,
        endpoint=target.endpoint,
        dialect=target.renderer.dialect,
        source=pattern,
        targets=(reverse_target,),
        broker=target.broker,
        heartbeat="",
        excludes=(),
        tags=EACH_TAG,
        selector=None,
        inverse=forward.name,
    )
    forward_excludes = _derived_excludes(reverse, forward)
    reverse_excludes = _derived_excludes(forward, reverse)
    return (
        replace(forward, inverse=name, excludes=(*forward.excludes, *forward_excludes)),
        replace(reverse, excludes=reverse_excludes),
    )


def _derived_excludes(route: Route, other: Route) -> tuple[SourcePattern, ...]:
    """Return the names of `other` that `route` would have to take in return, and does not."""
    taken = selected_patterns(other.source)
    found = (each for each in _lost_images(route) if find_example([[each], taken]) is not None)
    return tuple(
        SourcePattern(_pattern_text(each, other), "", (each,), None, ())
        for each in dict.fromkeys(found)
    )


def _pattern_text(pattern: Pattern, route: Route) -> str:
    """Return a pattern as text of the route's dialect, for findings.

    Some derived patterns are illegal there (`ORDERS.$*`); then the text is the nearest spelling.
    """
    try:
        return render_pattern(pattern, route.dialect)
    except TranslationError as error:
        return error.text


def _lost_images(route: Route) -> Iterator[Pattern]:
    """Yield patterns of the target names for the source names that `route` does not take."""
    (source,), flows = extract_flows([route], {route.endpoint: "", route.targets[0].endpoint: ""})
    for flow in flows:
        identity = _identity_flow(flow)
        lost = (*_excluded(identity, source.excludes), *_unmatched(identity, flow.pattern))
        for pattern in lost:
            image = make_flow(source, flow.target_index, flow.target, flow.broker, pattern)
            yield image.target_pattern


def _excluded(identity: Flow, excludes: Sequence[Pattern]) -> Iterator[Pattern]:
    for exclude in excludes:
        yield from exact_source_patterns(identity, exclude) or ()


def _unmatched(identity: Flow, pattern: Pattern) -> Iterator[Pattern]:
    """Yield patterns of names that the first wildcard never matches (MQTT 5.0, 4.7.2)."""
    for prefix in pattern.exclusions.first_level_prefixes:
        for found in source_patterns(identity, Pattern((Glob((prefix, "")), AnyMany(0)))):
            if found != identity.pattern:  # the whole pattern: the solution is not exact
                yield found


def _identity_flow(flow: Flow) -> Flow:
    """Return a flow of the same names to themselves, with names that wildcards never match."""
    target = replace(flow.target, templates=())
    exclusions = replace(NO_EXCLUSIONS, whole_levels=flow.pattern.exclusions.whole_levels)
    pattern = replace(flow.pattern, exclusions=exclusions)
    return make_flow(flow.source, flow.target_index, target, flow.broker, pattern)
