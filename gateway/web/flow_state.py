"""The state of a flow: what a route carries from its source to one target endpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from gateway.runtime.monitor.watchdog import MAX_MISSED
from gateway.runtime.record.counters import ConnectionState
from gateway.runtime.status import EndpointStatus, RouteStatus

UNANSWERED_SECONDS: Final = 5.0  # a connected target that owes an answer for so long is stuck
REFUSAL_SECONDS: Final = 60.0  # a route that refused a message within this time is refusing
FULL: Final = 1.0  # used share of a spool
MICROSECONDS: Final = 1_000_000

Sides: TypeAlias = Mapping[tuple[str, str], EndpointStatus]  # by name and side


class FlowState(Enum):
    CONNECTED = "connected"
    SPOOLING = "spooling"
    STUCK = "stuck"
    REFUSING = "refusing"
    DISCONNECTED = "not connected"


@dataclass(frozen=True, slots=True)
class FlowStatus:
    """A route's flow between two endpoints, its state, and the reason of any other than connected.

    A route does not know which of its targets refused a message, so all its flows are refusing.
    """

    source: str
    target: str
    state: FlowState
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """A time, and the seconds without a heartbeat after which a route is stuck."""

    time: float  # seconds since 1970-01-01 UTC
    max_heartbeat_age: float

    @classmethod
    def of(cls, time: float, heartbeat_seconds: float) -> Moment:
        return cls(time, MAX_MISSED * heartbeat_seconds)


def sides_of(endpoints: Iterable[EndpointStatus]) -> Sides:
    return {(end.name, end.side): end for end in endpoints}


def flows_of(parts: Sequence[RouteStatus], sides: Sides, at: Moment) -> list[FlowStatus]:
    """Return the flows of a route, one for each pair of source and target endpoint.

    `parts` has an entry for each source of the route.
    """
    found = {
        (part.source.partition(" ")[0], label.partition(":")[0]): part
        for part in parts
        for label in part.targets
    }
    return [
        FlowStatus(*names, *_state(part, sides.get((names[0], "source")),
                             sides.get((names[1], "sink")), at))
        for names, part in found.items()
    ]  # fmt: skip


def _state(
    route: RouteStatus, source: EndpointStatus | None, target: EndpointStatus | None, at: Moment
) -> tuple[FlowState, str]:
    if source is None or target is None:  # a reload adds or removes it
        return FlowState.DISCONNECTED, "a reload is in progress"
    return (
        _refused_connection(source, target)
        or _blocked(route, source, target)
        or _unanswered(route, target, at)
        or _refused_messages(route, at)
        or (FlowState.CONNECTED, "")
    )


def _refused_connection(
    source: EndpointStatus, target: EndpointStatus
) -> tuple[FlowState, str] | None:
    for end in (source, target):
        if end.connection == ConnectionState.REFUSED.value:
            return FlowState.REFUSING, f"{end.name} refuses the connection: {end.reason}"
    return None


def _blocked(
    route: RouteStatus, source: EndpointStatus, target: EndpointStatus
) -> tuple[FlowState, str] | None:
    connected = ConnectionState.CONNECTED.value
    if target.spool_share >= FULL:
        return FlowState.STUCK, f"the spool of {target.name} is full"
    if source.connection != connected:
        return FlowState.DISCONNECTED, f"{source.name}: {source.reason or source.connection}"
    if target.spooled_messages and route.lag > 0:  # those of other routes do not count
        waiting = f"the oldest has waited {route.lag:.0f} s for {target.name}"
        return FlowState.SPOOLING, f"messages are on disk; {waiting}"
    if target.connection != connected:
        return FlowState.DISCONNECTED, f"{target.name}: {target.reason or target.connection}"
    return None


def _unanswered(
    route: RouteStatus, target: EndpointStatus, at: Moment
) -> tuple[FlowState, str] | None:
    if target.silence >= UNANSWERED_SECONDS:
        return FlowState.STUCK, f"no answer from {target.name} for {target.silence:.0f} s"
    age = route.heartbeat_age
    if age is not None and age >= at.max_heartbeat_age:
        return FlowState.STUCK, f"no heartbeat for {age:.0f} s"
    return None


def _refused_messages(route: RouteStatus, at: Moment) -> tuple[FlowState, str] | None:
    if not route.totals.refusals:
        return None
    latest = route.totals.refusals[-1]
    if at.time - latest.time / MICROSECONDS >= REFUSAL_SECONDS:
        return None
    return FlowState.REFUSING, f"messages become dead letters, the latest by {latest.rule}"
