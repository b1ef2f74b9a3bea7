"""The endpoints that a configuration uses as sources, targets and taps, and those with echoes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from gateway.config.load import Configuration
from gateway.config.named_files import WrittenPath
from gateway.config.nodes import KeyPath
from gateway.dialects.base import parse_subject
from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import find_kind
from gateway.endpoints.settings.base import EndpointSettings
from gateway.routing.route import Route
from gateway.runtime.inbound.subscriptions import subscriptions
from gateway.runtime.record.gap_rows import Watched
from gateway.translate.names import OnTooLong
from gateway.translate.shorten import ShortNamesInMemory

Connected: TypeAlias = tuple[EndpointSettings, Mapping[KeyPath, WrittenPath]]


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


def source_parameters(
    configuration: Configuration, name: str
) -> tuple[Connected, Sequence[Subscription]]:
    """The parameters of the source of `name`; a reload keeps the source while they are equal."""
    found = _connection_parameters(configuration, name)
    return found, routes_and_subscriptions(configuration, name)[1]


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


def routes_and_subscriptions(
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
    return configuration.dictionary if shortens(configuration.routes, [name]) else None


def shortens(routes: Iterable[Route], endpoints: Collection[str]) -> bool:
    """Return whether a route may shorten a name for one of `endpoints`."""
    return any(
        target.endpoint in endpoints and target.renderer.on_too_long is OnTooLong.SHORTEN
        for route in routes
        for target in route.targets
    )


def earlier_names(wanted: Configuration, old: Configuration | None = None) -> dict[str, str]:
    """The earlier name of each source endpoint, or "": the one in `old`, or else the first one."""
    last = {old.first_name(name): name for name in old.endpoints} if old else {}
    first = {each: wanted.endpoints[each].was for each in source_endpoints(wanted)}
    return {name: last.get(was, was) for name, was in first.items()}
