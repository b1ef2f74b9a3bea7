"""Configuration files to endpoints and routes, or all that is wrong with them; it opens nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gateway.archive.location import parse_place
from gateway.config.build import (
    At,
    Endpoint,
    Known,
    build_routes,
    check_dead_letters,
    make_endpoint,
)
from gateway.config.nodes import Place, did_you_mean, entries, key_faults, load_mapping, place_of
from gateway.config.process import (
    ArchiveRef,
    DeadLettersRef,
    GatewayRef,
    SpoolRef,
    TracingRef,
    WebRef,
)
from gateway.config.reader import Reader
from gateway.config.schema import SECTIONS, EndpointRef, RouteRef, TestRef, legal_name
from gateway.config.section_checks import check_tracing, check_web
from gateway.endpoints.registry import KINDS
from gateway.errors import ArchiveError, ConfigError, ConfigErrors, shown
from gateway.routing.route import Route, WhenFull
from gateway.translate.shorten import Shortened

KNOWN = ("include", "defaults", "endpoints", *SECTIONS)  # and the order they are taken in
DEFAULTS = ("route", "from", "to")
SUFFIXES = (".yaml", ".yml")
DEEPEST = 32  # files that include each other


@dataclass(frozen=True)
class Configuration:
    """A configuration without errors, ready to run."""

    gateway: GatewayRef
    endpoints: Mapping[str, Endpoint]
    routes: tuple[Route, ...]
    archive: ArchiveRef | None
    spool: SpoolRef | None
    dead_letters: DeadLettersRef
    dictionary: Shortened  # of the names that its routes have shortened
    places: Mapping[At, Place]  # where each value was written
    tests: Mapping[str, TestRef]
    web: WebRef | None = None
    tracing: TracingRef | None = None


def load(path: Path, environment: Mapping[str, str] | None = None) -> Configuration:
    """Read one file, or all YAML files of a folder in order of their names.

    Raises:
        ConfigErrors: every finding of every file, in file order.
    """
    draft = Draft(environment)
    for file in _files(path, draft):
        draft.take(file)
    return draft.finish(path)


class Draft:
    """What the files said so far; mutable because each file adds to it."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self.findings: list[ConfigError] = []
        self.endpoints: dict[str, Endpoint] = {}
        self.routes: dict[str, tuple[RouteRef, Reader]] = {}
        self.places: dict[At, Place] = {}
        self.tests: dict[str, TestRef] = {}
        self.gateway: GatewayRef | None = None
        self.archive: ArchiveRef | None = None
        self.spool: SpoolRef | None = None
        self.dead_letters: DeadLettersRef | None = None
        self._letters_reader: Reader | None = None
        self.web: WebRef | None = None
        self.tracing: TracingRef | None = None
        self._environment = environment
        self._taken: set[Path] = set()
        self._open: list[Path] = []  # the file being read, and those that include it
        self._defaults: dict[str, yaml.MappingNode] = {}  # of the file being read
        self._named: set[str] = set()  # endpoints that are written, right or wrong

    def take(self, path: Path) -> None:
        """Add the content of one file, unless it was added before."""
        if (resolved := path.resolve()) in self._taken:
            return
        self._taken.add(resolved)
        try:
            root = load_mapping(path)
        except ConfigError as error:
            self.findings.append(error)
            return
        reader = Reader(str(path), self._environment)
        reader.findings += key_faults(str(path), root)
        outer, self._defaults = self._defaults, {}
        self._open.append(resolved)
        sections = sorted(entries(root), key=lambda entry: _rank(entry[0].value))
        for key, node in sections:
            if key.value not in KNOWN:
                place = place_of(str(path), key)
                hint = did_you_mean(key.value, KNOWN)
                reason = f"unknown section {key.value!r}"
                reader.findings.append(place.error("unknown-section", reason, hint))
            else:
                getattr(self, f"_take_{key.value}")(reader, node, (key.value,))
        self._open.pop()
        self._defaults = outer
        self.findings += reader.findings
        self.places |= reader.places

    def finish(self, path: Path) -> Configuration:
        """The configuration of all files; raises ConfigErrors when anything is wrong."""
        routes: list[Route] = []
        dictionary = Shortened()
        when_full = self.spool.when_full if self.spool else "slow"
        known = Known(self.endpoints, self._named, dictionary, WhenFull(when_full))
        for name, (ref, reader) in self.routes.items():
            before = len(reader.findings)
            routes += build_routes(name, ref, known, reader)
            self.findings += reader.findings[before:]
        if self.dead_letters is not None and (said := self._letters_reader) is not None:
            before = len(said.findings)
            spooled = self.spool is not None
            check_dead_letters(self.dead_letters, known, said, spooled=spooled)
            self.findings += said.findings[before:]
        if not self.routes and not self.findings:
            place = Place(str(path), 1, 1)
            hint = "add a section `routes:`"
            self.findings.append(place.error("no-routes", "there is no route", hint))
        if self.findings:
            ordered = sorted(self.findings, key=lambda each: (each.path, each.line, each.column))
            raise ConfigErrors(ordered)
        gateway = self.gateway or GatewayRef()
        return Configuration(
            gateway,
            self.endpoints,
            tuple(routes),
            self.archive,
            self.spool,
            self.dead_letters or DeadLettersRef(),
            dictionary,
            self.places,
            self.tests,
            self.web,
            self.tracing,
        )

    def _take_include(self, reader: Reader, node: yaml.Node, at: tuple[str, ...]) -> None:
        """Other files, as if they stood here; paths are relative to this file."""
        for number, name in enumerate(reader.read(node, tuple[str, ...], at) or ()):
            path = _resolved(self._open[-1].parent / name)
            if path in self._open:
                reason = f"{name!r} includes itself, through {len(self._open)} files"
                reader.report((*at, number), "recursive-include", reason)
            elif path is None:
                reader.report((*at, number), "unreadable", f"no file {shown(name)} to include")
            elif len(self._open) == DEEPEST:
                reason = f"files include each other {DEEPEST} deep, {name!r} is one more"
                reader.report((*at, number), "recursive-include", reason)
            else:
                self.take(path)

    def _take_defaults(self, reader: Reader, node: yaml.Node, at: tuple[str, ...]) -> None:
        """What routes of this file have when they do not say it themselves."""
        if not isinstance(node, yaml.MappingNode):
            reader.report(at, "type", "expected a mapping of route, from and to")
            return
        for key, value in entries(node):
            if key.value not in DEFAULTS or not isinstance(value, yaml.MappingNode):
                place = place_of(reader.path, key)
                hint = did_you_mean(key.value, DEFAULTS)
                reason = f"defaults are mappings for route, from and to, not {key.value!r}"
                reader.findings.append(place.error("unknown-field", reason, hint))
            else:
                self._defaults[key.value] = value

    def _with_defaults(self, node: yaml.Node) -> yaml.Node:
        """A route's node with the defaults of its file filled in."""
        if not self._defaults or not isinstance(node, yaml.MappingNode):
            return node
        filled = _filled(node, self._defaults.get("route"))
        pairs = [
            (key, _each_filled(value, self._defaults.get(key.value)))
            for key, value in entries(filled)
        ]
        return yaml.MappingNode(node.tag, pairs, node.start_mark, node.end_mark)

    def _take_gateway(self, reader: Reader, node: yaml.Node, at: tuple[str, ...]) -> None:
        self.gateway = reader.read(node, GatewayRef, at)
        if self.gateway is not None and not legal_name(self.gateway.name):
            _report_name(reader, (*at, "name"), self.gateway.name)

    def _take_archive(self, reader: Reader, node: yaml.Node, at: tuple[str, ...]) -> None:
        self.archive = reader.read(node, ArchiveRef, at)
        if self.archive is not None:
            try:
                parse_place(self.archive.path)
            except ArchiveError as error:
                reader.report((*at, "path"), "bad-path", str(error))

    def _take_spool(self, reader: Reader, node: yaml.Node, at: tuple[str, ...]) -> None:
        self.spool = reader.read(node, SpoolRef, at)

    def _take_dead_letters(self, reader: Reader, node: yaml.Node, at: tuple[str, ...]) -> None:
        self.dead_letters = reader.read(node, DeadLettersRef, at)
        self._letters_reader = reader

    def _take_web(self, reader: Reader, node: yaml.Node, at: tuple[str, ...]) -> None:
        self.web = reader.read(node, WebRef, at)
        if self.web is not None:
            check_web(self.web, reader, at)

    def _take_tracing(self, reader: Reader, node: yaml.Node, at: tuple[str, ...]) -> None:
        self.tracing = reader.read(node, TracingRef, at)
        if self.tracing is not None:
            check_tracing(self.tracing, reader, at)

    def _take_endpoints(self, reader: Reader, node: yaml.Node, at: tuple[str, ...]) -> None:
        for name, child in _named(reader, node, at):
            self._named.add(name)
            if name in self.endpoints:
                reader.report((*at, name), "duplicate", f"endpoint {name!r} is in another file too")
            elif (settings := _read_endpoint(reader, child, (*at, name), name)) is not None:
                self.endpoints[name] = settings

    def _take_routes(self, reader: Reader, node: yaml.Node, at: tuple[str, ...]) -> None:
        for name, child in _named(reader, node, at):
            if name in self.routes:
                reader.report((*at, name), "duplicate", f"route {name!r} is in another file too")
            elif (
                ref := reader.read(self._with_defaults(child), RouteRef, (*at, name))
            ) is not None:
                self.routes[name] = (ref, reader)

    def _take_tests(self, reader: Reader, node: yaml.Node, at: tuple[str, ...]) -> None:
        self.tests |= reader.read(node, Mapping[str, TestRef], at) or {}  # type: ignore[type-abstract]  # the reader makes a dict


def _resolved(path: Path) -> Path | None:
    """The file of that name; None where there is none, or can be none."""
    try:
        return path.resolve() if path.is_file() else None
    except (OSError, ValueError):
        return None


def _rank(section: str) -> int:
    return KNOWN.index(section) if section in KNOWN else len(KNOWN)


def _each_filled(node: yaml.Node, defaults: yaml.MappingNode | None) -> yaml.Node:
    if isinstance(node, yaml.SequenceNode):
        items = [_each_filled(item, defaults) for item in node.value]
        return yaml.SequenceNode(node.tag, items, node.start_mark, node.end_mark)
    return _filled(node, defaults) if isinstance(node, yaml.MappingNode) else node


def _filled(node: yaml.MappingNode, defaults: yaml.MappingNode | None) -> yaml.MappingNode:
    """`node` with the entries of `defaults` that it does not have; its own duplicates are kept."""
    if defaults is None:
        return node
    own = {key.value for key, _ in entries(node)}
    missing = [pair for pair in entries(defaults) if pair[0].value not in own]
    return yaml.MappingNode(node.tag, [*node.value, *missing], node.start_mark, node.end_mark)


def _files(path: Path, draft: Draft) -> Sequence[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(each for each in path.iterdir() if each.suffix in SUFFIXES)
    if not files:
        place = Place(str(path), 1, 1)
        draft.findings.append(place.error("empty", "the folder has no .yaml file"))
    return files


def _named(reader: Reader, node: yaml.Node, at: tuple[str, ...]) -> list[tuple[str, yaml.Node]]:
    """The entries of a section whose keys are names that we can use everywhere."""
    reader.places[at] = place_of(reader.path, node)
    if not isinstance(node, yaml.MappingNode):
        reader.report(at, "type", f"{at[-1]}: expected names with their settings")
        return []
    reader.findings += key_faults(reader.path, node)
    named: list[tuple[str, yaml.Node]] = []
    for key, child in entries(node):
        reader.places[(*at, key.value)] = place_of(reader.path, key)
        if legal_name(key.value):
            named.append((key.value, child))
        else:
            _report_name(reader, (*at, key.value), key.value)
    return named


def _read_endpoint(
    reader: Reader, node: yaml.Node, at: tuple[str, ...], name: str
) -> Endpoint | None:
    if not isinstance(node, yaml.MappingNode):
        reader.report(at, "type", "expected a mapping with `kind` and its settings")
        return None
    kinds = [value for key, value in entries(node) if key.value == "kind"]
    if not kinds:
        reader.report(at, "missing-field", "missing field 'kind'", did_you_mean("", KINDS))
        return None
    kind = reader.read(kinds[0], str, (*at, "kind"))
    if kind is None:
        return None
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS)
        reader.report((*at, "kind"), "choice", f"unknown kind {kind!r}", hint)
        return None
    declaration: Any = KINDS[kind].settings
    read = reader.split(node, (declaration, EndpointRef), at, {"kind": None, "name": name})
    if read is None:
        return None
    settings, common = read
    return make_endpoint(settings, common, reader, at)


def _report_name(reader: Reader, at: tuple[str, ...], name: str) -> None:
    hint = "use letters, digits, '-', '_' and '.', at most 64, the first a letter or digit"
    reader.report(at, "bad-name", f"{name!r} is no legal name", hint)
