"""`names_of` in a file: the route that wrote what a source takes, and where it wrote that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gateway.config.build_endpoint import Endpoint, RouteContext
from gateway.config.hints import did_you_mean
from gateway.config.place import Place
from gateway.config.schema import RouteSettings, SourceSettings, TagSettings
from gateway.dialects.base import Dialect
from gateway.dialects.parts import divided
from gateway.model.pattern import AnyMany, Level, Literal
from gateway.proofs.flows.target_expressions import extract_flows
from gateway.routing.proven_names import written_to
from gateway.routing.route import Route
from gateway.routing.source_pattern import SourcePattern, parse_source
from gateway.translate.names import OnTooLong

RULE = "names-of"


def find_writer(
    source: SourceSettings, endpoint: Endpoint, context: RouteContext, place: Place
) -> Route | None:
    """Return the route in `names_of`, with its targets at the endpoint; report all that is wrong.

    None also for a route that has findings of its own.
    """
    before = len(place.reader.findings)
    _check_alone(source, place)
    here, name = place["names_of"], source.names_of or ""
    if endpoint.settings.named_by_headers:
        reason = f"messages at {source.endpoint!r} have the names in their headers already"
        here.report(RULE, reason, "leave `named_by` out there, or write a `pattern`")
    found = [each for each in context.built.get(name, ()) if each.name == name]
    if name not in context.route_names:
        if context.names_complete:
            here.report(RULE, f"no route {name!r}", did_you_mean(name, context.route_names))
    elif len(found) > 1:
        reason = f"route {name!r} has {len(found)} sources, and a name tells none of them"
        here.report(RULE, reason, "write a route for each of them, and one back")
    elif found:
        _check_writer(found[0], source.endpoint, here)
    if not found or len(place.reader.findings) > before:
        return None
    return written_to(found[0], source.endpoint)


def _check_alone(source: SourceSettings, place: Place) -> None:
    """Report the settings that say again what the other route says."""
    hint = "leave it out: what that route takes comes back"
    for key in ("pattern", "topic", "key", "exclude"):
        if getattr(source, key):
            place[key].report(RULE, f"`{key}` stands beside `names_of`", hint)
    if source.tags != TagSettings():
        place["tags"].report(RULE, "`tags` stands beside `names_of`", hint)


def _check_writer(writer: Route, endpoint: str, place: Place) -> None:
    """Report a route whose copies at an endpoint do not tell the names at its source."""
    name, targets = writer.name, [each for each in writer.targets if each.endpoint == endpoint]
    hint = "write a `pattern`, or the name of a route to it"
    if not targets:
        place.report(RULE, f"route {name!r} has no target {endpoint!r}", hint)
    elif not targets[0].carries_name:
        reason = f"copies at {endpoint!r} do not carry the name at their source"
        place.report(RULE, reason, "write a `pattern` that tells the name")
    elif fields := [each.name for target in targets for each in target.name_fields]:
        reason = f"route {name!r} makes names of {{{fields[0]}}}, which only its message had"
        place.report(RULE, reason, hint)
    elif any(each.renderer.on_too_long is OnTooLong.SHORTEN for each in targets):
        place.report(RULE, f"route {name!r} may write short names", "let it write `refuse`")


def check_both(settings: RouteSettings, place: Place) -> bool:
    """Report a route in both directions that takes names of another one; return whether it is."""
    if settings.direction == "both" and any(each.names_of for each in settings.sources):
        hint = "remove `direction`: the other route is the way there"
        place["direction"].report(RULE, "a route over `names_of` leads one way", hint)
        return True
    return False


def check_heartbeat(heartbeat: str | None, place: Place) -> None:
    """Report a heartbeat of a route over the names of another one."""
    if heartbeat is not None:
        reason = "no route wrote the heartbeat, so this one does not take it"
        place["heartbeat"].report("heartbeat", reason, "write it at the route in `names_of`")


def check_short_names(routes: Sequence[Route], places: dict[str, Place]) -> None:
    """Report routes over names that other routes shorten: a header has the short one."""
    shortened = {
        target.endpoint
        for route in routes
        for target in route.targets
        if target.renderer.on_too_long is OnTooLong.SHORTEN
    }
    for route in {each.name: each for each in routes if each.names_of is not None}.values():
        if route.names_of is not None and (end := route.names_of.endpoint) in shortened:
            reason = f"names at {end!r} may be short ones, which do not come back"
            places[route.name].report(RULE, reason, f"write `refuse` at the targets {end!r}")


def places_of(writer: Route, dialect: Dialect) -> list[SourcePattern]:
    """Return patterns of all that `writer` can write, in `dialect`: of topics, without their keys.

    They are as wide as the dialect needs.
    """
    ends = dict.fromkeys((writer.endpoint, *(each.endpoint for each in writer.targets)), "")
    _, flows = extract_flows([writer], ends)
    texts = (each for flow in flows for each in _texts(flow.target_pattern.levels, dialect))
    return [parse_source(each, dialect) for each in dict.fromkeys(texts)]


def _texts(levels: Sequence[Level], dialect: Dialect) -> Iterator[str]:
    """Yield subscriptions that select all these names: each pattern ends at a rest wildcard."""
    topic = levels if dialect.key is None else divided(levels)[0]
    texts = [each.text if isinstance(each, Literal) else "x" for each in topic]
    words: list[str] = []
    for level, own in zip(topic, dialect.codec.encode(texts), strict=True):
        if isinstance(level, AnyMany):
            if level.minimum == 0 and words:
                yield dialect.text_of(words)
            yield dialect.text_of([*words, dialect.any_many])
            return
        words.append(own if isinstance(level, Literal) else dialect.any_one)
    yield dialect.text_of(words)
