"""Explain the routing of a name: every route, its captures, target names and next routes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from gateway.dialects.advice import LimitUsage, limit_usage
from gateway.dialects.parts import has_empty_key
from gateway.errors import SubjectError, TranslationError
from gateway.model.message import Message
from gateway.routing.message_fields import SOURCE_FIELD, FieldValues, read_fields
from gateway.routing.proven_names import taken_as
from gateway.routing.route import Route, Target
from gateway.routing.tags import TagSelection

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
    partition: str = ""  # the one that its route chooses; empty where the key chooses it
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


def likely_endpoints(
    name: str, results: Sequence[RouteResult], routes: Sequence[Route]
) -> frozenset[str]:
    """Return the endpoints at which a name may be meant, whose routes' reasons tell something.

    They have a route that takes it; without one, the separator of their system is the first in the
    name, or there is no separator.
    """
    taking = frozenset(each.endpoint for each in results if not each.why_not)
    places = {
        each.endpoint: name.index(each.dialect.separator)
        for each in routes
        if each.dialect.separator in name
    }
    first = min(places.values(), default=0)
    spelled = frozenset(end for end, at in places.items() if at == first)
    return taking or spelled or frozenset(each.endpoint for each in results)


def _route_result(
    name: str, route: Route, routes: Sequence[Route], message: Message | None
) -> RouteResult:
    result = RouteResult(route.name, route.endpoint, route.source_text)
    values = read_fields(route.fields, message) if message else {}
    try:
        taken = taken_as(route, name, values)
    except (SubjectError, TranslationError) as error:
        return replace(result, why_not=f"{route.dialect.name} has no such name: {error}")
    if isinstance(taken, str):
        return replace(result, why_not=taken)
    joined = route.over_names.dialect.separator.join
    told = route.over_names.source.numbers_of_named
    shown = tuple((word, joined(v)) for word, v in taken.captures.items() if word not in told)
    made = tuple(_target_result(taken, target, routes, values) for target in route.targets)
    return replace(result, captures=shown, made=made)


def _target_result(
    taken: TagSelection,
    target: Target,
    routes: Sequence[Route],
    values: FieldValues,
) -> TargetResult:
    try:
        captures = {**taken.captures, **target.field_captures(values)}
        name = target.name_for(taken.tag.subject, captures)
        partition = target.partition_for(captures)
    except TranslationError as error:
        return TargetResult(target.endpoint, target.system, rule=error.rule, reason=str(error))
    used = tuple(limit_usage(name, target.renderer.dialect))
    onward = [route for route in routes if route.endpoint == target.endpoint]
    carried = {SOURCE_FIELD: taken.tag.text} if target.carries_name else {}
    back = tuple(each for route in onward for each in _onward_names(name, route, carried))
    thin = "" if target.thin is None else str(target.thin)
    empty = target.renderer.dialect.key is not None and has_empty_key(name)
    return TargetResult(
        target.endpoint,
        target.system,
        name,
        used=used,
        back=back,
        empty_key=empty,
        partition=_shown_partition(partition),
        thin=thin,
    )


def _shown_partition(chosen: str | int | None) -> str:
    if chosen is None:
        return ""
    return f"that of the text {chosen!r}" if isinstance(chosen, str) else str(chosen)


def _onward_names(name: str, route: Route, carried: FieldValues) -> Iterator[OnwardName]:
    try:
        taken = taken_as(route, name, carried)
    except (SubjectError, TranslationError):
        return
    if isinstance(taken, str):
        return
    for target in route.targets:
        try:
            next_name = target.name_for(taken.tag.subject, taken.captures)
        except TranslationError as error:
            next_name = f"refused ({error.rule})"
        yield OnwardName(route.name, target.endpoint, next_name)
