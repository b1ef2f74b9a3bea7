"""Routes from their declarations: names resolved, patterns and templates parsed; opens nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from gateway.config.nodes import did_you_mean
from gateway.config.reader import Reader
from gateway.config.schema import RouteRef, TargetRef
from gateway.dialects.base import Dialect
from gateway.dialects.registry import DIALECTS
from gateway.endpoints.settings import EndpointSettings
from gateway.errors import SubjectError, TranslationError
from gateway.routing.captures import SourcePattern, parse_source
from gateway.routing.route import Route, Target
from gateway.routing.template import Template, parse_template
from gateway.translate.names import Escape, Length, Renderer

At = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """The endpoints a route may name.

    `written` are the names of all in the files, those with findings too: a route to one of them
    needs no finding of its own.
    """

    endpoints: Mapping[str, EndpointSettings]
    written: Collection[str]


def build_routes(name: str, ref: RouteRef, known: Known, reader: Reader) -> list[Route]:
    """One route for each source of `ref`; what is wrong is reported to `reader`."""
    at: At = ("routes", name)
    routes: list[Route] = []
    for number, source in enumerate(ref.sources):
        here = (*at, "from", number)
        dialect = _dialect(source.endpoint, known, (*here, "endpoint"), reader)
        if dialect is None:
            continue
        pattern = _source(source.pattern, dialect, (*here, "pattern"), reader)
        excludes = [
            _source(text, dialect, (*here, "exclude", index), reader)
            for index, text in enumerate(source.exclude)
        ]
        targets = _targets(ref, pattern, known, (*at, "to"), reader)
        if pattern is not None:
            route = Route(name, source.endpoint, dialect, pattern, targets)
            routes.append(
                replace(
                    route,
                    excludes=tuple(each for each in excludes if each is not None),
                    take_retained=ref.retained == "forward",
                    archive_payload=ref.archive_payload,
                )
            )
    return routes


def _dialect(endpoint: str, known: Known, at: At, reader: Reader) -> Dialect | None:
    if (settings := known.endpoints.get(endpoint)) is not None:
        if settings.dialect in DIALECTS:
            return DIALECTS[settings.dialect]
        hint = did_you_mean(settings.dialect, DIALECTS)
        place: At = ("endpoints", endpoint, "dialect")
        reason = f"endpoint {endpoint!r} has the unknown dialect {settings.dialect!r}"
        reader.report(place if place in reader.places else at, "unknown-dialect", reason, hint)
    elif endpoint not in known.written:
        hint = did_you_mean(endpoint, known.written)
        reader.report(at, "unknown-endpoint", f"unknown endpoint {endpoint!r}", hint)
    return None


def _source(text: str, dialect: Dialect, at: At, reader: Reader) -> SourcePattern | None:
    try:
        return parse_source(text, dialect)
    except (SubjectError, TranslationError) as error:
        reader.report(at, error.rule, str(error))
        return None


def _targets(
    ref: RouteRef, source: SourcePattern | None, known: Known, at: At, reader: Reader
) -> tuple[Target, ...]:
    targets: list[Target] = []
    for index, target in enumerate(ref.targets):
        here = (*at, index)
        dialect = _dialect(target.endpoint, known, (*here, "endpoint"), reader)
        if dialect is None or source is None:
            continue
        renderer = Renderer(dialect, escape=Escape(target.escape), length=Length(target.length))
        try:
            template = _template(target, dialect, source)
        except (SubjectError, TranslationError) as error:
            reader.report((*here, "template"), error.rule, str(error))
        else:
            targets.append(Target(_label(ref, index), target.endpoint, renderer, template))
    return tuple(targets)


def _template(ref: TargetRef, dialect: Dialect, source: SourcePattern) -> Template | None:
    return None if ref.template is None else parse_template(ref.template, dialect, source)


def _label(route: RouteRef, index: int) -> str:
    """The endpoint's name, with a number behind it from its second target on."""
    endpoint = route.targets[index].endpoint
    earlier = sum(each.endpoint == endpoint for each in route.targets[:index])
    return f"{endpoint}:{earlier + 1}" if earlier else endpoint
