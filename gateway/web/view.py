"""A status as JSON has it: one entry a route, with its lag, and the latest refusals of all."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from gateway.runtime.monitor.counters import Refusal
from gateway.runtime.monitor.status import EndpointStatus, RouteStatus, Status

Json: TypeAlias = dict[str, object]
REFUSALS: Final = 50  # the latest of all routes that are shown
SHOWN: Final = 300  # characters of a name or a reason that are shown
MICROSECONDS: Final = 1_000_000
WEAKEST: Final = ("at_most_once", "at_least_once", "exactly_once")


@dataclass(frozen=True, slots=True)
class Shown:
    """A refusal and its route."""

    route: str
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class Moment:
    """A status with what belongs to it: when it was taken (seconds), and why it is not ready.

    The latest refusals of all routes, the newest first, are `refusals`.
    """

    status: Status
    time: float
    config: str
    reasons: tuple[str, ...]
    refusals: tuple[Shown, ...] = ()


def view(moment: Moment) -> Json:
    """What `/api/status` answers. Times are seconds since 1970-01-01 UTC, sizes bytes."""
    status = moment.status
    lags = lags_of(status.endpoints)
    return {
        "gateway": status.gateway,
        "version": status.version,
        "config": moment.config,
        "time": round(moment.time, 3),
        "started": status.started / MICROSECONDS,
        "reloaded": status.reloaded / MICROSECONDS,
        "ready": not moment.reasons,
        "reasons": list(moment.reasons),
        "heartbeat_seconds": status.heartbeat_seconds,
        "endpoints": [_endpoint(end, moment.time) for end in status.endpoints],
        "routes": [_route(parts, lags) for parts in by_name(status.routes)],
        "refusals": [_refusal(each) for each in moment.refusals],
        "archive": {"queued": status.archive_queued, "failure": status.archive_failure},
        "spool_failure": status.spool_failure,
        "dead_letters": {
            "count": status.dead_letters,
            "bytes": status.dead_letter_bytes,
            "dropped": status.dead_letters_dropped,
        },
    }


def by_name(routes: Iterable[RouteStatus]) -> list[list[RouteStatus]]:
    """Routes with several sources stand once for each in a status; here they are together.

    They share their counters, so any of them has the figures of all.
    """
    found: dict[str, list[RouteStatus]] = {}
    for route in routes:
        found.setdefault(route.name, []).append(route)
    return list(found.values())


def lags_of(endpoints: Iterable[EndpointStatus]) -> dict[str, float]:
    """Seconds that the oldest message on disk has waited, by target endpoint."""
    return {end.name: end.spooled_age for end in endpoints if end.side == "sink"}


def lag(parts: Iterable[RouteStatus], lags: Mapping[str, float]) -> float:
    """How far the slowest target of a route is behind, in seconds."""
    labels = {label.partition(":")[0] for part in parts for label in part.targets}
    return max((lags.get(label, 0.0) for label in labels), default=0.0)


def _endpoint(end: EndpointStatus, time: float) -> Json:
    return {
        "name": end.name,
        "side": end.side,
        "system": end.system,
        "connection": end.connection,
        "reason": end.reason[:SHOWN],
        "since": round(time - end.since),
        "reconnects": end.reconnects,
        "held": end.held,
        "spool": {
            "messages": end.spooled_messages,
            "bytes": end.spooled_bytes,
            "age": round(end.spooled_age, 1),
            "share": round(end.spool_share, 4),
        },
        "counts": dict(end.counts),
    }


def _route(parts: list[RouteStatus], lags: Mapping[str, float]) -> Json:
    first = parts[0]
    age = first.heartbeat_age
    return {
        "name": first.name,
        "sources": [part.source for part in parts],
        "targets": list(dict.fromkeys(label for part in parts for label in part.targets)),
        "guarantee": _weakest([part.guarantee for part in parts]),
        "received": first.received,
        "received_bytes": first.received_bytes,
        "delivered": first.delivered,
        "spooled": first.spooled,
        "ignored": first.ignored,
        "unselected": first.unselected,
        "loops": first.loops,
        "duplicates": first.duplicates,
        "rules": dict(first.rules),
        "lost_fields": dict(first.lost_fields),
        "latency_sum": round(first.latency_sum, 6),
        "heartbeat_age": None if age is None else round(age, 1),
        "lag": round(lag(parts, lags), 1),
    }


def _weakest(guarantees: list[str]) -> str:
    known = [each for each in WEAKEST if each in guarantees]
    return known[0] if known else guarantees[0]


def latest(routes: Iterable[RouteStatus]) -> list[Shown]:
    """The latest refusals of all routes, the newest first."""
    named = {route.name: route.refusals for route in routes if route.refusals}
    every = (Shown(name, each) for name, kept in named.items() for each in kept)
    return heapq.nlargest(REFUSALS, every, key=lambda each: each.refusal.time)


def _refusal(shown: Shown) -> Json:
    refusal = shown.refusal
    return {
        "time": refusal.time / MICROSECONDS,
        "route": shown.route,
        "name": refusal.name[:SHOWN],
        "rule": refusal.rule,
        "reason": refusal.reason[:SHOWN],
    }
