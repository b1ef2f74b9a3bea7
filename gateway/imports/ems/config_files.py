"""Parsers of bridges.conf, topics.conf and transports.conf (EMS User's Guide, chapter 8)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain

from gateway.imports.source_lines import ContentLine, OmittedLine, ParsedFile, SourceLine

TOPIC, QUEUE = "topic", "queue"
ADDRESS_PREFIXES = ("topic:", "queue:", "temptopic:", "tempqueue:")  # addresses of a JMS endpoint
WRONG_KIND = "a heading reads [topic:NAME] or [queue:NAME]"
TRANSPORT_TYPES = ("tibrv", "tibrvcm", "tibss")

_HEADING = re.compile(r"\[\s*(\S|\S.*\S)\s*\]")
_NAME = re.compile(r".+")
_BRIDGED = re.compile(r"(topic|queue)\s*:\s*(\S.*)", re.IGNORECASE)
_TARGET = re.compile(
    r"""(?P<kind>topic|queue)\s*=\s*(?P<name>"[^"]*"|[^\s"]+)
        (?:\s+selector\s*=\s*(?:"(?P<selector>.*)"|(?P<bare>[^"\s][^"]*)))?""",
    re.IGNORECASE | re.VERBOSE,
)
_EXCHANGE = re.compile(r"\s(import|export)\s*=")
_OPTION = re.compile(r"([A-Za-z_][\w.-]*)\s*(?:=\s*(.*))?")
_PASSWORD = re.compile(r"pass\w*[\s=]+(.*)", re.IGNORECASE)
_TOPIC = re.compile(r"""(?:\[(?P<jndi>[^\]]*)\]\s*)?(?P<name>"[^"]*"|[^\s,\["]+)\s*(?P<rest>.*)""")


@dataclass(frozen=True, slots=True)
class BridgeEnd:
    """A topic or a queue that a line of bridges.conf names."""

    location: SourceLine
    kind: str
    name: str

    @property
    def address(self) -> str:
        """Its address at a JMS endpoint for topics."""
        if self.kind == QUEUE:
            return f"queue:{self.name}"
        return f"topic:{self.name}" if self.name.startswith(ADDRESS_PREFIXES) else self.name


@dataclass(frozen=True, slots=True)
class BridgeTarget(BridgeEnd):
    """One line of a bridge: the target of its copies."""

    selector: str = ""
    comments: tuple[str, ...] = ()

    def omitted(self, reason: str) -> OmittedLine:
        return OmittedLine(self.location, f"target {self.kind} {self.name!r}", reason)


@dataclass(frozen=True, slots=True)
class Bridge(BridgeEnd):
    """A heading of bridges.conf, the source, and the lines below it."""

    targets: tuple[BridgeTarget, ...] = ()
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    """A line of topics.conf; `properties` are the names of the other properties."""

    location: SourceLine
    name: str
    imports: tuple[str, ...] = ()
    exports: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    jndi: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transport:
    """A heading of transports.conf; `options` have no values, which may be secrets."""

    location: SourceLine
    name: str
    type: str = ""
    topic_mode: str = "TIBEMS_NON_PERSISTENT"  # table 43: when absent
    options: tuple[tuple[SourceLine, str], ...] = ()


def parse_bridges(parsed: ParsedFile) -> tuple[tuple[Bridge, ...], list[OmittedLine]]:
    bridges: list[Bridge] = []
    omitted: list[OmittedLine] = []
    for heading, source, lines in _sections(parsed, _BRIDGED, omitted):
        targets: list[BridgeTarget] = []
        for line in lines:
            if (found := _TARGET.fullmatch(line.text)) is None:
                reason = 'it does not read topic=NAME or queue=NAME, with or without selector="..."'
                omitted.append(line.omitted("this line", reason))
                continue
            kind, name = found["kind"].lower(), _unquoted(found["name"])
            selector = (found["selector"] or found["bare"] or "").strip()
            targets.append(BridgeTarget(line.location, kind, name, selector, line.comments))
        kind, name = source[1].lower(), _unquoted(source[2].strip())
        bridges.append(Bridge(heading.location, kind, name, tuple(targets), heading.comments))
    return tuple(bridges), omitted


def parse_topics(parsed: ParsedFile) -> tuple[tuple[Topic, ...], list[OmittedLine]]:
    topics: list[Topic] = []
    omitted: list[OmittedLine] = []
    for line in parsed.lines:
        found = _TOPIC.fullmatch(line.text)
        if found is None or line.text.count('"') % 2:
            reason = "it does not read NAME PROPERTY, PROPERTY=VALUE"
            omitted.append(line.omitted("this line", reason))
        else:
            topics.append(_with_properties(line, found, omitted))
    return tuple(topics), omitted


def parse_transports(parsed: ParsedFile) -> tuple[tuple[Transport, ...], list[OmittedLine]]:
    transports: list[Transport] = []
    omitted: list[OmittedLine] = []
    for heading, found, lines in _sections(parsed, _NAME, omitted):
        transport = Transport(heading.location, found[0])
        for line in lines:
            if (option := _OPTION.fullmatch(line.text)) is None or option[2] is None:
                omitted.append(line.omitted("this line", "it does not read NAME = VALUE"))
            else:
                key, value = option[1].lower(), _unquoted(option[2].strip())
                transport = _with_option(transport, line.location, key, value)
        transports.append(transport)
        if transport.type not in TRANSPORT_TYPES:
            reason = f"its type is none of {', '.join(TRANSPORT_TYPES)}"
            omitted.append(heading.omitted(f"transport {transport.name!r}", reason))
    return tuple(transports), omitted


def kind_of(name: str, parsed: ParsedFile) -> str | None:
    """Return `bridges`, `topics` or `transports`, by the name of the file or by its content."""
    for kind in ("bridges", "topics", "transports"):
        if kind[:-1] in name.lower():
            return kind
    headings = [line.text for line in parsed.lines if line.text.startswith("[")]
    if any(_BRIDGED.fullmatch(text.strip("[] ")) for text in headings):
        return "bridges"
    if any(re.match(r"type\s*=\s*tib", line.text, re.IGNORECASE) for line in parsed.lines):
        return "transports"
    return "topics" if any(_EXCHANGE.search(line.text) for line in parsed.lines) else None


def split_end(text: str) -> tuple[str, str] | None:
    """Return kind and name of `topic:NAME` or `queue:NAME`, quoted or not; None for others."""
    found = _BRIDGED.fullmatch(_unquoted(text.strip()))
    return (found[1].lower(), _unquoted(found[2].strip())) if found else None


def _sections(
    parsed: ParsedFile, form: re.Pattern[str], omitted: list[OmittedLine]
) -> list[tuple[ContentLine, re.Match[str], list[ContentLine]]]:
    """Return each heading of this form, its match, and the lines below it."""
    sections: list[tuple[ContentLine, re.Match[str], list[ContentLine]]] = []
    is_open = False
    for line in parsed.lines:
        if line.text.startswith("["):
            heading = _HEADING.fullmatch(line.text)
            found = form.fullmatch(heading[1]) if heading else None
            is_open = found is not None
            if found is not None:
                sections.append((line, found, []))
            else:
                reason = WRONG_KIND if heading else "it is not one name in square brackets"
                omitted.append(line.omitted("this heading", reason))
        elif is_open:
            sections[-1][2].append(line)
        else:
            omitted.append(line.omitted("this line", "no readable heading is above it"))
    return sections


def _with_properties(line: ContentLine, found: re.Match[str], omitted: list[OmittedLine]) -> Topic:
    name = _unquoted(found["name"])
    values_of: dict[str, list[str]] = {"import": [], "export": []}
    properties: list[str] = []
    for text in filter(None, map(str.strip, _parts(found["rest"]))):
        option = _OPTION.fullmatch(text)
        if option is None:
            reason = "it is no property of a topic"
            omitted.append(line.omitted(f"a part of topic {name!r}", reason))
            continue
        key, values = option[1], _list(_unquoted((option[2] or "").strip()))
        if key.lower() in values_of:
            values_of[key.lower()] += values
        else:
            properties.append(key)
    imports, exports = map(tuple, values_of.values())
    return Topic(
        line.location, name, imports, exports, tuple(properties), _list(found["jndi"] or "")
    )


def _with_option(transport: Transport, location: SourceLine, key: str, value: str) -> Transport:
    if key == "type":
        return replace(transport, type=value.lower())
    if key == "topic_import_dm":
        return replace(transport, topic_mode=value.upper())
    return replace(transport, options=(*transport.options, (location, key)))


def _parts(text: str) -> list[str]:
    """Split `text` at commas outside quotes."""
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
    is_quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1] if is_quoted else text


def secrets_in(parsed_files: Iterable[ParsedFile]) -> tuple[str, ...]:
    """Return the values of passwords, which no comment may repeat."""
    found = (_PASSWORD.finditer(line.text) for parsed in parsed_files for line in parsed.lines)
    return tuple(_unquoted(word) for each in chain.from_iterable(found) for word in each[1].split())
