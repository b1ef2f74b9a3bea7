"""Parser of mosquitto.conf: bridge connections, and options of the broker itself."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gateway.imports.mosquitto.options import (
    BRIDGE_OPTIONS,
    BROKER_OPTIONS,
    OPTION_ALIASES,
    SECRET_OPTIONS,
)
from gateway.imports.mosquitto.topic_lines import TopicError, TopicLine, parse_topic
from gateway.imports.source_lines import (
    ContentLine,
    LineStatus,
    OmittedLine,
    ParsedFile,
    SourceLine,
)

LISTENERS = ("listener", "port")


@dataclass(frozen=True, slots=True)
class Option:
    """Bridge option with its value."""

    location: SourceLine
    name: str  # as written
    value: str


@dataclass(slots=True)
class BridgeConnection:
    """Bridge connection.

    Mutable: the parser adds options and topics.
    """

    location: SourceLine
    name: str
    comments: tuple[str, ...] = ()
    options: dict[str, Option] = field(default_factory=dict)
    topics: list[TopicLine] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MosquittoConfig:
    """Content of the file: the bridges, the port of the broker itself, and all secrets."""

    connections: tuple[BridgeConnection, ...]
    port: int
    omitted: tuple[OmittedLine, ...]
    secrets: tuple[str, ...]


def parse_config(parsed: ParsedFile) -> MosquittoConfig:
    """Parse all lines; a line that is not part of a connection is omitted with a reason."""
    connections: dict[str, BridgeConnection] = {}
    omitted = list(parsed.omitted)
    secrets: list[str] = []
    current: BridgeConnection | None = None
    for line in parsed.lines:
        written, _, value = line.text.partition(" ")
        name, value = OPTION_ALIASES.get(written, written), value.strip(" ")
        if name in SECRET_OPTIONS:
            secrets.append(value)
        if name == "connection":
            current = _connection(line, value, connections, omitted)
        elif name in BRIDGE_OPTIONS or name == "topic":
            _add_option(line, Option(line.location, written, value), current, omitted)
        else:
            omitted.append(_left(line.location, written))
    ports = [_port(line) for line in parsed.lines if line.text.split(" ")[0] in LISTENERS]
    port = next((port for port in ports if port), 0)
    return MosquittoConfig(tuple(connections.values()), port, tuple(omitted), tuple(secrets))


def _connection(
    line: ContentLine,
    name: str,
    connections: dict[str, BridgeConnection],
    omitted: list[OmittedLine],
) -> BridgeConnection | None:
    """Return the connection that begins at `line`; None when it is not legal."""
    if not name:
        omitted.append(OmittedLine(line.location, "this connection", "it has no name"))
        return None
    if name in connections:
        first = connections[name].location.line
        reason = f"mosquitto refuses a second one; the first is in line {first}"
        omitted.append(OmittedLine(line.location, f"connection {name!r}", reason))
        return None
    connections[name] = BridgeConnection(line.location, name, line.comments)
    return connections[name]


def _add_option(
    line: ContentLine,
    option: Option,
    connection: BridgeConnection | None,
    omitted: list[OmittedLine],
) -> None:
    name = OPTION_ALIASES.get(option.name, option.name)
    item = f"option {option.name!r}"
    if connection is None:
        reason = "it is a bridge option, and no readable connection is above it"
        omitted.append(OmittedLine(line.location, item, reason))
    elif name == "topic":
        try:
            connection.topics.append(parse_topic(option.value, line.location, line.comments))
        except TopicError as error:
            omitted.append(
                OmittedLine(line.location, f"a topic of connection {connection.name!r}", str(error))
            )
    elif not option.value:
        omitted.append(OmittedLine(line.location, item, "it has no value"))
    elif name in connection.options:
        reason = f"it repeats line {connection.options[name].location.line}"
        omitted.append(OmittedLine(line.location, item, reason))
    else:
        connection.options[name] = option


def _left(location: SourceLine, written: str) -> OmittedLine:
    name = re.split(r"[^\w.]", written, maxsplit=1)[0]  # `password=x` is one word, and a secret
    item = f"option {name!r}"
    if name == "include_dir":
        return OmittedLine(
            location, item, "the files in that folder are not read; import each of them separately"
        )
    if name in BROKER_OPTIONS or name.startswith(("auth_opt_", "plugin_opt_")):
        return OmittedLine(
            location,
            item,
            "it is an option of the broker and not of a bridge",
            LineStatus.STAYS_AT_BROKER,
        )
    return OmittedLine(location, item, "it is not a known option of mosquitto.conf")


def _port(line: ContentLine) -> int:
    word = line.text.split()[1:2]
    port = int(word[0]) if word and word[0].isdecimal() and len(word[0]) < 6 else 0  # noqa: PLR2004
    return port if port <= 65_535 else 0  # noqa: PLR2004  # the highest port
