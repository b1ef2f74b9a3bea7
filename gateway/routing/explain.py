"""Why a name goes where it goes: every route tried, captures, results, limits, the way back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.dialects.base import parse_subject
from gateway.dialects.limit_usage import Used, limits_used
from gateway.errors import SubjectError, TranslationError
from gateway.model.subject import Subject
from gateway.routing.route import Route, Target


@dataclass(frozen=True, slots=True)
class Back:
    """A route that takes the made name where it arrived, and what it makes of it."""

    route: str
    endpoint: str
    name: str


@dataclass(frozen=True, slots=True)
class Made:
    """What one target makes of the name: the name and the room it takes, or the rule it breaks."""

    target: str
    system: str
    name: str
    rule: str
    reason: str
    used: tuple[Used, ...]
    back: tuple[Back, ...]


@dataclass(frozen=True, slots=True)
class Tried:
    """One route and the name: `why_not` is empty when the route takes it."""

    route: str
    endpoint: str
    pattern: str
    why_not: str
    captures: tuple[tuple[str, str], ...]
    made: tuple[Made, ...]


def explain(name: str, routes: Sequence[Route], endpoint: str | None = None) -> list[Tried]:
    """What every route, or every one from `endpoint`, does with `name` as its source spells it."""
    return [_try(name, route, routes) for route in routes if endpoint in (None, route.endpoint)]


def _try(name: str, route: Route, routes: Sequence[Route]) -> Tried:
    try:
        levels = parse_subject(name, route.dialect).levels
    except (SubjectError, TranslationError) as error:
        return _untaken(route, f"{route.dialect.name} has no such name: {error}")
    if not route.source.selects(levels):
        return _untaken(route, "the pattern does not match")
    for exclude in route.excludes:
        if exclude.selects(levels):
            return _untaken(route, f"excluded by {exclude.text!r}")
    captures = route.source.capture(levels)
    shown = tuple(
        (word, route.dialect.separator.join(taken))
        for word, taken in captures.items()
        if not word.isdigit()
    )
    made = tuple(_make(levels, captures, target, routes) for target in route.targets)
    return Tried(route.name, route.endpoint, route.source.text, "", shown, made)


def _untaken(route: Route, why_not: str) -> Tried:
    return Tried(route.name, route.endpoint, route.source.text, why_not, (), ())


def _make(
    levels: tuple[str, ...],
    captures: dict[str, tuple[str, ...]],
    target: Target,
    routes: Sequence[Route],
) -> Made:
    try:
        name = target.name_for(Subject(levels), captures)
    except TranslationError as error:
        return Made(target.endpoint, target.system, "", error.rule, str(error), (), ())
    dialect = target.renderer.dialect
    used = tuple(limits_used(name, dialect))
    return Made(
        target.endpoint, target.system, name, "", "", used, tuple(_back(name, target, routes))
    )


def _back(name: str, target: Target, routes: Sequence[Route]) -> Iterator[Back]:
    for route in routes:
        if route.endpoint == target.endpoint:
            for made in _results(name, route):
                yield Back(route.name, made[0], made[1])


def _results(name: str, route: Route) -> Iterator[tuple[str, str]]:
    try:
        subject = parse_subject(name, route.dialect)
    except (SubjectError, TranslationError):
        return
    if not route.takes(subject.levels):
        return
    captures = route.source.capture(subject.levels)
    for target in route.targets:
        try:
            yield target.endpoint, target.name_for(subject, captures)
        except TranslationError as error:
            yield target.endpoint, f"refused ({error.rule})"
