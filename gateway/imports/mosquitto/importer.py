"""Import of the bridges of mosquitto; passwords become references."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gateway.dialects.base import parse_pattern
from gateway.dialects.systems.mqtt import MQTT
from gateway.imports.document import (
    LOSSY_NOTE,
    Document,
    EndpointEntry,
    NameGenerator,
    RouteEntry,
    TargetEntry,
    Value,
    gateway_name,
    quote_comments,
    variable_of,
)
from gateway.imports.mosquitto.config_file import (
    BridgeConnection,
    Include,
    MosquittoConfig,
    parse_config,
)
from gateway.imports.mosquitto.endpoints import done_anyway, local_settings, remote_settings
from gateway.imports.mosquitto.routes import RouteDraft, draft_routes
from gateway.imports.mosquitto.states import BridgeDraft, own_state, state_of, without_states
from gateway.imports.mosquitto.topic_lines import Direction, with_captures
from gateway.imports.route_checks import (
    find_brace_fault,
    find_route_fault,
    is_covered,
    may_overlap,
    with_refusals,
)
from gateway.imports.source_lines import OmittedLine, read_mosquitto
from gateway.model.overlap_index import candidate_pairs

REVERSED = {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT}


def find_echoes(drafts: Sequence[RouteDraft]) -> Iterator[OmittedLine]:
    """Report pairs of routes of which one returns messages of the other under a new name."""
    pairs = dict.fromkeys(pair for direction in REVERSED for pair in _echo_pairs(drafts, direction))
    for one, two in sorted(pairs):
        draft, line = drafts[one], drafts[two].lines[0]
        reason = (
            f"it returns messages of {draft.lines[0].location} under another name, and mosquitto"
            " returns nothing over the connection it came by; exclude them if they are unwanted"
        )
        yield line.omitted(reason)


def _echo_pairs(drafts: Sequence[RouteDraft], direction: Direction) -> Iterator[tuple[int, int]]:
    """Yield the positions of a route in `direction` and of one that returns its messages."""
    back = REVERSED[direction]
    sent, received = (
        [
            (pattern, at)
            for at, draft in enumerate(drafts)
            if draft.crosses(each)
            for pattern in parse_pattern(draft.pattern_at(back), MQTT)
        ]
        for each in (direction, back)
    )
    for one, two in candidate_pairs(sent, received):
        draft, other = drafts[one], drafts[two]
        if not draft.has_same_prefixes(other) and _returns(draft, other, back):
            yield one, two


def _returns(draft: RouteDraft, other: RouteDraft, back: Direction) -> bool:
    sent = draft.pattern_at(back)
    excluded = other.exclude if other.direction is back or back is Direction.OUT else ()
    return may_overlap(sent, other.pattern_at(back), MQTT) and not is_covered(sent, excluded, MQTT)


NOTES = (
    (
        "A bridge is part of the broker; the gateway is a client of both brokers and needs"
        " credentials for the local broker too. Remove the bridge from the broker when its routes"
        " run, or every message crosses twice."
    ),
    (
        "Loops: a bridge identifies itself as a bridge, and the other broker does not return its"
        " messages. The gateway receives its own messages through its subscription, and drops them"
        " by their origin path: a user property, which needs MQTT 5 on both sides."
    ),
    (
        "Retained messages cross as retained (`retained: forward`) from a broker that is read with"
        " version 5. With 3.1.1 a broker sends live messages without RETAIN, so they arrive"
        " unretained. Messages retained before the subscription cross once; with a clean session,"
        " at every connection."
    ),
)
RETAIN_CLEARED = (
    "A target with `set: {retained: false}` gets every message without RETAIN, as with"
    " `bridge_outgoing_retain false`."
)
MAX_TOPICS = 1_000  # of a connection; every pair is compared


def import_mosquitto(file: str, data: bytes, include: Include, site: str = "") -> Document:
    """Import all bridge connections of one mosquitto.conf; `include` reads an `include_dir`."""
    broker = parse_config(read_mosquitto(file, data), include)
    return bridged_document("mosquitto", (file, *broker.included), broker, site)


def bridged_document(
    command: str, files: Sequence[str], broker: MosquittoConfig, site: str
) -> Document:
    """Return the mapping of all connections of a broker."""
    omitted = list(broker.omitted)
    bridges: list[BridgeDraft] = []
    entries: list[RouteEntry] = []
    route_names = NameGenerator()
    for bridge in without_states([*_bridges(broker, site, omitted)], omitted):
        routes = [
            *_routes(bridge, route_names, broker.secrets, omitted),
            *_merging_routes(bridge, route_names, omitted),
        ]
        if routes:
            bridges.append(bridge)
            entries += routes
        else:
            reason = "none of its topics became a route"
            omitted.append(_omitted(bridge.connection, reason))
    endpoints = [each for bridge in bridges for each in bridge.pair]
    brokers = {each.name: each.broker for each in endpoints}
    checked, refused = with_refusals(entries, brokers, MQTT)
    omitted += refused
    used = {each.endpoint for each in checked if not each.refusal}
    if entries:
        omitted += broker.listeners.lost(broker.connections[0].location)
    return Document(
        command=command,
        gateway=gateway_name(site, *(each.name for each in broker.connections[:1])),
        files=tuple(files),
        endpoints=tuple(endpoints),
        routes=checked,
        states=tuple(
            state
            for bridge in bridges
            if not used.isdisjoint(each.name for each in bridge.pair)
            for state in bridge.states()
        ),
        notes=tuple(_head_notes(entries)),
        omitted=tuple(sorted(omitted, key=lambda each: each.location)),
    )


def _bridges(
    broker: MosquittoConfig, site: str, omitted: list[OmittedLine]
) -> Iterator[BridgeDraft]:
    """Yield a bridge for each connection with an address and topics."""
    names, state_names = NameGenerator(), NameGenerator()
    for connection in broker.connections:
        if "address" not in connection.options:
            omitted.append(_omitted(connection, "it has no address"))
        elif not connection.topics:
            omitted.append(_omitted(connection, "it has no readable topic"))
        else:
            drafts = tuple(_drafts(connection, omitted))
            pair = _endpoints(connection, broker, names, drafts, omitted)
            own = state_names.make(*filter(None, (site, pair[1].name)))
            yield BridgeDraft(
                connection, drafts, pair, state_of(connection, own_state(own), omitted)
            )


def _omitted(connection: BridgeConnection, reason: str) -> OmittedLine:
    return OmittedLine(connection.location, f"connection {connection.name!r}", reason)


def _head_notes(entries: Sequence[RouteEntry]) -> Iterator[str]:
    if entries:
        yield from NOTES
    if any(target.headers for entry in entries for target in entry.targets):
        yield RETAIN_CLEARED


def _drafts(connection: BridgeConnection, omitted: list[OmittedLine]) -> list[RouteDraft]:
    for line in connection.topics[MAX_TOPICS:]:
        reason = f"a connection of more than {MAX_TOPICS} topics is not read to its end"
        omitted.append(line.omitted(reason))
    topics = [each for each in connection.topics[:MAX_TOPICS] if not each.name]
    drafts, partly_replaced = draft_routes(topics)
    omitted += [*partly_replaced, *find_echoes(drafts)]
    return drafts


def _endpoints(
    connection: BridgeConnection,
    broker: MosquittoConfig,
    names: NameGenerator,
    drafts: Sequence[RouteDraft],
    omitted: list[OmittedLine],
) -> tuple[EndpointEntry, EndpointEntry]:
    """Return the endpoints of the local and of the remote broker."""
    remote = names.make(connection.name)
    local = names.make(remote, "local")
    quoted = quote_comments(connection.comments, broker.secrets)
    here = f"{connection.location}: connection {connection.name}"
    both = any(draft.direction is Direction.BOTH for draft in drafts)
    own = local_settings(connection, variable_of(local), broker, omitted, both=both)
    other = remote_settings(connection, variable_of(remote), omitted, both=both)
    return (
        EndpointEntry(local, own, (*quoted, f"{here}, the broker of this file.")),
        EndpointEntry(
            remote, other, (f"{here}, the broker on the other side.", *done_anyway(connection))
        ),
    )


def _routes(
    bridge: BridgeDraft, names: NameGenerator, secrets: Sequence[str], omitted: list[OmittedLine]
) -> Iterator[RouteEntry]:
    clears: Mapping[str, Value] = {}
    if bridge.connection.is_set("bridge_outgoing_retain", "false"):
        clears = {"set": {"retained": False}}
    for draft in bridge.drafts:
        line = draft.lines[0]
        ends = (bridge.pair[0].name, bridge.pair[1].name)
        source, target = reversed(ends) if draft.direction is Direction.IN else ends
        pattern, template = draft.source_pattern, draft.target_template
        exclude = (*draft.exclude, *draft.states)
        if fault := find_route_fault(pattern, template, MQTT, exclude):
            item = f"the topic from {source!r} to {target!r}"
            omitted.append(OmittedLine(line.location, item, fault))
            continue
        short = draft.pattern_at(draft.direction).strip("/$")
        yield RouteEntry(
            names.make(*filter(None, (bridge.connection.name, draft.direction.value, short))),
            line.location,
            source,
            pattern,
            (TargetEntry(target, template, headers=clears if target == ends[1] else {}),),
            exclude,
            tuple(_notes(draft, secrets)),
            both=draft.direction is Direction.BOTH,
        )


def _merging_routes(
    bridge: BridgeDraft, names: NameGenerator, omitted: list[OmittedLine]
) -> Iterator[RouteEntry]:
    """Yield the routes of topics whose messages all get one name."""
    connection, pair = bridge.connection, bridge.pair
    for line in connection.topics[:MAX_TOPICS]:
        if not line.name:
            continue
        source, target = pair if line.direction is Direction.OUT else reversed(pair)
        pattern = with_captures(line.pattern)
        if fault := find_brace_fault(line.name) or find_route_fault(pattern, line.name, MQTT):
            omitted.append(line.omitted(fault))
            continue
        lossy = pattern != line.pattern
        notes = (LOSSY_NOTE,) if lossy else ()
        yield RouteEntry(
            names.make(connection.name, line.direction.value, line.pattern.strip("/$")),
            line.location,
            source.name,
            pattern,
            (TargetEntry(target.name, line.name, notes, lossy),),
            notes=(f"{line.location}: {line.direction.value}, QoS {line.qos}",),
        )


def _notes(draft: RouteDraft, secrets: Sequence[str]) -> Iterable[str]:
    for line in draft.lines:
        yield from quote_comments(line.comments, secrets)
        yield f"{line.location}: {line.direction.value}, QoS {line.qos}"
    if draft.direction is Direction.BOTH:
        directions = {line.direction for line in draft.lines}
        if Direction.BOTH not in directions:
            yield "One line sends out what another takes in: one route, to avoid a loop."
        yield "The reverse route is derived; neither returns the messages of the other."
    if draft.exclude:
        yield "Excluded names cross by other topics, once, as in mosquitto."
    if draft.states:
        yield "Excluded names of `state` do not cross: each broker has its own."
    if any(line.pattern == "#" and (line.local or line.remote) for line in draft.lines):
        yield (
            "`#` behind a prefix also matches the prefix without its slash. The route excludes that"
            " name, and mosquitto sends it with the other prefix in front."
        )
