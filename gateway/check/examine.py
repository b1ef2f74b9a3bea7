"""Collect every finding about a configuration, each at its place in the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gateway.check.encryption import open_connections
from gateway.check.files import path_faults
from gateway.check.header_typos import header_typos
from gateway.check.lost_paths import lost_paths
from gateway.check.pairs import pair_findings
from gateway.check.removals import removals_of_own_copies, unselected_removals
from gateway.check.selectors import selector_faults
from gateway.check.states import states_read
from gateway.check.unlikely_settings import doubts
from gateway.config.build_endpoint import setting_faults
from gateway.config.load import Configuration, load_sound
from gateway.config.nodes import KeyPath
from gateway.endpoints.registry import find_kind
from gateway.errors import ConfigError, ConfigErrors, FindingExample
from gateway.proofs import RouteFinding, prove
from gateway.proofs.reverse_route import REVERSE_SUFFIX
from gateway.proofs.rules.limits import TOPIC_HINT
from gateway.routing.route import Route

WRITE_TWO_ROUTES = (
    "write two routes, each with an `exclude` of its own, in place of `direction: both`"
)
SET_TOO_LONG = "nothing to do: 'on_too_long: refuse' makes a dead letter of each"
SHORTEN_TO_SEND = ", and 'shorten' would send it"


def load_proven(path: Path) -> Configuration:
    """Load a configuration without errors in the file or in the proofs.

    Raises:
        ConfigErrors: every error, of the file and of the proofs.
    """
    configuration, found = load_examined(path)
    if errors := [each for each in found if each.severity == "error"]:
        raise ConfigErrors(errors)
    return configuration


def load_examined(
    path: Path, *, without_secrets: bool = False
) -> tuple[Configuration, list[ConfigError]]:
    """Return a configuration with every finding about it, in file order.

    Raises:
        ConfigErrors: the files have errors. They come with all other findings of the files, and
            with the errors of the proofs about the endpoints and routes without a finding.
    """
    configuration, findings = load_sound(path, without_secrets=without_secrets)
    if not findings:
        return configuration, examine(configuration)
    found = [*_proven_errors(configuration), *path_faults(configuration)]
    found += selector_faults(configuration)
    errors = [each for each in found if each.severity == "error"]
    locations = configuration.locations
    raise ConfigErrors(configuration.hidden.hide_all_in([*findings, *errors], locations))


def _proven_errors(configuration: Configuration) -> Iterator[ConfigError]:
    proved = prove(configuration.routes, configuration.brokers, only_errors=True)
    systems = _systems(configuration)
    return (as_config_error(each, configuration, systems) for each in proved)


def _systems(configuration: Configuration) -> Mapping[str, str]:
    return {name: each.dialect.name for name, each in configuration.endpoints.items()}


def examine(configuration: Configuration) -> list[ConfigError]:
    """Return every finding in file order: errors, warnings and notes."""
    proved = prove(configuration.routes, configuration.brokers)
    systems = _systems(configuration)
    once = _limits_once(proved, configuration)
    found = [as_config_error(each, configuration, systems) for each in once]
    for route in configuration.routes:
        if route.inverse and not route.name.endswith(REVERSE_SUFFIX):
            found += _echo_notes(route, configuration)
    found += [*header_typos(configuration), *open_connections(configuration)]
    found += [*path_faults(configuration), *_settings_faults(configuration), *configuration.notes]
    found += [*selector_faults(configuration), *pair_findings(configuration)]
    found += [*unselected_removals(configuration), *removals_of_own_copies(configuration)]
    found += [*lost_paths(configuration), *doubts(configuration), *states_read(configuration)]
    return configuration.hidden.hide_all_in(found, configuration.locations)


def _settings_faults(configuration: Configuration) -> Iterator[ConfigError]:
    for name, endpoint in configuration.endpoints.items():
        for at, reason, hint in setting_faults(name, endpoint.settings):
            location = configuration.location_of(at)
            known = at not in configuration.placeholders
            yield location.error("setting", reason, hint) if known else location.not_checked()


def startup_warnings(configuration: Configuration) -> list[ConfigError]:
    """Return the warnings that `gateway run` logs at its start."""
    found = [*open_connections(configuration)]
    found += doubts(configuration, ("memory-target", "broker-limits"))
    found += pair_findings(configuration)
    warnings = [each for each in found if each.severity == "warning"]
    return configuration.hidden.hide_all_in(warnings, configuration.locations)


def as_config_error(
    finding: RouteFinding,
    configuration: Configuration,
    systems: Mapping[str, str],
    *,
    label: str = "",
) -> ConfigError:
    """Return a finding at its place in the file; `systems` by endpoint, `label` names the route."""
    at = _key_path(finding)
    severity: str = finding.severity
    hint = finding.hint
    if finding.rule == "past-limit" and _sets_too_long(at, configuration):
        can_shorten = hint != TOPIC_HINT
        severity, hint = "note", SET_TOO_LONG + (SHORTEN_TO_SEND if can_shorten else "")
    if finding.rule == "not-inverse" and finding.route.endswith(REVERSE_SUFFIX):
        hint = WRITE_TWO_ROUTES  # a derived route has no line of its own to change
    examples = tuple(
        FindingExample(name, endpoint, systems[endpoint])
        for name, endpoint in zip(finding.example, finding.endpoints, strict=True)
    )
    reason = f"route {(label or finding.route)!r}: {finding.text}"
    location = configuration.location_of(at)
    return location.error(finding.rule, reason, hint, severity, examples)


def _limits_once(
    found: Sequence[RouteFinding], configuration: Configuration
) -> Iterator[RouteFinding]:
    """Yield the findings, of a route's `past-limit` one where it is a warning and one as a note.

    The others of the route differ in the length of a prefix only.
    """
    groups: dict[object, list[RouteFinding]] = {}
    for each in found:
        is_limit = each.rule == "past-limit"
        key = (each.route, _sets_too_long(_key_path(each), configuration)) if is_limit else id(each)
        groups.setdefault(key, []).append(each)
    for first, *others in groups.values():
        more = f"; {len(others)} more alike" if others else ""
        yield replace(first, text=first.text + more)


def _key_path(finding: RouteFinding) -> KeyPath:
    """Return the key that a finding is about; of a derived route it is `direction`."""
    at: KeyPath = ("routes", finding.route.removesuffix(REVERSE_SUFFIX))
    if finding.route.endswith(REVERSE_SUFFIX):
        return (*at, "direction")
    if finding.target is not None:
        return (*at, "to", finding.target)
    return (*at, "from", finding.source)


def _sets_too_long(at: KeyPath, configuration: Configuration) -> bool:
    """Return whether the file sets `on_too_long` for a target; then refusals are intended."""
    if at[2:] == ("direction",):  # the reverse route has the settings of the one target
        name, index = f"{at[1]}{REVERSE_SUFFIX}", 0
    elif isinstance(at[-1], int):
        name, index = str(at[1]), at[-1]
    else:
        return False
    if ("routes", at[1], "to", index, "on_too_long") in configuration.locations:
        return True
    endpoints = (
        route.targets[index].endpoint for route in configuration.routes if route.name == name
    )
    return ("endpoints", next(endpoints, ""), "on_too_long") in configuration.locations


def _echo_notes(route: Route, configuration: Configuration) -> Iterator[ConfigError]:
    """Yield a note for each endpoint of a route in both directions without an origin path."""
    for name in (route.endpoint, route.targets[0].endpoint):
        settings = configuration.endpoints[name].settings
        if "origin" not in settings.carries:
            location = configuration.location_of(("routes", route.name, "direction"))
            reason = (
                f"route {route.name!r}: messages at {name!r} carry no origin path, so echoes are"
                " recognised by name and payload, within 30 s and by this gateway alone"
            )
            yield location.error("echo", reason, find_kind(settings).origin_remedy, "note")
