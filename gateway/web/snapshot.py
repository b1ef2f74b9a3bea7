"""A snapshot of the gateway's status, and its JSON: one entry per route."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from gateway.runtime.monitor.counters import Refusal
from gateway.runtime.monitor.status import EndpointStatus, RouteStatus, Status

Json: TypeAlias = dict[str, object]
MAX_REFUSALS: Final = 50  # the latest of all routes
MAX_TEXT: Final = 300  # characters of a name or a reason
MICROSECONDS: Final = 1_000_000
GUARANTEES: Final = ("at_most_once", "at_least_once", "exactly_once")  # the weakest first


@dataclass(frozen=True, slots=True)
class RouteRefusal:
    """A refused message of a route."""

    route: str
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class StatusSnapshot:
    """A status, its time, and the reasons why the gateway is not ready.

    `refusals` are the latest of all routes, the newest first.
    Units: seconds since 1970-01-01 UTC.
    """

    status: Status
    time: float
    config: str
    reasons: tuple[str, ...]
    refusals: tuple[RouteRefusal, ...] = ()


def snapshot_json(snapshot: StatusSnapshot) -> Json:
    """Return the response of `/api/status`; times are seconds since 1970-01-01 UTC, sizes bytes."""
    status = snapshot.status
    lags = lags_of(status.endpoints)
    return {
        "gateway": status.gateway,
        "version": status.version,
        "config": snapshot.config,
        "time": round(snapshot.time, 3),
        "started": status.started / MICROSECONDS,
        "reloaded": status.reloaded / MICROSECONDS,
        "ready": not snapshot.reasons,
        "reasons": list(snapshot.reasons),
        "heartbeat_seconds": status.heartbeat_seconds,
        "endpoints": [_endpoint(end, snapshot.time) for end in status.endpoints],
        "routes": [_route(parts, lags) for parts in by_name(status.routes)],
        "refusals": [_refusal(each) for each in snapshot.refusals],
        "archive": {"queued": status.archive_queued, "failure": status.archive_failure},
        "spool_failure": status.spool_failure,
        "dead_letters": {
            "count": status.dead_letters,
            "bytes": status.dead_letter_bytes,
            "dropped": status.dead_letters_dropped,
        },
    }


def by_name(routes: Iterable[RouteStatus]) -> list[list[RouteStatus]]:
    """Group routes by name: a status has a route once for each of its sources.

    All entries of a route share their counters.
    """
    found: dict[str, list[RouteStatus]] = {}
    for route in routes:
        found.setdefault(route.name, []).append(route)
    return list(found.values())


def lags_of(endpoints: Iterable[EndpointStatus]) -> dict[str, float]:
    """Return the age in seconds of the oldest spooled message, by target endpoint."""
    return {end.name: end.spooled_age for end in endpoints if end.side == "sink"}


def lag(parts: Iterable[RouteStatus], lags: Mapping[str, float]) -> float:
    """Return the lag of a route's slowest target, in seconds."""
    labels = {label.partition(":")[0] for part in parts for label in part.targets}
    return max((lags.get(label, 0.0) for label in labels), default=0.0)


def _endpoint(end: EndpointStatus, time: float) -> Json:
    return {
        "name": end.name,
        "side": end.side,
        "system": end.system,
        "connection": end.connection,
        "reason": end.reason[:MAX_TEXT],
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
    known = [each for each in GUARANTEES if each in guarantees]
    return known[0] if known else guarantees[0]


def latest_refusals(routes: Iterable[RouteStatus]) -> list[RouteRefusal]:
    """Return the latest refusals of all routes, the newest first."""
    by_route = {route.name: route.refusals for route in routes if route.refusals}
    refusals = (RouteRefusal(name, each) for name, kept in by_route.items() for each in kept)
    return heapq.nlargest(MAX_REFUSALS, refusals, key=lambda each: each.refusal.time)


def _refusal(entry: RouteRefusal) -> Json:
    refusal = entry.refusal
    return {
        "time": refusal.time / MICROSECONDS,
        "route": entry.route,
        "name": refusal.name[:MAX_TEXT],
        "rule": refusal.rule,
        "reason": refusal.reason[:MAX_TEXT],
    }
