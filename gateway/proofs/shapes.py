"""Flows that nothing but their names tells apart, so that a proof looks at one of them."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.proofs.forms import Flow


def numbered(flows: Sequence[Flow]) -> dict[Flow, int]:
    """A number for each flow, the same for all that make the same of the same names."""
    known: dict[object, int] = {}
    return {flow: known.setdefault(_shape(flow), len(known)) for flow in flows}


def _shape(flow: Flow) -> object:
    """All that decides what a name becomes; dialects are told apart by being one object."""
    route, target = flow.site.route, flow.target
    renderer = target.renderer
    return (
        (flow.pattern, id(route.dialect), route.source, route.excludes, route.tags.along),
        (target.template, target.also, target.allow, id(renderer.dialect)),
        (renderer.escape, renderer.length, renderer.replacement, renderer.replies),
    )
