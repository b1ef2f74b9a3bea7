"""Import of the bridges of an EMS server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gateway.dialects.systems.ems import EMS
from gateway.errors import GatewayError
from gateway.imports.document import (
    LOSSY_NOTE,
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
from gateway.imports.ems.admin_scripts import is_script, parse_script
from gateway.imports.ems.bridge_selection import SelectedBridge, has_wildcards, select_bridges
from gateway.imports.ems.exchanged_topics import TopicExchange, find_exchanged_topics
from gateway.imports.ems.server_json import parse_server
from gateway.imports.json_files import read_json
from gateway.imports.route_checks import with_refusals
from gateway.imports.source_lines import OmittedLine, ParsedFile, read_ems

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
        notes.append(LOSSY_NOTE)
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
    "Remove a bridge from the server when its route runs, or its target receives two copies.",
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
    """Import files of a server and scripts of its administration.

    Raises:
        GatewayError: a file is none of them, or is not JSON.
    """
    read = _Read()
    for name, data in files:
        read.file(name, data)
    exchange, untied = find_exchanged_topics(read.topics, read.transports)
    omitted = [*read.omitted, *untied]
    selected = select_bridges(read.bridges, omitted)
    entries = route_entries(selected, exchange, read.secrets)
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


class _Read:
    """Content of all files. Mutable."""

    def __init__(self) -> None:
        self.bridges: list[config_files.Bridge] = []
        self.topics: list[config_files.Topic] = []
        self.transports: list[config_files.Transport] = []
        self.omitted: list[OmittedLine] = []
        self.secrets: list[str] = []

    def file(self, name: str, data: bytes) -> None:
        """Read a file of any kind.

        Raises:
            GatewayError: it is none of them.
        """
        short = name.replace("\\", "/").rpartition("/")[2]
        begins = data.lstrip().startswith(b"{") and not short.lower().endswith(".conf")
        if begins or short.lower().endswith(".json"):
            self._json(name, data)
            return
        parsed = read_ems(name, data)
        kind = "script" if is_script(parsed) else config_files.kind_of(short, parsed)
        if kind is None:
            raise GatewayError(
                f"{name}: is none of bridges.conf, topics.conf and transports.conf, no tibemsd.json"
                " and no script of tibemsadmin; name the file after what it is"
            )
        if kind == "topics":
            parsed = read_ems(name, data, comma_joins=True)
        self._parsed(kind, parsed)

    def _parsed(self, kind: str, parsed: ParsedFile) -> None:
        self.omitted += parsed.omitted
        self.secrets += config_files.secrets_in([parsed])
        if kind == "script":
            script = parse_script(parsed)
            self.bridges += script.bridges
            self.topics += script.topics
            self.omitted += script.omitted
        elif kind == "bridges":
            bridges, omitted = config_files.parse_bridges(parsed)
            self.bridges += bridges
            self.omitted += omitted
        elif kind == "topics":
            topics, omitted = config_files.parse_topics(parsed)
            self.topics += topics
            self.omitted += omitted
        else:
            transports, omitted = config_files.parse_transports(parsed)
            self.transports += transports
            self.omitted += omitted

    def _json(self, name: str, data: bytes) -> None:
        server = parse_server(read_json(name, data))
        self.bridges += server.bridges
        self.topics += server.topics
        self.transports += server.transports
        self.omitted += server.omitted
