"""Whether a gateway is ready for traffic, and every reason why not; pure over its status."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gateway.runtime.monitor.counters import Connection
from gateway.runtime.monitor.status import EndpointStatus, RouteStatus, Status

MISSED: Final = 3  # heartbeats in a row without which a route is not ready


def reasons(status: Status, spool_percent: float) -> list[str]:
    """What keeps `status` from being ready, one line each; empty when it is.

    `spool_percent` is how full a spool may be.
    """
    return [*_reasons(status, spool_percent)]


def _reasons(status: Status, spool_percent: float) -> Iterator[str]:
    for end in status.endpoints:
        yield from _of_endpoint(end, spool_percent)
    silent = MISSED * status.heartbeat_seconds
    for name in sorted({route.name for route in status.routes if _stale(route, silent)}):
        yield f"route {name}: no heartbeat for more than {silent:g} s"
    if status.archive_failure:
        yield f"archive: {status.archive_failure}"
    if status.spool_failure:
        yield f"spool: {status.spool_failure}"


def _of_endpoint(end: EndpointStatus, spool_percent: float) -> Iterator[str]:
    if end.connection != Connection.CONNECTED.value:
        detail = f", {end.reason}" if end.reason else ""
        yield f"endpoint {end.name} ({end.side}): {end.connection}{detail}"
    if (used := 100 * end.spool_share) >= spool_percent:
        yield f"endpoint {end.name}: its spool is {used:.0f} % full, limit {spool_percent:g} %"


def _stale(route: RouteStatus, seconds: float) -> bool:
    return route.heartbeat_age is not None and route.heartbeat_age >= seconds
