"""The hops of an archive: brokers that one gateway sends to and another one reads from."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from gateway.archive.layout import safe_name
from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import open_storage
from gateway.night.reconcile.input.route_history import RELOAD, RouteHistory
from gateway.night.reconcile.input.short_names import ArchivedShortNames
from gateway.routing.name_rules import RouteNames, shortening_endpoints, to_routes
from gateway.routing.route import Route, Target
from gateway.routing.router import Router

_MAX_RULES: Final = 64  # routes in memory
_MAX_NOTES: Final = 10
Source: TypeAlias = tuple[str, str]  # route and endpoint
Member: TypeAlias = tuple[str, str, str]  # gateway, as its files are named, route and endpoint


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker between gateways; `reading` are those that read there, as their files are named.

    `exact`: every message there carries its trace id. Otherwise name and payload identify it.
    """

    name: str
    exact: bool
    reading: Sequence[str]


@dataclass(frozen=True, slots=True)
class Reader:
    """The routes that must receive a message once: one, or those of a group that divides it.

    `sure`: they were in force for so long that their subscription must have been there.
    """

    key: str
    members: tuple[Member, ...]
    sure: bool


class ParsedRules:
    """The routes in one file: the names that they make, and their targets and sources.

    Mutable: caches, as its routers do.
    """

    def __init__(self, location: ArchiveLocation, rules: str) -> None:
        routes = to_routes(json.loads(rules))
        dictionary = ArchivedShortNames(open_storage(location))
        self.made = RouteNames(routes, dictionary)
        shortens = shortening_endpoints(routes)
        self.targets = {
            (route.name, target.label): target.access.broker
            for route in routes
            for target in route.targets
        }
        self.sources: dict[Source, tuple[str, str]] = {}  # broker and group
        by_endpoint: dict[tuple[str, str], list[Route]] = defaultdict(list)
        for route in routes:
            if route.access.broker and not route.access.filtered:
                self.sources[route.name, route.endpoint] = route.access.broker, route.access.group
                by_endpoint[route.access.broker, route.endpoint].append(route)
        self._routers: dict[str, list[Router]] = defaultdict(list)
        for (broker, endpoint), own in by_endpoint.items():
            known = dictionary if endpoint in shortens else None
            self._routers[broker].append(Router(own[0].dialect, own, known))

    def reading(self, broker: str, name: str) -> set[Source]:
        """Return the sources at `broker` whose routes take `name`."""
        return {
            (match.route.name, match.route.endpoint)
            for router in self._routers.get(broker, ())
            for match in router[name]
            if match.route is not None
        }


parsed_rules = lru_cache(_MAX_RULES)(ParsedRules)  # each process parses them once


@dataclass(frozen=True, slots=True)
class Hops:
    """The brokers between gateways by `BrokerAccess.broker`, and the routes of each time."""

    location: ArchiveLocation
    history: RouteHistory = field(default_factory=RouteHistory)
    brokers: Mapping[str, Broker] = field(default_factory=dict)

    def sent_to(  # a copy: its target, and its times
        self, gateway: str, route: str, label: str, first: int, at: int, *, replayed: bool
    ) -> str:
        """Return the broker between gateways that a target is at; empty where there is none.

        The copy was received at `first` and sent `at` a time. A target that left its route or got
        another name in between is known by the routes at the receipt.
        """
        plain = label.rpartition("#")[0]  # of the further tags of a message
        for time in (at, first):
            expected, _ = self.history.expected(gateway, time, time, replay=replayed)
            targets = [parsed_rules(self.location, each).targets for each in expected]
            found = {each.get((route, label)) or each.get((route, plain), "") for each in targets}
            if len(found) == 1 and (broker := found.pop()):
                return broker if broker in self.brokers else ""
        return ""

    def readers(self, sender: str, broker: str, name: str, at: int) -> list[Reader]:
        """Return the readers of other gateways that take `name` from `broker` at a time."""
        found: dict[str, Reader] = {}
        for gateway in self.brokers[broker].reading:
            if gateway == safe_name(sender):
                continue
            for source, key, sure in self._sources(gateway, broker, name, at):
                known = found.get(key, Reader(key, (), sure=False))
                members = (*known.members, (gateway, *source))
                found[key] = Reader(key, members, sure=known.sure or sure)
        return list(found.values())

    def read_by(self, gateway: str, source: Source, at: int) -> tuple[str, str]:
        """Return the broker between gateways, and the key of the reader, of a receipt."""
        name = safe_name(gateway)
        for rules in (each.rules for each in self.history.during(name, at, at) if each.rules):
            broker, group = parsed_rules(self.location, rules).sources.get(source, ("", ""))
            if broker in self.brokers:
                return broker, _key(broker, group, name, source)
        return "", ""

    def _sources(
        self, gateway: str, broker: str, name: str, at: int
    ) -> Iterator[tuple[Source, str, bool]]:
        """Yield the sources of a gateway that take `name`, with key, and whether that is sure."""
        near = self.history.during(gateway, at - RELOAD, at + RELOAD)
        rules = [parsed_rules(self.location, each.rules) for each in near if each.rules]
        taken = [each.reading(broker, name) for each in rules]
        lasting = len(rules) == len(near) and any(each.since <= at - RELOAD for each in near)
        lasting &= any(each.until > at for each in near)  # its gateway was not retired
        for own, sources in zip(rules, taken, strict=True):
            for source in sorted(sources):
                key = _key(broker, own.sources[source][1], gateway, source)
                yield source, key, lasting and all(source in each for each in taken)


def find_hops(location: ArchiveLocation, history: RouteHistory) -> tuple[Hops, list[str]]:
    """Return the hops of an archive, and notes on the sources that none of them can join."""
    sending, reading, names, filtered = (defaultdict[str, set[str]](set) for _ in range(4))
    without_ids: set[str] = set()
    local: set[str] = set()
    for gateway, route in history.routes():
        ends: tuple[Route | Target, ...] = (route, *route.targets)
        for end in ends:
            gateways, access = reading if end is route else sending, end.access
            if not access.broker:
                local.add(f"endpoint {end.endpoint!r} of {gateway!r} needs a broker_id")
            elif gateways is reading and access.filtered:
                what = f"route {route.name!r} of {gateway!r}"
                filtered[access.broker].add(f"{what} does not read all messages of its names")
            else:
                gateways[access.broker].add(gateway)
                names[access.broker].add(access.name or f"{end.endpoint} of {gateway}")
                without_ids |= set() if access.ids else {access.broker}
    brokers = {
        broker: Broker(min(names[broker]), broker not in without_ids, sorted(reading[broker]))
        for broker, senders in sending.items()
        if reading[broker] and len(senders | reading[broker]) > 1
    }
    unread = {note for broker in sending for note in filtered[broker]}
    notes = [*sorted(unread), *sorted(local)]
    if not brokers:
        notes.insert(0, "no gateway reads from a broker that another one sends to")
    return Hops(location, history, brokers), notes[:_MAX_NOTES]


def _key(broker: str, group: str, gateway: str, source: Source) -> str:
    return json.dumps([broker, group] if group else [broker, gateway, *source])
