"""Proofs of `gateway check` for imported routes.

They find faults that involve several lines of the input, such as a cycle through two bridges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gateway.dialects.base import Dialect
from gateway.dialects.brokers import with_limits
from gateway.dialects.name_limits import NameLimits
from gateway.imports.document import RouteEntry
from gateway.imports.source_lines import OmittedLine
from gateway.proofs import prove
from gateway.proofs.reverse_route import REVERSE_SUFFIX, both_ways
from gateway.routing.route import Route, Target
from gateway.routing.selectors.selector import parse_selector
from gateway.routing.source_pattern import parse_source
from gateway.routing.template import parse_template
from gateway.translate.names import Renderer

MAX_ROUTES = 2_000  # beyond them the proofs take too long for an import


def find_refusals(
    entries: Sequence[RouteEntry], brokers: Mapping[str, str], dialect: Dialect
) -> list[OmittedLine]:
    """Return the errors of `gateway check`; `brokers` is by endpoint, all of one dialect."""
    if len(entries) > MAX_ROUTES:
        reason = f"the proofs were left out for more than {MAX_ROUTES} routes; run `gateway check`"
        return [OmittedLine(entries[0].location, "the routes together", reason)]
    at_endpoint = with_limits(dialect, NameLimits())
    routes = [route for entry in entries for route in routes_of(entry, at_endpoint)]
    locations = {
        name: entry.location
        for entry in entries
        for name in (entry.name, entry.name + REVERSE_SUFFIX)
    }
    return [
        OmittedLine(
            locations[finding.route],
            f"route {finding.route!r}",
            f"`gateway check` refuses it: {finding.text}; {finding.hint}",
        )
        for finding in prove(routes, brokers, only_errors=True)
        if finding.severity == "error"
    ]


def routes_of(entry: RouteEntry, dialect: Dialect) -> Iterator[Route]:
    """Return the routes that the configuration makes of `entry`."""
    source = parse_source(entry.pattern, dialect)
    targets = tuple(
        Target(
            target.endpoint if number == 1 else f"{target.endpoint}:{number}",
            target.endpoint,
            Renderer(dialect),
            parse_template(target.template, dialect, source),
            lossy=target.lossy,
        )
        for number, target in enumerate(entry.targets, 1)
    )
    route = Route(
        entry.name,
        entry.endpoint,
        dialect,
        source,
        targets,
        tuple(parse_source(text, dialect) for text in entry.exclude),
        selector=parse_selector(entry.selector) if entry.selector else None,
    )
    if entry.both:
        yield from both_ways(route, entry.targets[0].template, entry.name + REVERSE_SUFFIX)
    else:
        yield route
