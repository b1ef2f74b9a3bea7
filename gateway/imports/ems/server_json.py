"""Parser of tibemsd.json: bridges, topics and transports; everything else stays at the server.

The sections `bridges`, `topics` and `transports` are lists of objects, as a file of the vendor's
has them. No public document shows an entry of `bridges`: it is read where it names a source and
targets, each with `name` and `type`, and is listed otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.imports.ems.config_files import (
    TRANSPORT_TYPES,
    Bridge,
    BridgeTarget,
    Topic,
    Transport,
    split_end,
)
from gateway.imports.json_files import JsonEntry
from gateway.imports.source_lines import LineError, LineStatus, OmittedLine, SourceLine

STAYS: Final = "the EMS server continues to apply it"
UNKNOWN_FORM: Final = (
    "it does not name one source and its targets with `name` and `type`, topic or queue; write it"
    " into bridges.conf, or as `create bridge` into a script of tibemsadmin, and import that"
)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Bridges and exchanged topics of the file, and the entries that are not in the mapping."""

    bridges: tuple[Bridge, ...]
    topics: tuple[Topic, ...]
    transports: tuple[Transport, ...]
    omitted: tuple[OmittedLine, ...]


def parse_server(entries: Sequence[JsonEntry]) -> ServerConfig:
    bridges: list[Bridge] = []
    topics: list[Topic] = []
    transports: list[Transport] = []
    omitted: list[OmittedLine] = []
    for entry in entries:
        name = entry.text("name")
        try:
            if entry.section == "bridges":
                bridges.append(_bridge(entry))
            elif entry.section == "topics" and name:
                topics.append(_topic(entry, name))
            elif entry.section == "transports" and name:
                transports.append(_transport(entry, name))
            else:
                item = f"an entry of {entry.section!r}"
                status = LineStatus.STAYS_AT_BROKER
                omitted.append(OmittedLine(entry.location, item, STAYS, status))
        except LineError as error:
            omitted.append(OmittedLine(entry.location, error.item, error.reason))
    return ServerConfig(tuple(bridges), tuple(topics), tuple(transports), tuple(omitted))


def _bridge(entry: JsonEntry) -> Bridge:
    """Read a bridge.

    Raises:
        LineError: it has another form.
    """
    value = entry.value if isinstance(entry.value, dict) else {}
    source = _end(value, "source") or _end(value, "")
    listed = value.get("targets")
    targets = [_target(entry.location, each) for each in listed] if isinstance(listed, list) else []
    known = [each for each in targets if each is not None]
    if source is None or not known or len(known) < len(targets):
        raise LineError("this bridge", UNKNOWN_FORM)
    return Bridge(entry.location, *source, tuple(known))


def _target(location: SourceLine, value: object) -> BridgeTarget | None:
    fields = value if isinstance(value, dict) else {"target": value}
    end = _end(fields, "target") or _end(fields, "")
    selector = fields.get("selector")
    return (
        BridgeTarget(location, *end, selector if isinstance(selector, str) else "") if end else None
    )


def _end(value: Mapping[str, object], role: str) -> tuple[str, str] | None:
    """Return kind and name: `ROLE: "topic:NAME"`, an object, or `ROLE_name` and `ROLE_type`."""
    whole = value.get(role)
    if isinstance(whole, str):
        return split_end(whole)
    if isinstance(whole, dict):
        return _end(whole, "")
    prefix = f"{role}_" if role else ""
    kind, name = value.get(f"{prefix}type"), value.get(f"{prefix}name")
    return split_end(f"{kind}:{name}") if isinstance(kind, str) and isinstance(name, str) else None


def _transport(entry: JsonEntry, name: str) -> Transport:
    """Read a transport.

    Raises:
        LineError: it is of another type.
    """
    kind = entry.text("type").lower()
    if kind not in TRANSPORT_TYPES:
        reason = f"its type is none of {', '.join(TRANSPORT_TYPES)}"
        raise LineError(f"transport {name!r}", reason)
    return Transport(entry.location, name, kind)


def _topic(entry: JsonEntry, name: str) -> Topic:
    fields = entry.value if isinstance(entry.value, dict) else {}
    properties = tuple(
        key for key in fields if key not in {"name", "import", "export", "jndinames"}
    )
    jndi = tuple(_names(fields.get("jndinames")))
    imports, exports = (tuple(_names(fields.get(key))) for key in ("import", "export"))
    return Topic(entry.location, name, imports, exports, properties, jndi)


def _names(value: object) -> Iterator[str]:
    """Yield the names of a list, or of a text with commas between them."""
    listed = value.split(",") if isinstance(value, str) else value
    for each in listed if isinstance(listed, list) else ():
        text = each.get("name") if isinstance(each, dict) else each
        if isinstance(text, str) and text.strip():
            yield text.strip()
