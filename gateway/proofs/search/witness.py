"""Names run through the real routes: no proof reports a name that it has not seen made."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from gateway.dialects.base import Dialect, parse_subject
from gateway.errors import SubjectError, TranslationError
from gateway.model.subject import Subject
from gateway.proofs.budget import ATTEMPT, spend
from gateway.proofs.flows.flow import Flow
from gateway.proofs.search.examples import example
from gateway.routing.captures import SourcePattern
from gateway.routing.route import Route, Target


@dataclass(frozen=True, slots=True)
class Sent:
    """A name at its source and at its target; `levels` and `arrived` are both in the middle."""

    name: str
    levels: tuple[str, ...]
    made: str
    arrived: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A name that the source has and the target refuses."""

    name: str
    error: TranslationError


def spelled(levels: tuple[str, ...], dialect: Dialect) -> str | None:
    """What a subject is called in `dialect`; None when no name of it is read so."""
    text = dialect.leading + dialect.separator.join(dialect.codec.encode(levels))
    try:
        return text if parse_subject(text, dialect).levels == levels else None
    except (SubjectError, TranslationError):
        return None


def attempt(route: Route, target: Target, levels: tuple[str, ...]) -> Sent | Refused | None:
    """What the route makes of a name for one target; None when it does not take it."""
    spend(ATTEMPT + len(levels) // 2)
    if not route.takes(levels) or (name := spelled(levels, route.dialect)) is None:
        return None
    captures = route.source.capture(levels)
    for pattern in route.tags.along:
        tag, found = _companion(pattern, route.dialect.separator)
        name, captures = f"{name},{tag}", found | captures
    try:
        made = target.name_for(Subject(levels), captures)
    except TranslationError as error:
        return Refused(name, error)
    try:
        arrived = parse_subject(made, target.renderer.dialect).levels
    except (SubjectError, TranslationError):
        arrived = ()
    return Sent(name, levels, made, arrived)


@lru_cache
def _companion(pattern: SourcePattern, separator: str) -> tuple[str, dict[str, tuple[str, ...]]]:
    """A tag that goes along with the first one of a list, and what is captured from it."""
    levels = example([pattern.patterns]) or ()
    named = {word: found for word, found in pattern.capture(levels).items() if not word.isdigit()}
    return separator.join(levels), named


def sent(flow: Flow, levels: tuple[str, ...] | None) -> Sent | None:
    """The same for a flow, None also for what the target refuses."""
    if levels is None:
        return None
    found = attempt(flow.site.route, flow.target, levels)
    return found if isinstance(found, Sent) else None
