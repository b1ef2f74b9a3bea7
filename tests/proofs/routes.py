"""Build routes for tests of the proofs; each endpoint has the name of its system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gateway.dialects.base import Dialect
from gateway.dialects.registry import DIALECTS, find_dialect
from gateway.proofs import RouteFinding, prove
from gateway.routing.route import Route, Target
from gateway.routing.source_pattern import parse_source
from gateway.routing.template import parse_template
from gateway.translate.names import OnTooLong, OnUnmappable, Renderer

COPIES = ("", "-2", "-3")  # three endpoints, and brokers, of each system
BROKERS = {name + copy: name + copy for name in DIALECTS for copy in COPIES}
QUIET = frozenset({"past-limit", "first-place", "capture-unused", "widened"})


def dialect_of(endpoint: str) -> Dialect:
    return find_dialect(endpoint.partition("-")[0])


def route(  # what a route has
    source: str,
    pattern: str,
    *targets: tuple[str, str | None],
    name: str = "r",
    exclude: Sequence[str] = (),
    escape: OnUnmappable = OnUnmappable.ESCAPE,
    length: OnTooLong = OnTooLong.REFUSE,
    lossy: bool = False,
    inverse: str = "",
) -> Route:
    """`route("mqtt", "a/{x}", ("ems", "A.{x}"))`; a template None keeps the name."""
    dialect = dialect_of(source)
    taken = parse_source(pattern, dialect)
    made = tuple(
        Target(
            f"{endpoint}:{number}",
            endpoint,
            Renderer(dialect_of(endpoint), escape, length),
            () if template is None else (parse_template(template, dialect_of(endpoint), taken),),
            lossy=lossy,
        )
        for number, (endpoint, template) in enumerate(targets, 1)
    )
    excludes = tuple(parse_source(text, dialect) for text in exclude)
    return Route(name, source, dialect, taken, made, excludes, inverse=inverse)


def findings(
    *routes: Route,
    allow: Sequence[str] = (),
    quiet: frozenset[str] = QUIET,
) -> list[RouteFinding]:
    """Return the findings without those of the rules in `quiet`."""
    limited = [allowing(each, allow) for each in routes] if allow else routes
    ends = {target.endpoint for each in routes for target in each.targets}
    ends |= {each.endpoint for each in routes}
    brokers = BROKERS | {end: end for end in ends}
    return [found for found in prove(limited, brokers) if found.rule not in quiet]


def allowing(one: Route, allow: Sequence[str]) -> Route:
    """Return the route with names that its targets allow."""
    targets = tuple(
        replace(target, allow=tuple(parse_source(text, target.renderer.dialect) for text in allow))
        for target in one.targets
    )
    return replace(one, targets=targets)


def rules(*routes: Route, allow: Sequence[str] = ()) -> list[str]:
    return [found.rule for found in findings(*routes, allow=allow)]


def only(found: list[RouteFinding], rule: str) -> RouteFinding:
    """Return the one finding of a rule."""
    (finding,) = [each for each in found if each.rule == rule]
    return finding


def tagged(template: str, *others: str) -> Route:
    """Return a route to a tag list."""
    one = route("mqtt", "o/{x}/{y}", ("yami4", template))
    yami = DIALECTS["yami4"]
    every = tuple(parse_template(text, yami, one.source) for text in (template, *others))
    return replace(one, targets=(replace(one.targets[0], templates=every),))
