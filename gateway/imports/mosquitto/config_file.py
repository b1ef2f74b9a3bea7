"""Parser of mosquitto.conf: bridge connections, and options of the broker itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.errors import GatewayError
from gateway.imports.mosquitto.options import (
    BRIDGE_OPTIONS,
    OPTION_ALIASES,
    SECRET_OPTIONS,
    omitted_option,
)
from gateway.imports.mosquitto.topic_lines import TopicError, TopicLine, parse_topic
from gateway.imports.source_lines import (
    ContentLine,
    OmittedLine,
    ParsedFile,
    SourceLine,
    read_mosquitto,
)

Include: TypeAlias = Callable[[str], Sequence[tuple[str, bytes]]]  # names and content, in order
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
    """Content of the file: the bridges, the port of the broker itself, and all secrets.

    `log_in_required`: the line that refuses clients without a user. `included`: further files.
    """

    connections: tuple[BridgeConnection, ...]
    port: int
    omitted: tuple[OmittedLine, ...]
    secrets: tuple[str, ...]
    log_in_required: SourceLine | None = None
    included: tuple[str, ...] = ()


def no_folders(folder: str) -> Sequence[tuple[str, bytes]]:
    """Refuse to read an `include_dir`.

    Raises:
        GatewayError: always.
    """
    raise GatewayError(f"{folder}: is not read here; import its files separately")


def parse_config(parsed: ParsedFile, include: Include = no_folders) -> MosquittoConfig:
    """Parse all lines; a line that is not part of a connection is omitted with a reason."""
    connections: dict[str, BridgeConnection] = {}
    parsed, included = _with_included(parsed, include)
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
            omitted.append(omitted_option(line.location, written))
    ports = [_port(line) for line in parsed.lines if line.text.split(" ")[0] in LISTENERS]
    refusals = [line for line in parsed.lines if line.text.split() == ["allow_anonymous", "false"]]
    return MosquittoConfig(
        tuple(connections.values()),
        next((port for port in ports if port), 0),
        tuple(omitted),
        tuple(secrets),
        refusals[-1].location if refusals else None,
        included,
    )


def _with_included(parsed: ParsedFile, include: Include) -> tuple[ParsedFile, tuple[str, ...]]:
    """Return the lines with those of each `include_dir` in its place, and the files of these."""
    lines: list[ContentLine] = []
    omitted, files = list(parsed.omitted), list[str]()
    for line in parsed.lines:
        name, _, folder = line.text.partition(" ")
        if name != "include_dir":
            lines.append(line)
            continue
        try:
            found = include(folder.strip())
        except GatewayError as error:
            omitted.append(OmittedLine(line.location, "option 'include_dir'", str(error)))
            continue
        for file, data in found:
            inner = read_mosquitto(file, data)
            lines += inner.lines
            omitted += inner.omitted
            files.append(file)
    return ParsedFile(tuple(lines), tuple(omitted)), tuple(files)


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


def _port(line: ContentLine) -> int:
    word = line.text.split()[1:2]
    port = int(word[0]) if word and word[0].isdecimal() and len(word[0]) < 6 else 0  # noqa: PLR2004
    return port if port <= 65_535 else 0  # noqa: PLR2004  # the highest port
