"""Routes from their declarations: names resolved, patterns and templates parsed; opens nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from gateway.config.nodes import did_you_mean
from gateway.config.process import DeadLettersRef
from gateway.config.reader import Reader
from gateway.config.schema import EndpointRef, HeadersRef, RouteRef, SourceRef, TagsRef, TargetRef
from gateway.dialects.base import Dialect, parse_pattern, parse_subject
from gateway.dialects.registry import DIALECTS
from gateway.endpoints.settings.base import EndpointSettings, dialects_of
from gateway.errors import GatewayError, SubjectError, TranslationError
from gateway.proofs.reverse_route import both_ways
from gateway.routing.captures import SourcePattern, parse_source
from gateway.routing.headers import NO_RULES, HeaderRules, parse_header_rules
from gateway.routing.payload import parse_conversion
from gateway.routing.route import EACH_TAG, Route, Target, WhenFull
from gateway.routing.selectors.selector import Selector, parse_selector
from gateway.routing.tags import TagMode, TagRule
from gateway.routing.template import parse_template
from gateway.translate.names import Escape, Length, Renderer
from gateway.translate.shorten import Shortened

At = tuple[str | int, ...]
BACK = ".back"  # behind the name of a route that was derived as the way back


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint of a configuration; `dialect` has its own limits, `allow` is for targets."""

    settings: EndpointSettings
    dialect: Dialect
    allow: tuple[SourcePattern, ...]
    escape: Escape
    length: Length
    echo_seconds: float = 0.0
    place: str = ""  # what all gateways call its broker


@dataclass(frozen=True, slots=True)
class Known:
    """The endpoints a route may name, and what all routes share.

    `written` are the names of all in the files, those with findings too: a route to one of them
    needs no finding of its own.
    """

    endpoints: Mapping[str, Endpoint]
    written: Collection[str]
    dictionary: Shortened
    when_full: WhenFull = WhenFull.SLOW


def make_endpoint(
    settings: EndpointSettings, ref: EndpointRef, reader: Reader, at: At
) -> Endpoint | None:
    """The endpoint of its settings, or None when it names no dialect there is."""
    if settings.dialect not in DIALECTS:
        hint = did_you_mean(settings.dialect, DIALECTS)
        reason = f"unknown dialect {settings.dialect!r}"
        reader.report((*at, "dialect"), "unknown-dialect", reason, hint)
        return None
    first, *others = map(DIALECTS.__getitem__, dialects_of(settings))
    dialect = first.joined_with(others).with_limits(**ref.limits.maxima())
    allowed = [
        _source(text, dialect, (*at, "allow", index), reader)
        for index, text in enumerate(ref.allow)
    ]
    allow = tuple(each for each in allowed if each is not None)
    spelling = Escape(ref.escape), Length(ref.length)
    place = ref.place or settings.broker_key
    return Endpoint(settings, dialect, allow, *spelling, ref.echo_seconds, place)


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
        tags = _tags(source, dialect, (*here, "tags"), reader)
        selector = _selector(source.selector, (*here, "selector"), reader)
        targets = _targets(ref, source, (pattern, tags), known, (*at, "to"), reader)
        if pattern is not None:
            route = Route(
                name,
                source.endpoint,
                dialect,
                pattern,
                targets,
                excludes=tuple(each for each in excludes if each is not None),
                tags=tags,
                selector=selector,
                take_retained=ref.retained == "forward",
                place=endpoint.place,
                drop_duplicates=ref.duplicates == "drop",
                heartbeat=_heartbeat(ref, number, pattern, dialect, (*at, "heartbeat"), reader),
                archive_payload=ref.archive_payload,
                archive_payload_bytes=ref.archive_payload_bytes,
                archive_redact=ref.archive_redact,
            )
            routes.append(route)
    if ref.direction == "both" and routes:
        routes = _both(routes, ref, known, at, reader)
    return routes


def check_dead_letters(ref: DeadLettersRef, known: Known, reader: Reader, *, spooled: bool) -> None:
    """Report what is wrong with where dead letters go."""
    at: At = ("dead_letters",)
    if not spooled:
        hint = "add a section `spool` with a `path`"
        reader.report(at, "no-spool", "dead letters lie in the spool's folder", hint)
    if ref.endpoint is None:
        return
    endpoint = _find(ref.endpoint, known, (*at, "endpoint"), reader)
    if endpoint is None:
        return
    try:
        parse_subject(ref.name, endpoint.dialect)
    except SubjectError as error:
        reader.report((*at, "name"), error.rule, str(error), "write a name of that endpoint")


def _both(routes: list[Route], ref: RouteRef, known: Known, at: At, reader: Reader) -> list[Route]:
    """The route and its way back, whose pattern is the template and whose template the pattern."""
    there, *others = routes
    templates = ref.targets[0].template or ()
    if others or len(there.targets) != 1 or len(templates) != 1:
        reason = "a route in both directions has one source, and one target with one template"
        reader.report((*at, "direction"), "direction", reason, "write two routes")
        return routes
    if there.source.share:
        reason = f"{there.source.share!r} divides the way there alone, not the way back"
        hint = "write two routes, each with a shared subscription"
        reader.report((*at, "direction"), "direction", reason, hint)
        return routes
    allow = known.endpoints[there.endpoint].allow
    try:
        return list(both_ways(there, templates[0], there.name + BACK, allow))
    except (SubjectError, TranslationError) as error:
        hint = "in both directions every wildcard is a capture that fills its level"
        reader.report((*at, "direction"), "not-inverse", f"no way back: {error}", hint)
        return routes


def _heartbeat(  # noqa: PLR0913, PLR0917  # where it stands and what it is checked against
    ref: RouteRef,
    number: int,
    pattern: SourcePattern,
    dialect: Dialect,
    at: At,
    reader: Reader,
) -> str:
    """The name that the first source of a route gets its heartbeats under."""
    if ref.heartbeat is None or number:
        return ""
    try:
        levels = parse_subject(ref.heartbeat, dialect).levels
    except SubjectError as error:
        reader.report(at, error.rule, str(error))
        return ""
    if pattern.share:
        reason = f"{pattern.share!r} lets another gateway take the heartbeats of this one"
        reader.report(at, "heartbeat", reason, "give them to a route of their own, not shared")
    elif not pattern.selects(levels):
        hint = "write a name that its pattern takes, and that no receiver minds"
        reader.report(at, "heartbeat", f"{ref.heartbeat!r} is no name of this route", hint)
    return ref.heartbeat


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


def _tags(ref: SourceRef, dialect: Dialect, at: At, reader: Reader) -> TagRule:
    if ref.tags == TagsRef():
        return EACH_TAG
    if not dialect.tag_lists:
        reason = f"{dialect.name} has no tag lists"
        reader.report(at, "no-tags", reason, "take `tags` away")
    patterns = {
        key: [
            _source(text, dialect, (*at, key, index), reader)
            for index, text in enumerate(getattr(ref.tags, key))
        ]
        for key in ("prefer", "along")
    }
    prefer, along = (
        tuple(each for each in found if each is not None) for found in patterns.values()
    )
    return TagRule(TagMode(ref.tags.mode), prefer, along, ref.tags.others)


def _selector(text: str | None, at: At, reader: Reader) -> Selector | None:
    if text is None:
        return None
    try:
        return parse_selector(text)
    except SubjectError as error:
        reader.report(at, error.rule, str(error))
        return None


def _targets(  # noqa: PLR0913, PLR0917  # a target knows its source
    ref: RouteRef,
    source: SourceRef,
    parsed: tuple[SourcePattern | None, TagRule],
    known: Known,
    at: At,
    reader: Reader,
) -> tuple[Target, ...]:
    targets: list[Target] = []
    pattern, tags = parsed
    for index, target in enumerate(ref.targets):
        here = (*at, index)
        endpoint = _find(target.endpoint, known, (*here, "endpoint"), reader)
        if endpoint is None or pattern is None:
            continue
        if tags.mode is TagMode.LIST and not endpoint.dialect.tag_lists:
            reason = f"{endpoint.dialect.name} has no tag lists to send `list` to"
            reader.report((*here, "endpoint"), "no-tags", reason, "use the tag mode each or first")
            continue
        constants = {"@system": known.endpoints[source.endpoint].dialect.name}
        constants["@endpoint"] = source.endpoint
        made = _target(target, endpoint, known, (pattern, tags, constants), here, reader)
        if made is not None:
            targets.append(replace(made, label=_label(ref, index)))
    return tuple(targets)


def _target(  # noqa: PLR0913, PLR0917  # where it stands and what it may use
    ref: TargetRef,
    endpoint: Endpoint,
    known: Known,
    given: tuple[SourcePattern, TagRule, Mapping[str, str]],
    at: At,
    reader: Reader,
) -> Target | None:
    pattern, tags, constants = given
    if len(ref.template or ()) > 1 and not endpoint.dialect.tag_lists:
        reason = f"{endpoint.dialect.name} has no tag lists that several templates could make"
        reader.report((*at, "template"), "no-tags", reason, "write one template, or two targets")
        return None
    key = "replacement"
    try:
        renderer = Renderer(
            endpoint.dialect,
            Escape(ref.escape) if ref.escape else endpoint.escape,
            Length(ref.length) if ref.length else endpoint.length,
            replacement=ref.replacement,
            dictionary=known.dictionary,
        )
        key = "template"
        templates = [
            parse_template(text, endpoint.dialect, pattern, along=tags.along, constants=constants)
            for text in ref.template or ()
        ]
        key = "headers"
        rules = _rules(ref.headers, pattern, constants)
        key = "observe"
        if ref.observe is not None:
            parse_pattern(ref.observe, endpoint.dialect)
        key = "encoding"
        conversion = None if ref.payload == "keep" else parse_conversion(ref.payload, ref.encoding)
    except GatewayError as error:
        reader.report((*at, key), getattr(error, "rule", key), str(error))
        return None
    carried = "properties" in endpoint.settings.carries
    return Target(
        ref.endpoint,
        ref.endpoint,
        renderer,
        templates[0] if templates else None,
        endpoint.allow,
        also=tuple(templates[1:]),
        rules=rules,
        conversion=conversion,
        lossy=ref.lossy,
        when_full=WhenFull(ref.when_full) if ref.when_full else known.when_full,
        identify=ref.identify or (ref.observe is not None and carried),
        observe=ref.observe or "",
        place=endpoint.place,
    )


def _rules(ref: HeadersRef, pattern: SourcePattern, constants: Mapping[str, str]) -> HeaderRules:
    if ref == HeadersRef():
        return NO_RULES
    return parse_header_rules(
        maps=ref.map,
        renames=ref.rename,
        drops=ref.drop,
        keeps=ref.keep,
        sets=ref.set,
        source=pattern,
        constants=constants,
    )


def _label(route: RouteRef, index: int) -> str:
    """The endpoint's name, with a number behind it from its second target on."""
    endpoint = route.targets[index].endpoint
    earlier = sum(each.endpoint == endpoint for each in route.targets[:index])
    return f"{endpoint}:{earlier + 1}" if earlier else endpoint
