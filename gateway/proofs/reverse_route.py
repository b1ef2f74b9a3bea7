"""A route in both directions as two: each takes what the other makes, and no other name.

What one of them leaves alone, by `exclude` or because no wildcard of its system takes it, would
come out of the other and never return.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gateway.model.pattern import BOLD, AnyMany, Glob, Pattern
from gateway.proofs.flows.extract import fixed_depth, flow_of, survey
from gateway.proofs.flows.flow import Flow
from gateway.proofs.search.equations import restricted, restricted_exactly
from gateway.proofs.search.examples import example
from gateway.routing.captures import SourcePattern, parse_source
from gateway.routing.route import EACH_TAG, Route, Target
from gateway.routing.template import parse_template


def both_ways(
    there: Route, template: str, back: str, allow: tuple[SourcePattern, ...] = ()
) -> tuple[Route, Route]:
    """`there`, whose one target has the one `template`, and its way back, which is called `back`.

    Raises:
        SubjectError, TranslationError: the template is no pattern, or the pattern no template.
    """
    target = there.targets[0]
    pattern = parse_source(template, target.renderer.dialect)
    renderer = replace(target.renderer, dialect=there.dialect)
    made = parse_template(there.source.text, there.dialect, pattern)
    home = Target(
        there.endpoint,
        there.endpoint,
        renderer,
        made,
        allow,
        rules=target.rules.turned(),
        when_full=target.when_full,
        place=there.place,
    )
    way_back = replace(
        there,
        name=back,
        endpoint=target.endpoint,
        dialect=target.renderer.dialect,
        source=pattern,
        targets=(home,),
        place=target.place,
        heartbeat="",
        excludes=(),
        tags=EACH_TAG,
        selector=None,
        inverse=there.name,
    )
    left_there, left_back = _left_alone(way_back, there), _left_alone(there, way_back)
    return (
        replace(there, inverse=back, excludes=(*there.excludes, *left_there)),
        replace(way_back, excludes=left_back),
    )


def _left_alone(route: Route, other: Route) -> tuple[SourcePattern, ...]:
    """Names that `other` takes and would turn into those that `route` leaves alone."""
    text = f"what {route.name} leaves alone"
    taken = fixed_depth(other.source)
    found = (each for each in _images(route) if example([[each], taken]) is not None)
    return tuple(SourcePattern(text, "", (each,), None, ()) for each in dict.fromkeys(found))


def _images(route: Route) -> Iterator[Pattern]:
    """What the target of `route` would make of the names that `route` leaves alone."""
    (site,), flows = survey([route], {route.endpoint: "", route.targets[0].endpoint: ""})
    for flow in flows:
        kept = _keeping(flow)
        for each in (*_excluded(kept, site.excludes), *_shunned(kept, flow.pattern)):
            yield flow_of(flow.site, flow.place, flow.target, flow.broker, each).image


def _excluded(kept: Flow, excludes: Sequence[Pattern]) -> Iterator[Pattern]:
    for exclude in excludes:
        yield from restricted_exactly(kept, exclude) or ()


def _shunned(kept: Flow, pattern: Pattern) -> Iterator[Pattern]:
    """What the first wildcard does not take though its place is right (MQTT 5.0, 4.7.2)."""
    for first in pattern.shy.first:
        for found in restricted(kept, Pattern((Glob((first, "")), AnyMany(0)))):
            if found != kept.pattern:  # that would be everything: the answer was not exact
                yield found


def _keeping(flow: Flow) -> Flow:
    """The same names, also those that wildcards do not take, made into themselves."""
    target = replace(flow.target, template=None)
    pattern = replace(flow.pattern, shy=replace(BOLD, anywhere=flow.pattern.shy.anywhere))
    return flow_of(flow.site, flow.place, target, flow.broker, pattern)
