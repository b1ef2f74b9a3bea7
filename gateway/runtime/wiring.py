"""Creates the sources, sinks, routers and taps of a configuration, without opening them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Any

from gateway.config.load import Configuration
from gateway.endpoints.base import KeyedIds, Sink, Source, Statement, Subscription, TellsState
from gateway.endpoints.continuity import ReportsContinuity
from gateway.endpoints.registry import find_kind, make_sink, make_source, removal
from gateway.endpoints.source_memory import KeepsMemory
from gateway.routing.origin_path import GatewayIdentity
from gateway.routing.router import NOBODY, Router
from gateway.runtime.context import GatewayContext, SourceBinding
from gateway.runtime.delivery.admission import AdmissionRules
from gateway.runtime.delivery.copy_paths import PathRules, path_secret
from gateway.runtime.delivery.lane_limits import LaneLimits
from gateway.runtime.endpoint_uses import (
    dictionary_for,
    echo_brokers,
    routes_and_subscriptions,
    shortens,
    source_endpoints,
    target_endpoints,
)
from gateway.runtime.inbound.echo_cache import EchoCache
from gateway.runtime.inbound.reply_addresses import ReplyAddresses
from gateway.runtime.inbound.source_memories import (
    SourceMemories,
)
from gateway.runtime.inbound.subscriptions import subscriptions
from gateway.runtime.memory_roles import role_of, tap_role
from gateway.runtime.outbound.sink_binding import SinkBinding
from gateway.runtime.record.gap_rows import Watched
from gateway.runtime.tap import Tap


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


def make_source_binding(  # the parts of a gateway that a source meets
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
    routes, wanted = routes_and_subscriptions(configuration, name)
    if source is None:
        source = make_source(settings, wanted)
        role = role_of(configuration, name)
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
        configuration.dictionary if shortens(routes, target_endpoints(configuration)) else None,
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


def _remember(source: Source, memories: SourceMemories | None, role: str) -> None:
    """Let a source keep its memory in `memories`, if it has one."""
    if isinstance(source, KeepsMemory):
        source.memory.keep_in(memories, role)


def _suspect_earlier_name(source: Source, memories: SourceMemories, role: str) -> None:
    """Begin with a gap where an endpoint may be a renamed one: nobody reads what waits there."""
    names = memories.earlier_names(role)
    if names and isinstance(source, KeepsMemory) and isinstance(source, ReportsContinuity):
        source.continuity.report_loss(f"perhaps it was {names}, and what waits there is not read")


def make_tap(configuration: Configuration, target: Watched, context: GatewayContext) -> Tap:
    """Create the tap of `target`: a connection of its own, without retained messages."""
    settings = configuration.endpoints[target.endpoint].settings
    wanted = [Subscription(target.subscription, exclude_retained=True)]
    source = make_source(settings, wanted, instance=target.tap_name)
    backoff = settings.backoff_min, settings.backoff_max
    _remember(source, context.memories, tap_role(configuration, target))
    return Tap(target, source, backoff, context)


def path_rules(configuration: Configuration) -> PathRules:
    """How the gateway takes and makes the proofs of copies."""
    settings = configuration.gateway
    keys = (settings.path_key, settings.previous_path_key)
    return PathRules(settings.max_hops, tuple(path_secret(each) for each in keys if each))
