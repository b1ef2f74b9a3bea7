"""Bridges of mosquitto as endpoints and routes; passwords become references, never text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from gateway.dialects.mqtt import MQTT
from gateway.imports.checks import may_overlap, route_fault
from gateway.imports.document import Document, Endpoint, Names, Rule, Send
from gateway.imports.lines import Left, read_mosquitto
from gateway.imports.mosquitto_endpoints import local_settings, remote_settings
from gateway.imports.mosquitto_files import Broker, Connection, parse_mosquitto
from gateway.imports.remap import Direction, TopicLine, Way, inward, outward
from gateway.imports.scalars import prose

NOTES = (
    (
        "A bridge lives in the broker; the gateway is a client of both sides and needs the log-in"
        " of the local broker too. Take the connection out of mosquitto.conf when its routes run,"
        " or every message crosses twice."
    ),
    (
        "Loops: a bridge tells the other side that it is one and gets nothing of its own back. The"
        " gateway cuts a loop by the origin path, which needs MQTT 5 on both sides: set `version`"
        ' to "5" wherever the broker takes it.'
    ),
    (
        "Retained messages cross as retained (`retained: forward`), those kept from before once"
        " with a new subscription. Where the session is clean they come with every connection."
    ),
)
_BOTH = (
    "`both` is two routes. With 3.1.1 on a side, what went there comes back once before the origin"
    ' path can stop it; with version "5" on both sides nothing comes back.'
)


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
            pair = _endpoints(connection, broker, endpoint_names, left)
            made = _rules(connection, pair, route_names, broker.secrets, left)
            if made:
                endpoints += pair
                rules += made
            else:
                left.append(Left(connection.place, what, "none of its topics became a route"))
    return Document(
        command="mosquitto",
        files=(file,),
        endpoints=tuple(endpoints),
        rules=tuple(_with_overlaps(rules)),
        notes=NOTES if rules else (),
        left=tuple(sorted(left, key=lambda each: each.place)),
    )


def _endpoints(
    connection: Connection, broker: Broker, names: Names, left: list[Left]
) -> tuple[Endpoint, Endpoint]:
    """The local and the remote side."""
    remote = names.make(connection.name)
    local = names.make(remote, "local")
    said = prose(connection.above, broker.secrets)
    here = f"{connection.place}: connection {connection.name}"
    return (
        Endpoint(
            local,
            local_settings(connection, _variable(local), broker.port, left),
            (*said, f"{here}, the broker that this file is for."),
        ),
        Endpoint(
            remote,
            remote_settings(connection, _variable(remote), left),
            (f"{here}, the broker on the other side.",),
        ),
    )


def _variable(endpoint: str) -> str:
    """The beginning of the environment variables of an endpoint."""
    word = re.sub(r"[^A-Z0-9]+", "_", endpoint.upper())
    return word if word[0].isalpha() else f"BRIDGE_{word}"


def _rules(
    connection: Connection,
    pair: tuple[Endpoint, Endpoint],
    names: Names,
    secrets: Sequence[str],
    left: list[Left],
) -> list[Rule]:
    local, remote = pair[0].name, pair[1].name
    rules: list[Rule] = []
    for line in connection.topics:
        for direction, make, source, target in (
            (Direction.OUT, outward, local, remote),
            (Direction.IN, inward, remote, local),
        ):
            if line.direction in {direction, Direction.BOTH}:
                ends = (source, target)
                name = (connection.name, direction.value, *filter(None, (_short(line, make),)))
                rules += _rule(line, make(line), ends, (names, name), secrets, left)
    return rules


def _short(line: TopicLine, make: Callable[[TopicLine], Way]) -> str:
    """What tells the routes of a connection apart, readable in a log."""
    return make(line).pattern.strip("/$")


def _rule(  # noqa: PLR0913, PLR0917  # the parts of one route
    line: TopicLine,
    way: Way,
    ends: tuple[str, str],
    naming: tuple[Names, tuple[str, ...]],
    secrets: Sequence[str],
    left: list[Left],
) -> Iterable[Rule]:
    if fault := route_fault(way.pattern, way.template, MQTT, way.exclude):
        left.append(Left(line.place, f"the topic from {ends[0]!r} to {ends[1]!r}", fault))
        return
    names, parts = naming
    yield Rule(
        names.make(*parts),
        ends[0],
        way.pattern,
        (Send(ends[1], way.template),),
        way.exclude,
        tuple(_notes(line, way, secrets)),
    )


def _notes(line: TopicLine, way: Way, secrets: Sequence[str]) -> Iterable[str]:
    yield from prose(line.above, secrets)
    yield f"{line.place}: {line.direction.value}, QoS {line.qos}"
    if line.direction is Direction.BOTH:
        yield _BOTH
    if way.exclude:
        yield (
            f"{way.pattern!r} takes {way.exclude[0]!r} too, which has no prefix to change: that"
            " name is left out, where mosquitto puts the other prefix before the whole of it."
        )


def _with_overlaps(rules: Sequence[Rule]) -> Iterable[Rule]:
    """Every route, with a note when an earlier one takes some of the same messages."""
    for number, rule in enumerate(rules):
        same = [
            other.name
            for other in rules[:number]
            if other.endpoint == rule.endpoint
            and other.sends[0].endpoint == rule.sends[0].endpoint
            and may_overlap(other.pattern, rule.pattern, MQTT)
        ]
        note = f"Overlaps with {', '.join(same)}: what both take is sent by both."
        yield rule if not same else _noted(rule, note)


def _noted(rule: Rule, note: str) -> Rule:
    return Rule(
        rule.name, rule.endpoint, rule.pattern, rule.sends, rule.exclude, (*rule.notes, note)
    )
