"""Proof: what goes forth by one route comes back by the other as itself; else a name that does not.

Captures are whole levels and no route looks into them, so a name in which they all differ stands
for all names of its shape. Shapes differ in how many levels a rest wildcard took.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gateway.errors import LimitError
from gateway.model.pattern import AnyMany, AnyOne, Glob, Literal, Pattern
from gateway.proofs.budget import TOO_LONG, ask
from gateway.proofs.finding import Finding, Severity
from gateway.proofs.flows.extract import survey
from gateway.proofs.flows.flow import Flow, Site
from gateway.proofs.rules.injective import twins
from gateway.proofs.search.equations import restricted
from gateway.proofs.search.examples import exactly, example
from gateway.proofs.search.witness import Refused, Sent, attempt, sent
from gateway.routing.route import Route

ATTEMPTS = 4
LENGTHS = 4  # of a rest wildcard, from its least on
HINT = "make the template of each route read like the pattern of the other"


def prove_inverse(forward: Route, backward: Route) -> Finding | None:
    """A name that goes by `forward` and does not come back by `backward` as itself, if any."""
    brokers = {route.endpoint: route.endpoint for route in (forward, backward)}
    brokers |= {
        target.endpoint: target.endpoint
        for route in (forward, backward)
        for target in route.targets
    }
    (site, back), flows = survey([forward, backward], brokers)
    there = [flow for flow in flows if flow.site is site and flow.broker == backward.endpoint]
    if not there or all(target.endpoint != forward.endpoint for target in backward.targets):
        text = f"route {backward.name!r} does not lead back to {forward.endpoint!r}"
        hint = f"send it to {forward.endpoint!r}, from where this route sends to"
        return site.finding("not-inverse", "error", text, hint)
    ask()
    try:
        found = (_judged(flow, back, levels) for flow in there for levels in _names(flow, back))
        return next(filter(None, found), None)
    except LimitError:
        text = f"whether route {backward.name!r} leads back is open: {TOO_LONG}"
        return site.finding("unproven", "warning", text, HINT)


def _names(flow: Flow, back: Site) -> Iterator[tuple[str, ...]]:
    """Names to send forth: when all of them come back, every name does."""
    unions = [[flow.image]], [*back.patterns]
    for made in (*_examples(*unions), *_examples([[flow.image], back.excludes], [])):
        for pattern in restricted(flow, exactly(made)):
            if (levels := example([[pattern]], flow.site.excludes)) is not None:
                yield levels
    yield from _shapes(flow)
    for pair in twins(flow):
        yield from pair


def _examples(
    every: Sequence[Sequence[Pattern]], none: Sequence[Pattern]
) -> Iterator[tuple[str, ...]]:
    tried: list[Pattern] = []
    while len(tried) < ATTEMPTS and (found := example(every, [*none, *tried])) is not None:
        tried.append(exactly(found))
        yield found


def _shapes(flow: Flow) -> Iterator[tuple[str, ...]]:
    """A plain and a hostile name, no two levels alike, for each length of the rest wildcards."""
    for more in range(LENGTHS):
        for word in ("v", "V.a-B_/%2E+"):
            levels: list[str] = []
            for at, level in enumerate(flow.pattern.levels):
                match level:
                    case Literal(text):
                        levels.append(text)
                    case AnyMany(least):
                        levels += [f"{word}{at}{number}" for number in range(least + more)]
                    case Glob():
                        first, *others = level.parts
                        levels.append(f"{first}{word}{at}{''.join(others)}")
                    case AnyOne():
                        levels.append(f"{word}{at}")
            yield tuple(levels)


def _judged(flow: Flow, back: Site, levels: tuple[str, ...]) -> Finding | None:
    """What is wrong with the way of one name forth and back."""
    forth = sent(flow, levels)
    if forth is None:
        return None
    route = back.route
    for target in route.targets:
        if target.endpoint != flow.site.route.endpoint:
            continue
        found = attempt(route, target, forth.arrived)
        if isinstance(found, Sent) and found.made == forth.name:
            continue
        text = f"{forth.name!r} goes forth as {forth.made!r} and {_end(found, route)}"
        changed = isinstance(found, Sent)
        names = [forth.name, forth.made, *([found.made] if isinstance(found, Sent) else [])]
        severity: Severity = "error" if changed else "warning"
        ends = (*flow.ends, flow.site.route.endpoint)[: len(names)]
        return flow.site.finding(
            "not-inverse", severity, text, _hint(found, back, forth), names, ends, target=flow.place
        )
    return None


def _hint(found: Sent | Refused | None, back: Site, forth: Sent) -> str:
    if found is None and back.route.source.selects(forth.arrived):
        return f"exclude {forth.name!r} and what is like it here too, or write two routes"
    return HINT


def _end(found: Sent | Refused | None, route: Route) -> str:
    if isinstance(found, Sent):
        return f"comes back by route {route.name!r} as {found.made!r}"
    if isinstance(found, Refused):
        return f"is refused on its way back by route {route.name!r}: {found.error.reason}"
    return f"does not come back: route {route.name!r} does not take it"
