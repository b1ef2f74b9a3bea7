"""The brokers of a fleet: which endpoints of several configurations are at one broker.

An equal `broker_id` states it, and so does an equal address within one file, unless two
`broker_id`s stand there. An endpoint without one has the broker of each equal address in another
file, as an assumption, unless the host is local.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

from gateway.config.load import Configuration
from gateway.endpoints.broker_names import (
    PLACEHOLDER,
    is_local_host,
    is_own_machine,
    proposed_broker_id,
)
from gateway.endpoints.registry import find_kind
from gateway.endpoints.settings.base import EndpointSettings
from gateway.proofs.fleet import FleetEndpoint

ADDRESS_KEYS = frozenset(
    {"host", "jndi_url", "lookup", "port", "properties", "servers", "url", "urls", "vpn"}
)


@dataclass(frozen=True, eq=False)
class FleetGateway:
    """One configuration of a fleet; `label` is the name of its gateway, or its path."""

    label: str
    path: Path
    configuration: Configuration

    @cached_property
    def endpoints(self) -> tuple[FleetEnd, ...]:
        """The endpoints of its routes, in the order of the file."""
        routes = self.configuration.routes
        used = {target.endpoint for route in routes for target in route.targets}
        used |= {route.endpoint for route in routes}
        return tuple(FleetEnd(self, name) for name in self.configuration.endpoints if name in used)

    def is_unknown(self, *at: str) -> bool:
        """Return whether a reference stands at the key, or within it, and has no value."""
        return any(each[: len(at)] == at for each in self.configuration.placeholders)


@dataclass(frozen=True, eq=False)
class FleetEnd:
    """One endpoint of a gateway of a fleet."""

    gateway: FleetGateway
    name: str

    @cached_property
    def label(self) -> str:
        return f"{self.gateway.label}:{self.name}"

    @property
    def settings(self) -> EndpointSettings:
        return self.gateway.configuration.endpoints[self.name].settings

    @property
    def system(self) -> str:
        """The name of its dialect."""
        return self.gateway.configuration.endpoints[self.name].dialect.name

    @cached_property
    def broker_id(self) -> str:
        """Its `broker_id`; empty without one, and where its value is not known."""
        if self.gateway.is_unknown("endpoints", self.name, "broker_id"):
            return ""
        return self.gateway.configuration.endpoints[self.name].broker.given

    @property
    def is_identified(self) -> bool:
        """Whether the file tells the broker from all others: one in the process is no other's."""
        return bool(self.broker_id) or find_kind(self.settings).in_process

    @cached_property
    def own(self) -> str:
        """A key of its broker, equal within one file."""
        return f"{self.gateway.label} {self.gateway.configuration.brokers[self.name]}"

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        return tuple(each.host.lower() for each in self.settings.servers())

    @cached_property
    def ports(self) -> frozenset[int | None]:
        return frozenset(each.port for each in self.settings.servers())

    @cached_property
    def is_unknown(self) -> bool:
        """Whether its address is not known."""
        keys = (self.gateway.is_unknown("endpoints", self.name, each) for each in ADDRESS_KEYS)
        return not self.hosts or any(keys)

    @cached_property
    def has_own_address(self) -> bool:
        """Whether its address may mean another broker on another machine, or is not known."""
        return self.is_unknown or any(map(is_local_host, self.hosts))

    @property
    def is_local(self) -> bool:
        """Whether each of its servers may be another one on another machine."""
        return all(map(is_local_host, self.hosts))

    @cached_property
    def addresses(self) -> frozenset[str]:
        """The keys of its servers, by which files are joined; none where they are local."""
        return frozenset() if self.has_own_address else frozenset(self.settings.broker_keys)

    @cached_property
    def places(self) -> frozenset[str]:
        """The keys of its servers, also of local ones: each name of the own machine is equal."""
        if self.is_unknown or find_kind(self.settings).in_process:
            return frozenset()
        return frozenset(map(self._place, self.settings.broker_keys))

    def _place(self, key: str) -> str:
        for host in filter(is_own_machine, self.hosts):
            key = key.replace(f"[{host}]", "localhost").replace(host, "localhost")
        return key

    @cached_property
    def address(self) -> str:
        """Its address in a finding: without log-in, and as the file writes references."""
        text = ", ".join(each.partition("://")[2] or each for each in self.settings.broker_keys)
        return self.gateway.configuration.hidden.hide(text, ("endpoints", self.name))

    @property
    def proposed_id(self) -> str:
        """A `broker_id` for its broker; with a placeholder where its gateway has no own name."""
        key = self.settings.broker_keys[0]
        hosts = () if self.has_own_address else self.hosts
        has_name = self.gateway.label == self.gateway.configuration.gateway.name
        site = self.gateway.label if has_name else PLACEHOLDER
        text = proposed_broker_id(site, key, hosts)
        return self.gateway.configuration.hidden.hide(text, ("endpoints", self.name))


@dataclass(frozen=True)
class Brokers:
    """The endpoints of a fleet by their brokers: as the files state, and as addresses suggest."""

    gateways: Sequence[FleetGateway]

    @cached_property
    def ends(self) -> tuple[FleetEnd, ...]:
        return tuple(end for gateway in self.gateways for end in gateway.endpoints)

    @cached_property
    def ids_at(self) -> Mapping[str, frozenset[str]]:
        """The `broker_id`s of each address that is not a local one."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for end in self.ends:
            for address in end.addresses:
                found[address] |= {end.broker_id} - {""}
        return {address: frozenset(ids) for address, ids in found.items()}

    @cached_property
    def stated(self) -> Mapping[FleetEnd, str]:
        """A key for each endpoint, equal for those that the files themselves join."""
        return _joined(self.ends, self._stated_keys)

    @cached_property
    def assumed(self) -> Mapping[FleetEnd, str]:
        """A key for each endpoint, equal also for those with an equal address."""
        return _joined(self.ends, self._assumed_keys)

    def _stated_keys(self, end: FleetEnd) -> list[str]:
        """Return the keys that its file states; a doubted `broker_id` holds for equal addresses."""
        if end.broker_id in self.doubted:
            return [f"own {end.own}", *(f"id {end.broker_id} at {each}" for each in end.places)]
        return [f"own {end.own}", *([f"id {end.broker_id}"] if end.broker_id else [])]

    def _assumed_keys(self, end: FleetEnd) -> list[str]:
        """Return the keys of an endpoint, also addresses; none that has several `broker_id`s."""
        found = [f"address {each}" for each in end.addresses if len(self.ids_at[each]) <= 1]
        given = [f"id {end.broker_id}"] if end.broker_id else []
        return [f"own {end.own}", *given, *found]

    def fleet(self) -> Mapping[str, FleetEndpoint]:
        """Return what the proofs know of each endpoint."""
        return {
            end.label: FleetEndpoint(
                end.gateway.label,
                self.assumed[end],
                self.stated[end],
                end.own,
                end.broker_id,
                find_kind(end.settings).name if "origin" in end.settings.carries else "",
                end.address,
            )
            for end in self.ends
        }

    @cached_property
    def named(self) -> Mapping[str, tuple[FleetEnd, ...]]:
        """The endpoints of each `broker_id`."""
        found: defaultdict[str, list[FleetEnd]] = defaultdict(list)
        for end in self.ends:
            if end.broker_id:
                found[end.broker_id].append(end)
        return {name: tuple(ends) for name, ends in found.items()}

    @cached_property
    def doubted(self) -> frozenset[str]:
        """The `broker_id`s of endpoints that look like several brokers."""
        return frozenset(
            name
            for name, ends in self.named.items()
            if any(are_apart(*pair) for pair in combinations(ends, 2))
        )

    def rivals(self) -> Iterator[tuple[FleetEnd, ...]]:
        """Yield the first endpoint of each `broker_id` at an address that has several ones."""
        at: defaultdict[str, dict[str, FleetEnd]] = defaultdict(dict)
        for end in self.ends:
            for place in end.places if end.broker_id else ():
                at[place].setdefault(end.broker_id, end)
        yield from dict.fromkeys(tuple(ends.values()) for ends in at.values() if len(ends) > 1)


def may_be_one(one: FleetEnd, other: FleetEnd) -> bool:
    """Return whether two endpoints may be at one broker, as far as their addresses tell."""
    if one.has_own_address or other.has_own_address:
        alike = type(one.settings) is type(other.settings)
        return alike and one.ports == other.ports
    return bool(set(one.hosts) & set(other.hosts))


def are_apart(one: FleetEnd, other: FleetEnd) -> bool:
    """Return whether two endpoints look like two brokers, although they have one `broker_id`."""
    if not (one.places and other.places) or one.places & other.places or may_be_one(one, other):
        return False
    alike = type(one.settings) is type(other.settings)
    return alike or not (one.has_own_address or other.has_own_address)


def _joined(
    ends: Iterable[FleetEnd], keys_of: Callable[[FleetEnd], list[str]]
) -> Mapping[FleetEnd, str]:
    """Return a key for each endpoint, equal for those that share keys, also through others."""
    above: dict[str, str] = {}

    def top(key: str) -> str:
        while (higher := above.setdefault(key, key)) != key:
            key = higher
        return key

    for end in ends:
        first, *others = keys_of(end)
        for each in others:
            above[top(each)] = top(first)
    return {end: top(keys_of(end)[0]) for end in ends}
