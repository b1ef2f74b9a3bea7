"""Routes from their settings: endpoints looked up, patterns and templates parsed."""

from __future__ import annotations

from dataclasses import replace

from gateway.config.build_endpoint import RouteContext, parse_pattern_at, parse_patterns
from gateway.config.build_targets import SourceFacts, build_targets
from gateway.config.field_checks import check_heartbeat_fields, check_retained_fields
from gateway.config.name_parts import (
    check_parts,
    name_place,
    written_pattern,
    written_templates,
)
from gateway.config.names_of import check_both, check_heartbeat, find_writer, places_of
from gateway.config.place import Place
from gateway.config.schema import RouteSettings, SourceSettings, TagSettings
from gateway.dialects.base import Dialect, parse_subject
from gateway.endpoints.registry import find_kind
from gateway.errors import SearchBudgetExceeded, SubjectError, TranslationError
from gateway.proofs.budget import SEARCH_TOO_LONG
from gateway.proofs.reverse_route import REVERSE_SUFFIX, both_ways
from gateway.routing.route import EACH_TAG, Route
from gateway.routing.selectors.selector import parse_selector
from gateway.routing.source_pattern import SourcePattern
from gateway.routing.tags import TagMode, TagRule
from gateway.routing.template import assumed_captures, fields_in

_NO_SOURCE = SourceSettings(endpoint="unknown", names_of="")  # its captures are not known


def build_routes(
    name: str, settings: RouteSettings, context: RouteContext, place: Place
) -> list[Route]:
    """Return one route for each source of `settings`, and the reverse route; report findings."""
    if not settings.sources:
        _check_targets(settings, _NO_SOURCE, "unknown", context, place["to"], are_read=True)
    before = len(place.reader.findings)
    built = [
        route
        for number in range(len(settings.sources))
        for route in _build_source(name, settings, number, context, place)
    ]
    routes = [_with_access(route, context) for route in built]
    if not check_both(settings, place) and settings.direction == "both":
        if not _is_reversible(settings, place["direction"]):
            return routes
        if len(place.reader.findings) == before and routes and routes[0].targets:
            both = _with_reverse_route(routes[0], settings, context, place["direction"])
            return [_with_access(route, context) for route in both]
    return routes


def _with_access(route: Route, context: RouteContext) -> Route:
    targets = tuple(
        replace(
            target,
            access=(end := context.endpoints[target.endpoint]).access(ids=target.add_message_id),
            carries_name=find_kind(end.settings).carries_name,
            has_partitions=find_kind(end.settings).has_partitions,
        )
        for target in route.targets
    )
    source = context.endpoints[route.endpoint]
    return replace(route, targets=targets, access=source.source_access(route))


def _build_source(
    name: str, settings: RouteSettings, number: int, context: RouteContext, place: Place
) -> list[Route]:
    """Return the route of a source; one over the names of another may have several patterns."""
    source, here = settings.sources[number], place["from"][number]
    endpoint = context.find(source.endpoint, here["endpoint"])
    are_read = not place.reader.has_findings(here["tags"].at)  # a misspelt key may have captures
    if endpoint is None:
        _check_targets(settings, source, "unknown", context, place["to"], are_read=are_read)
        return []
    dialect = endpoint.dialect
    if settings.retained == "forward" and "retained" in endpoint.settings.carries:
        check_retained_fields(settings.targets, place["to"])
    pattern: SourcePattern | None = None
    writer: Route | None = None
    if source.names_of is not None:
        writer = find_writer(source, endpoint, context, here)
        pattern = None if writer is None else writer.source
        check_heartbeat(settings.heartbeat, place)
    elif check_parts(source, dialect, here):
        where = here[name_place(source, "pattern")]
        pattern = parse_pattern_at(written_pattern(source), dialect, where)
    excludes = parse_patterns(source.exclude, dialect, here["exclude"])
    tags = _tag_rule(source, dialect, here["tags"])
    tags_are_legal = not place.reader.has_findings(here["tags"].at)
    selector = None
    if source.selector is not None:
        selector = here["selector"].parse(parse_selector, source.selector)
    if pattern is None or not tags_are_legal:  # the templates may use their captures
        system, to = dialect.name, place["to"]
        _check_targets(settings, source, system, context, to, are_read=are_read)
        return []
    facts = SourceFacts(pattern, tags, {"@system": dialect.name, "@endpoint": source.endpoint})
    heartbeat = ""
    if settings.heartbeat is not None and number == 0 and writer is None:
        heartbeat = settings.heartbeat
        _check_heartbeat(heartbeat, pattern, dialect, place["heartbeat"])
    route = Route(
        name,
        source.endpoint,
        dialect,
        pattern,
        build_targets(settings, facts, context, place["to"]),
        excludes=excludes,
        tags=tags,
        selector=selector,
        take_retained=settings.retained == "forward",
        broker=endpoint.broker,
        drop_duplicates=settings.duplicates == "drop",
        loop_limit=settings.loop_limit,
        replies_within=settings.replies_within,
        heartbeat=heartbeat,
        archive_payload=settings.archive_payload,
        archive_payload_bytes=settings.archive_payload_bytes,
        archive_redact=settings.archive_redact,
    )
    check_heartbeat_fields(route, place)
    if writer is None:
        return [route]
    return [replace(route, source=e, names_of=writer) for e in places_of(writer, dialect)]


def _check_targets(
    settings: RouteSettings,
    source: SourceSettings,
    system: str,
    context: RouteContext,
    place: Place,
    *,
    are_read: bool,
) -> None:
    """Report the faults of targets that do not depend on the captures of a source with findings."""
    texts: list[str] = []
    for target in settings.targets:
        texts += [*written_templates(target), *map(str, target.headers.set.values())]
        texts += map(str, target.payload.set.values())
    constants = {"@system": system, "@endpoint": source.endpoint}
    patterns = [written_pattern(source), *source.tags.require_tags]
    if source.names_of is not None or not are_read:
        patterns = []  # the captures of another route, or of tag filters that were not read
    facts = SourceFacts(assumed_captures(patterns, texts), EACH_TAG, constants)
    build_targets(settings, facts, context, place)


def _is_reversible(settings: RouteSettings, place: Place) -> bool:
    """Report a route that has too many sources, targets or templates for a reverse route."""
    templates = [text for target in settings.targets for text in written_templates(target)]
    if field := next((name for text in templates for name in fields_in(text)), ""):
        reason = f"no name that comes back tells {{{field}}}, which a message brought"
        place.report("direction", reason, "write two routes")
        return False
    if len(settings.sources) == len(settings.targets) == len(templates) == 1:
        return True
    reason = "a route in both directions has one source, and one target with one template"
    place.report("direction", reason, "write two routes")
    return False


def _with_reverse_route(
    forward: Route, settings: RouteSettings, context: RouteContext, place: Place
) -> list[Route]:
    """Return the route and its reverse route, with pattern and template exchanged."""
    (target,) = settings.targets
    (template,) = written_templates(target)
    if forward.source.share:
        reason = f"{forward.source.share!r} is shared in the forward direction only"
        hint = "write two routes, each with a shared subscription"
        place.report("direction", reason, hint)
        return [forward]
    back = context.endpoints[forward.endpoint]
    encoding = find_kind(back.settings).payload_encoding
    try:
        name = forward.name + REVERSE_SUFFIX
        return list(both_ways(forward, template, name, back.allow, encoding))
    except (SubjectError, TranslationError) as error:
        hint = "in both directions every wildcard is a capture that fills its level"
        place.report("not-inverse", f"no reverse route: {error}", hint)
    except SearchBudgetExceeded:
        reason = f"the excludes of the reverse route are not known: {SEARCH_TOO_LONG}"
        place.report("unproven", reason, "write two routes, each with its own excludes")
    return [forward]


def _check_heartbeat(name: str, pattern: SourcePattern, dialect: Dialect, place: Place) -> None:
    """Report a heartbeat name that does not reach the route through its first source."""
    if (subject := place.parse(parse_subject, name, dialect)) is None:
        return
    if pattern.share:
        reason = f"{pattern.share!r} lets another gateway take the heartbeats of this one"
        place.report("heartbeat", reason, "use a route of its own for heartbeats, not shared")
    elif not pattern.selects(subject.levels):
        hint = "write a name that the pattern matches and that receivers can ignore"
        place.report("heartbeat", f"{name!r} does not match the pattern of the route", hint)


def _tag_rule(source: SourceSettings, dialect: Dialect, place: Place) -> TagRule:
    tags = source.tags
    if tags == TagSettings():
        return EACH_TAG
    if not dialect.tag_lists:
        place.report("no-tags", f"{dialect.name} has no tag lists", "remove `tags`")
    return TagRule(
        TagMode(tags.mode),
        parse_patterns(tags.prefer, dialect, place["prefer"]),
        parse_patterns(tags.require_tags, dialect, place["require_tags"]),
        tags.unused_tags_property,
    )
