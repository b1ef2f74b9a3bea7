"""Proof: no message reaches a target by its own name and by the name that it carries.

A route over the names of another one takes a copy by the name in its header, and an ordinary route
takes it by its own name. Both may carry it to one broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gateway.errors import SearchBudgetExceeded
from gateway.proofs.budget import SEARCH_TOO_LONG, start_question
from gateway.proofs.finding import RouteFinding
from gateway.proofs.flows.carried_names import CarriedNames
from gateway.proofs.flows.flow import Flow
from gateway.proofs.rules.overlap import NARROW_HINT, copied_finding
from gateway.proofs.search.equations import source_patterns
from gateway.proofs.search.examples import find_example
from gateway.proofs.search.translated_name import TranslatedName, translate_by_flow

Copies = tuple[TranslatedName, TranslatedName]


def prove_named_twice(
    flows: Sequence[Flow], carried: Sequence[CarriedNames]
) -> Iterator[RouteFinding]:
    """Yield a message for each two routes that carry it to one broker in both ways."""
    told: set[tuple[int, int]] = set()
    for each in carried:
        over = [flow for flow in flows if flow.source.broker == each.names.broker]
        plain = [flow for flow in flows if flow.source.broker == each.flow.broker]
        for one, other in ((one, other) for other in over for one in plain):
            pair = one.source.number, other.source.number
            if one.broker != other.broker or pair in told:
                continue
            start_question()
            try:
                copies = _copies(each.flow, one, other)
            except SearchBudgetExceeded:
                text = f"route {one.source.route.name!r} may carry its messages: {SEARCH_TOO_LONG}"
                yield other.finding("unproven", "warning", text, NARROW_HINT)
                continue
            if copies is not None:
                told.add(pair)
                yield copied_finding(one, other, *copies)


def _copies(writer: Flow, one: Flow, other: Flow) -> Copies | None:
    """Return a message of `writer` by its own name, through `one`, and by the carried one."""
    without = (*writer.source.excludes, *other.source.excludes)
    for pattern in source_patterns(writer, one.pattern):
        levels = find_example([[pattern], [other.pattern]], without)
        written = translate_by_flow(writer, levels)
        first = written and translate_by_flow(one, written.target_levels)
        second = translate_by_flow(other, levels)
        if first is not None and second is not None:
            return first, second
    return None
