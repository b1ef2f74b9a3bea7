"""Proof: the limits of an endpoint forbid no name of the route."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.dialects.base import Dialect, parse_pattern
from gateway.dialects.name_limits import ANY_REST
from gateway.model.pattern import AnyMany, Glob, Literal, Pattern
from gateway.proofs.finding import RouteFinding
from gateway.proofs.flows.flow import Flow
from gateway.proofs.search.samples import translate_towards
from gateway.proofs.search.translated_name import RefusedName

HINT = "exclude such names from the route, or accept that they become dead letters"


def prove_not_refused(flow: Flow) -> Iterator[RouteFinding]:
    """Yield a note when the limits of the target forbid some names of the route, one each rule.

    Raises:
        SearchBudgetExceeded: the search became too long.
    """
    refused: dict[str, RefusedName] = {}
    for rule, goal in _forbidden_names(flow.target.renderer.dialect):
        for found in translate_towards(flow, goal) if rule not in refused else ():
            if isinstance(found, RefusedName) and found.error.rule == rule:
                refused.setdefault(rule, found)
    if refused:
        clauses = "; ".join(f"{each.source_name!r} ({each.error})" for each in refused.values())
        text = f"{flow.target.endpoint!r} refuses some names of the route: {clauses}"
        names = [each.source_name for each in refused.values()]
        yield flow.finding("forbidden-name", "note", text, HINT, names)


def _forbidden_names(dialect: Dialect) -> Iterator[tuple[str, Pattern]]:
    """Yield the names, in the canonical form, that the limits of an endpoint forbid, by rule."""
    if dialect.refusals is None:
        return
    limits, decode = dialect.refusals.limits, dialect.codec.decode
    for char in limits.forbidden_characters:
        (_, meant) = decode(["x", char])
        yield "forbidden-character", Pattern((AnyMany(0), Glob(("", meant, "")), AnyMany(0)))
    for word in limits.forbidden_first_levels:
        (meant,) = decode([word.removesuffix(ANY_REST)])
        first = Glob((meant, "")) if word.endswith(ANY_REST) else Literal(meant)
        yield "forbidden-first-level", Pattern((first, AnyMany(0)))
    for text in limits.forbidden_patterns:
        for pattern in parse_pattern(text, dialect):
            yield "forbidden-pattern", pattern
