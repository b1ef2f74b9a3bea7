"""Proofs about one source pattern: it selects a name, and the subscription selects no more."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.dialects.base import parse_pattern
from gateway.errors import SearchBudgetExceeded
from gateway.proofs.budget import SEARCH_TOO_LONG, start_question
from gateway.proofs.finding import Finding
from gateway.proofs.flows.extract import selected_patterns
from gateway.proofs.flows.flow import RouteSource
from gateway.proofs.search.examples import find_example
from gateway.proofs.search.translated_name import spell_subject


def prove_reachable(source: RouteSource) -> Iterator[Finding]:
    """Yield findings about a route without names, idle excludes, and a wider subscription."""
    start_question()
    try:
        if find_example([source.patterns], source.excludes) is None:
            yield _unreachable(source)
            return
        yield from _names_of_system(source)
        yield from _idle_excludes(source)
        yield from _widened(source)
    except SearchBudgetExceeded:
        text = f"the names of {source.route.source.text!r} are not proved: {SEARCH_TOO_LONG}"
        yield source.finding("unproven", "warning", text, "use fewer rest wildcards in the pattern")


def _unreachable(source: RouteSource) -> Finding:
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


def _names_of_system(source: RouteSource) -> Iterator[Finding]:
    """Yield a note when the route takes names that its system keeps for itself."""
    if source.route.names_system:
        text = source.route.source.text
        reason = f"{text!r} takes names that belong to {source.route.dialect.name} itself"
        hint = "nothing to do; nobody can send to them, so no route brings them back"
        yield source.finding("system-names", "note", reason, hint)


def _idle_excludes(source: RouteSource) -> Iterator[Finding]:
    for exclude in source.route.excludes:
        if find_example([source.patterns, selected_patterns(exclude)]) is None:
            text = f"{exclude.text!r} excludes no name of {source.route.source.text!r}"
            yield source.finding("idle-exclude", "warning", text, "correct it, or leave it out")


def _widened(source: RouteSource) -> Iterator[Finding]:
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


def unused_captures(source: RouteSource) -> Iterator[Finding]:
    """Yield a note for each named capture that a target's template does not use."""
    spans = dict(source.route.source.spans)
    for index, target in enumerate(source.route.targets):
        if target.template is None:
            continue
        names = (*target.template.names, *target.rules.names)
        names += tuple(name for template in target.more_templates for name in template.names)
        used = {spans[name] for name in names if name in spans}
        for name, span in spans.items():
            if not name.isdigit() and span not in used:
                word = f"{{{name}...}}" if span.rest else f"{{{name}}}"
                text = f"{word} is not used in {target.template.text!r}: its text is lost"
                hint = f"use {word}, or write the wildcard without a name"
                yield source.finding("capture-unused", "note", text, hint, target=index)
