"""What the proofs say of a configuration, each finding at its place; it opens nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gateway.check.encryption import exposures
from gateway.check.header_typos import nearly_fields
from gateway.check.one_way import one_way
from gateway.config.build import BACK, At
from gateway.config.load import Configuration, load
from gateway.config.nodes import Place
from gateway.errors import ConfigError, ConfigErrors, Example
from gateway.model.message import DeliveryMode
from gateway.proofs import Finding, prove
from gateway.routing.route import Route, Target

APART = "write two routes, each with an `exclude` of its own, in place of `direction: both`"


def load_proven(path: Path) -> Configuration:
    """A configuration that has no error and whose proofs have none.

    Raises:
        ConfigErrors: every error, of the file or of a proof.
    """
    configuration = load(path)
    if errors := [each for each in examine(configuration) if each.severity == "error"]:
        raise ConfigErrors(errors)
    return configuration


def examine(configuration: Configuration) -> list[ConfigError]:
    """Every finding of the proofs, in file order; errors, warnings and notes."""
    brokers = {
        name: endpoint.settings.broker_key for name, endpoint in configuration.endpoints.items()
    }
    found = [_placed(each, configuration) for each in prove(configuration.routes, brokers)]
    for route in configuration.routes:
        if route.inverse and not route.name.endswith(BACK):
            found += _uncut_loops(route, configuration)
    found += [*nearly_fields(configuration), *one_way(configuration)]
    found += [
        _place(each.at, configuration).error(each.rule, each.reason, each.hint, each.severity)
        for each in exposures(configuration.endpoints)
    ]
    return sorted(found, key=lambda each: (each.path, each.line, each.column))


def effective_mode(route: Route, target: Target, configuration: Configuration) -> DeliveryMode:
    """What the way from the source to `target` promises: as much as the weaker of its ends."""
    ends = (route.endpoint, target.endpoint)
    return min(configuration.endpoints[name].settings.mode for name in ends)


def lost_fields(route: Route, target: Target, configuration: Configuration) -> list[str]:
    """Headers that the source's system carries and the target's does not."""
    source, end = (
        configuration.endpoints[name].settings.carries for name in (route.endpoint, target.endpoint)
    )
    return sorted(source - end - {"redelivered"})


def _placed(finding: Finding, configuration: Configuration) -> ConfigError:
    at: At = ("routes", finding.route.removesuffix(BACK))
    if finding.route.endswith(BACK):
        at = (*at, "direction")
    elif finding.target is not None:
        at = (*at, "to", finding.target)
    elif finding.source is not None:
        at = (*at, "from", finding.source)
    place = _place(at, configuration)
    reason = f"route {finding.route!r}: {finding.text}"
    severity: str = finding.severity
    if finding.rule == "past-limit" and severity == "warning" and _length_meant(at, configuration):
        severity = "note"
    hint = finding.hint
    if finding.rule == "not-inverse" and finding.route.endswith(BACK):
        hint = APART  # a route that is derived has no line of its own to mend
    examples = tuple(
        Example(name, end, configuration.endpoints[end].dialect.name)
        for name, end in zip(finding.example, finding.ends, strict=True)
    )
    return place.error(finding.rule, reason, hint, severity, examples)


def _length_meant(at: At, configuration: Configuration) -> bool:
    """Whether `length` is written out for this target: then refusing names is what is wanted."""
    back = at[2:] == ("direction",)  # derived from the one target that is written
    name, number = (f"{at[1]}{BACK}", 0) if back else (at[1], at[3] if len(at) > 3 else None)  # noqa: PLR2004
    if (*at[:2], "to", number, "length") in configuration.places:
        return True
    for route in configuration.routes:
        if route.name == name and isinstance(number, int):
            endpoint = route.targets[number].endpoint
            return ("endpoints", endpoint, "length") in configuration.places
    return False


def _uncut_loops(route: Route, configuration: Configuration) -> Iterator[ConfigError]:
    for name in (route.endpoint, route.targets[0].endpoint):
        if "origin" not in configuration.endpoints[name].settings.carries:
            place = _place(("routes", route.name, "direction"), configuration)
            reason = (
                f"route {route.name!r}: messages at {name!r} have no room for an origin path, so"
                " what comes back is told by its name and payload, within 30 s and by this"
                " gateway alone"
            )
            hint = "use MQTT 5 there when other bridges join the same brokers"
            yield place.error("echo", reason, hint, "note")


def _place(at: At, configuration: Configuration) -> Place:
    while at and at not in configuration.places:
        at = at[:-1]
    return configuration.places.get(at, Place("", 1, 1))
