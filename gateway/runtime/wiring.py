"""Sources, sinks and routers of a configuration, made and not yet opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gateway.archive.journal.rolling import ArchiveOptions
from gateway.archive.location import Place, parse_place
from gateway.config.load import Configuration
from gateway.config.process import ArchiveRef
from gateway.endpoints.base import Source, Subscription
from gateway.endpoints.registry import find_kind, make_sink, make_source
from gateway.endpoints.settings.base import EndpointSettings
from gateway.model.language import covers
from gateway.model.message import Message
from gateway.model.pattern import AnyMany, AnyOne, Glob, Literal, Pattern
from gateway.routing.route import Route
from gateway.routing.router import Router
from gateway.routing.table import PatternTable
from gateway.runtime.context import Identities, Intake
from gateway.runtime.inbound.echo_cache import Echoes
from gateway.runtime.outbound.lane import Outlet
from gateway.runtime.record.ledger import Archive
from gateway.runtime.record.tap import Tap, Tapped
from gateway.translate.names import Length
from gateway.translate.shorten import Shortened


def sources_of(configuration: Configuration) -> list[str]:
    """The endpoints that routes take from."""
    return sorted({route.endpoint for route in configuration.routes})


def targets_of(configuration: Configuration) -> list[str]:
    """The endpoints that are sent to: by routes, by heartbeats, and with dead letters."""
    names = {target.endpoint for route in configuration.routes for target in route.targets}
    names |= {route.endpoint for route in configuration.routes if route.heartbeat}
    if configuration.dead_letters.endpoint and configuration.spool:
        names.add(configuration.dead_letters.endpoint)
    return sorted(names)


def echoing(configuration: Configuration) -> dict[str, str]:
    """Endpoints whose broker returns what we send without its origin path, and that broker."""
    every = {name: endpoint.settings for name, endpoint in configuration.endpoints.items()}
    listened = {every[name].broker_key for name in sources_of(configuration)}
    listened &= {every[name].broker_key for name in targets_of(configuration)}
    return {
        name: settings.broker_key
        for name, settings in every.items()
        if "origin" not in settings.carries and settings.broker_key in listened
    }


def make_outlet(configuration: Configuration, name: str, echoes: Echoes) -> Outlet:
    """The way to the endpoint `name`."""
    settings = configuration.endpoints[name].settings
    broker = echoing(configuration).get(name)

    def sending(messages: Sequence[Message]) -> None:
        if broker is not None:
            echoes.sending(broker, messages)

    return Outlet(
        make_sink(settings),
        settings.dialect,
        settings.carries,
        (settings.backoff_min, settings.backoff_max),
        suspect_after=configuration.gateway.suspect_after,
        answer_seconds=configuration.gateway.answer_seconds,
        sending=None if broker is None else sending,
    )


def make_intake(configuration: Configuration, name: str, source: Source | None = None) -> Intake:
    """The way from the endpoint `name`, through `source` when that one goes on."""
    endpoint = configuration.endpoints[name]
    settings = endpoint.settings
    routes, wanted = _wanted(configuration, name)
    return Intake(
        source or make_source(settings, wanted),
        Router(routes[0].dialect, routes, dictionary_at(configuration, name)),
        (settings.backoff_min, settings.backoff_max),
        echoing(configuration).get(name, ""),
        endpoint.echo_seconds,
    )


def connection_of(
    configuration: Configuration, name: str
) -> tuple[EndpointSettings, Sequence[Subscription]]:
    """What the source of `name` is made from: while it is the same, the source can stay."""
    return configuration.endpoints[name].settings, _wanted(configuration, name)[1]


def _wanted(
    configuration: Configuration, name: str
) -> tuple[Sequence[Route], Sequence[Subscription]]:
    settings = configuration.endpoints[name].settings
    routes = [route for route in configuration.routes if route.endpoint == name]
    selector = ""
    if find_kind(settings).selects and routes[0].selector is not None:
        texts = {route.selector.text if route.selector else "" for route in routes}
        selector = texts.pop() if len(texts) == 1 else ""
    wanted = subscriptions(routes, selector)
    if selector:  # the broker evaluates it, as its own clients know it
        routes = [replace(route, selector=None) for route in routes]
    return routes, wanted


def dictionary_at(configuration: Configuration, name: str) -> Shortened | None:
    """The dictionary, when a route shortens names that it sends to the endpoint `name`."""
    shortens = any(
        target.endpoint == name and target.renderer.length is Length.SHORTEN
        for route in configuration.routes
        for target in route.targets
    )
    return configuration.dictionary if shortens else None


def subscriptions(routes: Sequence[Route], selector: str = "") -> list[Subscription]:
    """The fewest subscriptions that bring what the routes take.

    One that another covers is left out, because some brokers deliver a message once for each. A
    shared one brings only a part of the messages: it covers those of its own share.
    """
    table: PatternTable[int] = PatternTable()
    for number, route in enumerate(routes):
        for pattern in route.source.patterns:
            table.add(pattern, number)
    kept: dict[int, Route] = {}
    for number, route in enumerate(routes):
        patterns = route.source.patterns
        found = table.find(_example(patterns[0]))
        others = [
            each
            for each in found
            if each != number and routes[each].source.share == route.source.share
        ]
        if any(each in kept and covers(kept[each].source.patterns, patterns) for each in others):
            continue
        wider = [each for each in others if each > number]
        if any(_is_within(route, routes[each]) for each in wider):
            continue
        kept[number] = route
    wanted = any(route.take_retained for route in routes)
    return [
        Subscription(route.source.subscription, not wanted, selector) for route in kept.values()
    ]


def _is_within(route: Route, other: Route) -> bool:
    """Whether `other` takes all names of `route`, and more."""
    mine, theirs = route.source.patterns, other.source.patterns
    return covers(theirs, mine) and not covers(mine, theirs)


def _example(pattern: Pattern) -> tuple[str, ...]:
    """A name that the pattern selects: whatever covers the pattern selects it too."""
    levels: list[str] = []
    for level in pattern.levels:
        match level:
            case Literal(text):
                levels.append(text)
            case Glob(parts):
                levels.append("x".join(parts))
            case AnyOne() | AnyMany():
                levels.append("x")
    return tuple(levels)


def taps_of(configuration: Configuration) -> list[Tapped]:
    """What routes want observed; nothing without an archive to write it to."""
    if configuration.archive is None:
        return []
    every = (
        Tapped(route.name, target.label, target.endpoint, target.system, target.observe)
        for route in configuration.routes
        for target in route.targets
        if target.observe
    )
    return list(dict.fromkeys(every))


def make_tap(
    configuration: Configuration, tapped: Tapped, archive: Archive, identities: Identities
) -> Tap:
    """A subscriber of its own connection; it leaves alone what the broker kept from before."""
    settings = configuration.endpoints[tapped.endpoint].settings
    wanted = [Subscription(tapped.pattern, exclude_retained=True)]
    source = make_source(settings, wanted, instance=f"tap-{tapped.route}-{tapped.label}")
    backoff = settings.backoff_min, settings.backoff_max
    return Tap(tapped, source, backoff, archive, identities)


def place_of(archive: ArchiveRef) -> Place:
    """Where its journals and its segments are; the configuration was checked, so this works."""
    return parse_place(archive.path, archive.buffer)


def options_of(archive: ArchiveRef) -> ArchiveOptions:
    """How it is written. Only an archive elsewhere has a bound: a local one ends with its disk."""
    return ArchiveOptions(
        segment_bytes=archive.segment_bytes,
        segment_seconds=archive.segment_seconds,
        sync=archive.sync,
        buffer_bytes=archive.buffer_bytes if place_of(archive).url else None,
        keep_days=archive.keep_days,
    )
