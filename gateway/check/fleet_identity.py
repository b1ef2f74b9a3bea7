"""Findings about a fleet: brokers without an identity, and names that two gateways share there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from gateway.check.fleet_brokers import Brokers, FleetEnd, FleetGateway
from gateway.config.nodes import KeyPath
from gateway.errors import ConfigError

MAX_NAMED = 3  # endpoints that a hint names

Found: TypeAlias = tuple[FleetGateway, ConfigError]


def broker_findings(brokers: Brokers) -> Iterator[Found]:
    """Yield brokers without a `broker_id`, with several ones, and with several addresses."""
    yield from _unidentified(brokers)
    yield from _several_ids(brokers)
    yield from _several_addresses(brokers)


def _unidentified(brokers: Brokers) -> Iterator[Found]:
    """Yield a warning for each broker of a file whose endpoints lack a `broker_id`."""
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
        yield found_at(
            first.gateway, at, "no-broker-id", reason, _id_hint(first, brokers), "warning"
        )


def _id_hint(end: FleetEnd, brokers: Brokers) -> str:
    """Return the `broker_id` to write, and where."""
    known = sorted({each for address in end.addresses for each in brokers.ids_at[address]})
    joined = [each for each in brokers.ends if brokers.assumed[each] == brokers.assumed[end]]
    known = known or sorted({each.broker_id for each in joined} - {""})
    texts = " or ".join(f"`broker_id: {each}`" for each in known or [end.proposed_id])
    elsewhere = [each.label for each in joined if each.gateway is not end.gateway]
    hint = f"write {texts}"
    if elsewhere:
        hint += f", as at {_names(elsewhere)} if they are one broker"
    perhaps = [f"{each.label!r} ({each.address})" for each in brokers.candidates(end)]
    if perhaps:
        shown = " or ".join(perhaps[:MAX_NAMED]) + (" or others" if perhaps[MAX_NAMED:] else "")
        hint += f"; and the same at {shown} if that is this broker, else another one there"
    return hint


def _several_ids(brokers: Brokers) -> Iterator[Found]:
    """Yield a warning for each address with several `broker_id`s."""
    for first, last in brokers.rivals():
        reason = (
            f"{last.address} is {last.broker_id!r} here and {first.broker_id!r} at {first.label!r}"
        )
        hint = "write one `broker_id` if it is one broker: a loop through it is not seen"
        at = ("endpoints", last.name, "broker_id")
        yield found_at(last.gateway, at, "broker-address", reason, hint, "warning")


def _several_addresses(brokers: Brokers) -> Iterator[Found]:
    """Yield a note for each `broker_id` with several addresses."""
    by_id: defaultdict[str, list[FleetEnd]] = defaultdict(list)
    for end in brokers.ends:
        if end.broker_id:
            by_id[end.broker_id].append(end)
    for name, (first, *others) in by_id.items():
        other = next((each for each in others if not _is_one_address(first, each)), None)
        if other is not None:
            reason = (
                f"broker {name!r} is {other.address} here and {first.address} at {first.label!r}"
            )
            hint = (
                "nothing to do when it is one broker; else give each its own `broker_id`, or"
                " messages between them are cut"
            )
            at = ("endpoints", other.name, "broker_id")
            yield found_at(other.gateway, at, "broker-addresses", reason, hint, "note")


def _is_one_address(one: FleetEnd, other: FleetEnd) -> bool:
    """Return whether two endpoints with one `broker_id` certainly reach one address."""
    if one.gateway is other.gateway and one.own == other.own:
        return set(one.settings.broker_keys) == set(other.settings.broker_keys)
    return bool(one.addresses & other.addresses)


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


def _names(labels: Sequence[str]) -> str:
    shown = [repr(each) for each in labels[:MAX_NAMED]]
    return " and ".join([*shown, *(["others"] if labels[MAX_NAMED:] else [])])


def found_at(  # noqa: PLR0913, PLR0917  # the parts of one finding
    gateway: FleetGateway, at: KeyPath, rule: str, reason: str, hint: str, severity: str = "error"
) -> Found:
    """Return a finding at a key of the configuration of `gateway`."""
    return gateway, gateway.configuration.location_of(at).error(rule, reason, hint, severity)
