"""Parser of mosquitto.conf: bridge connections, listeners, and options of the broker itself.

It reads as mosquitto's parser does (measured with 2.0.11): blanks part words, and tabs do not; a
number or a truth is one word, whatever follows it; other text goes to the end of the line, quotes
and `#` included. Each file of an `include_dir` begins without a connection and a listener.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from gateway.endpoints.settings.base import U16
from gateway.errors import GatewayError
from gateway.imports.mosquitto.listeners import DEFAULT_PORT, LISTENER_OPTIONS, Listener, Listeners
from gateway.imports.mosquitto.options import (
    BRIDGE_OPTIONS,
    NUMBERS,
    OPTION_ALIASES,
    SECRET_OPTIONS,
    TRUTHS,
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
_BLANKS: Final = " \t\n\v\f\r"
_WORDS: Final = {"1": "true", "0": "false"}


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

    def is_set(self, name: str, value: str) -> bool:
        return name in self.options and self.options[name].value == value


@dataclass(frozen=True, slots=True)
class MosquittoConfig:
    """Content of the file: the bridges, the listeners of the broker itself, and all secrets.

    `included`: further files.
    """

    connections: tuple[BridgeConnection, ...]
    listeners: Listeners
    omitted: tuple[OmittedLine, ...]
    secrets: tuple[str, ...]
    included: tuple[str, ...] = ()


def parse_config(parsed: ParsedFile, include: Include) -> MosquittoConfig:
    """Parse all lines; a line that is not part of a connection is omitted with a reason."""
    parser = _Parser(include)
    parser.read(parsed, is_main=True)
    return MosquittoConfig(
        tuple(parser.connections.values()),
        Listeners(parser.default, parser.listeners, parser.per_listener, parser.anonymous),
        tuple(parser.omitted),
        tuple(parser.secrets),
        tuple(parser.files),
    )


class _Parser:
    """Everything that was read so far. Mutable."""

    def __init__(self, include: Include) -> None:
        self._include = include
        self.connections: dict[str, BridgeConnection] = {}
        self.default, self.listeners = Listener(), list[Listener]()
        self.per_listener = False
        self.anonymous: tuple[SourceLine, str] | None = None
        self.omitted: list[OmittedLine] = []
        self.secrets: list[str] = []
        self.files: list[str] = []
        self._connection: BridgeConnection | None = None
        self._listener = self.default

    def read(self, parsed: ParsedFile, *, is_main: bool) -> None:
        """Read the lines of a file, and those of its `include_dir` in their place."""
        self.omitted += parsed.omitted
        self._connection, self._listener = None, self.default
        for line in parsed.lines:
            written, _, value = line.text.partition(" ")
            try:
                if written == "include_dir" and is_main:
                    self._read_folder(value.strip(_BLANKS))
                else:
                    self._read_option(line, written, value.strip(_BLANKS))
            except LineError as error:
                self.omitted.append(line.omitted(error.item, error.reason))

    def _read_folder(self, folder: str) -> None:
        try:
            found = self._include(folder)
        except GatewayError as error:
            raise LineError("option 'include_dir'", str(error)) from error
        current = self._connection, self._listener
        for file, data in found:
            self.files.append(file)
            self.read(read_mosquitto(file, data), is_main=False)
        self._connection, self._listener = current

    def _read_option(self, line: ContentLine, written: str, value: str) -> None:
        """Read one line.

        Raises:
            LineError: it is not in the mapping.
        """
        name = OPTION_ALIASES.get(written, written)
        if name in SECRET_OPTIONS:
            self.secrets.append(value)
        if name == "connection":
            self._connection = None  # what follows an illegal one belongs to none
            self._connection = self._new_connection(line, value)
        elif name in BRIDGE_OPTIONS or name == "topic":
            _add_option(line, Option(line.location, written, value), self._connection)
        else:
            self.omitted.append(omitted_option(line.location, written))
            self._read_listener(line.location, name, value)

    def _read_listener(self, location: SourceLine, name: str, value: str) -> None:
        word, _, rest = value.partition(" ")
        if name == "listener":
            address = rest.strip(_BLANKS)
            if not address.startswith("/"):  # a path goes to the end of the line
                address = address.partition(" ")[0]
            self._listener = Listener(location, _port(word), _address(address))
            self.listeners.append(self._listener)
        elif name == "port":
            self.default.location, self.default.port = location, _port(word)
        elif name == "bind_address":
            self.default.location, self.default.address = location, _address(value)
        elif name == "per_listener_settings":
            self.per_listener = _truth(word) == "true"
        elif name in LISTENER_OPTIONS:
            self._listener.options[name] = (location, _truth(word))
        if name == "allow_anonymous":
            self.anonymous = (location, _truth(word))

    def _new_connection(self, line: ContentLine, name: str) -> BridgeConnection:
        """Return the connection that begins at `line`.

        Raises:
            LineError: it has no name, or that of another one.
        """
        if not name:
            raise LineError("this connection", "it has no name")
        if name in self.connections:
            first = self.connections[name].location
            reason = f"mosquitto refuses a second one; the first is in line {first.line}"
            raise LineError(f"connection {name!r}", reason)
        found = BridgeConnection(line.location, name, line.comments)
        self.connections[name] = found
        return found


def _truth(word: str) -> str:
    return _WORDS.get(word, word)


def _port(word: str) -> int:
    """Return the port of a listener; mosquitto refuses what is none."""
    is_number = word.isascii() and word.isdecimal() and len(word) <= len(str(U16))
    return int(word) if is_number and int(word) <= U16 else DEFAULT_PORT


def _address(text: str) -> str:
    return "" if text.startswith("#") else text


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
    elif name in TRUTHS:
        connection.options[name] = replace(option, value=_truth(option.value.partition(" ")[0]))
    elif name in NUMBERS:
        connection.options[name] = replace(option, value=option.value.partition(" ")[0])
    elif name in connection.options:
        raise LineError(item, f"it repeats line {connection.options[name].location.line}")
    else:
        connection.options[name] = option
