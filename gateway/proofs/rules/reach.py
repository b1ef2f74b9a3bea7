"""Proofs about one source pattern: a name reaches the route, and how much comes in vain."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.dialects.base import parse_pattern
from gateway.errors import LimitError
from gateway.proofs.budget import TOO_LONG, ask
from gateway.proofs.finding import Finding
from gateway.proofs.flows.extract import fixed_depth
from gateway.proofs.flows.flow import Site
from gateway.proofs.search.examples import example
from gateway.proofs.search.witness import spelled


def reach(site: Site) -> Iterator[Finding]:
    """A route without names, excludes without effect, and what the broker sends in vain."""
    ask()
    try:
        if example([site.patterns], site.excludes) is None:
            yield _unreachable(site)
            return
        yield from _idle(site)
        yield from _widened(site)
    except LimitError:
        text = f"what {site.route.source.text!r} takes is open: {TOO_LONG}"
        yield site.finding("unproven", "warning", text, "use fewer rest wildcards in the pattern")


def _unreachable(site: Site) -> Finding:
    text = site.route.source.text
    excludes = ", ".join(repr(each.text) for each in site.route.excludes)
    if not excludes:
        reason = f"no name matches {text!r}"
        return site.finding("unreachable", "error", reason, "correct the pattern")
    verb = "excludes" if len(site.route.excludes) == 1 else "exclude"
    reason = f"the route takes no name: {excludes} {verb} all that {text!r} takes"
    levels = example([site.patterns])
    name = None if levels is None else spelled(levels, site.route.dialect)
    hint = "narrow the excludes, or remove the route"
    if name is not None:
        reason += f", {name!r} too"
    return site.finding("unreachable", "error", reason, hint, () if name is None else (name,))


def _idle(site: Site) -> Iterator[Finding]:
    for exclude in site.route.excludes:
        if example([site.patterns, fixed_depth(exclude)]) is None:
            text = f"{exclude.text!r} excludes nothing that {site.route.source.text!r} takes"
            yield site.finding("idle-exclude", "warning", text, "correct it, or leave it out")


def _widened(site: Site) -> Iterator[Finding]:
    """Names that the subscription brings and the route drops."""
    source = site.route.source
    brought = parse_pattern(source.subscription, site.route.dialect)
    surplus = example([brought], [*site.patterns])
    cause = f"takes {source.depth} {site.route.dialect.part}s only"
    if surplus is None:
        surplus = example([site.patterns, site.excludes]) if site.excludes else None
        cause = "excludes it"
        if surplus is not None:
            taken = surplus
            by = next(each for each in site.route.excludes if each.selects(taken))
            cause = f"excludes {by.text!r}"
    name = None if surplus is None else spelled(surplus, site.route.dialect)
    if name is None:
        return
    text = (
        f"the subscription {source.subscription!r} brings more than the route takes: "
        f"{name!r} comes in and is dropped, the route {cause}"
    )
    hint = "nothing to do unless such names are many"
    yield site.finding("widened", "note", text, hint, (name,))


def unused(site: Site) -> Iterator[Finding]:
    """Named captures that a target's template leaves out."""
    spans = dict(site.route.source.spans)
    for place, target in enumerate(site.route.targets):
        if target.template is None:
            continue
        names = (*target.template.names, *target.rules.names)
        names += tuple(name for template in target.also for name in template.names)
        used = {spans[name] for name in names if name in spans}
        for name, span in spans.items():
            if not name.isdigit() and span not in used:
                word = f"{{{name}...}}" if span.rest else f"{{{name}}}"
                text = f"{word} does not stand in {target.template.text!r}: what it takes is lost"
                hint = f"use {word}, or write the wildcard without a name"
                yield site.finding("capture-unused", "note", text, hint, target=place)
