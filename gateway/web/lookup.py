"""Name lookup: one name or pattern in every system, and the routes that select it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from time import monotonic
from typing import Final

from gateway.check.proposal import makers, propose, route_yaml
from gateway.dialects.advice import limit_usage, warnings_of
from gateway.dialects.dialect import Dialect
from gateway.dialects.names import check_name, render_subject
from gateway.dialects.patterns import parse_pattern, read_pattern
from gateway.dialects.registry import DIALECTS
from gateway.errors import GatewayError, SearchBudgetExceeded, SubjectError, TranslationError
from gateway.model.pattern import Pattern
from gateway.model.subject import Subject
from gateway.model.subject_search import covers, intersection_example
from gateway.routing.explain import MessageAt, RouteResult, explain
from gateway.routing.route import Route, unrecorded
from gateway.translate.names import Renderer, Translator
from gateway.translate.subscriptions import translate_pattern
from gateway.web.exchange import HttpError
from gateway.web.snapshot import Json

MAX_TEXT: Final = 4_096  # characters of a name or pattern
MAX_ROUTES: Final = 50  # in one answer
SEARCH_TIMEOUT: Final = 2.0  # seconds to examine the routes
_NOT_SHOWN: Final = frozenset({"why_not", "selected"})  # of a route that selects the name


def look_up(
    text: str, system: str, kind: str, routes: Sequence[Route], message_at: MessageAt | None = None
) -> Json:
    """Return the translations and routes of `text`, a name or pattern in the syntax of `system`.

    `kind` is "name" or "pattern". `message_at` gives the message with that name at the source of a
    route, of whose fields names may be made.

    Raises:
        HttpError: the system or the kind is unknown, or the text is too long.
    """
    if system not in DIALECTS:
        raise HttpError(400, f"system: unknown {system[:40]!r}; known are {', '.join(DIALECTS)}")
    if kind not in {"name", "pattern"}:
        raise HttpError(400, f"kind: {kind[:40]!r} is neither 'name' nor 'pattern'")
    if len(text) > MAX_TEXT:
        raise HttpError(400, f"text: {len(text)} characters, limit {MAX_TEXT}")
    routes = unrecorded(routes)
    dialect = DIALECTS[system]
    found: Json = {"system": system, "kind": kind, "text": text, "elsewhere": [], "routes": []}
    try:
        if kind == "name":
            check_name(text, dialect)
        else:
            read_pattern(text, dialect)
    except SubjectError as error:
        wrong = {"valid": False, "rule": error.rule, "detail": str(error)}
        return found | {"check": wrong, "more": 0}
    found["check"] = {"valid": True, "warnings": [*warnings_of(text, dialect)]}
    found["elsewhere"] = [
        {"system": other} | _translation(text, dialect, DIALECTS[other], kind)
        for other in DIALECTS
        if other != system
    ]
    if kind == "name":
        return (
            found
            | {"used": _used([text], dialect)}
            | _routes_of_name(text, system, routes, message_at)
        )
    return found | _routes_of_pattern(text, dialect, routes)


def propose_route(
    name: str, system: str, wanted: str, target: str, routes: Sequence[Route]
) -> Json:
    """Return a pattern and a template that make `wanted` at system `target` of `name`, as YAML.

    They are checked only for these two names, and not beside the other routes. The endpoints are
    the first ones of both systems that a route has.

    Raises:
        HttpError: a system is unknown, or a name is too long.
    """
    for each in (system, target):
        if each not in DIALECTS:
            raise HttpError(400, f"system: unknown {each[:40]!r}; known are {', '.join(DIALECTS)}")
    if len(longest := max(name, wanted, key=len)) > MAX_TEXT:
        raise HttpError(400, f"text: {len(longest)} characters, limit {MAX_TEXT}")
    sources = (route.endpoint for route in routes if route.dialect.name == system)
    targets = (each.endpoint for route in routes for each in route.targets if each.system == target)
    ends = next(sources, "SOURCE"), next(targets, "TARGET")
    if made := makers(name, wanted, routes, *ends):
        return {"refused": f"{', '.join(made)} makes it already"}
    try:
        proposal = propose(name, wanted, DIALECTS[system], Renderer(DIALECTS[target]))
    except GatewayError as error:
        return {"refused": str(error)}
    return {
        "yaml": "\n".join(["routes:", *route_yaml(proposal, *ends)]),
        "why_not_back": proposal.why_not_back,
        "endpoints": ends,
    }


def _translation(text: str, source: Dialect, target: Dialect, kind: str) -> Json:
    """Return the text in `target`, and how much of its limits it uses."""
    try:
        if kind == "name":
            names = Translator(source, Renderer(target)).names(text)
            return {"names": names, "used": _used(names, target)}
        made = translate_pattern(text, source, target)
    except (SubjectError, TranslationError) as error:
        return {"refused": str(error), "rule": error.rule}
    return {key: getattr(made, key) for key in ("patterns", "exact", "residual", "omits")}


def _used(names: Sequence[str], dialect: Dialect) -> list[Json]:
    """Return how much of each limit the longest of `names` uses; nothing for a list of tags."""
    if dialect.tag_lists or not names:
        return []
    return [asdict(used) for used in limit_usage(max(names, key=len), dialect)]


def _routes_of_name(
    text: str, system: str, routes: Sequence[Route], message_at: MessageAt | None
) -> Json:
    of_system = {(route.name, route.endpoint) for route in routes if route.dialect.name == system}
    selecting = [
        result
        for result in explain(text, routes, message_at=message_at)
        if not result.why_not and (result.route, result.endpoint) in of_system
    ]
    return {
        "routes": [_route_json(result) for result in selecting[:MAX_ROUTES]],
        "more": len(selecting[MAX_ROUTES:]),
    }


def _routes_of_pattern(text: str, dialect: Dialect, routes: Sequence[Route]) -> Json:
    """Return the routes that share a name with `text`, each with the shortest shared name."""
    patterns = parse_pattern(text, dialect)
    deadline = monotonic() + SEARCH_TIMEOUT
    found: list[Json] = []
    unexamined = 0
    for route in routes:
        if route.dialect.name != dialect.name:
            continue
        if monotonic() > deadline or len(found) >= MAX_ROUTES:
            unexamined += 1
            continue
        try:
            found += _shared_name(patterns, route, routes)
        except SearchBudgetExceeded:  # too many wildcards
            unexamined += 1
    return {"routes": found, "more": unexamined}


def _shared_name(patterns: Sequence[Pattern], route: Route, routes: Sequence[Route]) -> list[Json]:
    example = intersection_example(patterns, route.source.patterns)
    if example is None:
        return []
    whole = not route.excludes and covers(route.source.patterns, patterns)
    try:
        name = render_subject(Subject(example), route.dialect)
    except (SubjectError, TranslationError):
        return []
    results = [each for each in explain(name, routes, route.endpoint) if each.route == route.name]
    selecting = [each for each in results if each.pattern == route.source_text and not each.why_not]
    return [_route_json(each) | {"example": name, "whole": whole} for each in selecting]


def _route_json(result: RouteResult) -> Json:
    """Return a route that selects the name; its selector is not evaluated without properties."""
    return {key: value for key, value in asdict(result).items() if key not in _NOT_SHOWN}
