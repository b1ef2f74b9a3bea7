"""The routes with which each gateway ran, by time: the names that its copies may have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from gateway.archive.findings import Finding, error
from gateway.archive.layout import HOUR, gateway_of, is_replay, safe_name
from gateway.archive.routes import Rules, read_routes, routes_files
from gateway.archive.storage import Storage
from gateway.errors import GatewayError
from gateway.night.archive.intervals import Numbers
from gateway.routing.name_rules import to_routes
from gateway.routing.route import Route

RELOAD: Final = 300_000_000  # microseconds in which a reload reaches all sources
_OLDEST: Final = 31 * 24 * HOUR  # before the end of the date: of receipts whose routes are read


@dataclass(frozen=True, slots=True)
class RulePeriod:
    """A time in which a writer ran with the routes of `rules`, JSON; empty when it is damaged.

    Units: microseconds since 1970-01-01 UTC; the end is excluded.
    """

    writer: str
    since: int
    until: int
    rules: str


@dataclass(frozen=True, slots=True)
class RouteHistory:
    """The periods of all writers, those of each in order; a `mapping` replaces them all."""

    periods: Sequence[RulePeriod] = ()
    mapping: str = ""

    def __bool__(self) -> bool:
        return bool(self.periods or self.mapping)

    def expected(
        self, gateway: str, first: int, last: int, *, replay: bool | None
    ) -> tuple[list[str], bool]:
        """Return the rules for a copy of `gateway` received at `first` and delivered at `last`.

        They may have named it; beside them, whether they are all that may, because all are known.
        One instance may have received it, and another delivered it. `replay` says whether a command
        that replays delivered it; None when that is not known.
        """
        if self.mapping:
            return [self.mapping], True
        name = safe_name(gateway)
        found = self.during(name, first, last)
        complete = any(each.since <= first for each in found) and all(each.rules for each in found)
        if replay is not False:
            found += self.during(name, last, last, replays=True)
        return list(dict.fromkeys(each.rules for each in found if each.rules)), complete

    def ended(self, ends: Mapping[str, int]) -> RouteHistory:
        """Return the history without the routes of some writers from a time on, by writer."""
        periods = [
            replace(each, until=min(each.until, ends.get(each.writer, each.until)))
            for each in self.periods
        ]
        return replace(self, periods=periods)

    def bounds(self) -> Numbers:
        """Return the times at which the answers about a time, or RELOAD around it, change."""
        times = {at for each in self.periods for at in (each.since, each.until)}
        steps = range(-RELOAD, 3 * RELOAD, RELOAD)
        return np.array(sorted({at + step for at in times for step in steps}), np.int64)

    def routes(self) -> Iterator[tuple[str, Route]]:
        """Yield the routes of all gateways, with the gateway as its files are named."""
        own = [each for each in self.periods if each.rules and not is_replay(each.writer)]
        for gateway, rules in {(gateway_of(each.writer), each.rules) for each in own}:
            for route in to_routes(json.loads(rules)):
                yield gateway, route

    def newest_targets(self) -> frozenset[tuple[str, str]] | None:
        """Return route and label of each target that a gateway has by its newest rules.

        None when some are not known: a file is damaged, or absent.
        """
        own = (each for each in self.periods if not is_replay(each.writer))
        newest = {
            gateway_of(each.writer): each.rules for each in sorted(own, key=lambda each: each.since)
        }
        rules = [self.mapping] if self.mapping else [*newest.values()]
        if not rules or not all(rules):
            return None
        routes = (route for each in rules for route in to_routes(json.loads(each)))
        return frozenset((route.name, to.label) for route in routes for to in route.targets)

    def during(
        self, gateway: str, first: int, last: int, *, replays: bool = False
    ) -> list[RulePeriod]:
        """Return the periods of all instances of a gateway, or of the commands that replay.

        The gateway is named as its files are.
        """
        return [
            each
            for each in self.periods
            if gateway_of(each.writer) == gateway and is_replay(each.writer) is replays
            if each.since <= last and first < each.until + RELOAD
        ]


def mapping_history(rules: Rules) -> RouteHistory:
    """Return a history in which every gateway has always run with `rules`."""
    return RouteHistory(mapping=json.dumps(rules))


def read_history(
    storage: Storage, end: int, key: bytes | None, until: int = 0
) -> tuple[RouteHistory, list[Finding]]:
    """Read the routes of all writers from a month before `end` until then, or a later `until`.

    A damaged file is reported by the verification; files of a newer version that were in force
    before `end` are findings here.
    Units: microseconds.

    Raises:
        OSError: the archive cannot be read.
    """
    files = [
        each
        for each in routes_files(storage)
        if each.since < max(end, until) and each.until > end - _OLDEST
    ]
    findings: list[Finding] = []
    periods: list[RulePeriod] = []
    for stored in read_routes(storage, files, key):
        file, rules = stored.file, "" if stored.rules is None else json.dumps(stored.rules)
        try:
            to_routes(stored.rules or ())
        except GatewayError as fault:
            rules = ""
            if file.since < end:
                findings.append(error("damaged-routes", file.path.as_posix(), str(fault)))
        periods.append(RulePeriod(file.writer, file.since, file.until, rules))
    return RouteHistory(periods), findings
