"""The names playground: what one name or pattern is everywhere, and which routes take it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from time import monotonic
from typing import Final

from gateway.dialects.dialect import Dialect
from gateway.dialects.limit_usage import limits_used
from gateway.dialects.names import render_subject
from gateway.dialects.patterns import parse_pattern
from gateway.dialects.registry import DIALECTS
from gateway.errors import GatewayError, LimitError, SubjectError, TranslationError
from gateway.model.language import covers, intersection_example
from gateway.model.pattern import Pattern
from gateway.model.subject import Subject
from gateway.routing.explain import Tried, explain
from gateway.routing.route import Route
from gateway.translate.answers import answer
from gateway.web.view import Json

LONGEST: Final = 4_096  # characters of a name that is looked up
MOST: Final = 50  # routes that are shown
PATIENCE: Final = 2.0  # seconds for looking at the routes


class LookupRefusedError(GatewayError):
    """The question is wrong; the text says how."""


def look_up(text: str, system: str, kind: str, routes: Sequence[Route]) -> Json:
    """Everything about `text`, which is a `kind` ("name" or "pattern") as `system` spells it.

    Raises:
        LookupRefusedError: no such system or kind, or the text is too long to be looked up.
    """
    if system not in DIALECTS:
        raise LookupRefusedError(
            f"system: unknown {system[:40]!r}; known are {', '.join(DIALECTS)}"
        )
    if kind not in {"name", "pattern"}:
        raise LookupRefusedError(f"kind: {kind[:40]!r} is neither 'name' nor 'pattern'")
    if len(text) > LONGEST:
        raise LookupRefusedError(f"text: {len(text)} characters, limit {LONGEST} here")
    dialect = DIALECTS[system]
    check = answer({"op": "check", "system": system, kind: text})
    found: Json = {"system": system, "kind": kind, "text": text, "check": check}
    if check.get("valid") is not True:
        return found | {"elsewhere": [], "routes": [], "more": 0}
    found["elsewhere"] = [
        {"system": other} | _elsewhere(text, dialect, DIALECTS[other], kind)
        for other in DIALECTS
        if other != system
    ]
    if kind == "name":
        return found | {"used": _used([text], dialect)} | _routes_of_name(text, system, routes)
    return found | _routes_of_pattern(text, dialect, routes)


def _elsewhere(text: str, source: Dialect, target: Dialect, kind: str) -> Json:
    """What the text is in `target`, and the room that takes."""
    request: Json = {"from": source.name, "to": target.name}
    if kind == "pattern":
        return {**answer(request | {"op": "subscribe", "pattern": text})}
    request |= {"op": "translate", "name": text}
    if source.tag_lists:
        request["tags"] = "each"
    made = answer(request)
    names = made.get("names", made.get("name", []))
    return {**made, "used": _used([names] if isinstance(names, str) else names, target)}


def _used(names: bool | Sequence[str], dialect: Dialect) -> list[Json]:
    """The limits that the longest of `names` is held to; none for a list of tags."""
    if isinstance(names, bool) or dialect.tag_lists or not names:
        return []
    return [asdict(used) for used in limits_used(max(names, key=len), dialect)]


def _routes_of_name(text: str, system: str, routes: Sequence[Route]) -> Json:
    of_system = {(route.name, route.endpoint) for route in routes if route.dialect.name == system}
    taken = [
        tried
        for tried in explain(text, routes)
        if not tried.why_not and (tried.route, tried.endpoint) in of_system
    ]
    return {"routes": [_shown(tried) for tried in taken[:MOST]], "more": len(taken[MOST:])}


def _routes_of_pattern(text: str, dialect: Dialect, routes: Sequence[Route]) -> Json:
    """The routes that take some name that `text` selects, with the shortest such name."""
    patterns = parse_pattern(text, dialect)
    until = monotonic() + PATIENCE
    found: list[Json] = []
    unknown = 0
    for route in routes:
        if route.dialect.name != dialect.name:
            continue
        if monotonic() > until or len(found) >= MOST:
            unknown += 1
            continue
        try:
            found += _one_in_common(patterns, route, routes)
        except LimitError:  # too many wildcards to say
            unknown += 1
    return {"routes": found, "more": unknown}


def _one_in_common(
    patterns: Sequence[Pattern], route: Route, routes: Sequence[Route]
) -> list[Json]:
    example = intersection_example(patterns, route.source.patterns)
    if example is None:
        return []
    whole = not route.excludes and covers(route.source.patterns, patterns)
    try:
        name = render_subject(Subject(example), route.dialect)
    except (SubjectError, TranslationError):
        return []
    tried = [each for each in explain(name, routes, route.endpoint) if each.route == route.name]
    taken = [each for each in tried if each.pattern == route.source.text and not each.why_not]
    return [_shown(each) | {"example": name, "whole": whole} for each in taken]


def _shown(tried: Tried) -> Json:
    return {
        "route": tried.route,
        "endpoint": tried.endpoint,
        "pattern": tried.pattern,
        "captures": [list(pair) for pair in tried.captures],
        "made": [asdict(made) for made in tried.made],
    }
