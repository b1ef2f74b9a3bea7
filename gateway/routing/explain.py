"""Explain the routing of a name: every route, its captures, target names and next routes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from gateway.dialects.advice import LimitUsage, limit_usage
from gateway.dialects.base import parse_subject
from gateway.dialects.parts import has_empty_key
from gateway.errors import SubjectError, TranslationError
from gateway.model.message import Message
from gateway.model.subject import Subject
from gateway.routing.message_fields import FieldValues, read_fields
from gateway.routing.route import Route, Target
from gateway.routing.source_pattern import named
from gateway.routing.template_functions import Levels

MessageAt: TypeAlias = Callable[[Route], Message]  # as it arrives at the source of a route


@dataclass(frozen=True, slots=True)
class OnwardName:
    """The name that a route at the target gives the arrived message next."""

    route: str
    endpoint: str
    name: str


@dataclass(frozen=True, slots=True)
class TargetResult:
    """The name at one target with the limits it uses, or the rule that refuses it."""

    target: str
    system: str
    name: str = ""
    rule: str = ""
    reason: str = ""
    used: tuple[LimitUsage, ...] = ()
    back: tuple[OnwardName, ...] = ()
    empty_key: bool = False  # the name ends with the boundary of topic and key
    thin: str = ""  # the rule by which the target does not get every message


@dataclass(frozen=True, slots=True)
class RouteResult:
    """The result of one route; `why_not` is empty when the route takes the name.

    `selected` is the answer of its `selector` for the given headers; None without them.
    """

    route: str
    endpoint: str
    pattern: str
    why_not: str = ""
    captures: tuple[tuple[str, str], ...] = ()
    made: tuple[TargetResult, ...] = ()
    selector: str = ""
    selected: bool | None = None


def explain(
    name: str,
    routes: Sequence[Route],
    endpoint: str | None = None,
    message_at: MessageAt | None = None,
) -> list[RouteResult]:
    """Return the result of every route, or of each route from `endpoint`, for a source name.

    `message_at` gives the message that has that name at the source of a route.
    """
    found: list[RouteResult] = []
    for route in routes:
        if endpoint in (None, route.endpoint):
            message = message_at and message_at(route)
            result = _route_result(name, route, routes, message)
            if route.selector is not None and not result.why_not:
                selected = None if message is None else route.selector.matches(message.headers)
                result = replace(result, selector=route.selector.text, selected=selected)
            found.append(result)
    return found


def _route_result(
    name: str, route: Route, routes: Sequence[Route], message: Message | None
) -> RouteResult:
    result = RouteResult(route.name, route.endpoint, route.source.text)
    try:
        levels = parse_subject(name, route.dialect).levels
    except (SubjectError, TranslationError) as error:
        return replace(result, why_not=f"{route.dialect.name} has no such name: {error}")
    if why_not := route.why_not(levels):
        return replace(result, why_not=why_not)
    captures = route.source.capture(levels)
    joined = route.dialect.separator.join
    shown = tuple((word, joined(taken)) for word, taken in named(captures).items())
    values = read_fields(route.fields, message) if message else {}
    made = tuple(
        _target_result(levels, captures, target, routes, values) for target in route.targets
    )
    return replace(result, captures=shown, made=made)


def _target_result(
    levels: Levels,
    captures: dict[str, Levels],
    target: Target,
    routes: Sequence[Route],
    values: FieldValues,
) -> TargetResult:
    try:
        name = target.name_for(Subject(levels), captures | target.field_captures(values))
    except TranslationError as error:
        return TargetResult(target.endpoint, target.system, rule=error.rule, reason=str(error))
    used = tuple(limit_usage(name, target.renderer.dialect))
    onward = [route for route in routes if route.endpoint == target.endpoint]
    back = tuple(each for route in onward for each in _onward_names(name, route))
    thin = "" if target.thin is None else str(target.thin)
    empty = target.renderer.dialect.key is not None and has_empty_key(name)
    return TargetResult(
        target.endpoint, target.system, name, used=used, back=back, empty_key=empty, thin=thin
    )


def _onward_names(name: str, route: Route) -> Iterator[OnwardName]:
    try:
        subject = parse_subject(name, route.dialect)
    except (SubjectError, TranslationError):
        return
    if not route.takes(subject.levels):
        return
    captures = route.source.capture(subject.levels)
    for target in route.targets:
        try:
            next_name = target.name_for(subject, captures)
        except TranslationError as error:
            next_name = f"refused ({error.rule})"
        yield OnwardName(route.name, target.endpoint, next_name)
