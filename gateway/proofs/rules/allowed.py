"""Proof: a target sends only to names that its endpoint allows."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.model.pattern import AnyMany, Glob, Literal, Pattern
from gateway.proofs.finding import RouteFinding
from gateway.proofs.flows.flow import Flow
from gateway.proofs.flows.target_expressions import make_flow, selected_patterns
from gateway.proofs.search.equations import source_patterns
from gateway.proofs.search.examples import exact_pattern, examples, find_example
from gateway.proofs.search.samples import translate_towards
from gateway.proofs.search.translated_name import RefusedName
from gateway.routing.route import Target

MAX_ATTEMPTS = 4  # target names for which a source name is searched
HINT = "begin the template with what is allowed, or allow more at the endpoint"


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
            return flow.finding("outside-allow", "error", text, HINT, names, flow.endpoints)
    text = f"{endpoint!r} may not allow some names; no example was found"
    return flow.finding("unproven", "warning", text, HINT)


def _names(flow: Flow, made: Pattern, allowed: Sequence[Pattern]) -> tuple[str, str] | None:
    """Return a source name and its target name outside of `allowed`; searched from `made`."""
    for found in translate_towards(flow, made):
        if isinstance(found, RefusedName):
            if found.error.rule == "not-allowed":
                return found.source_name, found.error.text
        elif find_example([[exact_pattern(found.target_levels)]], allowed) is not None:
            return found.source_name, found.target_name
    return None
