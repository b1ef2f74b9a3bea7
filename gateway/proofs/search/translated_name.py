"""Translate single names through the real routes; every example in a finding comes from here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from gateway.dialects.base import Dialect, parse_subject
from gateway.errors import SubjectError, TranslationError
from gateway.model.pattern import Pattern
from gateway.model.subject import Subject
from gateway.proofs.budget import STEPS_PER_TRANSLATION, spend
from gateway.proofs.flows.flow import Flow
from gateway.proofs.search.examples import find_example
from gateway.proofs.search.field_values import choose_fields
from gateway.routing.route import Route, Target
from gateway.routing.source_pattern import SourcePattern, named


@dataclass(frozen=True, slots=True)
class TranslatedName:
    """A name at its source and at its target; the levels are in the canonical form."""

    source_name: str
    source_levels: tuple[str, ...]
    target_name: str
    target_levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RefusedName:
    """A legal name of the source that the target refuses."""

    source_name: str
    error: TranslationError


def spell_subject(levels: tuple[str, ...], dialect: Dialect) -> str | None:
    """Return the name of a subject in `dialect`; None when no name there has these levels."""
    text = dialect.text_of(dialect.codec.encode(levels))
    try:
        return text if parse_subject(text, dialect).levels == levels else None
    except (SubjectError, TranslationError):
        return None


def translate_name(
    route: Route, target: Target, levels: tuple[str, ...], goals: Sequence[Pattern] = ()
) -> TranslatedName | RefusedName | None:
    """Translate a name by `route` for one target; None when the route does not take the name.

    Fields of the message have values that make a name of one of `goals`, where they can.

    Raises:
        SearchBudgetExceeded: see `budget`.
    """
    spend(STEPS_PER_TRANSLATION + len(levels) // 2)
    if not route.takes(levels) or (name := spell_subject(levels, route.dialect)) is None:
        return None
    captures = route.source.capture(levels)
    for pattern in route.tags.require_tags:
        tag, found = _required_tag(pattern, route.dialect.separator)
        name, captures = f"{name},{tag}", found | captures
    try:
        if target.name_fields:
            captures |= choose_fields(target, captures, goals)
        target_name = target.name_for(Subject(levels), captures)
    except TranslationError as error:
        return RefusedName(name, error)
    try:
        target_levels = parse_subject(target_name, target.renderer.dialect).levels
    except (SubjectError, TranslationError):
        target_levels = ()
    return TranslatedName(name, levels, target_name, target_levels)


@lru_cache
def _required_tag(pattern: SourcePattern, separator: str) -> tuple[str, dict[str, tuple[str, ...]]]:
    """Return a tag that `pattern` selects, and its named captures."""
    levels = find_example([pattern.patterns]) or ()
    return separator.join(levels), named(pattern.capture(levels))


def translate_by_flow(
    flow: Flow, levels: tuple[str, ...] | None, goals: Sequence[Pattern] = ()
) -> TranslatedName | None:
    """Translate a name by a flow; None also for a refused name and without levels."""
    if levels is None:
        return None
    found = translate_name(flow.source.route, flow.target, levels, goals)
    return found if isinstance(found, TranslatedName) else None
