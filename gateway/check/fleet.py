"""Collect the findings about several gateways together, each at its place in one of the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from gateway.check.examine import as_config_error
from gateway.check.fleet_brokers import Brokers, FleetGateway
from gateway.check.fleet_identity import Found, broker_findings, found_at, name_findings
from gateway.config.load import Configuration
from gateway.errors import ConfigError
from gateway.proofs.fleet import prove_fleet
from gateway.routing.route import Route

UNDECIDED = frozenset({"cycle", "possible-cycle", "delivered-twice", "copies", "unproven"})


@dataclass(frozen=True)
class FleetResult:
    """The findings about a fleet, for each configuration, and what they leave open.

    `unidentified` of `endpoints` have no `broker_id`. `proven`: there is no cycle and no double.
    `doubted`: a finding asks whether a `broker_id` is right.
    """

    findings: tuple[list[ConfigError], ...]
    endpoints: int
    unidentified: int
    proven: bool
    doubted: bool


def examine_fleet(configurations: Sequence[tuple[Path, Configuration]]) -> FleetResult:
    """Return the findings that no file has alone; one instance of a pair stands for both."""
    gateways = _labelled(configurations)
    found = list(_equal_gateways(gateways))
    brokers = Brokers([each for each in gateways if not _is_second_of_pair(each, gateways)])
    about_routes = list(_route_findings(brokers))
    about_brokers = list(broker_findings(brokers))
    found += [*about_routes, *about_brokers, *name_findings(brokers)]
    open_ends = [end for end in brokers.ends if not end.is_identified]
    undecided = any(each.rule in UNDECIDED for _, each in about_routes)
    return FleetResult(
        tuple(_findings_of(each, found, gateways) for each in gateways),
        len(brokers.ends),
        len(open_ends),
        not undecided and not open_ends,
        any(map(_is_doubt, about_brokers)),
    )


def _is_doubt(found: Found) -> bool:
    """Return whether a finding about brokers asks if a `broker_id` is right: not each note does."""
    _, finding = found
    return finding.rule == "broker-address" or finding.severity == "warning"


def _findings_of(
    gateway: FleetGateway, found: Sequence[Found], gateways: Sequence[FleetGateway]
) -> list[ConfigError]:
    """Return the findings in the files of one gateway, without the values of references."""
    own = gateway.configuration
    shown = [_hidden(each, gateway, gateways) for place, each in found if place is gateway]
    return own.hidden.hide_all_in(shown, own.locations)


def _labelled(configurations: Sequence[tuple[Path, Configuration]]) -> list[FleetGateway]:
    names = [each.gateway.name for _, each in configurations]
    return [
        FleetGateway(
            name if names.count(name) == 1 and not _has_unknown_name(configuration) else str(path),
            path,
            configuration,
        )
        for name, (path, configuration) in zip(names, configurations, strict=True)
    ]


def _has_unknown_name(configuration: Configuration) -> bool:
    return ("gateway", "name") in configuration.placeholders


def _are_pair(one: FleetGateway, other: FleetGateway) -> bool:
    """Return whether two files are those of the two instances of one gateway."""
    mine, theirs = one.configuration, other.configuration
    return (
        mine.gateway.name == theirs.gateway.name
        and mine.standby is not None
        and theirs.standby is not None
        and mine.gateway.instance != theirs.gateway.instance
    )


def _is_second_of_pair(gateway: FleetGateway, gateways: Sequence[FleetGateway]) -> bool:
    return any(_are_pair(each, gateway) for each in gateways[: gateways.index(gateway)])


def _equal_gateways(gateways: Sequence[FleetGateway]) -> Iterator[Found]:
    for one, other in combinations(gateways, 2):
        mine, theirs = one.configuration, other.configuration
        if _has_unknown_name(mine) or _has_unknown_name(theirs) or _are_pair(one, other):
            continue
        if mine.gateway.name == theirs.gateway.name:
            reason = f"gateway name {theirs.gateway.name!r} is also that of {one.path}"
            hint = (
                "write `gateway: {name: ...}`, another one for each: paths and rows are told by it"
            )
            yield found_at(other, ("gateway", "name"), "equal-gateway", reason, hint)


def _route_findings(brokers: Brokers) -> Iterator[Found]:
    """Yield the findings of the proofs over the routes of all gateways."""
    routes = [
        _renamed(route, each.label)
        for each in brokers.gateways
        for route in each.configuration.routes
    ]
    labels = {each.label: each for each in brokers.gateways}
    systems = {end.label: end.system for end in brokers.ends}
    for finding in prove_fleet(routes, brokers.fleet()):
        label, _, name = finding.route.rpartition(":")
        own = replace(finding, route=name)
        configuration = labels[label].configuration
        yield labels[label], as_config_error(own, configuration, systems, label=finding.route)


def _renamed(route: Route, label: str) -> Route:
    """Return a route whose names, and those of its endpoints, tell its gateway."""
    targets = tuple(
        replace(each, endpoint=f"{label}:{each.endpoint}", label=f"{label}:{each.label}")
        for each in route.targets
    )
    return replace(
        route,
        name=f"{label}:{route.name}",
        endpoint=f"{label}:{route.endpoint}",
        inverse=route.inverse and f"{label}:{route.inverse}",
        targets=targets,
    )


def _hidden(
    finding: ConfigError, own: FleetGateway, gateways: Sequence[FleetGateway]
) -> ConfigError:
    """Return a finding without the values of references in other files; `own` is its file's."""
    reason, hint, examples = finding.reason, finding.hint, finding.examples
    for each in gateways:
        if each is not own:
            hide = each.configuration.hidden.hide
            reason, hint = hide(reason, ("routes",)), hide(hint, ("routes",))
            examples = tuple(replace(one, name=hide(one.name, ("routes",))) for one in examples)
    where = (finding.path, finding.line, finding.column)
    return ConfigError(*where, finding.rule, reason, hint, finding.severity, examples)
