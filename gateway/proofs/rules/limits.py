"""Proof: no legal name of the source is too long or too deep for the target.

The search grows a name at its captures, with the characters that take the most room at the target,
until the target refuses it. The source's dialect bounds the growth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gateway.dialects.names import split_levels
from gateway.errors import LimitError
from gateway.model.limits import Unit
from gateway.proofs.finding import RouteFinding
from gateway.proofs.flows.flow import Flow
from gateway.proofs.search.growth import KnownEdges, NameGrowth
from gateway.proofs.search.translated_name import TranslatedName

MAX_EXAMPLE_CHARACTERS = 1_000  # longer names are left out of the example
WIDE_CHARACTER = "漢"  # one character, three bytes
HINT = "set 'on_too_long: shorten' or 'refuse'"
TOPIC_HINT = "use the `key`, or set 'on_too_long: refuse'"


def prove_limits(flow: Flow, plain: TranslatedName, edges: KnownEdges) -> Iterator[RouteFinding]:
    """Yield a finding when some legal names of the source are past a limit of the target.

    `plain` is a name that the target accepts; `edges` is kept from flow to flow.

    Raises:
        SearchBudgetExceeded: the search became too long.
    """
    dialect = flow.target.renderer.dialect
    if flow.has_fields and dialect.limits:
        text = f"{flow.shown_fields} may make names past the limits of {flow.target.endpoint!r}"
        yield flow.finding("past-limit", "warning", text, _hint(flow))
        return
    for filler in _fillers(flow):
        found: dict[str, tuple[str, str, str]] = {}  # a clause and two names, by rule
        for limit in dialect.limits:
            growth = NameGrowth(flow, plain, filler, _cap(flow, limit.unit), limit)
            edge = growth.find_edge(edges)
            if edge is not None and isinstance(error := edge[1].error, LimitError):
                names = edge[0].source_name, edge[1].source_name
                depth = len(edge[0].target_levels)
                found.setdefault(error.rule, (_clause(growth, error, names[0], depth), *names))
        if found:
            yield _finding(flow, list(found.values()))
            return


def _fillers(flow: Flow) -> Sequence[str]:
    """Return the characters to grow a name with, a plain one first, then those that need more."""
    dialect = flow.target.renderer.dialect
    wide = any(limit.unit is Unit.BYTES for limit in dialect.limits)
    source = flow.source.route.dialect.codec.escaped_characters
    escaped = dialect.codec.escaped_characters
    costly = [char for char in escaped if char not in source and char.isprintable()]
    return ("x", *((WIDE_CHARACTER,) if wide else ()), *costly[:1])


def _cap(flow: Flow, unit: Unit) -> int | None:
    """Return the maximum length of one level."""
    dialects = [flow.source.route.dialect]
    if unit is not Unit.LEVEL_CHARACTERS:
        dialects.append(flow.target.renderer.dialect)
    limits = [limit for dialect in dialects for limit in dialect.limits]
    caps = [limit.maximum for limit in limits if limit.unit is Unit.LEVEL_CHARACTERS]
    return min(caps, default=None)


def _finding(flow: Flow, edges: Sequence[tuple[str, str, str]]) -> RouteFinding:
    ends = flow.source.route.endpoint, flow.target.endpoint
    *clauses, last = (clause for clause, *_ in edges)
    past = " or ".join(filter(None, (", ".join(clauses), last)))
    text = f"{ends[1]!r} refuses names of {ends[0]!r} past {past}"
    names = [name for _, *names in edges for name in names if len(name) <= MAX_EXAMPLE_CHARACTERS]
    return flow.finding("past-limit", "warning", text, _hint(flow), names)


def _hint(flow: Flow) -> str:
    return HINT if flow.target.renderer.dialect.key is None else TOPIC_HINT


def _clause(growth: NameGrowth, error: LimitError, fitting: str, depth: int) -> str:
    """Return the size of the longest name of the source that fits; of a level, the maximum.

    `depth` is the number of levels that this name has at the target.
    """
    if growth.limit.unit is Unit.LEVEL_CHARACTERS:
        return f"{error.maximum:,} {error.unit}"
    dialect = growth.flow.source.route.dialect
    if growth.limit.unit is Unit.LEVELS:
        return f"{len(split_levels(fitting, dialect)):,} {dialect.level_noun}s"
    filler = "" if growth.filler == "x" else f" with {growth.filler!r}"
    return f"{len(fitting):,} characters{filler}{growth.limit.reason_made(depth)}"
