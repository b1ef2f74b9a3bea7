"""Sections of configuration files, with includes followed and defaults filled in."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from gateway.archive.layout import names_an_archive
from gateway.config.build_endpoint import Endpoint, make_endpoint, setting_faults
from gateway.config.hidden_values import HiddenValues
from gateway.config.hints import did_you_mean
from gateway.config.named_files import WrittenPath
from gateway.config.nodes import (
    KeyPath,
    SourceLocation,
    entries,
    key_faults,
    load_mapping,
    location_of,
    tag_faults,
)
from gateway.config.place import Place
from gateway.config.references import ReferenceValues
from gateway.config.route_defaults import RouteDefaults
from gateway.config.schema import (
    LISTS,
    SECTIONS,
    CommonEndpointSettings,
    MappingTest,
    RouteSettings,
    is_legal_name,
)
from gateway.config.section_checks import SECTION_CHECKS, report_name
from gateway.config.value_reader import ConfigReader
from gateway.dialects.products import kind_hint
from gateway.endpoints.registry import ENDPOINT_KINDS
from gateway.endpoints.settings.base import EndpointSettings
from gateway.errors import ConfigError, quoted
from gateway.setting import fields_by_key

KNOWN = ("include", "defaults", "endpoints", *SECTIONS)  # in the order of reading
SHARED = frozenset({"include", "defaults", "endpoints", "routes", "tests"})  # by several files
SUFFIXES = (".yaml", ".yml")
MAX_INCLUDE_DEPTH = 32  # files that include each other


class FileReader:
    """Content of the files read so far, and all findings.

    Mutable: each file adds to it.
    """

    def __init__(
        self,
        environment: Mapping[str, str] | None,
        *,
        without_secrets: bool,
        only: Collection[str] = (),
    ) -> None:
        """Read all sections, or `only` some of the process, whatever the others are like.

        Of these, a secret without a value is None: the command may not need it.
        """
        self._only = {*only, "include"} if only else set()
        self.file_findings: list[ConfigError] = []  # of files that cannot be read
        self.endpoints: dict[str, Endpoint] = {}
        self._settings: dict[str, tuple[EndpointSettings, Place]] = {}  # of endpoints
        self.endpoint_names: set[str] = set()  # with those of endpoints that have findings
        self.names_complete = True  # False when endpoints may stand where nothing could be read
        self.routes: dict[str, tuple[RouteSettings, Place]] = {}
        self.tests: dict[str, MappingTest] = {}
        self.sections: dict[str, tuple[Any, Place]] = {}  # those of the process, by name
        self.hidden = HiddenValues(secret=not without_secrets)
        self._values = partial(
            ReferenceValues, environment, without_secrets=without_secrets, may_lack=bool(only)
        )
        self._readers: list[ConfigReader] = []
        self._places: dict[KeyPath, SourceLocation] = {}  # of sections and names, by key
        self._read: set[Path] = set()
        self._gateways: list[SourceLocation] = []  # the section, in files of the folder
        self._open: list[Path] = []  # the files that include the one being read, and it, last
        self._defaults = RouteDefaults()  # of the file being read
        self._unsound: set[KeyPath] = set()  # keys of endpoints and routes that have findings

    def read_all(self, path: Path) -> None:
        """Read a file, or each file of a folder, with the files that they include."""
        for each in self._files(path) if path.is_dir() else [path]:
            self.read(each)

    def _files(self, folder: Path) -> Sequence[Path]:
        """Return the files of a folder, in order; report a folder that has none."""
        start = SourceLocation(str(folder), 1, 1)
        try:
            names = sorted(folder.iterdir())
        except OSError as error:
            reason = f"cannot read the folder: {error.strerror}"
            self.file_findings.append(start.error("unreadable", reason))
            return ()
        found = [each for each in names if each.suffix in SUFFIXES]
        if not found:
            is_archive = names_an_archive(each.name for each in names)
            hint = "it is an archive: give the configuration of its gateway" if is_archive else ""
            self.file_findings.append(start.error("empty", "the folder has no .yaml file", hint))
        return found

    def read(self, path: Path) -> None:
        """Add the content of one file, unless it was read before."""
        if (resolved := path.resolve()) in self._read:
            return
        self._read.add(resolved)
        try:
            root = load_mapping(path)
        except ConfigError as error:
            self.file_findings.append(error)
            self.names_complete = False
            return
        if not self._open and self._is_other_gateway(path, root):
            self.names_complete = False
            return
        reader = ConfigReader(str(path), self._values(path.parent), self.hidden)
        self._readers.append(reader)
        if not self._only:
            reader.findings += [*key_faults(str(path), root), *tag_faults(str(path), root)]
        outer, self._defaults = self._defaults, RouteDefaults()
        self._open.append(path)
        for key, node in sorted(entries(root), key=lambda entry: _rank(entry[0].value)):
            if self._only and key.value not in self._only:
                continue
            if key.value not in KNOWN:
                location = location_of(str(path), key)
                reader.findings.append(self._unknown_section(location, key.value))
                self.names_complete = False
            elif key.value in SHARED or self._is_new(Place(reader, (key.value,)), key):
                read = getattr(self, f"_read_{key.value}", self._read_section)
                read(Place(reader, (key.value,)), node)
        self._open.pop()
        self._defaults = outer

    def _is_other_gateway(self, path: Path, root: yaml.MappingNode) -> bool:
        """Return whether another file of the folder also has a section `gateway`.

        Such a file is not read further: each of its sections would be a finding.
        """
        for key, _ in entries(root):
            if key.value == "gateway":
                self._gateways.append(location_of(str(path), key))
                return len(self._gateways) > 1
        return False

    def _gateway_findings(self) -> Iterator[ConfigError]:
        """Yield one finding where several files of the folder have a section `gateway`."""
        if len(self._gateways) > 1:
            first, second, *_ = self._gateways
            reason = f"section 'gateway' stands in {first.path}:{first.line}, too"
            files = " ".join(shlex.quote(each.path) for each in self._gateways)
            hint = f"write it once; where each file is a gateway: gateway check {files}"
            yield second.error("duplicate", reason, hint)

    def _unknown_section(self, location: SourceLocation, name: str) -> ConfigError:
        """Return the finding; an included file may be a secret, and its text is not shown."""
        included = len(self._open) > 1
        shown = "" if included and not get_close_matches(name, KNOWN, n=1) else f" {name!r}"
        hint = did_you_mean(name, KNOWN)
        return location.error("unknown-section", f"unknown section{shown}", hint)

    @contextmanager
    def noting_soundness(self, place: Place) -> Iterator[None]:
        """Note whether what is read within adds a finding to the endpoint or route of `place`."""
        before = len(place.reader.findings)
        yield
        if len(place.reader.findings) > before:
            self._unsound.add(place.at)

    def is_sound(self, section: str, name: str) -> bool:
        """Return whether an endpoint or a route has no finding of its own."""
        return (section, name) not in self._unsound

    @property
    def route_names(self) -> set[str]:
        """The names of all routes, with those that have findings."""
        return {str(at[1]) for at in self._places if at[0] == "routes" and len(at) > 1}

    @property
    def has_spool(self) -> bool:
        """Whether there is a section `spool`, also one with findings."""
        return ("spool",) in self._places

    def findings(self) -> list[ConfigError]:
        """Return all findings, in the order of files, lines and columns, without values.

        A finding about a default value is the same for every route that takes it.
        """
        about_files = (*self.file_findings, *self._gateway_findings())
        found = chain(about_files, *(reader.findings for reader in self._readers))
        return self.hidden.hide_all_in(found, self.locations())

    def add_setting_faults(self) -> None:
        """Report the settings with which no connection is possible, beside other findings."""
        for name, (settings, place) in self._settings.items():
            for at, reason, hint in setting_faults(name, settings):
                place.reader.report(at, "setting", reason, hint)

    def locations(self) -> dict[KeyPath, SourceLocation]:
        """Return the locations of all values."""
        return {at: each for reader in self._readers for at, each in reader.locations.items()}

    def placeholders(self) -> frozenset[KeyPath]:
        """Return the keys of all values with a placeholder; none with secrets."""
        return frozenset(at for reader in self._readers for at in reader.placeholders)

    def paths(self) -> dict[KeyPath, WrittenPath]:
        """Return the paths of all settings."""
        return {at: each for reader in self._readers for at, each in reader.paths.items()}

    def _read_include(self, place: Place, node: yaml.Node) -> None:
        """Read the included files; their paths are relative to the including file."""
        before = len(place.reader.findings)
        for number, name in enumerate(place.read(node, tuple[str, ...]) or ()):
            path = self._open[-1].parent / name
            if _is_file(path) and path.resolve() in {each.resolve() for each in self._open}:
                reason = f"{name!r} includes itself, through {len(self._open)} files"
                place[number].report("recursive-include", reason)
            elif not _is_file(path):
                place[number].report("unreadable", f"no file {quoted(name)} to include")
            elif len(self._open) == MAX_INCLUDE_DEPTH:
                reason = f"{name!r} is nested deeper than {MAX_INCLUDE_DEPTH} includes"
                place[number].report("recursive-include", reason)
            else:
                written = node.value[number].value if isinstance(node.value, list) else node.value
                if written != name:
                    self.hidden.add_path(written, str(path))
                self.read(path)
        self.names_complete &= len(place.reader.findings) == before

    def _read_endpoints(self, place: Place, node: yaml.Node) -> None:
        if isinstance(node, yaml.MappingNode):
            self.endpoint_names |= {key.value for key, _ in entries(node)}
        else:
            self.names_complete = False
        for name, here, child in self._read_names(place, node):
            with self.noting_soundness(here):
                if (found := _read_settings(name, here, child)) is not None:
                    settings, common = found
                    self._settings[name] = settings, here
                    if (endpoint := make_endpoint(settings, common, here)) is not None:
                        self.endpoints[name] = endpoint

    def check_earlier_names(self) -> None:
        """Report each `was` whose memory belongs to another endpoint, when all are read."""
        taken: dict[str, str] = {}
        for name, endpoint in self.endpoints.items():
            if not (was := endpoint.was):
                continue
            place = self._settings[name][1]["was"]
            if was in self.endpoint_names:
                reason = f"`was: {was}` names an endpoint that goes on itself"
                place.report("setting", reason, "write the name that no endpoint has any more")
            elif was in taken:
                reason = f"{taken[was]!r} goes on as {was!r} already"
                place.report("setting", reason, "one endpoint goes on with a memory and copies")
            taken.setdefault(was, name)

    def _read_defaults(self, place: Place, node: yaml.Node) -> None:
        self._defaults.read(place, node)

    def _read_section(self, place: Place, node: yaml.Node) -> None:
        """Read a section that configures the process, and check it."""
        name = str(place.at[0])
        kind: Any = SECTIONS[name]
        settings: Any = place.read(node, tuple[kind, ...] if name in LISTS else kind)
        if settings is not None:
            self.sections[name] = settings, place
            if (check := SECTION_CHECKS.get(name)) is not None:
                check(settings, place)

    def _read_routes(self, place: Place, node: yaml.Node) -> None:
        if self._defaults.broken:
            self._read_values(place, node)
            return
        for name, here, child in self._read_names(place, node):
            with self.noting_soundness(here):
                filled = _with_ends(here, self._defaults.fill(place.reader, child))
                if (settings := here.read(filled, RouteSettings)) is not None:
                    self.routes[name] = settings, here

    def _read_values(self, place: Place, node: yaml.Node) -> None:
        """Report faults of the values of routes, and not what they lack: defaults may have it."""
        before = len(place.reader.findings)
        for _, here, child in self._read_names(place, node):
            here.read(self._defaults.fill(place.reader, child), RouteSettings)
        found = place.reader.findings[before:]
        place.reader.findings[before:] = [each for each in found if each.rule != "missing-field"]

    def _read_tests(self, place: Place, node: yaml.Node) -> None:
        for name, here, child in self._read_names(place, node):
            if (test := here.read(child, MappingTest)) is not None:
                self.tests[name] = test

    def _read_names(self, place: Place, node: yaml.Node) -> Iterator[tuple[str, Place, yaml.Node]]:
        """Yield the entries of a section by name; report illegal and repeated names."""
        reader, section = place.reader, place.at[0]
        reader.locations[place.at] = location_of(reader.path, node)
        expected = f"{section}: expected names with their settings"
        for key, child in reader.entries(node, place.at, expected) or ():
            here = place[key.value]
            reader.locations[here.at] = location_of(reader.path, key)
            if section != "tests" and not is_legal_name(key.value):  # any text names a test
                report_name(here, key.value)
            elif self._is_new(here, key):
                yield key.value, here, child

    def _is_new(self, place: Place, key: yaml.Node) -> bool:
        """Return whether no other file has this section or name; report both places if one has."""
        at, here = place.at, location_of(place.reader.path, key)
        first = self._places.setdefault(at, here)
        if first.path == here.path:  # written twice in one file: `key_faults`
            return True
        what = f"section {at[0]!r}" if len(at) == 1 else f"{at[0]} {at[1]!r}"
        reason = f"{what} stands in {first.path}:{first.line}, too"
        place.reader.findings.append(here.error("duplicate", reason, "write it once"))
        return False


def _with_ends(place: Place, route: yaml.Node) -> yaml.Node:
    """Return the node of a route; an absent end is reported, and an empty list stands for it.

    Such a route has no `direction`, about which there is nothing to say before both ends are there.
    """
    if not isinstance(route, yaml.MappingNode):
        return route
    present = {key.value for key, _ in entries(route)}
    fields = fields_by_key(RouteSettings)
    added: list[tuple[yaml.Node, yaml.Node]] = []
    for key in (key for key in ("from", "to") if key not in present):
        place.report("missing-field", f"missing field {key!r}", fields[key].metadata["doc"])
        place.reader.silence(place[key].at)
        marks = route.start_mark, route.end_mark
        name = yaml.ScalarNode("tag:yaml.org,2002:str", key, *marks)
        added.append((name, yaml.SequenceNode("tag:yaml.org,2002:seq", [], *marks)))
    kept = [each for each in route.value if not added or each[0].value != "direction"]
    return yaml.MappingNode(route.tag, [*kept, *added], route.start_mark, route.end_mark)


def _is_file(path: Path) -> bool:
    """Return whether there is such a file; False for an illegal path."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _rank(section: str) -> int:
    return KNOWN.index(section) if section in KNOWN else len(KNOWN)


def _read_settings(
    name: str, place: Place, node: yaml.Node
) -> tuple[EndpointSettings, CommonEndpointSettings] | None:
    if not isinstance(node, yaml.MappingNode):
        place.report("type", "expected a mapping with `kind` and its settings")
        return None
    kinds = [value for key, value in entries(node) if key.value == "kind"]
    if not kinds:
        place.report("missing-field", "missing field 'kind'", did_you_mean("", ENDPOINT_KINDS))
        return None
    kind = place["kind"].read(kinds[0], str)
    if kind is None:
        return None
    if kind not in ENDPOINT_KINDS:
        near = kind_hint(kind) or did_you_mean(kind, ENDPOINT_KINDS)
        hint = ENDPOINT_KINDS.fault_of(kind) or near
        place["kind"].report("choice", f"unknown kind {kind!r}", hint)
        return None
    declared: Any = ENDPOINT_KINDS[kind].settings
    shared = fields_by_key(CommonEndpointSettings)
    others = {key.value for key, _ in entries(node)} - shared.keys()
    found = place.read(node, declared, {**dict.fromkeys(shared), "kind": None, "name": name})
    common = place.read(node, CommonEndpointSettings, dict.fromkeys(others))
    return None if found is None or common is None else (found, common)
