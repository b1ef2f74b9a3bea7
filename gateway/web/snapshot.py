"""A snapshot of the gateway's status, and its JSON: one entry per route."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final, TypeAlias

from gateway.model.dead_letter_rule import advice_of
from gateway.runtime.record.counters import Refusal
from gateway.runtime.record.loop_suspicions import SuspectedLoop
from gateway.runtime.status import EndpointStatus, RouteStatus, Status
from gateway.web.flow_state import MICROSECONDS, FlowState, Moment, flows_of
from gateway.web.readiness import MAX_TEXT, warnings

Json: TypeAlias = dict[str, object]
Redact: TypeAlias = Callable[[str], str]
MAX_REFUSALS: Final = 50  # the latest of all routes
# what the page shows of an endpoint as it is
SHOWN: Final = (
    "name",
    "side",
    "system",
    "connection",
    "address",
    "gap",
    "reconnects",
    "held",
    "backlog",
)
COUNTS: Final = (  # of a route
    "received",
    "received_bytes",
    "delivered",
    "spooled",
    "ignored",
    "unselected",
    "loops",
    "duplicates",
    "thinned",
    "rules",
    "lost_fields",
)
GUARANTEES: Final = ("thinned", "at_most_once", "at_least_once", "exactly_once")  # weakest first


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
    refusals: Sequence[Json] = ()
    expiries: Mapping[str, float] = field(default_factory=dict)  # of certificates, by setting


def snapshot_json(snapshot: StatusSnapshot) -> Json:
    """Return the response of `/api/status`; times are seconds since 1970-01-01 UTC, sizes bytes."""
    status = snapshot.status
    pair, moment = status.pair, Moment.of(status, snapshot.time)
    brokers: dict[str, int] = {}  # numbers, for an id may be a value that is not shown
    for end in status.endpoints:
        brokers.setdefault(_broker_id(end), len(brokers))
    return {
        "gateway": status.gateway,
        "version": status.version,
        "config": snapshot.config,
        "time": round(snapshot.time, 3),
        "started": status.started / MICROSECONDS,
        "reloaded": status.reloaded / MICROSECONDS,
        "ready": not snapshot.reasons,
        "reasons": list(snapshot.reasons),
        "warnings": list(warnings(status)),
        "heartbeat_seconds": status.heartbeat_seconds,
        "max_heartbeat_age": moment.max_heartbeat_age,
        "endpoints": [
            _endpoint(end, snapshot.time) | {"broker": brokers[_broker_id(end)]}
            for end in status.endpoints
        ],
        "routes": [_route(parts, moment) for parts in by_name(status.routes)],
        "refusals": snapshot.refusals,
        "suspected_loops": [_suspected_loop(each) for each in status.suspected_loops],
        "archive": {"queued": status.archive_queued, "failure": status.archive_failure},
        "spool_failure": status.spool_failure,
        "thread_failure": status.thread_failure,
        "pair": pair and asdict(pair) | {"since": round(pair.since, 1)},
        "dead_letters": {
            "count": status.dead_letters,
            "bytes": status.dead_letter_bytes,
            "dropped": status.dead_letters_dropped,
            "sent_again": status.dead_letters_sent_again,
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


def lag(parts: Iterable[RouteStatus]) -> float:
    """Return the lag of a route with its slowest target, in seconds."""
    return max(part.lag for part in parts)


def _broker_id(end: EndpointStatus) -> str:
    return end.broker_id or f"endpoint {end.name}"


def _endpoint(end: EndpointStatus, time: float) -> Json:
    return {
        **{name: getattr(end, name) for name in SHOWN},
        "reason": end.reason[:MAX_TEXT],
        "since": round(time - end.since),
        "retry_in": None if end.retry_in is None else round(end.retry_in, 1),
        "spool": {
            "messages": end.spooled_messages,
            "bytes": end.spooled_bytes,
            "age": round(end.spooled_age, 1),
            "share": round(end.spool_share, 4),
        },
        "counts": dict(end.counts),
    }


def _route(parts: list[RouteStatus], moment: Moment) -> Json:
    first = parts[0]
    age = first.heartbeat_age
    flows = flows_of(parts, moment)
    stuck = (each.reason for each in flows if each.state is FlowState.STUCK)
    return {
        "name": first.name,
        "sources": [part.source for part in parts],
        "targets": list(dict.fromkeys(label for part in parts for label in part.targets)),
        "target_names": list(dict.fromkeys(each for part in parts for each in part.target_names)),
        "guarantee": weakest([part.guarantee for part in parts]),
        **{name: getattr(first.totals, name) for name in COUNTS},
        "latency_sum": round(first.totals.latency_sum, 6),
        "heartbeat_age": None if age is None else round(age, 1),
        "lag": round(lag(parts), 1),
        "both": parts[0].has_reverse,
        "flows": [[each.source, each.target, each.state.value] for each in flows],
        "stuck": list(dict.fromkeys(stuck)),
    }


def _suspected_loop(loop: SuspectedLoop) -> Json:
    return {
        "route": loop.route,
        "endpoint": loop.endpoint,
        "name": loop.name[:MAX_TEXT],
        "reason": loop.reason,
        "since": loop.since / MICROSECONDS,
    }


def weakest(guarantees: list[str]) -> str:
    """Return the weakest of the guarantees of a route's sources."""
    return next((each for each in GUARANTEES if each in guarantees), guarantees[0])


def latest_refusals(routes: Iterable[RouteStatus], redact: Redact = str) -> list[Json]:
    """Return the latest refusals of all routes, the newest first."""
    by_route = {route.name: route.totals.refusals for route in routes}
    refusals = ((name, each) for name, kept in by_route.items() for each in kept)
    latest = heapq.nlargest(MAX_REFUSALS, refusals, key=lambda each: each[1].time)
    return [refusal_json(name, each, redact) for name, each in latest]


def refusal_json(route: str, refusal: Refusal, redact: Redact) -> Json:
    return {
        "time": refusal.time / MICROSECONDS,
        "route": route,
        "name": redact(refusal.name)[:MAX_TEXT],
        "rule": refusal.rule,
        "reason": redact(refusal.reason)[:MAX_TEXT],
        "advice": advice_of(refusal.rule),
    }
