"""Mapping document of an import, its values as YAML, and its whole text with comments."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from urllib.parse import unquote

import yaml

from gateway.config.process import DEFAULT_URL
from gateway.endpoints.broker_names import PLACEHOLDER, proposed_broker_id
from gateway.imports.source_lines import LineStatus, OmittedLine, SourceLine, grouped
from gateway.proofs.reverse_route import REVERSE_SUFFIX
from gateway.terminal.text import visible

Value: TypeAlias = "str | int | bool | Sequence[str] | Mapping[str, Value]"

MAX_WIDTH = 96  # characters of a comment line
MAX_COMMENT_LINES = 8  # of one imported comment
REFERENCE = "${"  # the loader replaces references; imported text must not contain one

_SECRET = re.compile(r"pass|pwd|secret|psk|token|credential|api.?key", re.IGNORECASE)


class _Dumper(yaml.SafeDumper):
    """PyYAML's emitter with double quotes in place of single quotes."""

    def choose_scalar_style(self) -> str:
        style: str = super().choose_scalar_style()
        return '"' if style == "'" else style


def to_yaml(value: Value) -> str:
    """Return `value` as one line of YAML in flow style; text that needs it stands in quotes."""
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=True,
        sort_keys=False,
        allow_unicode=True,
        width=math.inf,
    )
    return text.removesuffix("...\n").rstrip("\n")


def comment_lines(text: str, indent: int = 0) -> list[str]:
    """Return `text` as comment lines; unprintable characters are written as escapes."""
    width, shown = MAX_WIDTH - indent - 2, visible(text)
    lines = [shown.rstrip()] if shown.strip() else []
    if len(shown) > width:
        lines = textwrap.wrap(shown, width, break_on_hyphens=False, break_long_words=False)
    return [f"{' ' * indent}# {line}" for line in lines]


def quote_comments(comments: Iterable[str], secrets: Iterable[str] = ()) -> tuple[str, ...]:
    """Return imported comment lines in quotes, without lines that mention or contain a secret."""
    lines = [line for line in comments if any(map(str.isalnum, line))]
    known = [secret for secret in secrets if secret]
    safe = [
        line for line in lines if not _SECRET.search(line) and not any(s in line for s in known)
    ]
    return tuple(f'"{line}"' for line in safe[-MAX_COMMENT_LINES:])


MAX_NAME_LENGTH = 64  # characters of a name in a configuration
_NOT_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_PORTS = {"amqp": 5_672, "amqps": 5_671}
_WILDCARD_WORDS = {"*": "each", "+": "each", ">": "all", "#": "all"}


@dataclass(frozen=True, slots=True)
class EndpointSetting:
    """One setting of an endpoint, and the comment above it."""

    key: str
    value: Value
    note: str = ""


LOSSY_NOTE: Final = (
    "Different names become this one, as before; `lossy` accepts it. To keep them apart, use"
    " captures of the pattern in the template, or give each route a name of its own, and remove"
    " `lossy`."
)


@dataclass(frozen=True, slots=True)
class EndpointEntry:
    """Endpoint of the document."""

    name: str
    settings: tuple[EndpointSetting, ...]
    notes: tuple[str, ...] = ()

    @property
    def broker(self) -> str:
        """The address of its broker."""
        values = {setting.key: str(setting.value) for setting in self.settings}
        return ":".join(values[key] for key in ("host", "port") if key in values)


@dataclass(frozen=True, slots=True)
class StateEntry:
    """State of the connections of the endpoint `of`, which the broker of `endpoint` keeps."""

    endpoint: str
    of: str
    name: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class TargetEntry:
    """Target of a route of the document."""

    endpoint: str
    template: str
    notes: tuple[str, ...] = ()
    lossy: bool = False  # several names become one, as in the imported bridge
    headers: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RouteEntry:
    """Route of the document; `location` is the line it was made from.

    `refusal`: why `gateway check` refuses it; the route is then a comment.
    """

    name: str
    location: SourceLine
    endpoint: str
    pattern: str
    targets: tuple[TargetEntry, ...]
    exclude: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    selector: str = ""
    both: bool = False
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """Result of an import: the mapping, and all lines that are not part of it."""

    command: str
    gateway: str  # name of the gateway
    files: tuple[str, ...]
    endpoints: tuple[EndpointEntry, ...]
    routes: tuple[RouteEntry, ...]
    states: tuple[StateEntry, ...] = ()
    notes: tuple[str, ...] = ()  # at the top
    remarks: tuple[str, ...] = ()  # after the routes
    omitted: tuple[OmittedLine, ...] = ()

    @property
    def live_routes(self) -> tuple[RouteEntry, ...]:
        """The routes that are not comments."""
        return tuple(each for each in self.routes if not each.refusal)

    def lines(self, status: LineStatus) -> tuple[OmittedLine, ...]:
        """Return the omitted lines of one status."""
        return tuple(each for each in self.omitted if each.status is status)


class NameGenerator:
    """Unique legal names for a configuration.

    Mutable: remembers the names it has returned.
    """

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._numbers: dict[str, int] = {}  # the last one, by wanted name

    def make(self, *parts: str) -> str:
        """Return a new legal name that resembles `parts`."""
        wanted = _legal("-".join(parts))
        if wanted.endswith(REVERSE_SUFFIX):  # reserved for the reverse route
            wanted = f"{wanted.removesuffix(REVERSE_SUFFIX)}-back"
        name, number = wanted, self._numbers.get(wanted, 1)
        while name in self._used:
            number += 1
            tail = f"-{number}"
            name = wanted[: MAX_NAME_LENGTH - len(tail)] + tail
        self._numbers[wanted] = number
        self._used.add(name)
        return name


def variable_of(endpoint: str) -> str:
    """Return the prefix of the environment variables of an endpoint."""
    word = re.sub(r"[^A-Z0-9]+", "_", endpoint.upper())
    return word if word[0].isalpha() else f"BRIDGE_{word}"


def gateway_name(site: str, *parts: str) -> str:
    """Return the name of the gateway: `site` keeps those of equal files at several sites apart."""
    return NameGenerator().make(*filter(None, (site, *parts, "bridge")))


def render(document: Document) -> str:
    """Return the text of the mapping file; equal documents have equal texts."""
    parts = (_head, _process, _endpoints, _states, _routes, _tail)
    return "\n".join(line for part in parts for line in part(document))


def _legal(text: str) -> str:
    replaced = "".join(_WILDCARD_WORDS.get(char, char) for char in text)
    return _NOT_NAME.sub("-", replaced).strip("-._")[:MAX_NAME_LENGTH] or "route"


def _head(document: Document) -> Iterator[str]:
    files = ", ".join(document.files)
    yield from comment_lines(f"Made by `gateway import {document.command}` from {files}.")
    lost, stay = map(document.lines, LineStatus)
    if lost:
        counts = f"{len(lost)} not carried over, {len(stay)} for the broker alone"
        yield from comment_lines(f"Read the list at the end before this runs: {counts}.")
    for note in document.notes:
        yield "#"
        yield from comment_lines(note)
    yield ""


def _process(document: Document) -> Iterator[str]:
    if document.live_routes:
        yield f"gateway: {{name: {document.gateway}}}  # unique among your gateways, at each site"
        yield "archive: {path: archive}  # beside this file; `gateway reconcile archive` reads it"
        yield "spool: {path: spool}  # messages for a broker that is away"
        yield f"web: {{}}  # {DEFAULT_URL}, which `gateway status` asks"
        yield ""


def _endpoints(document: Document) -> Iterator[str]:
    if not document.endpoints:
        return
    yield "endpoints:"
    for endpoint in document.endpoints:
        yield from _comments(endpoint.notes, 2)
        yield f"  {endpoint.name}:"
        for setting in endpoint.settings:
            yield from comment_lines(setting.note, 4)
            yield from _setting(setting)
        yield from comment_lines(f"broker_id: {_broker_id(endpoint)}", 4)
    yield ""


def _states(document: Document) -> Iterator[str]:
    if not document.states:
        return
    yield "state:"
    for state in document.states:
        yield from comment_lines(state.note, 2)
        yield f"  - {_filled(state, 'endpoint', 'of', 'name')}"
    yield ""


def _broker_id(endpoint: EndpointEntry) -> str:
    """Return the identifier to choose for a broker, and what to fill in where it is local."""
    values = {setting.key: setting.value for setting in endpoint.settings}
    urls = values.get("urls")
    text = urls[0] if isinstance(urls, Sequence) else str(values.get("url") or values["host"])
    scheme, _, rest = text.partition(",")[0].rpartition("://")
    first, slash, path = rest.partition("/")  # of RabbitMQ, whose brokers are vhosts
    host, colon, port = first.rpartition(":")
    if not colon or not port.isdecimal() or (":" in host and not host.endswith("]")):
        host, port = first, str(values.get("port") or _PORTS.get(scheme, ""))
    found = proposed_broker_id(
        PLACEHOLDER, f"{host}:{port}{slash}{unquote(path) or slash}", [host.strip("[]")]
    )
    note = f"  # {PLACEHOLDER}: a name of this site" if found.startswith(f"{PLACEHOLDER}/") else ""
    return to_yaml(found) + note


def _setting(setting: EndpointSetting) -> Iterator[str]:
    if isinstance(setting.value, Mapping) and setting.value:
        yield f"    {setting.key}:"
        for key, value in setting.value.items():
            yield f"      {key}: {to_yaml(value)}"
    else:
        yield f"    {setting.key}: {to_yaml(setting.value)}"


def _routes(document: Document) -> Iterator[str]:
    if document.live_routes:
        yield "routes:"
    else:
        yield from comment_lines("No line became a route; a configuration needs one at least.")
    for number, route in enumerate(document.routes):
        if number:
            yield ""
        lines = _route(route)
        yield from _as_comments(route.refusal, lines) if route.refusal else lines


def _as_comments(refusal: str, lines: Iterable[str]) -> Iterator[str]:
    yield from comment_lines(f"This route is a comment: {refusal}", 2)
    for line in lines:
        yield line if line.lstrip().startswith("#") else f"# {line}"


def _route(route: RouteEntry) -> Iterator[str]:
    yield from _comments(route.notes, 2)
    yield f"  {route.name}:"
    yield f"    from: {_filled(route, 'endpoint', 'pattern', 'exclude', 'selector')}"
    yield "    to:"
    for target in route.targets:
        yield from _comments(target.notes, 6)
        yield f"      - {_filled(target, 'endpoint', 'template', 'lossy', 'headers')}"
    if route.both:
        yield "    direction: both"


def _filled(entry: RouteEntry | StateEntry | TargetEntry, *keys: str) -> str:
    """Return the fields of an entry that have a value, as one line of YAML."""
    return to_yaml({key: value for key in keys if (value := getattr(entry, key))})


def _tail(document: Document) -> Iterator[str]:
    if document.remarks:
        yield ""
        yield from _comments(document.remarks, 0)
    for status in LineStatus:
        if found := document.lines(status):
            yield ""
            yield f"# {status.value.capitalize()}:"
            for each in grouped(found):
                yield from comment_lines(f"- {each.location}: {each.item}; {each.reason}")
    yield ""


def _comments(notes: Iterable[str], indent: int) -> Iterator[str]:
    for note in notes:
        yield from comment_lines(note, indent)
