"""Proofs that names pass: a pattern selects some, a subscription no more, a target accepts one."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.dialects.base import parse_pattern
from gateway.errors import SearchBudgetExceeded
from gateway.proofs.budget import SEARCH_TOO_LONG, start_question
from gateway.proofs.finding import RouteFinding
from gateway.proofs.flows.flow import Flow, RouteSource
from gateway.proofs.flows.target_expressions import selected_patterns
from gateway.proofs.search.examples import find_example
from gateway.proofs.search.samples import varied_names
from gateway.proofs.search.translated_name import RefusedName, spell_subject, translate_name
from gateway.routing.payload_pick import PayloadPick

_NAME_DEPENDENT_RULES = frozenset({"not-allowed", "missing-part"})  # other names may keep them


def prove_reachable(source: RouteSource) -> Iterator[RouteFinding]:
    """Yield findings about no name, the system's own, idle excludes, a wide subscription."""
    start_question()
    try:
        if find_example([source.patterns], source.excludes) is None:
            yield _unreachable(source)
            return
        text = source.route.source.text
        if source.route.names_system:
            reason = f"{text!r} takes names that belong to {source.route.dialect.name} itself"
            hint = "nothing to do; nobody can send to them, so no route brings them back"
            yield source.finding("system-names", "note", reason, hint)
        for exclude in source.route.excludes:
            if find_example([source.patterns, selected_patterns(exclude)]) is None:
                reason = f"{exclude.text!r} excludes no name of {text!r}"
                hint = "correct it, or leave it out"
                yield source.finding("idle-exclude", "warning", reason, hint)
        yield from _widened(source)
    except SearchBudgetExceeded:
        text = f"the names of {source.route.source.text!r} are not proved: {SEARCH_TOO_LONG}"
        yield source.finding("unproven", "warning", text, "use fewer rest wildcards in the pattern")


def _unreachable(source: RouteSource) -> RouteFinding:
    text = source.route.source.text
    excludes = ", ".join(repr(each.text) for each in source.route.excludes)
    if not excludes:
        reason = f"no name matches {text!r}"
        return source.finding("unreachable", "error", reason, "correct the pattern")
    verb = "excludes" if len(source.route.excludes) == 1 else "exclude"
    reason = f"the route takes no name: {excludes} {verb} every name of {text!r}"
    levels = find_example([source.patterns])
    name = None if levels is None else spell_subject(levels, source.route.dialect)
    hint = "narrow the excludes, or remove the route"
    if name is not None:
        reason += f", such as {name!r}"
    return source.finding("unreachable", "error", reason, hint, () if name is None else (name,))


def _widened(source: RouteSource) -> Iterator[RouteFinding]:
    """Yield a note when the subscription selects names that the route drops."""
    taken = source.route.source
    subscribed = parse_pattern(taken.subscription, source.route.dialect)
    levels = find_example([subscribed], [*source.patterns])
    cause = f"takes {taken.depth} {source.route.dialect.level_noun}s only"
    if levels is None and source.excludes:
        levels = find_example([source.patterns, source.excludes])
        by = (each.text for each in source.route.excludes if levels and each.selects(levels))
        cause = f"excludes {next(by, '')!r}"
    name = None if levels is None else spell_subject(levels, source.route.dialect)
    if name is None:
        return
    text = (
        f"the subscription {taken.subscription!r} selects more than the route takes: "
        f"{name!r} is received and dropped, because the route {cause}"
    )
    hint = "nothing to do unless such names are many"
    yield source.finding("widened", "note", text, hint, (name,))


def unused_captures(source: RouteSource) -> Iterator[RouteFinding]:
    """Yield a note for each named capture that a target's template does not use."""
    spans = dict(source.route.source.spans)
    for index, target in enumerate(source.route.targets):
        if target.template is None:
            continue
        names = [name for template in target.templates for name in template.names]
        names += target.rules.names
        if isinstance(target.conversion, PayloadPick):
            names += target.conversion.names
        used = {spans[name] for name in names if name in spans}
        for name, span in spans.items():
            if not name.isdigit() and span not in used:
                word = f"{{{name}...}}" if span.rest else f"{{{name}}}"
                text = f"{word} is not used in {target.template.text!r}: its text is lost"
                hint = f"use {word}, or write the wildcard without a name"
                yield source.finding("capture-unused", "note", text, hint, target=index)


def prove_sendable(flow: Flow) -> RouteFinding | None:
    """Return the finding that the target refuses every name; for a flow without a sendable name.

    The trial names are short and plain, longer, and such that functions find their parts; a rule
    that refuses all of them lies in the fixed part of the template.

    Raises:
        SearchBudgetExceeded: the search became too long.
    """
    route, target = flow.source.route, flow.target
    found = [translate_name(route, target, levels) for levels in varied_names(flow)]
    refused = [each for each in found if isinstance(each, RefusedName)]
    if not refused or any(each.error.rule in _NAME_DEPENDENT_RULES for each in refused):
        return None
    name, error = refused[0].source_name, refused[0].error
    text = f"no name can be sent to {target.endpoint!r}: {name!r} is refused ({error})"
    hint = "change the fixed part of the template, or remove the target"
    return flow.finding("never-sent", "error", text, hint, (name,))
