"""Proof: no name that the source can have is too long or too deep at the target; else both sides.

A name is grown where publishers fill it, in characters that cost the target most, until the
target refuses it. Whether the source can have such a name is asked of its own dialect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.dialects.base import Dialect
from gateway.dialects.names import split
from gateway.errors import LimitError
from gateway.model.limits import Limit, Unit
from gateway.proofs.finding import Finding
from gateway.proofs.flows.flow import Flow
from gateway.proofs.search.growth import Edges, Growth
from gateway.proofs.search.witness import Refused, Sent

PASTED = 1_000  # characters; nobody pastes longer names
WIDE = "漢"  # one character, three bytes
HINT = "write 'length: shorten' at the target, shorten the template, or live with refused names"


@dataclass(frozen=True, slots=True)
class _Edge:
    """The longest name that fits and the next one, which does not."""

    fits: Sent
    over: Refused
    error: LimitError
    filler: str
    limit: Limit


def sizes(flow: Flow, plain: Sent, edges: Edges) -> Iterator[Finding]:
    """A finding for a target that some legal names of the source are too long or deep for.

    `plain` is a name that the target takes; `edges` is kept from flow to flow.
    """
    dialect = flow.target.renderer.dialect
    for filler in _fillers(flow):
        found: dict[str, _Edge] = {}
        for limit in dialect.limits:
            growth = Growth(flow, plain, filler, _cap(flow, limit.unit), limit)
            edge = growth.edge(edges)
            if edge is not None and isinstance(edge[1].error, LimitError):
                found.setdefault(edge[1].error.rule, _Edge(*edge, edge[1].error, filler, limit))
        if found:
            yield _finding(flow, list(found.values()))
            return


def _fillers(flow: Flow) -> Sequence[str]:
    """Characters to grow a name with, the plain one first, then those that cost more."""
    dialect = flow.target.renderer.dialect
    wide = any(limit.unit is Unit.BYTES for limit in dialect.limits)
    source = flow.site.route.dialect.codec.spelled
    escaped = [char for char, here in dialect.codec.spelled.items() if here.startswith("%")]
    costly = [char for char in escaped if char not in source and char.isprintable()]
    return ("x", *((WIDE,) if wide else ()), *costly[:1])


def _cap(flow: Flow, unit: Unit) -> int | None:
    """The most characters that one level is grown to."""
    dialects = [flow.site.route.dialect]
    if unit is not Unit.LEVEL_CHARACTERS:
        dialects.append(flow.target.renderer.dialect)
    caps = [
        limit.maximum
        for dialect in dialects
        for limit in dialect.limits
        if limit.unit is Unit.LEVEL_CHARACTERS
    ]
    return min(caps, default=None)


def _finding(flow: Flow, edges: Sequence[_Edge]) -> Finding:
    ends = flow.site.route.endpoint, flow.target.endpoint
    clauses = "; ".join(_clause(flow, edge) for edge in edges)
    room = _room(flow.site.route.dialect)
    text = f"{ends[1]!r} refuses some names of {ends[0]!r}, where {room}: {clauses}"
    names = [name for edge in edges for name in (edge.fits.name, edge.over.name)]
    names = [name for name in names if len(name) <= PASTED]
    return flow.site.finding("past-limit", "warning", text, HINT, names, target=flow.place)


def _room(dialect: Dialect) -> str:
    figures = [f"{limit.maximum:,} {limit.unit.value}" for limit in dialect.limits]
    return f"{dialect.name} allows {', '.join(figures)}" if figures else "no limit is stated"


def _clause(flow: Flow, edge: _Edge) -> str:
    dialect, error = flow.site.route.dialect, edge.error
    unit = "characters"
    over, fits = len(edge.over.name), len(edge.fits.name)
    if edge.limit.unit is Unit.LEVELS:
        unit = f"{dialect.part}s"
        over, fits = (len(split(name, dialect)) for name in (edge.over.name, edge.fits.name))
    elif edge.filler != "x":
        unit += f" with {edge.filler!r}"
    kept = edge.limit.maximum - error.maximum
    system = flow.target.system
    why = f", {system} keeps {kept} of {edge.limit.maximum} for itself" if kept > 0 else ""
    made = f"{error.actual:,} {error.unit}, and {error.maximum:,} is the limit{why}"
    return f"{over:,} {unit} become {made}; {fits:,} {unit} still fit"
