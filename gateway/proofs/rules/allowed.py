"""Proof: a target sends only to names that its endpoint allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gateway.dialects.parts import BOUNDARY
from gateway.model.pattern import AnyMany, AnyOne, Glob, Literal, Pattern
from gateway.proofs.finding import RouteFinding
from gateway.proofs.flows.flow import Flow
from gateway.proofs.flows.target_expressions import make_flow, selected_patterns
from gateway.proofs.search.equations import source_patterns
from gateway.proofs.search.examples import exact_pattern, examples, find_example
from gateway.proofs.search.samples import translate_towards
from gateway.proofs.search.translated_name import RefusedName, spell_subject
from gateway.routing.route import Target

MAX_ATTEMPTS = 4  # target names for which a source name is searched
HINT = "begin the template with what is allowed, or allow more at the endpoint"


def refused_patterns(target: Target) -> list[Pattern]:
    """Return patterns of names that `target` refuses: inboxes, other kinds, two boundaries."""
    dialect = target.renderer.dialect
    found = [
        Pattern((Glob((prefix, "")), AnyMany(0)))
        for prefix in dialect.kind_prefixes
        if prefix != target.kind and dialect.separator not in prefix
    ]
    if dialect.key is not None:  # a capture does not move the boundary
        boundary = Literal(BOUNDARY)
        found.append(Pattern((boundary, AnyMany(0))))
        found.append(Pattern((AnyOne(), AnyMany(0), boundary, AnyMany(0), boundary, AnyMany(0))))
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
    if flow.has_fields:
        return _with_fields(flow, allowed)
    flows = [
        make_flow(flow.source, flow.target_index, flow.target, flow.broker, pattern)
        for goal in allowed
        for pattern in source_patterns(flow, goal)
        if find_example([[pattern]], flow.source.excludes) is not None
    ]
    return flows, _outside(flow, inner)


def _with_fields(flow: Flow, allowed: Sequence[Pattern]) -> tuple[list[Flow], RouteFinding | None]:
    """Return a flow for each allowed pattern that some value of its fields makes a name of.

    The finding is about a name for which there is none; that other values are refused is what
    `allow` is for.
    """
    by_goal = {goal: source_patterns(flow, goal) for goal in allowed}
    fit = [pattern for patterns in by_goal.values() for pattern in patterns]
    flows = [
        replace(flow, target_pattern=_narrowed(flow.target_pattern, goal))
        for goal, patterns in by_goal.items()
        if patterns
    ]
    levels = find_example([[flow.pattern]], [*flow.source.excludes, *fit])
    if levels is None:
        return flows, None
    route, endpoint = flow.source.route, flow.target.endpoint
    name = spell_subject(levels, route.dialect) or route.dialect.text_of(levels)
    text = f"{endpoint!r} allows no name for {name!r}, whatever {flow.shown_fields} is"
    return flows, flow.finding("outside-allow", "error", text, HINT, (name,))


def _narrowed(made: Pattern, goal: Pattern) -> Pattern:
    """Return a pattern of the names of `made` that match `goal`, possibly with further names."""
    levels, wanted = made.levels, goal.levels
    if wanted and isinstance(wanted[-1], AnyMany):
        wanted = (*wanted[:-1], *[AnyOne()] * (len(levels) - len(wanted) + 1))
    many = any(isinstance(level, AnyMany) for level in (*levels, *wanted))
    if many or len(levels) != len(wanted):
        return made
    order = (Literal, Glob, AnyOne)
    pairs = zip(levels, wanted, strict=True)
    return Pattern(tuple(min(pair, key=lambda each: order.index(type(each))) for pair in pairs))


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
