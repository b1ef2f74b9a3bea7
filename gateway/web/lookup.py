"""Name lookup: one name or pattern in every system, and the routes that select it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from time import monotonic
from typing import Final

from gateway.check.proposal import makers, propose, route_yaml
from gateway.dialects.advice import limit_usage, warnings_of
from gateway.dialects.dialect import Dialect
from gateway.dialects.names import check_name, parse_subject, render_subject
from gateway.dialects.patterns import parse_pattern, read_pattern
from gateway.dialects.registry import DIALECTS, UnknownSystemError, find_dialect
from gateway.errors import GatewayError, SearchBudgetExceeded, SubjectError, TranslationError
from gateway.model.pattern import Pattern
from gateway.model.subject import Subject
from gateway.model.subject_search import covers, intersection_example
from gateway.routing.explain import MessageAt, RouteResult, explain
from gateway.routing.other_separator import separator_question
from gateway.routing.route import Route, unrecorded
from gateway.routing.source_pattern import NO_MATCH
from gateway.translate.names import Renderer, Translator
from gateway.translate.subscriptions import translate_pattern
from gateway.web.exchange import HttpError
from gateway.web.snapshot import Json

MAX_TEXT: Final = 4_096  # characters of a name or pattern
MAX_ROUTES: Final = 50  # in one answer
SEARCH_TIMEOUT: Final = 2.0  # seconds to examine the routes
_NOT_TAKEN: Final = ("route", "endpoint", "pattern", "why_not")  # shown of any other route
_NOT_SHOWN: Final = frozenset({"why_not", "selected"})  # of a route that selects the name


def look_up(
    text: str, system: str, kind: str, routes: Sequence[Route], message_at: MessageAt | None = None
) -> Json:
    """Return the translations and routes of `text`, a name or pattern in the syntax of `system`.

    An empty `system` is that of the first route which takes the text. `kind` is "name" or
    "pattern". `message_at` gives the message with that name at the source of a route, of whose
    fields names may be made.

    Raises:
        HttpError: the system or the kind is unknown, or the text is too long.
    """
    if kind not in {"name", "pattern"}:
        raise HttpError(400, f"kind: {kind[:40]!r} is neither 'name' nor 'pattern'")
    if len(text) > MAX_TEXT:
        raise HttpError(400, f"text: {len(text)} characters, limit {MAX_TEXT}")
    routes = unrecorded(routes)
    deadline = monotonic() + SEARCH_TIMEOUT
    dialect = _dialect(system) if system else _usual_dialect(text, kind, routes, deadline)
    found: Json = {"system": dialect.name, "kind": kind, "text": text}
    found |= {"elsewhere": [], "routes": [], "not_taken": [], "hint": ""}
    try:
        if kind == "name":
            check_name(text, dialect)
        else:
            read_pattern(text, dialect)
    except SubjectError as error:
        wrong = {"valid": False, "rule": error.rule, "detail": str(error)}
        return found | {"check": wrong, "more": 0, "hint": _hint(text, kind, dialect, routes)}
    found["check"] = {"valid": True, "warnings": [*warnings_of(text, dialect)]}
    found["elsewhere"] = [
        {"system": other} | _translation(text, dialect, DIALECTS[other], kind)
        for other in DIALECTS
        if other != dialect.name
    ]
    if kind == "name":
        found |= {"used": _used([text], dialect)}
        found |= _routes_of_name(text, dialect.name, routes, message_at)
    else:
        found |= _routes_of_pattern(text, dialect, routes, deadline)
    if not found["routes"]:
        found["hint"] = _hint(text, kind, dialect, routes)
    return found


def propose_route(
    name: str, system: str, wanted: str, target: str, routes: Sequence[Route]
) -> Json:
    """Return a pattern and a template that make `wanted` at system `target` of `name`, as YAML.

    They are checked only for these two names, and not beside the other routes. The endpoints are
    the first ones of both systems that a route has.

    Raises:
        HttpError: a system is unknown, or a name is too long.
    """
    source, sink = map(_dialect, (system, target))
    if len(longest := max(name, wanted, key=len)) > MAX_TEXT:
        raise HttpError(400, f"text: {len(longest)} characters, limit {MAX_TEXT}")
    sources = (route.endpoint for route in routes if route.dialect.name == system)
    targets = (each.endpoint for route in routes for each in route.targets if each.system == target)
    ends = next(sources, "SOURCE"), next(targets, "TARGET")
    if made := makers(name, wanted, routes, *ends):
        return {"refused": f"{', '.join(made)} makes it already"}
    try:
        proposal = propose(name, wanted, source, Renderer(sink))
    except GatewayError as error:
        return {"refused": str(error)}
    return {
        "yaml": "\n".join(["routes:", *route_yaml(proposal, *ends)]),
        "why_not_back": proposal.why_not_back,
        "endpoints": ends,
    }


def _dialect(system: str) -> Dialect:
    """Return the dialect of a system.

    Raises:
        HttpError: the system is unknown.
    """
    try:
        return find_dialect(system)
    except UnknownSystemError as error:
        raise HttpError(400, str(error)) from error


def _usual_dialect(text: str, kind: str, routes: Sequence[Route], deadline: float) -> Dialect:
    """Return the dialect of the first route that takes the text, or shares a name with a pattern.

    Else it is the first one of the routes whose separator the text has, or the first one at all;
    without routes, of all systems.
    """
    for route in routes:
        if monotonic() > deadline:
            break
        if _takes(route, text, kind):
            return route.dialect
    known = [route.dialect for route in routes] or [*DIALECTS.values()]
    return next((each for each in known if each.separator in text), known[0])


def _takes(route: Route, text: str, kind: str) -> bool:
    """Return whether the route takes a name, or some name of a pattern, in its own syntax."""
    try:
        if kind == "name":
            return route.takes(parse_subject(text, route.dialect).levels)
        patterns = parse_pattern(text, route.dialect)
        return intersection_example(patterns, route.source.patterns) is not None
    except (SubjectError, TranslationError, SearchBudgetExceeded):
        return False


def _hint(text: str, kind: str, dialect: Dialect, routes: Sequence[Route]) -> str:
    """Return how a name was probably meant that no route takes in this dialect; "" if unknown."""
    if kind != "name":
        return ""
    for route in routes:
        if route.dialect.name != dialect.name and _takes(route, text, kind):
            return f"route {route.name!r} takes it as a name of {route.dialect.name}"
    return separator_question(text, routes)


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
    selecting: list[RouteResult] = []
    others: list[RouteResult] = []
    for result in explain(text, routes, message_at=message_at):
        if (result.route, result.endpoint) in of_system:
            (others if result.why_not else selecting).append(result)
    others.sort(key=lambda each: each.why_not.startswith(NO_MATCH))  # first those that exclude it
    return {
        "routes": [_route_json(result) for result in selecting[:MAX_ROUTES]],
        "not_taken": [
            {name: getattr(result, name) for name in _NOT_TAKEN} for result in others[:MAX_ROUTES]
        ],
        "more": len(selecting[MAX_ROUTES:]) + len(others[MAX_ROUTES:]),
    }


def _routes_of_pattern(
    text: str, dialect: Dialect, routes: Sequence[Route], deadline: float
) -> Json:
    """Return the routes that share a name with `text`, each with the shortest shared name."""
    patterns = parse_pattern(text, dialect)
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
