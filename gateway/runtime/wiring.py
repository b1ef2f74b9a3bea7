"""Creates the sources, sinks, routers and taps of a configuration, without opening them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

from gateway.archive.journal.local_head import last_end
from gateway.archive.journal.rolling import ArchiveOptions
from gateway.archive.layout import journal_folder, writer_name
from gateway.archive.location import ArchiveLocation, parse_location
from gateway.archive.name_store import NameStore
from gateway.archive.routes import write_routes
from gateway.config.load import Configuration
from gateway.config.named_files import WrittenPath
from gateway.config.nodes import KeyPath
from gateway.config.process import ArchiveSettings
from gateway.dialects.base import parse_subject
from gateway.endpoints.base import KeyedIds, Sink, Source, Statement, Subscription, TellsState
from gateway.endpoints.continuity import ReportsContinuity
from gateway.endpoints.registry import find_kind, make_sink, make_source, removal
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.source_memory import KeepsMemory
from gateway.lease.holder import LeaseHolder
from gateway.routing.name_rules import to_rules
from gateway.routing.origin_path import GatewayIdentity
from gateway.routing.route import Route
from gateway.routing.router import NOBODY, Router
from gateway.runtime.context import GatewayContext, SourceBinding
from gateway.runtime.delivery.admission import AdmissionRules
from gateway.runtime.delivery.copy_paths import PathRules, path_secret
from gateway.runtime.delivery.lane import LaneLimits
from gateway.runtime.inbound.echo_cache import EchoCache
from gateway.runtime.inbound.reply_addresses import ReplyAddresses
from gateway.runtime.inbound.source_memories import (
    MemoryFile,
    MemoryPlace,
    SourceMemories,
)
from gateway.runtime.inbound.subscriptions import subscriptions
from gateway.runtime.outbound.sink_binding import SinkBinding
from gateway.runtime.outbound.spool_db import SpoolDatabase
from gateway.runtime.record.gap_rows import Watched, watched_by
from gateway.runtime.tap import Tap
from gateway.translate.names import OnTooLong
from gateway.translate.shorten import ShortNamesInMemory


def source_endpoints(configuration: Configuration) -> list[str]:
    """The names of the endpoints that routes receive from."""
    return sorted({route.endpoint for route in configuration.routes})


def target_endpoints(configuration: Configuration) -> list[str]:
    """The names of the endpoints that routes, heartbeats or dead letters are sent to."""
    names = {target.endpoint for route in configuration.routes for target in route.targets}
    names |= {route.endpoint for route in configuration.routes if route.heartbeat}
    if configuration.dead_letters.endpoint:
        names.add(configuration.dead_letters.endpoint)
    names |= {name for state in configuration.state for name in state.endpoint}
    return sorted(names)


def thinned(configuration: Configuration, name: str) -> set[tuple[str, bool]]:
    """Return the routes of which the target `name` gets less, and whether by intervals."""
    return {
        (route.name, bool(target.thin.seconds))
        for route in configuration.routes
        for target in route.targets
        if target.endpoint == name and target.thin is not None
    }


def echo_brokers(configuration: Configuration) -> dict[str, str]:
    """Map each endpoint that receives echoes without an origin path to the key of its broker."""
    brokers = configuration.brokers
    relayed = {brokers[name] for name in source_endpoints(configuration)}
    relayed &= {brokers[name] for name in target_endpoints(configuration)}
    return {
        name: brokers[name]
        for name, endpoint in configuration.endpoints.items()
        if "origin" not in endpoint.settings.carries and brokers[name] in relayed
    }


def keyed_sink(
    configuration: Configuration, name: str, identity: GatewayIdentity, purpose: str = ""
) -> Sink:
    """Create the sink of the endpoint `name`, with the key of its ids of messages if it has any.

    Both instances of a pair have the same secrets, and so has a command that sends again.
    """
    sink = make_sink(configuration.endpoints[name].settings, instance=purpose)
    if isinstance(sink, KeyedIds):
        archive, path_key = configuration.archive, configuration.gateway.path_key
        secret = (archive.seal_key if archive else None) or path_key or identity.id
        if secret:
            digest = blake2b(secret.encode(), digest_size=32, person=b"message ids")
            sink.id_key = digest.digest()
    return sink


def statement_at(configuration: Configuration, name: str) -> Statement | None:
    """Return what the sink of the endpoint `name` tells of a connection; None for nothing."""
    gateway = configuration.gateway.name
    found = (each for each in configuration.state if name in each.endpoint)
    return next((each.statement(gateway) for each in found), None)


def make_sink_binding(
    configuration: Configuration,
    name: str,
    echoes: EchoCache,
    identity: GatewayIdentity = NOBODY,
) -> SinkBinding:
    """Create the sink of the endpoint `name`; messages to an echo broker are noted in `echoes`."""
    settings = configuration.endpoints[name].settings
    broker = echo_brokers(configuration).get(name)
    sink = keyed_sink(configuration, name, identity)
    if isinstance(sink, TellsState):
        sink.statement = statement_at(configuration, name)
    return SinkBinding(
        sink,
        settings.dialect,
        settings.carries,
        LaneLimits(
            (settings.backoff_min, settings.backoff_max),
            isolate_after=configuration.gateway.isolate_after,
            stuck_after_seconds=configuration.gateway.stuck_after_seconds,
            rate=settings.rate,
        ),
        None if broker is None else partial(echoes.note_sent, broker),
    )


def make_source_binding(  # noqa: PLR0913, PLR0917  # the parts of a gateway that a source meets
    configuration: Configuration,
    name: str,
    source: Source | None = None,
    memories: SourceMemories | None = None,
    identity: GatewayIdentity = NOBODY,
    replies: ReplyAddresses | None = None,
) -> SourceBinding:
    """Create the binding of the endpoint `name`, around `source` when one is given.

    `identity` is of the gateway that relays its messages, `replies` has the addresses that it
    handed out.
    """
    endpoint = configuration.endpoints[name]
    settings = endpoint.settings
    routes, wanted = _routes_and_subscriptions(configuration, name)
    if source is None:
        source = make_source(settings, wanted)
        role = _role_of(configuration, name)
        _remember(source, memories, role)
        if memories is not None:
            _suspect_earlier_name(source, memories, role)
    return SourceBinding(
        source,
        AdmissionRules(
            Router(routes[0].dialect, routes, dictionary_for(configuration, name), identity),
            removal(source, settings, wanted),
            echo_broker=echo_brokers(configuration).get(name, ""),
            echo_window=endpoint.echo_window,
            admits_reply=replies.admits
            if replies is not None and any(each.replies_within for each in routes)
            else None,
        ),
        (settings.backoff_min, settings.backoff_max),
        configuration.dictionary if _shortens(routes, target_endpoints(configuration)) else None,
        shows_paths="origin" in settings.carries,
    )


def make_restore_bindings(
    configuration: Configuration, target: str, identity: GatewayIdentity
) -> dict[str, SourceBinding]:
    """Return a reader of what is retained for `target` at each source, by its endpoint.

    A reader takes no message from another one, and its flag marks retained messages only.
    """
    found: dict[str, SourceBinding] = {}
    for name in source_endpoints(configuration):
        settings: Any = configuration.endpoints[name].settings  # a dataclass
        kind = find_kind(settings)
        routes = [
            replace(route, targets=to, take_retained=True)
            for route in configuration.routes
            if route.endpoint == name and route.take_retained and not route.source.share
            if (to := tuple(replace(e, thin=None) for e in route.targets if e.endpoint == target))
        ]
        if not routes or not kind.retains or kind.observer is None:
            continue
        wanted = [replace(each, marks_retained=True) for each in subscriptions(routes)]
        reader = replace(settings, **kind.observer)
        rules = AdmissionRules(
            Router(routes[0].dialect, routes, dictionary_for(configuration, name), identity),
            lambda _address: False,
        )
        found[name] = SourceBinding(
            make_source(reader, wanted, instance=f"restore-{target}"),
            rules,
            (settings.backoff_min, settings.backoff_max),
            configuration.dictionary,
            shows_paths="origin" in settings.carries,
        )
    return found


def _role_of(configuration: Configuration, name: str) -> str:
    """The role of the source of the endpoint `name`: an earlier name of it stays in its role."""
    kind = find_kind(configuration.endpoints[name].settings).name
    return f"{kind} {configuration.first_name(name)}"


def _tap_role(configuration: Configuration, target: Watched) -> str:
    kind = find_kind(configuration.endpoints[target.endpoint].settings).name
    return f"{kind} {target.endpoint} {target.tap_name}"


def _remember(source: Source, memories: SourceMemories | None, role: str) -> None:
    """Let a source keep its memory in `memories`, if it has one."""
    if isinstance(source, KeepsMemory):
        source.memory.keep_in(memories, role)


def _suspect_earlier_name(source: Source, memories: SourceMemories, role: str) -> None:
    """Begin with a gap where an endpoint may be a renamed one: nobody reads what waits there."""
    names = memories.earlier_names(role)
    if names and isinstance(source, KeepsMemory) and isinstance(source, ReportsContinuity):
        source.continuity.report_loss(f"perhaps it was {names}, and what waits there is not read")


Connected: TypeAlias = tuple[EndpointSettings, Mapping[KeyPath, WrittenPath]]


def source_parameters(
    configuration: Configuration, name: str
) -> tuple[Connected, Sequence[Subscription]]:
    """The parameters of the source of `name`; a reload keeps the source while they are equal."""
    found = _connection_parameters(configuration, name)
    return found, _routes_and_subscriptions(configuration, name)[1]


def keeps_connection(old: Configuration, wanted: Configuration, name: str) -> bool:
    """Return whether a reload leaves the connections of the endpoint `name` as they are."""
    before = _connection_parameters(old, name) if name in old.endpoints else None
    return before == _connection_parameters(wanted, name)


def _connection_parameters(configuration: Configuration, name: str) -> Connected:
    """The settings of the endpoint `name`, and its files, such as certificates."""
    files = {
        at: path
        for at, path in configuration.paths.items()
        if path.kind == "file" and at[:2] == ("endpoints", name)
    }
    return configuration.endpoints[name].settings, files


def _routes_and_subscriptions(
    configuration: Configuration, name: str
) -> tuple[Sequence[Route], Sequence[Subscription]]:
    settings = configuration.endpoints[name].settings
    routes = [route for route in configuration.routes if route.endpoint == name]
    selector = configuration.broker_selector(name)
    wanted = subscriptions(routes, selector)
    if selector:  # the broker evaluates it, with its own rules
        routes = [replace(route, selector=None) for route in routes]
    if not (find_kind(settings).retains and wanted[0].marks_retained):
        # nothing retained earlier comes, and the flag of another message is its publisher's
        routes = [replace(route, take_retained=True) for route in routes]
    return routes, wanted


def heartbeat_copies(configuration: Configuration, route: Route) -> int:
    """The most copies of a heartbeat of `route` that its source brings without a loop.

    Some brokers deliver a message once for each subscription that selects it.
    """
    levels = parse_subject(route.heartbeat, route.dialect).levels
    beside = [
        each
        for each in configuration.routes
        if (each.endpoint == route.endpoint or each.name == route.name)
        and each.source.selects(levels)
    ]
    return len({(each.endpoint, each.source.subscription) for each in beside})


def dictionary_for(configuration: Configuration, name: str) -> ShortNamesInMemory | None:
    """The dictionary of short names when a route shortens names for the endpoint `name`."""
    return configuration.dictionary if _shortens(configuration.routes, [name]) else None


def _shortens(routes: Iterable[Route], endpoints: Collection[str]) -> bool:
    """Return whether a route may shorten a name for one of `endpoints`."""
    return any(
        target.endpoint in endpoints and target.renderer.on_too_long is OnTooLong.SHORTEN
        for route in routes
        for target in route.targets
    )


def open_name_store(
    configuration: Configuration, archive: ArchiveSettings, writer: str
) -> NameStore | None:
    """Keep the names that `configuration` shortens in the archive; None when it shortens none.

    Raises:
        ArchiveError: the folder cannot be written.
    """
    if all(dictionary_for(configuration, each) is None for each in configuration.endpoints):
        return None
    store = NameStore(archive_location(archive).local, writer)
    configuration.dictionary.move_to(store)
    return store


def tap_targets(configuration: Configuration) -> list[Watched]:
    """The targets that routes observe; none without an archive."""
    if configuration.archive is None:
        return []
    observed = (
        Watched(target.endpoint, route.name, target.observe, target.system, target.label)
        for route in configuration.routes
        for target in route.targets
        if target.observe
    )
    return list(dict.fromkeys(observed))


def make_tap(configuration: Configuration, target: Watched, context: GatewayContext) -> Tap:
    """Create the tap of `target`: a connection of its own, without retained messages."""
    settings = configuration.endpoints[target.endpoint].settings
    wanted = [Subscription(target.subscription, exclude_retained=True)]
    source = make_source(settings, wanted, instance=target.tap_name)
    backoff = settings.backoff_min, settings.backoff_max
    _remember(source, context.memories, _tap_role(configuration, target))
    return Tap(target, source, backoff, context)


def state_folder(configuration: Configuration) -> Path | None:
    """The folder of what a gateway knows beyond its end: of the journals, else of the spool."""
    if configuration.archive is not None:
        return journal_folder(archive_location(configuration.archive).local)
    return Path(configuration.spool.path) if configuration.spool is not None else None


def memory_place(configuration: Configuration, lease: LeaseHolder | None) -> MemoryPlace | None:
    """The place of the memories; None where they end with the process."""
    if lease is not None:
        return lease
    if (folder := state_folder(configuration)) is None:
        return None
    name, spool = f"{writer_name(configuration.gateway.name)}.memory", configuration.spool
    return MemoryFile(folder / name, Path(spool.path) / name if spool else None)


def source_memories(
    configuration: Configuration, lease: LeaseHolder | None, *, ran_before: bool
) -> SourceMemories:
    """The memories of the sources: of a pair beside its lease, else in the gateway's folder.

    A gateway without an archive keeps them in the folder of its spool, and may get one later.
    """
    place = memory_place(configuration, lease)
    memories = SourceMemories(place, configuration.gateway.name, ran_before=ran_before)
    use_roles(memories, configuration)
    return memories


def watched_by_role(configuration: Configuration) -> dict[str, tuple[str, Sequence[Watched]]]:
    """By role, the endpoint of each source and tap, and the routes that it receives for."""
    found: dict[str, tuple[str, Sequence[Watched]]] = {}
    for name in configuration.endpoints:
        routes = [each for each in configuration.routes if each.endpoint == name]
        found[_role_of(configuration, name)] = name, watched_by(routes)
    for target in tap_targets(configuration):
        found[_tap_role(configuration, target)] = target.endpoint, [target]
    return found


def use_roles(memories: SourceMemories, configuration: Configuration) -> None:
    """Let memories know all endpoints and taps of a configuration, and its sources."""
    roles = [_role_of(configuration, each) for each in configuration.endpoints]
    roles += [_tap_role(configuration, each) for each in tap_targets(configuration)]
    sources = [_role_of(configuration, each) for each in source_endpoints(configuration)]
    memories.use_roles(roles, sources)


def path_rules(configuration: Configuration) -> PathRules:
    """How the gateway takes and makes the proofs of copies."""
    settings = configuration.gateway
    keys = (settings.path_key, settings.previous_path_key)
    return PathRules(settings.max_hops, tuple(path_secret(each) for each in keys if each))


def archive_location(archive: ArchiveSettings) -> ArchiveLocation:
    """The location of journals and segments; a checked configuration always has a valid one."""
    return parse_location(archive.path, archive.buffer)


def last_times(root: Path, gateway: str, spool: SpoolDatabase | None) -> Iterator[int]:
    """Yield the latest times that earlier runs left: in their journals, and in the spool.

    A killed run may have put copies into the spool after its last durable row.
    Units: microseconds since 1970-01-01 UTC; 0 for none.
    """
    yield last_end(root, gateway)
    if spool is not None:
        query = "SELECT CAST(time AS INTEGER) FROM batches ORDER BY number DESC LIMIT 1"
        yield from (time for (time,) in spool.rows(query))


def archive_routes(
    archive: ArchiveSettings, writer: str, routes: Sequence[Route], since: int
) -> None:
    """Store the routes with which `writer` runs from `since` on, in microseconds.

    They tell which names the rows of this time must have.

    Raises:
        ArchiveError: they cannot be written.
    """
    root, key = archive_location(archive).local, archive_options(archive).seal_key
    write_routes(root, writer, to_rules(routes), since, key)


def archive_options(archive: ArchiveSettings) -> ArchiveOptions:
    """The options of the archive writer.

    Only a remote archive has a buffer limit; a local one is limited by its disk.
    """
    return ArchiveOptions(
        segment_bytes=archive.segment_bytes,
        segment_seconds=archive.segment_seconds,
        sync=archive.sync,
        buffer_bytes=archive.buffer_bytes if archive_location(archive).url else None,
        keep_days=archive.keep_days,
        seal_key=archive.seal_key.encode() if archive.seal_key else None,
    )
