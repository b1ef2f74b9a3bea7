"""Findings about a fleet: brokers without an identity, and names that two gateways share there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from typing import TypeAlias

from gateway.check.fleet_brokers import Brokers, FleetEnd, FleetGateway, are_apart
from gateway.check.fleet_proposals import MAX_NAMED, Proposals
from gateway.config.nodes import KeyPath
from gateway.errors import ConfigError

Found: TypeAlias = tuple[FleetGateway, ConfigError]


def broker_findings(brokers: Brokers) -> Iterator[Found]:
    """Yield brokers without a `broker_id`, with several ones, and with several addresses."""
    yield from _unidentified(brokers)
    yield from _several_ids(brokers)
    yield from _several_addresses(brokers)


def _unidentified(brokers: Brokers) -> Iterator[Found]:
    """Yield a warning for each broker of a file whose endpoints lack a `broker_id`."""
    proposals = Proposals(brokers)
    by_broker: defaultdict[str, list[FleetEnd]] = defaultdict(list)
    for end in brokers.ends:
        if not end.is_identified:
            by_broker[end.own].append(end)
    for first, *others in by_broker.values():
        word = "endpoints" if others else "endpoint"
        names = " and ".join(repr(each.name) for each in (first, *others))
        reason = (
            f"{word} {names} ({first.address}): no `broker_id`, so it is not proven which other"
            " gateways are at this broker"
        )
        at = ("endpoints", first.name)
        yield found_at(first.gateway, at, "no-broker-id", reason, proposals.hint(first), "warning")


def _several_ids(brokers: Brokers) -> Iterator[Found]:
    """Yield a finding for each address with several `broker_id`s.

    It is a note where the address is local: each of two sites may have a broker at `localhost`.
    """
    for first, here, *others in brokers.rivals():
        elsewhere = [first, *others]
        shown = [f"{each.broker_id!r} at {each.label!r}" for each in elsewhere[:MAX_NAMED]]
        more = ["others"] if elsewhere[MAX_NAMED:] else []
        reason = f"{here.address} is {here.broker_id!r} here and {' and '.join([*shown, *more])}"
        hint = "if these are one broker, write one `broker_id`: else a loop through it is not seen"
        is_local = any(each.is_local for each in (here, *elsewhere))
        if is_local:
            hint += "; if they are several, full names of their hosts end this note"
        at = ("endpoints", here.name, "broker_id")
        severity = "note" if is_local else "warning"
        yield found_at(here.gateway, at, "broker-address", reason, hint, severity)


def _several_addresses(brokers: Brokers) -> Iterator[Found]:
    """Yield a finding for each `broker_id` with several addresses.

    It is a warning where they look like several brokers.
    """
    for name, ends in brokers.named.items():
        pairs = [pair for pair in combinations(ends, 2) if not _is_one_address(*pair)]
        apart = [pair for pair in pairs if are_apart(*pair)]
        for first, other in (apart or pairs)[:1]:
            reason = (
                f"broker {name!r} is {other.address} here and {first.address} at {first.label!r}:"
                " if these are two brokers, messages from one do not arrive at the other"
            )
            hint = "give each broker its own `broker_id`; nothing to do when it is one broker"
            at = ("endpoints", other.name, "broker_id")
            severity = "warning" if apart else "note"
            yield found_at(other.gateway, at, "broker-addresses", reason, hint, severity)


def _is_one_address(one: FleetEnd, other: FleetEnd) -> bool:
    """Return whether two endpoints with one `broker_id` have one address."""
    if one.gateway is other.gateway and one.settings.broker_keys == other.settings.broker_keys:
        return True
    return bool(one.places & other.places)


def name_findings(brokers: Brokers) -> Iterator[Found]:
    """Yield client ids, and durable queues and consumers, that two gateways have at one broker."""
    known: dict[tuple[str, str, str], FleetEnd] = {}
    for end in brokers.ends:
        for key, name in _own_names(end):
            first = known.setdefault((brokers.assumed[end], key, name), end)
            if first.gateway is not end.gateway and not _is_derived(first, end, key):
                yield _equal_name(first, end, key, name, brokers)


def _is_derived(first: FleetEnd, end: FleetEnd, key: str) -> bool:
    """Return whether two names are equal because those of the gateways are, which is reported."""
    one, other = first.gateway.configuration, end.gateway.configuration
    written = _is_written(first, key) and _is_written(end, key)
    return one.gateway.name == other.gateway.name and not written


def _is_written(end: FleetEnd, key: str) -> bool:
    return ("endpoints", end.name, key) in end.gateway.configuration.locations


def _own_names(end: FleetEnd) -> Iterator[tuple[str, str]]:
    """Yield the setting and the value of each name that another gateway must not have."""
    settings = end.settings
    key = settings.client_key
    if key and getattr(settings, key) and not _is_unknown_name(end, key):
        yield key, getattr(settings, key)
    key = settings.durable_key
    if key and not _is_unknown_name(end, key):
        routes = [
            each.name for each in end.gateway.configuration.routes if each.endpoint == end.name
        ]
        names = dict.fromkeys(map(settings.durable_name, routes))
        yield from ((key, name) for name in names if name)


def _is_unknown_name(end: FleetEnd, key: str) -> bool:
    """Return whether a name is known to its machine only, or is made of that of the gateway."""
    if _is_written(end, key):
        return end.gateway.is_unknown("endpoints", end.name, key)
    return end.gateway.is_unknown("gateway", "name")


def _equal_name(first: FleetEnd, end: FleetEnd, key: str, name: str, brokers: Brokers) -> Found:
    condition = ""
    if brokers.stated[first] != brokers.stated[end]:
        condition = f"if {first.label!r} and {end.label!r} ({end.address}) are one broker: "
    if key == end.settings.client_key:
        rule, severity, effect = "equal-client-id", "error", "each ends the connection of the other"
        hint = f"give each gateway a `{key}` of its own"
    else:
        rule, effect = "equal-durable", "each message reaches one of the two gateways only"
        hint = f"give each gateway a `{key}` of its own, unless they are to share the messages"
        written = _is_written(first, key) and _is_written(end, key)
        severity = "warning" if written else "error"
    reason = f"{condition}`{key}` {name!r} is also that of {first.label!r}: {effect}"
    return found_at(end.gateway, ("endpoints", end.name, key), rule, reason, hint, severity)


def found_at(  # the parts of one finding
    gateway: FleetGateway, at: KeyPath, rule: str, reason: str, hint: str, severity: str = "error"
) -> Found:
    """Return a finding at a key of the configuration of `gateway`."""
    return gateway, gateway.configuration.location_of(at).error(rule, reason, hint, severity)
