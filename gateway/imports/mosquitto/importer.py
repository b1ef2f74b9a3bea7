"""Bridges of mosquitto as endpoints and routes; passwords become references, never text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gateway.dialects.systems.mqtt import MQTT
from gateway.imports.checks import route_fault
from gateway.imports.document import Document, Endpoint, Names, Rule, Send
from gateway.imports.lines import Left, read_mosquitto
from gateway.imports.mosquitto.config_files import Broker, Connection, parse_mosquitto
from gateway.imports.mosquitto.echoes import echoes
from gateway.imports.mosquitto.endpoints import local_settings, remote_settings
from gateway.imports.mosquitto.routes import Part, parts_of
from gateway.imports.mosquitto.topic_lines import Direction
from gateway.imports.verify import refused
from gateway.imports.yaml_text import prose

NOTES = (
    (
        "A bridge lives in the broker; the gateway is a client of both sides and needs the log-in"
        " of the local broker too. Take the connection out of mosquitto.conf when its routes run,"
        " or every message crosses twice."
    ),
    (
        "Loops: a bridge tells the other side that it is one and gets nothing of its own back. The"
        " gateway gets what it has published by its own subscription, and drops what its origin"
        " path says has come this way: a user property, which needs MQTT 5 on both sides."
    ),
    (
        "Retained messages cross as retained (`retained: forward`), those kept from before once"
        " with a new subscription. Where the session is clean they come with every connection."
    ),
)
MOST_TOPICS = 1_000  # of a connection; each is compared with every other


def import_mosquitto(file: str, data: bytes) -> Document:
    """The mapping of all bridge connections of one mosquitto.conf."""
    broker = parse_mosquitto(read_mosquitto(file, data))
    left = list(broker.left)
    endpoints: list[Endpoint] = []
    rules: list[Rule] = []
    endpoint_names, route_names = Names(), Names()
    for connection in broker.connections:
        what = f"connection {connection.name!r}"
        if "address" not in connection.options:
            left.append(Left(connection.place, what, "it has no address"))
        elif not connection.topics:
            left.append(Left(connection.place, what, "it has no topic that could be read"))
        else:
            parts = _parts(connection, left)
            pair = _endpoints(connection, broker, endpoint_names, parts, left)
            made = _rules(connection, parts, pair, route_names, broker.secrets, left)
            if made:
                endpoints += pair
                rules += made
            else:
                left.append(Left(connection.place, what, "none of its topics became a route"))
    left += refused(rules, {each.name: _broker(each) for each in endpoints}, MQTT)
    return Document(
        command="mosquitto",
        files=(file,),
        endpoints=tuple(endpoints),
        rules=tuple(rules),
        notes=NOTES if rules else (),
        left=tuple(sorted(left, key=lambda each: each.place)),
    )


def _parts(connection: Connection, left: list[Left]) -> list[Part]:
    for line in connection.topics[MOST_TOPICS:]:
        reason = f"a connection of more than {MOST_TOPICS} topics is not read to its end"
        left.append(Left(line.place, f"the topic {line.pattern!r}", reason))
    parts, undone = parts_of(connection.topics[:MOST_TOPICS])
    left += [*undone, *echoes(parts)]
    return parts


def _broker(endpoint: Endpoint) -> str:
    """The same text for two endpoints of one broker."""
    values = {setting.key: str(setting.value) for setting in endpoint.settings}
    return f"{values['host']}:{values['port']}"


def _endpoints(
    connection: Connection,
    broker: Broker,
    names: Names,
    parts: Sequence[Part],
    left: list[Left],
) -> tuple[Endpoint, Endpoint]:
    """The local and the remote side."""
    remote = names.make(connection.name)
    local = names.make(remote, "local")
    said = prose(connection.above, broker.secrets)
    here = f"{connection.place}: connection {connection.name}"
    both = any(part.direction is Direction.BOTH for part in parts)
    return (
        Endpoint(
            local,
            local_settings(connection, _variable(local), broker.port, left, both=both),
            (*said, f"{here}, the broker that this file is for."),
        ),
        Endpoint(
            remote,
            remote_settings(connection, _variable(remote), left, both=both),
            (f"{here}, the broker on the other side.",),
        ),
    )


def _variable(endpoint: str) -> str:
    """The beginning of the environment variables of an endpoint."""
    word = re.sub(r"[^A-Z0-9]+", "_", endpoint.upper())
    return word if word[0].isalpha() else f"BRIDGE_{word}"


def _rules(  # noqa: PLR0913, PLR0917  # what the routes of a connection are made of
    connection: Connection,
    parts: Sequence[Part],
    pair: tuple[Endpoint, Endpoint],
    names: Names,
    secrets: Sequence[str],
    left: list[Left],
) -> list[Rule]:
    rules: list[Rule] = []
    for part in parts:
        line = part.lines[0]
        ends = (pair[0].name, pair[1].name)
        source, target = reversed(ends) if part.direction is Direction.IN else ends
        if fault := route_fault(part.taken, part.given, MQTT, part.exclude):
            left.append(Left(line.place, f"the topic from {source!r} to {target!r}", fault))
            continue
        short = part.side(part.direction).strip("/$")
        rules.append(
            Rule(
                names.make(*filter(None, (connection.name, part.direction.value, short))),
                line.place,
                source,
                part.taken,
                (Send(target, part.given),),
                part.exclude,
                tuple(_notes(part, secrets)),
                both=part.direction is Direction.BOTH,
            )
        )
    return rules


def _notes(part: Part, secrets: Sequence[str]) -> Iterable[str]:
    for line in part.lines:
        yield from prose(line.above, secrets)
        yield f"{line.place}: {line.direction.value}, QoS {line.qos}"
    if part.direction is Direction.BOTH:
        directions = {line.direction for line in part.lines}
        if Direction.BOTH not in directions:
            yield "What one line takes out another takes in: one route, so that nothing goes round."
        yield "The way back is derived; what came by one way does not return by the other."
    if part.exclude:
        yield "What it excludes crosses by other topics, once, as mosquitto sends it."
    if any(line.pattern == "#" and (line.local or line.remote) for line in part.lines):
        yield (
            "`#` behind a prefix takes the prefix without its slash too, which has nothing to"
            " change: that name is left out, where mosquitto puts the other prefix before it."
        )
