"""Readiness: the reasons why a gateway is not ready, and warnings about one that is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from gateway.runtime.gateway import STRANDED
from gateway.runtime.monitor.watchdog import MAX_MISSED
from gateway.runtime.record.counters import ConnectionState
from gateway.runtime.status import EndpointStatus, Status
from gateway.terminal.units import counted
from gateway.web.flow_state import MICROSECONDS, no_heartbeat

MAX_TEXT: Final = 300  # characters of a name or a reason


def reasons(status: Status, spool_percent: float) -> Iterator[str]:
    """Yield the reasons why the gateway is not ready, one line each; none when it is ready.

    A spool is too full when its used share reaches `spool_percent`.
    """
    for end in status.endpoints:
        yield from _of_endpoint(end, spool_percent)
    limit = MAX_MISSED * status.heartbeat_seconds
    for name in sorted({each.name for each in status.routes if (each.heartbeat_age or 0) >= limit}):
        yield f"route {name}: {no_heartbeat(limit)}"
    if status.archive_failure:
        yield f"archive: {status.archive_failure}"
    if status.spool_failure:
        yield f"spool: {status.spool_failure}"
    if status.thread_failure:
        yield status.thread_failure


def warnings(status: Status) -> Iterator[str]:
    """Yield what somebody should see to while the gateway works, a sentence each."""
    if status.reload_refused:
        yield (
            "the last reload was refused, and the configuration before it runs:"
            f" {status.reload_refused[:MAX_TEXT]}"
        )
    for name, number in status.stranded:
        yield STRANDED % (counted(number, "message"), name, name)
    for loop in status.suspected_loops:
        since = datetime.fromtimestamp(loop.since / MICROSECONDS, UTC)
        yield (
            f"a loop is suspected since {since:%Y-%m-%d %H:%M:%S} UTC: route {loop.route} from"
            f' {loop.endpoint}, "{loop.name[:MAX_TEXT]}" {loop.reason}'
        )


def _of_endpoint(end: EndpointStatus, spool_percent: float) -> Iterator[str]:
    if end.connection != ConnectionState.CONNECTED.value:
        detail = f", {end.reason}" if end.reason else ""
        yield f"endpoint {end.name} ({end.side}): {end.connection}{detail}"
    if (used := 100 * end.spool_share) >= spool_percent:
        yield f"endpoint {end.name}: its spool is {used:.0f} % full, limit {spool_percent:g} %"
