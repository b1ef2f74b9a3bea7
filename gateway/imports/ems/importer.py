"""Bridges of an EMS server as a mapping; it says nothing about the server that no file said."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.dialects.systems.ems import EMS
from gateway.errors import GatewayError
from gateway.imports.document import Document, Endpoint, Setting
from gateway.imports.ems.config_files import (
    kind_of,
    parse_bridges,
    parse_topics,
    parse_transports,
    secrets_in,
)
from gateway.imports.ems.routes import SERVER, rules_of
from gateway.imports.ems.selection import carried_of
from gateway.imports.ems.transports import make_ties
from gateway.imports.lines import Reading, read_ems
from gateway.imports.verify import refused

NOTES = (
    (
        "A bridge copies inside the server's transaction and needs nobody connected. A route takes"
        " the copy as a client: the durable subscription keeps what arrives while the gateway is"
        " away, and the message is delivered at least once."
    ),
    (
        "Bridges are not transitive: the server does not send on over a second bridge what came"
        " over a first, and routes do. Two topics bridged to each other are one route in both"
        " directions, which sends nothing back; other chains are in the list at the end."
    ),
    "Take a bridge out of bridges.conf when its route runs, or its target gets two copies.",
)

ENDPOINT = Endpoint(
    SERVER,
    (
        Setting("kind", "jms"),
        Setting("dialect", SERVER),
        Setting("urls", ("tcp://localhost:7222",), "The files do not say where the server is."),
        Setting("client_id", f"gateway-{SERVER}"),
        Setting(
            "durable",
            "gateway-{pattern}",
            "Without it, what arrives while the gateway is away is lost.",
        ),
    ),
    (
        (
            "The EMS server. Give the jars of its client in `classpath`, and `username` with"
            " `password` as ${env:...} when it asks for them."
        ),
    ),
)


def import_ems(files: Sequence[tuple[str, bytes]]) -> Document:
    """The mapping of one bridges.conf, with the topics.conf and transports.conf beside it.

    Raises:
        GatewayError: a file is none of the three, or two are the same.
    """
    readings = _sorted(files)
    bridges, left = parse_bridges(readings["bridges"])
    topics, more = parse_topics(readings["topics"])
    transports, others = parse_transports(readings["transports"])
    ties, untied = make_ties(topics, transports)
    left += [*more, *others, *untied]
    left += [each for reading in readings.values() for each in reading.left]
    carried = carried_of(bridges, left)
    rules = rules_of(carried, ties, secrets_in(readings.values()))
    left += refused(rules, {SERVER: SERVER}, EMS)
    return Document(
        command="ems",
        files=tuple(name for name, _ in files),
        endpoints=(ENDPOINT,) if rules else (),
        rules=rules,
        notes=NOTES if rules else (),
        remarks=tuple(ties.remarks()),
        left=tuple(sorted(left, key=lambda each: each.place)),
    )


def _sorted(files: Sequence[tuple[str, bytes]]) -> dict[str, Reading]:
    found: dict[str, Reading] = {}
    for name, data in files:
        kind = kind_of(name.replace("\\", "/").rpartition("/")[2], read_ems(name, data))
        if kind is None:
            reason = "is none of bridges.conf, topics.conf and transports.conf"
            raise GatewayError(f"{name}: {reason}; name the file after what it is")
        if kind in found:
            raise GatewayError(f"{name}: there is another {kind}.conf before it; give one of each")
        found[kind] = read_ems(name, data, comma_joins=kind == "topics")
    return {kind: found.get(kind, Reading(())) for kind in ("bridges", "topics", "transports")}
