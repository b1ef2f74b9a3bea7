"""Checks of routes before they are written, by the parsers of the configuration and by its proofs.

The proofs find faults that involve several lines of the input, such as a cycle through two bridges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from gateway.dialects.base import Dialect, parse_pattern
from gateway.dialects.brokers import with_limits
from gateway.dialects.name_limits import NameLimits
from gateway.errors import SearchBudgetExceeded, SubjectError, TranslationError
from gateway.imports.document import RouteEntry
from gateway.imports.source_lines import OmittedLine
from gateway.model.subject_search import covers, overlaps
from gateway.proofs import prove
from gateway.proofs.reverse_route import REVERSE_SUFFIX, both_ways
from gateway.routing.route import Route, Target
from gateway.routing.selectors.selector import parse_selector
from gateway.routing.source_pattern import parse_source
from gateway.routing.template import parse_template
from gateway.translate.names import Renderer

BRACES = "{}"
MAX_OVERLAPS = 1_000  # pairs of lines; the proofs take milliseconds for each
_parsed = lru_cache(maxsize=8_192)(parse_pattern)  # every pair of lines is compared


def fault_of(parse: Callable[..., object], *arguments: object) -> str:
    """Return why `parse` refuses a name, a pattern or a selector; empty when it takes them."""
    try:
        parse(*arguments)
    except (SubjectError, TranslationError) as error:
        return str(error)
    return ""


def find_route_fault(
    pattern: str, template: str, dialect: Dialect, exclude: Sequence[str] = ()
) -> str:
    """Return why a route between two endpoints of one dialect is illegal; empty when it is not."""

    def parse() -> None:
        source = parse_source(pattern, dialect)
        for each in exclude:
            parse_source(each, dialect)
        parse_template(template, dialect, source)

    return fault_of(parse)


def find_brace_fault(name: str) -> str:
    """Return why `name` cannot stand in a mapping, where braces are captures; empty when it can."""
    if any(brace in name for brace in BRACES):
        return f"{name!r} has a brace, which a mapping reads as a capture"
    return ""


def may_overlap(one: str, other: str, dialect: Dialect) -> bool:
    """Return whether two legal patterns have a common name; True when the search is too long."""
    try:
        return overlaps(_parsed(one, dialect), _parsed(other, dialect))
    except SearchBudgetExceeded:
        return True


def is_covered(pattern: str, others: Sequence[str], dialect: Dialect) -> bool:
    """Return whether `others` together cover `pattern`; False when the search is too long."""
    wide = [each for other in others for each in _parsed(other, dialect)]
    try:
        return covers(wide, _parsed(pattern, dialect))
    except SearchBudgetExceeded:
        return False


MAX_ROUNDS = 20  # each proves the routes that the one before left
MAX_ROUTES = 2_000  # beyond them the proofs take too long for an import


def with_refusals(
    entries: Sequence[RouteEntry], brokers: Mapping[str, str], dialect: Dialect
) -> tuple[tuple[RouteEntry, ...], list[OmittedLine]]:
    """Return the entries, with the refusals of `gateway check`, and a line for each of these.

    `brokers` is by endpoint, all of one dialect. A refused route is left out and the others are
    proven again, until none is refused: a cycle is broken where the proof names it.
    """
    if len(entries) > MAX_ROUTES:
        reason = f"the proofs were left out for more than {MAX_ROUTES} routes; run `gateway check`"
        return tuple(entries), [OmittedLine(entries[0].location, "the routes together", reason)]
    at_endpoint = with_limits(dialect, NameLimits())
    refusals: dict[str, str] = {}
    omitted: list[OmittedLine] = []
    for _ in range(MAX_ROUNDS):
        live = [entry for entry in entries if entry.name not in refusals]
        routes = [route for entry in live for route in routes_of(entry, at_endpoint)]
        locations = {entry.name: entry.location for entry in live}
        found = [
            each for each in prove(routes, brokers, only_errors=True) if each.severity == "error"
        ]
        for finding in found:
            name = finding.route.removesuffix(REVERSE_SUFFIX)
            reason = f"`gateway check` refuses it: {finding.text}; {finding.hint}"
            refusals.setdefault(name, reason)
            omitted.append(OmittedLine(locations[name], f"route {finding.route!r}", reason))
        if not found:
            break
    else:
        reason = f"errors were left after {MAX_ROUNDS} proofs; run `gateway check`"
        omitted.append(OmittedLine(entries[0].location, "the routes together", reason))
    checked = (replace(entry, refusal=refusals.get(entry.name, "")) for entry in entries)
    return tuple(checked), omitted


def routes_of(entry: RouteEntry, dialect: Dialect) -> Iterator[Route]:
    """Return the routes that the configuration makes of `entry`."""
    source = parse_source(entry.pattern, dialect)
    targets = tuple(
        Target(
            target.endpoint if number == 1 else f"{target.endpoint}:{number}",
            target.endpoint,
            Renderer(dialect),
            (parse_template(target.template, dialect, source),),
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
