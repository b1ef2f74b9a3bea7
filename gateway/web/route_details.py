"""The details of one route: its names, flows and latest refusals, and the names that pass now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gateway.routing.route import Route
from gateway.runtime.record.recent_names import WATCH_SECONDS
from gateway.web.flow_state import FlowStatus, Moment, Sides, flows_of
from gateway.web.snapshot import Json, StatusSnapshot, refusal_json, weakest
from gateway.web.status_cache import StatusCache

MAX_PATTERNS: Final = 50  # sources of a route, and targets of each


def route_details(name: str, snapshot: StatusSnapshot, statuses: StatusCache) -> Json | None:
    """Return the details of the route `name`; None if there is no such route.

    Times are seconds since 1970-01-01 UTC. `retry_in` has the seconds until the next attempt to
    connect, by endpoint; an endpoint that waits for none is absent.
    """
    parts = [each for each in snapshot.status.routes if each.name == name]
    if not parts:
        return None
    moment = Moment.of(snapshot.status, snapshot.time)
    routes = [each for each in statuses.routes() if each.name == name]
    return {
        "name": name,
        "guarantee": weakest([part.guarantee for part in parts]),
        "both": parts[0].has_reverse,
        "patterns": [_patterns(each, statuses.hide) for each in routes[:MAX_PATTERNS]],
        "flows": [_flow(each, moment.sides) for each in flows_of(parts, moment)],
        "refusals": [
            refusal_json(name, each, statuses.redact) for each in reversed(parts[0].totals.refusals)
        ],
    }


def names_json(name: str, statuses: StatusCache) -> Json:
    """Return the latest names of the route `name`, newest first, which are watched from now on.

    Times are seconds since 1970-01-01 UTC. `seconds`: how long the gateway watches after a request.
    """
    redact = statuses.redact
    return {
        "route": name,
        "seconds": WATCH_SECONDS,
        "messages": [
            {
                "time": seen.time,
                "endpoint": seen.endpoint,
                "name": redact(seen.name),
                "copies": [
                    {
                        "target": copy.target,
                        "name": redact(copy.name),
                        "rule": copy.rule,
                        "reason": redact(copy.reason),
                    }
                    for copy in seen.copies
                ],
                "more": seen.more,
            }
            for seen in statuses.recent_names(name)
        ],
    }


def _patterns(route: Route, hide: Callable[[str], str]) -> Json:
    return {
        "endpoint": route.endpoint,
        "pattern": hide(route.source_text),
        "excludes": [hide(each.text) for each in route.excludes[:MAX_PATTERNS]],
        "selector": hide(route.selector.text) if route.selector else "",
        "targets": [
            {"label": each.label, "templates": [hide(one.text) for one in each.templates]}
            for each in route.targets[:MAX_PATTERNS]
        ],
    }


def _flow(flow: FlowStatus, sides: Sides) -> Json:
    ends = (sides.get((flow.source, "source")), sides.get((flow.target, "sink")))
    waiting = {end.name: end.retry_in for end in ends if end and end.retry_in is not None}
    return {
        "source": flow.source,
        "target": flow.target,
        "state": flow.state.value,
        "reason": flow.reason,
        "retry_in": {name: round(seconds, 1) for name, seconds in waiting.items()},
    }
