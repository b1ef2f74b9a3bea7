"""Import of the bridges of an EMS server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gateway.dialects.systems.ems import EMS
from gateway.errors import GatewayError
from gateway.imports.document import (
    Document,
    EndpointEntry,
    EndpointSetting,
    NameGenerator,
    RouteEntry,
    TargetEntry,
    gateway_name,
    quote_comments,
)
from gateway.imports.ems import config_files
from gateway.imports.ems.bridge_selection import SelectedBridge, has_wildcards, select_bridges
from gateway.imports.ems.exchanged_topics import TopicExchange, find_exchanged_topics
from gateway.imports.route_checks import with_refusals
from gateway.imports.source_lines import ParsedFile, read_ems

ENDPOINT_NAME = "ems"


def route_entries(
    selected: Sequence[SelectedBridge], exchange: TopicExchange, secrets: Sequence[str]
) -> tuple[RouteEntry, ...]:
    names = NameGenerator()
    pairs = {(each.bridge.name, target.address) for each in selected for target in each.targets}
    senders = Counter(address for _, address in pairs)
    return tuple(
        RouteEntry(
            names.make(each.bridge.name),
            each.target.location,
            ENDPOINT_NAME,
            each.bridge.address,
            tuple(
                _target_entry(target, each, senders, exchange, secrets) for target in each.targets
            ),
            each.exclude,
            (*_notes(each, secrets), *exchange.source_notes(each.bridge.name)),
            each.target.selector,
            both=each.reverse is not None,
        )
        for each in selected
    )


def _target_entry(
    target: config_files.BridgeTarget,
    each: SelectedBridge,
    senders: Counter[str],
    exchange: TopicExchange,
    secrets: Sequence[str],
) -> TargetEntry:
    notes = [*quote_comments(target.comments, secrets), str(target.location)]
    lossy = has_wildcards(each.bridge.name) or senders[target.address] > 1
    if lossy:
        notes.append("Different names become this one, as over the bridge.")
    if target.kind == config_files.TOPIC:
        notes += exchange.target_notes(target.name)
    return TargetEntry(ENDPOINT_NAME, target.address, tuple(notes), lossy)


def _notes(each: SelectedBridge, secrets: Sequence[str]) -> Iterator[str]:
    bridge = each.bridge
    yield from quote_comments(bridge.comments, secrets)
    yield f"{bridge.location}: [{bridge.kind}:{bridge.name}]"
    if each.reverse is not None:
        yield f"{each.reverse.location} is its reverse; neither returns messages of the other."
    own = {target.address for target in each.targets}.intersection(each.exclude)
    if own:
        yield "Its own target is excluded from the source, so that the route does not loop."
    if set(each.exclude) - own:
        yield "Names that earlier bridges send to this target are excluded."


NOTES = (
    (
        "A bridge copies messages inside the server's transaction, without any client. A route"
        " receives the copy as a client: the durable subscription keeps messages while the gateway"
        " is disconnected, and each message is delivered at least once."
    ),
    (
        "Bridges are not transitive: the server does not forward over a second bridge a message"
        " that came over a first one, and routes do. Two topics bridged to each other become one"
        " route in both directions, which returns nothing; other chains are in the list at the end."
    ),
    "Remove a bridge from bridges.conf when its route runs, or its target receives two copies.",
)

NO_ADDRESS = "The imported files do not contain the address of the server."
JARS = "The jar files of the client, such as /opt/tibco/ems/10.2/lib/*.jar."
DURABLE = "Without it, messages are lost while the gateway is disconnected."


def endpoint_entry(gateway: str) -> EndpointEntry:
    return EndpointEntry(
        ENDPOINT_NAME,
        (
            EndpointSetting("kind", "jms"),
            EndpointSetting("dialect", ENDPOINT_NAME),
            EndpointSetting("urls", ("tcp://localhost:7222",), NO_ADDRESS),
            EndpointSetting("classpath", ("${env:EMS_CLASSPATH}",), JARS),
            EndpointSetting("client_id", f"{gateway}-{ENDPOINT_NAME}"),
            EndpointSetting("durable", "gateway-{pattern}", DURABLE),
        ),
        (
            (
                "The EMS server. Add `username` and `password` (as ${env:...}) when the server"
                " requires them."
            ),
        ),
    )


def import_ems(files: Sequence[tuple[str, bytes]], site: str = "") -> Document:
    """Import bridges.conf, topics.conf and transports.conf, each of them optional.

    Raises:
        GatewayError: a file is none of the three, or one of them is given twice.
    """
    parsed_files = _sorted(files)
    bridges, omitted = config_files.parse_bridges(parsed_files["bridges"])
    topics, more = config_files.parse_topics(parsed_files["topics"])
    transports, others = config_files.parse_transports(parsed_files["transports"])
    exchange, untied = find_exchanged_topics(topics, transports)
    omitted += [*more, *others, *untied]
    omitted += [each for parsed in parsed_files.values() for each in parsed.omitted]
    selected = select_bridges(bridges, omitted)
    entries = route_entries(selected, exchange, config_files.secrets_in(parsed_files.values()))
    entries, refused = with_refusals(entries, {ENDPOINT_NAME: ENDPOINT_NAME}, EMS)
    omitted += refused
    gateway = gateway_name(site, ENDPOINT_NAME)
    return Document(
        command="ems",
        gateway=gateway,
        files=tuple(name for name, _ in files),
        endpoints=(endpoint_entry(gateway),) if entries else (),
        routes=entries,
        notes=NOTES if entries else (),
        remarks=tuple(exchange.remarks()),
        omitted=tuple(sorted(omitted, key=lambda each: each.location)),
    )


def _sorted(files: Sequence[tuple[str, bytes]]) -> dict[str, ParsedFile]:
    found: dict[str, ParsedFile] = {}
    for name, data in files:
        parsed = read_ems(name, data)
        kind = config_files.kind_of(name.replace("\\", "/").rpartition("/")[2], parsed)
        if kind is None:
            reason = "is none of bridges.conf, topics.conf and transports.conf"
            raise GatewayError(f"{name}: {reason}; name the file after what it is")
        if kind in found:
            raise GatewayError(f"{name}: there is another {kind}.conf before it; give one of each")
        found[kind] = read_ems(name, data, comma_joins=True) if kind == "topics" else parsed
    return {kind: found.get(kind, ParsedFile(())) for kind in ("bridges", "topics", "transports")}
