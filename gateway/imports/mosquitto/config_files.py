"""mosquitto.conf as values: bridge connections, and the options that are the broker's own."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gateway.imports.lines import Fate, Left, Line, Place, Reading
from gateway.imports.mosquitto.options import ALIASES, BRIDGE, BROKER, SECRETS
from gateway.imports.mosquitto.topic_lines import TopicError, TopicLine, parse_topic

LISTENERS = ("listener", "port")


@dataclass(frozen=True, slots=True)
class Option:
    """The value of a bridge option, and where it stands."""

    place: Place
    name: str  # as it is written
    value: str


@dataclass(slots=True)
class Connection:
    """A bridge; mutable while its lines are read."""

    place: Place
    name: str
    above: tuple[str, ...] = ()
    options: dict[str, Option] = field(default_factory=dict)
    topics: list[TopicLine] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Broker:
    """All of the file: the bridges, the port of the broker itself, and every secret in it."""

    connections: tuple[Connection, ...]
    port: int
    left: tuple[Left, ...]
    secrets: tuple[str, ...]


def parse_mosquitto(reading: Reading) -> Broker:
    """Every line becomes part of a connection or of what is left."""
    connections: dict[str, Connection] = {}
    left = list(reading.left)
    secrets: list[str] = []
    open_one: Connection | None = None
    for line in reading.lines:
        written, _, value = line.text.partition(" ")
        name, value = ALIASES.get(written, written), value.strip(" ")
        if name in SECRETS:
            secrets.append(value)
        if name == "connection":
            open_one = _connection(line, value, connections, left)
        elif name in BRIDGE or name == "topic":
            _take(line, Option(line.place, written, value), open_one, left)
        else:
            left.append(_left(line.place, written))
    ports = [_port(line) for line in reading.lines if line.text.split(" ")[0] in LISTENERS]
    port = next((port for port in ports if port), 0)
    return Broker(tuple(connections.values()), port, tuple(left), tuple(secrets))


def _connection(
    line: Line, name: str, connections: dict[str, Connection], left: list[Left]
) -> Connection | None:
    """The connection that begins here; None when what follows belongs to none."""
    if not name:
        left.append(Left(line.place, "this connection", "it has no name"))
        return None
    if name in connections:
        reason = f"mosquitto refuses a second; the first is in line {connections[name].place.line}"
        left.append(Left(line.place, f"connection {name!r}", reason))
        return None
    connections[name] = Connection(line.place, name, line.above)
    return connections[name]


def _take(line: Line, option: Option, connection: Connection | None, left: list[Left]) -> None:
    name = ALIASES.get(option.name, option.name)
    what = f"option {option.name!r}"
    if connection is None:
        reason = "it belongs to a bridge, and no connection above it is read"
        left.append(Left(line.place, what, reason))
    elif name == "topic":
        try:
            connection.topics.append(parse_topic(option.value, line.place, line.above))
        except TopicError as error:
            left.append(Left(line.place, f"a topic of connection {connection.name!r}", str(error)))
    elif not option.value:
        left.append(Left(line.place, what, "it has no value"))
    elif name in connection.options:
        reason = f"it stands in line {connection.options[name].place.line} too"
        left.append(Left(line.place, what, reason))
    else:
        connection.options[name] = option


def _left(place: Place, written: str) -> Left:
    name = re.split(r"[^\w.]", written, maxsplit=1)[0]  # `password=x` is one word, and a secret
    what = f"option {name!r}"
    if name == "include_dir":
        return Left(place, what, "the files in that folder are not read; import each by itself")
    if name in BROKER or name.startswith(("auth_opt_", "plugin_opt_")):
        return Left(place, what, "it is the broker's own and no part of a bridge", Fate.STAYS)
    return Left(place, what, "mosquitto.conf has no such option that we know of")


def _port(line: Line) -> int:
    word = line.text.split()[1:2]
    port = int(word[0]) if word and word[0].isdecimal() and len(word[0]) < 6 else 0  # noqa: PLR2004
    return port if port <= 65_535 else 0  # noqa: PLR2004  # the highest port
