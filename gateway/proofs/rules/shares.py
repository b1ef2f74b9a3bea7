"""Shared subscriptions (MQTT 5.0, 4.8.2): a message comes to an endpoint by one of them alone.

A broker sends a message once for each share that takes it, and once more for the subscriptions
of the client itself. Routes of one endpoint see all that comes in, so each copy would be carried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from gateway.model.language import covers, intersection_example
from gateway.model.pattern_index import Index
from gateway.proofs.finding import Finding
from gateway.proofs.flows.flow import Site
from gateway.proofs.search.witness import spelled
from gateway.routing.captures import SourcePattern

HINT = "use one share for both and let one pattern take all, or give one an endpoint of its own"


def shares(sites: Sequence[Site]) -> Iterator[Finding]:
    """Routes that take a name which also comes by another share, each with the first such."""
    ends: defaultdict[str, list[Site]] = defaultdict(list)
    for site in sites:
        ends[site.route.endpoint].append(site)
    for together in ends.values():
        if any(site.route.source.share for site in together):
            yield from _at_end(together)


def _at_end(together: Sequence[Site]) -> Iterator[Finding]:
    every: Index[Site] = Index()
    shared: Index[Site] = Index()
    for site in together:
        share = site.route.source.share
        earlier = every if share else shared  # two that are not shared bring a name once
        near = {other for pattern in site.patterns for other in earlier.near(pattern)}
        yield from _met(site, sorted(near, key=lambda other: other.number))
        for pattern in site.patterns:
            every.add(pattern, site)
            if share:
                shared.add(pattern, site)


def _met(site: Site, near: Sequence[Site]) -> Iterator[Finding]:
    mine = site.route.source
    for other in near:
        theirs = other.route.source
        if _come_together(mine, theirs):
            continue
        levels = intersection_example(mine.patterns, theirs.patterns)
        name = None if levels is None else spelled(levels, site.route.dialect)
        if name is not None:
            text = (
                f"{name!r} comes once by {mine.text!r} and once by {theirs.text!r} of route"
                f" {other.route.name!r}, and both routes take both"
            )
            yield site.finding("shared-twice", "error", text, HINT, (name,))
            return


def _come_together(one: SourcePattern, other: SourcePattern) -> bool:
    """Whether one subscription of one share brings the names of both."""
    if one.share != other.share:
        return False
    if one.subscription == other.subscription:
        return True
    return covers(one.patterns, other.patterns) or covers(other.patterns, one.patterns)
