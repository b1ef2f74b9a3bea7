"""Import of the shovels of RabbitMQ's definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gateway.dialects.systems.rabbitmq import RABBITMQ
from gateway.endpoints.settings.base import U16
from gateway.endpoints.settings.rabbitmq import QUEUE
from gateway.imports.document import (
    LOSSY_NOTE,
    Document,
    EndpointEntry,
    EndpointSetting,
    NameGenerator,
    RouteEntry,
    TargetEntry,
    gateway_name,
    variable_of,
)
from gateway.imports.json_files import JsonEntry, read_json
from gateway.imports.rabbitmq.addresses import AddressError, address_settings
from gateway.imports.rabbitmq.shovels import (
    OTHER_PRODUCT,
    TOPICS,
    Shovel,
    ShovelEnd,
    parse_shovel,
)
from gateway.imports.route_checks import find_brace_fault, find_route_fault, with_refusals
from gateway.imports.source_lines import LineError, LineStatus, OmittedLine

_BUILT_IN: Final[Mapping[str, str]] = {
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.headers": "headers",
    "amq.match": "headers",
}
NOTES: Final = (
    (
        "A shovel is part of a node; the gateway is a client of both. Remove the shovel when its"
        " route runs: both would divide the messages of a queue, and double those of an exchange."
    ),
    (
        "A route from a queue removes what it reads, as the shovel does. A route from an exchange"
        " has a durable queue of its own at the server, in place of the shovel's."
    ),
    "The queues and exchanges must exist: unlike a shovel, the gateway declares none of them.",
)
_STAYS: Final = "the server continues to apply it"
_FEDERATION: Final = (
    "federation is no route: a link reads an exchange upstream for as long as the exchange here has"
    " bindings; write a route from the upstream's exchange"
)
_PRODUCT: Final = (
    "A shovel does not tell the product at an address of AMQP 1.0. Write the one that it is, and"
    " its names in the route."
)
_KEYS: Final = (
    "the shovel keeps the routing key of each message, and a route gives the messages of a queue"
    " one name; write `queue: {queue}` at the endpoint, with the exchange and the keys by which the"
    " queue is bound as its patterns"
)


def import_rabbitmq(file: str, data: bytes, site: str = "") -> Document:
    """Import the shovels of a file that `rabbitmqctl export_definitions` or the API wrote.

    Raises:
        GatewayError: the file is not an object of JSON.
    """
    found = read_json(file, data)
    omitted: list[OmittedLine] = [*_others(found)]
    declared = [each for each in found if each.section == "exchanges"]
    kinds = {**{each.text("name"): each.text("type") for each in declared}, **_BUILT_IN}
    endpoints: list[EndpointEntry] = []
    routes: list[RouteEntry] = []
    names, route_names = NameGenerator(), NameGenerator()
    shovels = [*_shovels(found, omitted)]
    for shovel in shovels:
        try:
            pair, route = _route(shovel, kinds, names, route_names.make(shovel.name), omitted)
        except LineError as error:
            omitted.append(OmittedLine(shovel.location, error.item, error.reason))
        else:
            endpoints += pair
            routes.append(route)
    brokers = {each.name: f"{_value(each, 'url')} {_value(each, 'exchange')}" for each in endpoints}
    checked, refused = with_refusals(routes, brokers, RABBITMQ)
    return Document(
        command="rabbitmq",
        gateway=gateway_name(site, *(each.name for each in shovels[:1])),
        files=(file,),
        endpoints=tuple(endpoints),
        routes=checked,
        notes=NOTES if routes else (),
        omitted=tuple(sorted([*omitted, *refused], key=lambda each: each.location)),
    )


def _shovels(found: Sequence[JsonEntry], omitted: list[OmittedLine]) -> Iterator[Shovel]:
    for entry in found:
        if entry.section == "parameters" and entry.text("component") == "shovel":
            try:
                yield parse_shovel(entry, omitted)
            except LineError as error:
                omitted.append(OmittedLine(entry.location, error.item, error.reason))


def _others(found: Sequence[JsonEntry]) -> Iterator[OmittedLine]:
    """Yield a line for each federation, and one for each section that stays at the server."""
    seen: set[str] = set()
    for entry in found:
        component, name = entry.text("component"), entry.text("name")
        definition = entry.value.get("definition") if isinstance(entry.value, dict) else None
        keys = definition if isinstance(definition, dict) else {}
        if component.startswith("federation"):
            yield OmittedLine(entry.location, f"{component} {name!r}", _FEDERATION)
        elif any(str(key).startswith("federation") for key in keys):
            yield OmittedLine(entry.location, f"policy {name!r}", _FEDERATION)
        elif component != "shovel" and entry.section not in seen:
            seen.add(entry.section)
            item = f"section {entry.section!r}"
            yield OmittedLine(entry.location, item, _STAYS, LineStatus.STAYS_AT_BROKER)


def _route(
    shovel: Shovel,
    kinds: Mapping[str, str],
    names: NameGenerator,
    name: str,
    omitted: list[OmittedLine],
) -> tuple[tuple[EndpointEntry, EndpointEntry], RouteEntry]:
    """Return the endpoints of a shovel and its route.

    Raises:
        LineError: no route can have it.
    """
    item = f"shovel {shovel.name!r}"
    pattern = _pattern(shovel, kinds)
    template = _template(shovel, pattern)
    for each in (shovel.source, shovel.target):
        if fault := find_brace_fault(each.queue + (each.key or "")):
            raise LineError(item, fault)
    if fault := find_route_fault(pattern, template, RABBITMQ):
        raise LineError(item, fault)
    source = _endpoint(shovel, "source", names, omitted)
    target = _endpoint(shovel, "target", names, omitted)
    lossy = "{" in pattern and "{" not in template
    notes = (LOSSY_NOTE,) if lossy else ()
    route = RouteEntry(
        name,
        shovel.location,
        source.name,
        pattern,
        (TargetEntry(target.name, template, notes, lossy),),
        notes=(f"{shovel.location}: shovel {shovel.name}",),
    )
    return (source, target), route


def _pattern(shovel: Shovel, kinds: Mapping[str, str]) -> str:
    """Return what the route reads.

    Raises:
        LineError: no subscription says it.
    """
    source, item = shovel.source, f"shovel {shovel.name!r}"
    if source.queue:
        return QUEUE + source.queue
    if not source.exchange:
        raise LineError(item, "it names neither src-queue nor src-exchange")
    kind = kinds.get(source.exchange) or "topic"
    if kind == "fanout":
        return "{rest...}"
    if kind not in {"topic", "direct"}:
        raise LineError(item, f"its src-exchange is of the type {kind!r}; bind a queue to it")
    if not source.key:
        raise LineError(item, "without src-exchange-key it gets only messages without a key")
    captured = with_captures(source.key)
    if kind == "direct" and captured != source.key:
        raise LineError(item, "its src-exchange-key has a word that only a topic exchange reads")
    return captured


def _template(shovel: Shovel, pattern: str) -> str:
    """Return the name to send to.

    Raises:
        LineError: the shovel sends each message on under its own key, and no route can.
    """
    target, item = shovel.target, f"shovel {shovel.name!r}"
    if target.queue:
        return QUEUE + target.queue
    if not target.exchange and not shovel.source.exchange:
        raise LineError(item, "it names neither dest-queue nor dest-exchange")
    if target.key is not None:
        return target.key
    if shovel.source.queue:
        raise LineError(item, _KEYS.format(queue=shovel.source.queue))
    return pattern


def with_captures(key: str) -> str:
    """Return a key of a binding with captures for its wildcards: `a.*.#` as `a.{a}.{rest...}`."""
    number = 0
    levels = []
    for level in key.split("."):
        if level == "*":
            number += 1
            levels.append(f"{{w{number}}}")
        else:
            levels.append("{rest...}" if level == "#" else level)
    return ".".join(levels)


def _endpoint(
    shovel: Shovel, role: str, names: NameGenerator, omitted: list[OmittedLine]
) -> EndpointEntry:
    """Return the endpoint of one end.

    Raises:
        LineError: it has no address that an endpoint can have.
    """
    is_source = role == "source"
    end = shovel.source if is_source else shovel.target
    name = names.make(shovel.name, role)
    lost: list[tuple[str, str]] = []
    try:
        variable = variable_of(name)
        settings = [
            *address_settings(end.uris, variable, lost, is_1_0=bool(end.known)),
            *_exchange(shovel, end),
        ]
    except AddressError as error:
        raise LineError(f"shovel {shovel.name!r}", str(error)) from error
    omitted += [shovel.omitted(item, reason) for item, reason in lost]
    if is_source and shovel.prefetch:
        settings.append(EndpointSetting("receive_window", min(shovel.prefetch, U16)))
    if shovel.delay:
        settings.append(
            EndpointSetting("backoff_max", shovel.delay, "The shovel's reconnect-delay.")
        )
    where = "where it reads" if is_source else "where it sends to"
    note = f"{shovel.location}: shovel {shovel.name}, {where}."
    kind = [EndpointSetting("kind", "amqp" if end.known else "rabbitmq")]
    if end.known:
        guess = _PRODUCT if end.known == OTHER_PRODUCT else ""
        kind.append(EndpointSetting("known", end.known, guess))
    return EndpointEntry(name, (*kind, *settings), (note,))


def _exchange(shovel: Shovel, end: ShovelEnd) -> Iterator[EndpointSetting]:
    exchange = "" if end.queue else end.exchange or shovel.source.exchange
    if exchange and exchange != TOPICS:
        yield EndpointSetting("exchange", exchange)


def _value(endpoint: EndpointEntry, key: str) -> object:
    return next((each.value for each in endpoint.settings if each.key == key), "")
