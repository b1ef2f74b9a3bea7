"""Configuration files to endpoints, routes and sections, or a list of findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gateway.config import process
from gateway.config.build import build_routes
from gateway.config.build_endpoint import Endpoint, RouteContext
from gateway.config.file_reader import FileReader
from gateway.config.hidden_values import HiddenValues
from gateway.config.named_files import WrittenPath
from gateway.config.names_of import RULE, check_short_names
from gateway.config.nodes import KeyPath, SourceLocation
from gateway.config.schema import MappingTest
from gateway.config.state_check import check_states
from gateway.config.state_settings import StateSettings
from gateway.dialects.base import parse_subject
from gateway.errors import ConfigError, ConfigErrors
from gateway.proofs.reverse_route import REVERSE_SUFFIX
from gateway.routing.route import Route, WhenFull
from gateway.translate.shorten import ShortNamesInMemory


@dataclass(frozen=True)
class Configuration:
    """A configuration without errors."""

    gateway: process.GatewaySettings
    endpoints: Mapping[str, Endpoint]
    routes: tuple[Route, ...]
    dictionary: ShortNamesInMemory  # the names that its routes have shortened
    locations: Mapping[KeyPath, SourceLocation]
    tests: Mapping[str, MappingTest]
    archive: process.ArchiveSettings | None = None
    spool: process.SpoolSettings | None = None
    dead_letters: process.DeadLetterSettings = field(default_factory=process.DeadLetterSettings)
    web: process.WebSettings | None = None
    tracing: process.TracingSettings | None = None
    standby: process.StandbySettings | None = None
    state: Sequence[StateSettings] = ()
    hidden: HiddenValues = field(default_factory=HiddenValues)
    paths: Mapping[KeyPath, WrittenPath] = field(default_factory=dict)
    without_secrets: bool = False
    placeholders: frozenset[KeyPath] = frozenset()  # keys with unknown values
    notes: Sequence[ConfigError] = ()  # values that are not known without secrets

    @cached_property
    def brokers(self) -> Mapping[str, str]:
        """A key of the broker of each endpoint: its `broker_id`, else its address.

        An endpoint without a `broker_id` is at the named broker of its address, where there is one.
        Two names at one address are two brokers. Names of one broker may stand in spaces of it.
        """
        named: dict[str, set[str]] = {}
        for each in self.endpoints.values():
            if each.broker.given:
                named.setdefault(each.broker.address, set()).add(each.broker.given)
        found: dict[str, str] = {}
        for name, each in self.endpoints.items():
            ids = (
                {each.broker.given} if each.broker.given else named.get(each.broker.address, set())
            )
            key = f"id {next(iter(ids))}" if len(ids) == 1 else each.broker.address
            found[name] = f"{key} {each.broker.space}".rstrip()
        return found

    def first_name(self, name: str) -> str:
        """Return the first name of the endpoint `name`: its memory and its spool have that one."""
        return self.endpoints[name].was or name

    def present_name(self, name: str) -> str:
        """Return the name of the endpoint that was called `name` first; else `name` itself."""
        if name in self.endpoints:
            return name
        return next((new for new, each in self.endpoints.items() if each.was == name), name)

    def present_label(self, label: str) -> str:
        """Return the label that a target has now, by one of a row in the archive."""
        name = label.partition(":")[0].partition("#")[0]  # a further target, a further copy
        return self.present_name(name) + label.removeprefix(name)

    def broker_selector(self, name: str) -> str:
        """Return the selector that the broker of the endpoint `name` evaluates; "" for none.

        Where its routes do not have the same one, the gateway evaluates each.
        """
        if not self.endpoints[name].settings.evaluates_selectors:
            return ""
        routes = (route for route in self.routes if route.endpoint == name)
        texts = {route.selector.text if route.selector else "" for route in routes}
        return texts.pop() if len(texts) == 1 else ""

    def location_of(self, at: KeyPath) -> SourceLocation:
        """Return the location of a key, or of the nearest key above it that a file contains."""
        while at and at not in self.locations:
            at = at[:-1]
        return self.locations.get(at, SourceLocation("", 1, 1))


def load(
    path: Path, environment: Mapping[str, str] | None = None, *, without_secrets: bool = False
) -> Configuration:
    """Read one file, or all YAML files of a folder in order of their names.

    Without secrets every reference has a placeholder as its value: such a configuration can be
    checked, and must not run.

    Raises:
        ConfigErrors: every finding of every file, in file order.
    """
    configuration, findings = load_sound(path, environment, without_secrets=without_secrets)
    if findings:
        raise ConfigErrors(findings)
    return configuration


def load_sound(
    path: Path, environment: Mapping[str, str] | None = None, *, without_secrets: bool = False
) -> tuple[Configuration, list[ConfigError]]:
    """Read files as `load` does, and return what has no finding where others have.

    The findings are empty where none is an error. Else they are all findings of every file, and
    the configuration has the routes and endpoints without one: it can be checked, and must not
    run.
    """
    files = FileReader(environment, without_secrets=without_secrets)
    files.read_all(path)
    configuration, findings = _finish(path, files)
    return replace(configuration, without_secrets=without_secrets), findings


def load_sections(path: Path, *names: str) -> Mapping[str, Any]:
    """Return sections of the process by name, without those that the files do not have.

    The other sections are not read: they may have findings. A secret without a value is None.

    Raises:
        ConfigErrors: every finding of these sections, and of files that are not YAML.
    """
    files = FileReader(None, without_secrets=False, only=names)
    files.read_all(path)
    if findings := files.findings():
        raise ConfigErrors(findings)
    return {name: settings for name, (settings, _) in files.sections.items()}


def _finish(path: Path, files: FileReader) -> tuple[Configuration, list[ConfigError]]:
    """Build the routes of all files, as `load_sound` returns them."""
    dictionary = ShortNamesInMemory()
    sections = {name: settings for name, (settings, _) in files.sections.items()}
    spool = sections.get("spool")
    when_full = WhenFull(spool.when_full if spool else "slow")
    context = RouteContext(
        files.endpoints,
        files.endpoint_names,
        dictionary,
        when_full,
        files.names_complete,
        files.route_names,
    )
    routes = _build_all(files, context)
    files.check_earlier_names()
    if "dead_letters" in files.sections:
        _check_dead_letters(files, context)
    if "state" in files.sections:
        states, place = files.sections["state"]
        check_states(states, routes, context, place)
    endpoints: Mapping[str, Endpoint] = files.endpoints
    notes, findings = files.findings(), list[ConfigError]()
    none = not files.routes and not notes
    if none or any(each.severity == "error" for each in notes):
        files.add_setting_faults()
        notes, findings = [], files.findings()
        if none:
            section = files.locations().get(("routes",))
            start = section or SourceLocation(str(path), 1, 1)
            hint = "add a route" if section else "add a section `routes:`"
            findings.insert(0, start.error("no-routes", "no routes", hint))
        endpoints = {
            name: each for name, each in endpoints.items() if files.is_sound("endpoints", name)
        }
        routes = [each for each in routes if _is_sound(each, endpoints, files)]
    gateway = sections.setdefault("gateway", process.GatewaySettings())
    return Configuration(
        endpoints={
            name: replace(each, settings=each.settings.for_gateway(gateway.name, each.was or name))
            for name, each in endpoints.items()
        },
        routes=tuple(routes),
        dictionary=dictionary,
        locations=files.locations(),
        tests=files.tests,
        hidden=files.hidden,
        paths=files.paths(),
        placeholders=files.placeholders(),
        notes=notes,
        **sections,
    ), findings


def _is_sound(route: Route, endpoints: Mapping[str, Endpoint], files: FileReader) -> bool:
    """Return whether neither a route nor one of its endpoints has a finding."""
    used = {route.endpoint, *(target.endpoint for target in route.targets)}
    return (
        files.is_sound("routes", route.name.removesuffix(REVERSE_SUFFIX))
        and used <= endpoints.keys()
    )


def _build_all(files: FileReader, context: RouteContext) -> list[Route]:
    """Build the routes, each behind those whose names it takes; return them in file order."""
    left, made = dict(files.routes), dict[str, list[Route]]()
    while left:
        ready = [
            name
            for name, (settings, _) in left.items()
            if left.keys().isdisjoint(each.names_of for each in settings.sources)
        ]
        for name in ready or [*left]:
            settings, place = left.pop(name)
            with files.noting_soundness(place):
                if not ready:
                    reason = "routes take the names of each other in a circle"
                    place["from"].report(RULE, reason, "let one of them take a `pattern`")
                made[name] = build_routes(name, settings, context, place)
            if files.is_sound("routes", name):
                context.built[name] = made[name]
    routes = [each for name in files.routes for each in made[name]]
    check_short_names(routes, {name: place for name, (_, place) in files.routes.items()})
    return routes


def _check_dead_letters(files: FileReader, context: RouteContext) -> None:
    """Report faults of the section `dead_letters`."""
    settings, place = files.sections["dead_letters"]
    copied = settings.endpoint is not None and "archive" in files.sections  # may be on its way
    if not files.has_spool and not copied:
        hint = "an `endpoint` that receives copies of them and an `archive` that keeps their rows"
        if "standby" in files.sections:  # whose instances have no disk in common
            hint = f"a pair has no spool: add {hint}"
        else:
            hint = f"add a section `spool` with a `path`, or {hint}"
        place.report("no-spool", "dead letters are kept in the folder of the spool", hint)
    if settings.endpoint is None:
        return
    endpoint = context.find(settings.endpoint, place["endpoint"])
    if endpoint is not None:
        hint = "write a name of that endpoint"
        place["name"].parse(parse_subject, settings.name, endpoint.dialect, hint=hint)
