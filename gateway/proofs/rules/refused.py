"""Proofs about refused names: what an endpoint does not allow, and what its limits forbid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gateway.dialects.base import Dialect, parse_pattern
from gateway.dialects.name_limits import ANY_REST
from gateway.model.pattern import AnyMany, Glob, Literal, Pattern
from gateway.proofs.flows.extract import make_flow, selected_patterns
from gateway.proofs.flows.flow import Flow, RouteFinding
from gateway.proofs.search.equations import source_patterns
from gateway.proofs.search.examples import exact_pattern, examples, find_example
from gateway.proofs.search.samples import translate_towards
from gateway.proofs.search.translated_name import RefusedName
from gateway.routing.route import Target

MAX_ATTEMPTS = 4  # target names for which a source name is searched
ALLOWED_HINT = "begin the template with what is allowed, or allow more at the endpoint"


def refused_patterns(target: Target) -> list[Pattern]:
    """Return patterns of names that `target` refuses: inboxes, and other kinds of destinations."""
    dialect = target.renderer.dialect
    found = [
        Pattern((Glob((prefix, "")), AnyMany(0)))
        for prefix in dialect.kind_prefixes
        if prefix != target.kind and dialect.separator not in prefix
    ]
    for text in dialect.inbox_levels:
        (first,), (_, meant) = dialect.codec.decode([text]), dialect.codec.decode(["x", text])
        found.append(Pattern((AnyMany(0), Literal(meant), AnyMany(0))))
        if first != meant:
            found.append(Pattern((Literal(first), AnyMany(0))))
    return found


def restrict_to_allowed(flow: Flow) -> tuple[list[Flow], RouteFinding | None]:
    """Return the part of `flow` that its target allows, and a finding when there is another part.

    The part is one flow for each allowed pattern, or `flow` itself when all names are allowed.

    Raises:
        SearchBudgetExceeded: the search became too long.
    """
    allowed = [pattern for each in flow.target.allow for pattern in selected_patterns(each)]
    inner = [*allowed, *refused_patterns(flow.target)]
    if not allowed or find_example([[flow.target_pattern]], inner) is None:
        return [flow], None
    flows = [
        make_flow(flow.source, flow.target_index, flow.target, flow.broker, pattern)
        for goal in allowed
        for pattern in source_patterns(flow, goal)
        if find_example([[pattern]], flow.source.excludes) is not None
    ]
    return flows, _outside(flow, inner)


def _outside(flow: Flow, patterns: Sequence[Pattern]) -> RouteFinding:
    """Return the finding about target names outside of `patterns`, which there may be."""
    endpoint = flow.target.endpoint
    for made in examples([[flow.target_pattern]], patterns, MAX_ATTEMPTS):
        if (names := _names(flow, exact_pattern(made), patterns)) is not None:
            text = f"{names[0]!r} becomes {names[1]!r}, which {endpoint!r} does not allow"
            return flow.finding("outside-allow", "error", text, ALLOWED_HINT, names, flow.endpoints)
    text = f"{endpoint!r} may not allow some names; no example was found"
    return flow.finding("unproven", "warning", text, ALLOWED_HINT)


def _names(flow: Flow, made: Pattern, allowed: Sequence[Pattern]) -> tuple[str, str] | None:
    """Return a source name and its target name outside of `allowed`; searched from `made`."""
    for found in translate_towards(flow, made):
        if isinstance(found, RefusedName):
            if found.error.rule == "not-allowed":
                return found.source_name, found.error.text
        elif find_example([[exact_pattern(found.target_levels)]], allowed) is not None:
            return found.source_name, found.target_name
    return None


LIMITS_HINT = "exclude such names from the route, or accept that they become dead letters"


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
        yield flow.finding("forbidden-name", "note", text, LIMITS_HINT, names)


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
