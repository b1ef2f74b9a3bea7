"""bridges.conf, topics.conf and transports.conf as values (EMS User's Guide, chapter 8).

It reads every line, and judges no name: that is for the endpoint's dialect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from gateway.imports.lines import Left, Line, Place, Reading

TOPIC, QUEUE = "topic", "queue"
TRANSPORT_TYPES = ("tibrv", "tibrvcm", "tibss")

_HEADING = re.compile(r"\[(.*)\]")
_BRIDGED = re.compile(r"(topic|queue)\s*:\s*(\S.*)", re.IGNORECASE)
_TARGET = re.compile(
    r"""(?P<kind>topic|queue)\s*=\s*(?P<name>"[^"]*"|[^\s"]+)
        (?:\s+selector\s*=\s*"(?P<selector>.*)")?""",
    re.IGNORECASE | re.VERBOSE,
)
_OPTION = re.compile(r"([A-Za-z_][\w.-]*)\s*(?:=\s*(.*))?")
_TOPIC = re.compile(r"""(?:\[(?P<jndi>[^\]]*)\]\s*)?(?P<name>"[^"]*"|[^\s,\["]+)\s*(?P<rest>.*)""")


@dataclass(frozen=True, slots=True)
class Sent:
    """One line of a bridge: where copies go."""

    place: Place
    kind: str
    name: str
    selector: str = ""
    above: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bridge:
    """A heading of bridges.conf with the lines under it."""

    place: Place
    kind: str
    name: str
    sent: tuple[Sent, ...] = ()
    above: tuple[str, ...] = ()

    @property
    def places(self) -> tuple[Place, ...]:
        """Its lines, the heading first."""
        return (self.place, *(each.place for each in self.sent))


@dataclass(frozen=True, slots=True)
class Topic:
    """A line of topics.conf; `properties` are those besides import and export."""

    place: Place
    name: str
    imports: tuple[str, ...] = ()
    exports: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    jndi: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transport:
    """A heading of transports.conf; `options` without their values, which may be secrets."""

    place: Place
    name: str
    type: str = ""
    topic_mode: str = "TIBEMS_NON_PERSISTENT"  # table 43: when absent
    options: tuple[tuple[Place, str], ...] = ()


def parse_bridges(reading: Reading) -> tuple[tuple[Bridge, ...], list[Left]]:
    bridges: list[Bridge] = []
    left: list[Left] = []
    open_heading = False
    for line in reading.lines:
        if line.text.startswith("["):
            bridge = _bridge(line, left)
            open_heading = bridge is not None
            bridges += [bridge] if bridge is not None else []
        elif not open_heading:
            left.append(Left(line.place, "this line", "it stands under no heading that is read"))
        elif (sent := _TARGET.fullmatch(line.text)) is None:
            reason = 'it does not read topic=NAME or queue=NAME, with or without selector="..."'
            left.append(Left(line.place, "this line", reason))
        else:
            name, selector = _unquoted(sent["name"]), (sent["selector"] or "").strip()
            each = Sent(line.place, sent["kind"].lower(), name, selector, line.above)
            bridges[-1] = replace(bridges[-1], sent=(*bridges[-1].sent, each))
    return tuple(bridges), left


def parse_topics(reading: Reading) -> tuple[tuple[Topic, ...], list[Left]]:
    topics: list[Topic] = []
    left: list[Left] = []
    for line in reading.lines:
        found = _TOPIC.fullmatch(line.text)
        if found is None or line.text.count('"') % 2:
            reason = "it does not read NAME PROPERTY, PROPERTY=VALUE"
            left.append(Left(line.place, "this line", reason))
            continue
        topics.append(_with_properties(line, found, left))
    return tuple(topics), left


def parse_transports(reading: Reading) -> tuple[tuple[Transport, ...], list[Left]]:
    transports: list[Transport] = []
    left: list[Left] = []
    open_heading = False
    for line in reading.lines:
        if line.text.startswith("["):
            name = (_heading(line, left) or "").strip()
            if open_heading := bool(name):
                transports.append(Transport(line.place, name))
        elif not open_heading:
            left.append(Left(line.place, "this line", "it stands under no heading that is read"))
        elif (option := _OPTION.fullmatch(line.text)) is None or option[2] is None:
            left.append(Left(line.place, "this line", "it does not read NAME = VALUE"))
        else:
            key, value = option[1].lower(), _unquoted(option[2].strip())
            transports[-1] = _with_option(transports[-1], line.place, key, value)
    for transport in transports:
        if transport.type not in TRANSPORT_TYPES:
            reason = f"its type is none of {', '.join(TRANSPORT_TYPES)}"
            left.append(Left(transport.place, f"transport {transport.name!r}", reason))
    return tuple(transports), left


def kind_of(name: str, reading: Reading) -> str | None:
    """`bridges`, `topics` or `transports`, by the file's name or else by what stands in it."""
    for kind in ("bridges", "topics", "transports"):
        if kind[:-1] in name.lower():
            return kind
    headings = [line.text for line in reading.lines if line.text.startswith("[")]
    if any(_BRIDGED.fullmatch(text.strip("[] ")) for text in headings):
        return "bridges"
    if any(re.match(r"type\s*=\s*tib", line.text, re.IGNORECASE) for line in reading.lines):
        return "transports"
    return "topics" if any(_looks_like_topic(line) for line in reading.lines) else None


def _looks_like_topic(line: Line) -> bool:
    return re.search(r"\s(import|export)\s*=", line.text) is not None


def _bridge(line: Line, left: list[Left]) -> Bridge | None:
    heading = _heading(line, left)
    if heading is None:
        return None
    if (found := _BRIDGED.fullmatch(heading)) is None:
        reason = "a heading reads [topic:NAME] or [queue:NAME]"
        left.append(Left(line.place, "this heading", reason))
        return None
    return Bridge(line.place, found[1].lower(), _unquoted(found[2].strip()), above=line.above)


def _heading(line: Line, left: list[Left]) -> str | None:
    found = _HEADING.fullmatch(line.text)
    if found is None or not found[1].strip():
        left.append(Left(line.place, "this heading", "it is not one name in square brackets"))
        return None
    return found[1].strip()


def _with_properties(line: Line, found: re.Match[str], left: list[Left]) -> Topic:
    topic = Topic(line.place, _unquoted(found["name"]), jndi=_list(found["jndi"] or ""))
    for text in filter(None, map(str.strip, _parts(found["rest"]))):
        option = _OPTION.fullmatch(text)
        if option is None:
            reason = "it is no property of a topic"
            left.append(Left(line.place, f"a part of topic {topic.name!r}", reason))
            continue
        key, values = option[1], _list(_unquoted((option[2] or "").strip()))
        if key.lower() == "import":
            topic = replace(topic, imports=(*topic.imports, *values))
        elif key.lower() == "export":
            topic = replace(topic, exports=(*topic.exports, *values))
        else:
            topic = replace(topic, properties=(*topic.properties, key))
    return topic


def _with_option(transport: Transport, place: Place, key: str, value: str) -> Transport:
    if key == "type":
        return replace(transport, type=value.lower())
    if key == "topic_import_dm":
        return replace(transport, topic_mode=value.upper())
    return replace(transport, options=(*transport.options, (place, key)))


def _parts(text: str) -> list[str]:
    """`text` cut at its commas outside quotes."""
    parts: list[str] = []
    for number, piece in enumerate(text.split('"')):
        if number % 2:
            parts[-1] += f'"{piece}"'
        else:
            first, *more = piece.split(",")
            parts[-1:] = [(parts[-1] if parts else "") + first, *more]
    return parts


def _list(text: str) -> tuple[str, ...]:
    return tuple(part for part in map(str.strip, text.split(",")) if part)


def _unquoted(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1] if quoted else text


def secrets_in(readings: Iterable[Reading]) -> tuple[str, ...]:
    """Values of options that are called a password, so that no comment repeats them."""
    found = (_OPTION.fullmatch(line.text) for reading in readings for line in reading.lines)
    return tuple(
        _unquoted(option[2].strip())
        for option in found
        if option is not None and option[2] and "pass" in option[1].lower()
    )
