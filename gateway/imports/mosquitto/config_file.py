"""Parser of mosquitto.conf: bridge connections, and options of the broker itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.endpoints.settings.base import U16
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
    LineError,
    OmittedLine,
    ParsedFile,
    SourceLine,
    read_mosquitto,
)

Include: TypeAlias = Callable[[str], Sequence[tuple[str, bytes]]]  # names and content, in order
_LISTENER = re.compile(r"(?:listener|port) \s*(\d{1,5})(?!\S)")


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


def parse_config(parsed: ParsedFile, include: Include) -> MosquittoConfig:
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
        try:
            if name == "connection":
                current = None  # what follows an illegal one belongs to none
                current = connections[value] = _connection(line, value, connections)
            elif name in BRIDGE_OPTIONS or name == "topic":
                _add_option(line, Option(line.location, written, value), current)
            else:
                omitted.append(omitted_option(line.location, written))
        except LineError as error:
            omitted.append(line.omitted(error.item, error.reason))
    ports = [int(found[1]) for line in parsed.lines if (found := _LISTENER.match(line.text))]
    refusals = [line for line in parsed.lines if line.text.split() == ["allow_anonymous", "false"]]
    return MosquittoConfig(
        tuple(connections.values()),
        next((port for port in ports if 0 < port <= U16), 0),
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
            omitted.append(line.omitted("option 'include_dir'", str(error)))
            continue
        for file, data in found:
            inner = read_mosquitto(file, data)
            lines += inner.lines
            omitted += inner.omitted
            files.append(file)
    return ParsedFile(tuple(lines), tuple(omitted)), tuple(files)


def _connection(
    line: ContentLine, name: str, known: Mapping[str, BridgeConnection]
) -> BridgeConnection:
    """Return the connection that begins at `line`.

    Raises:
        LineError: it has no name, or that of another one.
    """
    if not name:
        raise LineError("this connection", "it has no name")
    if name in known:
        reason = f"mosquitto refuses a second one; the first is in line {known[name].location.line}"
        raise LineError(f"connection {name!r}", reason)
    return BridgeConnection(line.location, name, line.comments)


def _add_option(line: ContentLine, option: Option, connection: BridgeConnection | None) -> None:
    """Add an option or a topic to its connection.

    Raises:
        LineError: there is no connection, or it cannot have this.
    """
    name, item = OPTION_ALIASES.get(option.name, option.name), f"option {option.name!r}"
    if connection is None:
        raise LineError(item, "it is a bridge option, and no readable connection is above it")
    if name == "topic":
        try:
            connection.topics.append(parse_topic(option.value, line.location, line.comments))
        except TopicError as error:
            raise LineError(f"a topic of connection {connection.name!r}", str(error)) from error
    elif not option.value:
        raise LineError(item, "it has no value")
    elif name in connection.options:
        raise LineError(item, f"it repeats line {connection.options[name].location.line}")
    else:
        connection.options[name] = option
