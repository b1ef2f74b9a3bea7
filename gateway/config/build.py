"""Routes from their declarations: names resolved, patterns and templates parsed; opens nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from gateway.config.nodes import did_you_mean
from gateway.config.reader import Reader
from gateway.config.schema import EndpointRef, RouteRef, TargetRef
from gateway.dialects.base import Dialect
from gateway.dialects.registry import DIALECTS
from gateway.endpoints.settings import EndpointSettings
from gateway.errors import GatewayError, SubjectError, TranslationError
from gateway.routing.captures import SourcePattern, parse_source
from gateway.routing.route import Route, Target
from gateway.routing.template import Template, parse_template
from gateway.translate.names import Escape, Length, Renderer
from gateway.translate.shorten import Shortened

At = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint of a configuration; `dialect` has its own limits, `allow` is for targets."""

    settings: EndpointSettings
    dialect: Dialect
    allow: tuple[SourcePattern, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """The endpoints a route may name, and what all routes share.

    `written` are the names of all in the files, those with findings too: a route to one of them
    needs no finding of its own.
    """

    endpoints: Mapping[str, Endpoint]
    written: Collection[str]
    dictionary: Shortened


def make_endpoint(
    settings: EndpointSettings, ref: EndpointRef, reader: Reader, at: At
) -> Endpoint | None:
    """The endpoint of its settings, or None when it names no dialect there is."""
    if settings.dialect not in DIALECTS:
        hint = did_you_mean(settings.dialect, DIALECTS)
        reason = f"unknown dialect {settings.dialect!r}"
        reader.report((*at, "dialect"), "unknown-dialect", reason, hint)
        return None
    dialect = DIALECTS[settings.dialect].with_limits(**ref.limits.maxima())
    allowed = [
        _source(text, dialect, (*at, "allow", index), reader)
        for index, text in enumerate(ref.allow)
    ]
    return Endpoint(settings, dialect, tuple(each for each in allowed if each is not None))


def build_routes(name: str, ref: RouteRef, known: Known, reader: Reader) -> list[Route]:
    """One route for each source of `ref`; what is wrong is reported to `reader`."""
    at: At = ("routes", name)
    routes: list[Route] = []
    for number, source in enumerate(ref.sources):
        here = (*at, "from", number)
        endpoint = _find(source.endpoint, known, (*here, "endpoint"), reader)
        if endpoint is None:
            continue
        dialect = endpoint.dialect
        pattern = _source(source.pattern, dialect, (*here, "pattern"), reader)
        excludes = [
            _source(text, dialect, (*here, "exclude", index), reader)
            for index, text in enumerate(source.exclude)
        ]
        targets = _targets(ref, pattern, known, (*at, "to"), reader)
        if pattern is not None:
            route = Route(
                name,
                source.endpoint,
                dialect,
                pattern,
                targets,
                excludes=tuple(each for each in excludes if each is not None),
                take_retained=ref.retained == "forward",
                archive_payload=ref.archive_payload,
            )
            routes.append(route)
    if ref.direction == "both" and routes:
        routes = _both(routes, ref, known, at, reader)
    return routes


def _both(routes: list[Route], ref: RouteRef, known: Known, at: At, reader: Reader) -> list[Route]:
    """The route and its way back, whose pattern is the template and whose template the pattern."""
    there, *others = routes
    if others or len(there.targets) != 1 or ref.targets[0].template is None:
        reason = "a route in both directions has one source, and one target with a template"
        reader.report((*at, "direction"), "direction", reason, "write two routes")
        return routes
    source, target = ref.sources[0], ref.targets[0]
    name = f"{there.name}.back"
    try:
        pattern = parse_source(ref.targets[0].template, there.targets[0].renderer.dialect)
        template = parse_template(source.pattern, there.dialect, pattern)
    except (SubjectError, TranslationError) as error:
        hint = "in both directions every wildcard is a capture that fills its level"
        reader.report((*at, "direction"), "not-inverse", f"no way back: {error}", hint)
        return routes
    renderer = replace(there.targets[0].renderer, dialect=there.dialect)
    allow = known.endpoints[there.endpoint].allow
    back = replace(
        there,
        name=name,
        endpoint=target.endpoint,
        dialect=there.targets[0].renderer.dialect,
        source=pattern,
        targets=(Target(source.endpoint, source.endpoint, renderer, template, allow),),
        excludes=(),
        inverse=there.name,
    )
    return [replace(there, inverse=name), back]


def _find(endpoint: str, known: Known, at: At, reader: Reader) -> Endpoint | None:
    if endpoint not in known.written:
        hint = did_you_mean(endpoint, known.written)
        reader.report(at, "unknown-endpoint", f"unknown endpoint {endpoint!r}", hint)
    return known.endpoints.get(endpoint)


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
        endpoint = _find(target.endpoint, known, (*here, "endpoint"), reader)
        if endpoint is None or source is None:
            continue
        dialect = endpoint.dialect
        try:
            renderer = Renderer(
                dialect,
                Escape(target.escape),
                Length(target.length),
                replacement=target.replacement,
                dictionary=known.dictionary,
            )
            template = _template(target, dialect, source)
        except (SubjectError, TranslationError) as error:
            reader.report((*here, "template"), error.rule, str(error))
        except GatewayError as error:
            reader.report((*here, "replacement"), "replacement", str(error))
        else:
            label = _label(ref, index)
            targets.append(
                Target(label, target.endpoint, renderer, template, endpoint.allow, target.lossy)
            )
    return tuple(targets)


def _template(ref: TargetRef, dialect: Dialect, source: SourcePattern) -> Template | None:
    return None if ref.template is None else parse_template(ref.template, dialect, source)


def _label(route: RouteRef, index: int) -> str:
    """The endpoint's name, with a number behind it from its second target on."""
    endpoint = route.targets[index].endpoint
    earlier = sum(each.endpoint == endpoint for each in route.targets[:index])
    return f"{endpoint}:{earlier + 1}" if earlier else endpoint
