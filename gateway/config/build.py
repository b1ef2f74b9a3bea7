"""Routes from their settings: endpoints looked up, patterns and templates parsed."""

from __future__ import annotations

from dataclasses import replace

from gateway.config.build_endpoint import RouteContext, parse_pattern_at, parse_patterns
from gateway.config.build_targets import SourceFacts, build_targets
from gateway.config.nodes import KeyPath
from gateway.config.process import DeadLetterSettings
from gateway.config.schema import RouteSettings, SourceSettings, TagSettings
from gateway.config.value_reader import ConfigReader
from gateway.dialects.base import Dialect, parse_subject
from gateway.endpoints.registry import find_kind
from gateway.errors import SearchBudgetExceeded, SubjectError, TranslationError
from gateway.proofs.budget import SEARCH_TOO_LONG
from gateway.proofs.reverse_route import REVERSE_SUFFIX, both_ways
from gateway.routing.route import EACH_TAG, Route
from gateway.routing.selectors.selector import Selector, parse_selector
from gateway.routing.source_pattern import SourcePattern
from gateway.routing.tags import TagMode, TagRule
from gateway.routing.template import any_captures


def build_routes(
    name: str, settings: RouteSettings, context: RouteContext, reader: ConfigReader
) -> list[Route]:
    """Return one route for each source of `settings`, and the reverse route; report findings."""
    at: KeyPath = ("routes", name)
    before = len(reader.findings)
    built = [
        _build_route(name, settings, number, context, reader)
        for number in range(len(settings.sources))
    ]
    routes = [_with_access(route, context) for route in built if route is not None]
    if settings.direction == "both":
        if not _is_reversible(settings, (*at, "direction"), reader):
            return routes
        if len(reader.findings) == before and routes and routes[0].targets:
            both = _with_reverse_route(routes[0], settings, context, (*at, "direction"), reader)
            return [_with_access(route, context) for route in both]
    return routes


def _with_access(route: Route, context: RouteContext) -> Route:
    targets = tuple(
        replace(target, access=context.endpoints[target.endpoint].access(ids=target.add_message_id))
        for target in route.targets
    )
    source = context.endpoints[route.endpoint]
    return replace(route, targets=targets, access=source.source_access(route))


def _build_route(
    name: str, settings: RouteSettings, number: int, context: RouteContext, reader: ConfigReader
) -> Route | None:
    source, at = settings.sources[number], ("routes", name, "from", number)
    endpoint = context.find(source.endpoint, (*at, "endpoint"), reader)
    if endpoint is None:
        _check_targets(name, settings, source, "unknown", context, reader)
        return None
    dialect = endpoint.dialect
    pattern = parse_pattern_at(source.pattern, dialect, (*at, "pattern"), reader)
    excludes = parse_patterns(source.exclude, dialect, (*at, "exclude"), reader)
    before = len(reader.findings)
    tags = _tag_rule(source, dialect, (*at, "tags"), reader)
    tags_are_legal = len(reader.findings) == before
    selector = _selector(source.selector, (*at, "selector"), reader)
    if pattern is None or not tags_are_legal:  # the templates may use their captures
        _check_targets(name, settings, source, dialect.name, context, reader)
        return None
    facts = SourceFacts(pattern, tags, {"@system": dialect.name, "@endpoint": source.endpoint})
    heartbeat = ""
    if settings.heartbeat is not None and number == 0:
        heartbeat = settings.heartbeat
        _check_heartbeat(heartbeat, pattern, dialect, ("routes", name, "heartbeat"), reader)
    return Route(
        name,
        source.endpoint,
        dialect,
        pattern,
        build_targets(settings, facts, context, ("routes", name, "to"), reader),
        excludes=excludes,
        tags=tags,
        selector=selector,
        take_retained=settings.retained == "forward",
        broker_id=endpoint.broker_id,
        drop_duplicates=settings.duplicates == "drop",
        heartbeat=heartbeat,
        archive_payload=settings.archive_payload,
        archive_payload_bytes=settings.archive_payload_bytes,
        archive_redact=settings.archive_redact,
    )


def _check_targets(  # noqa: PLR0913, PLR0917  # a source, and where its targets are reported
    name: str,
    settings: RouteSettings,
    source: SourceSettings,
    system: str,
    context: RouteContext,
    reader: ConfigReader,
) -> None:
    """Report the faults of targets that do not depend on the captures of a source with findings."""
    texts = [source.pattern]
    for target in settings.targets:
        texts += [*(target.template or ()), *map(str, target.headers.set.values())]
    constants = {"@system": system, "@endpoint": source.endpoint}
    facts = SourceFacts(any_captures(texts), EACH_TAG, constants)
    build_targets(settings, facts, context, ("routes", name, "to"), reader)


def check_dead_letters(
    settings: DeadLetterSettings,
    context: RouteContext,
    reader: ConfigReader,
    *,
    spooled: bool,
    archived: bool,
) -> None:
    """Report faults of the section `dead_letters`."""
    at: KeyPath = ("dead_letters",)
    if not spooled and (settings.endpoint is None or not archived):  # a copy may be on its way
        hint = (
            "add a section `spool` with a `path`, or an `endpoint` that receives copies of them and"
            " an `archive` that keeps their rows"
        )
        reader.report(at, "no-spool", "dead letters are kept in the folder of the spool", hint)
    if settings.endpoint is None:
        return
    endpoint = context.find(settings.endpoint, (*at, "endpoint"), reader)
    if endpoint is None:
        return
    try:
        parse_subject(settings.name, endpoint.dialect)
    except SubjectError as error:
        reader.report((*at, "name"), error.rule, str(error), "write a name of that endpoint")


def _is_reversible(settings: RouteSettings, at: KeyPath, reader: ConfigReader) -> bool:
    """Report a route that has too many sources, targets or templates for a reverse route."""
    templates = [text for target in settings.targets for text in target.template or ()]
    if len(settings.sources) == len(settings.targets) == len(templates) == 1:
        return True
    reason = "a route in both directions has one source, and one target with one template"
    reader.report(at, "direction", reason, "write two routes")
    return False


def _with_reverse_route(
    forward: Route,
    settings: RouteSettings,
    context: RouteContext,
    at: KeyPath,
    reader: ConfigReader,
) -> list[Route]:
    """Return the route and its reverse route, with pattern and template exchanged."""
    (target,) = settings.targets
    (template,) = target.template or ()
    if forward.source.share:
        reason = f"{forward.source.share!r} is shared in the forward direction only"
        hint = "write two routes, each with a shared subscription"
        reader.report(at, "direction", reason, hint)
        return [forward]
    back = context.endpoints[forward.endpoint]
    encoding = find_kind(back.settings).payload_encoding
    try:
        name = forward.name + REVERSE_SUFFIX
        return list(both_ways(forward, template, name, back.allow, encoding))
    except (SubjectError, TranslationError) as error:
        hint = "in both directions every wildcard is a capture that fills its level"
        reader.report(at, "not-inverse", f"no reverse route: {error}", hint)
        return [forward]
    except SearchBudgetExceeded:
        reason = f"the excludes of the reverse route are not known: {SEARCH_TOO_LONG}"
        reader.report(at, "unproven", reason, "write two routes, each with its own excludes")
        return [forward]


def _check_heartbeat(
    name: str, pattern: SourcePattern, dialect: Dialect, at: KeyPath, reader: ConfigReader
) -> None:
    """Report a heartbeat name that does not reach the route through its first source."""
    try:
        levels = parse_subject(name, dialect).levels
    except SubjectError as error:
        reader.report(at, error.rule, str(error))
        return
    if pattern.share:
        reason = f"{pattern.share!r} lets another gateway take the heartbeats of this one"
        reader.report(at, "heartbeat", reason, "use a route of its own for heartbeats, not shared")
    elif not pattern.selects(levels):
        hint = "write a name that the pattern matches and that receivers can ignore"
        reader.report(at, "heartbeat", f"{name!r} does not match the pattern of the route", hint)


def _tag_rule(
    source: SourceSettings, dialect: Dialect, at: KeyPath, reader: ConfigReader
) -> TagRule:
    tags = source.tags
    if tags == TagSettings():
        return EACH_TAG
    if not dialect.tag_lists:
        reader.report(at, "no-tags", f"{dialect.name} has no tag lists", "remove `tags`")
    return TagRule(
        TagMode(tags.mode),
        parse_patterns(tags.prefer, dialect, (*at, "prefer"), reader),
        parse_patterns(tags.require_tags, dialect, (*at, "require_tags"), reader),
        tags.unused_tags_property,
    )


def _selector(text: str | None, at: KeyPath, reader: ConfigReader) -> Selector | None:
    if text is None:
        return None
    try:
        return parse_selector(text)
    except SubjectError as error:
        reader.report(at, error.rule, str(error))
        return None
