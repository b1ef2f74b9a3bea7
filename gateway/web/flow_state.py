"""The state of a flow: what a route carries from its source to one target endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from gateway.runtime.monitor.watchdog import MAX_MISSED
from gateway.runtime.record.counters import ConnectionState
from gateway.runtime.status import EndpointStatus, RouteStatus, Status

UNANSWERED_SECONDS: Final = 5.0  # a connected target that owes an answer for so long is stuck
REFUSAL_SECONDS: Final = 60.0  # a flow with a dead letter within this time is refusing
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

    A dead letter without a target concerns all flows of its route.
    """

    source: str
    target: str
    state: FlowState
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """The endpoints at a time, and the seconds without a heartbeat until a route is stuck."""

    sides: Sides
    time: float  # seconds since 1970-01-01 UTC
    max_heartbeat_age: float

    @classmethod
    def of(cls, status: Status, time: float) -> Moment:
        sides = {(end.name, end.side): end for end in status.endpoints}
        return cls(sides, time, MAX_MISSED * status.heartbeat_seconds)


def flows_of(parts: Sequence[RouteStatus], at: Moment) -> list[FlowStatus]:
    """Return the flows of a route, one for each pair of source and target endpoint.

    `parts` has an entry for each source of the route.
    """
    found = {
        (part.source.partition(" ")[0], label.partition(":")[0]): part
        for part in parts
        for label in part.targets
    }
    return [FlowStatus(*names, *_state(part, *names, at)) for names, part in found.items()]


def _state(
    route: RouteStatus, source_name: str, target_name: str, at: Moment
) -> tuple[FlowState, str]:
    source, target = at.sides.get((source_name, "source")), at.sides.get((target_name, "sink"))
    if source is None or target is None:  # a reload adds or removes it
        return FlowState.DISCONNECTED, "a reload is in progress"
    return next(_troubles(route, source, target, at), (FlowState.CONNECTED, ""))


def no_heartbeat(limit: float) -> str:
    """Return the reason of a route whose last heartbeat is `limit` seconds old, or older."""
    return f"no heartbeat for more than {limit:g} s"


def _troubles(
    route: RouteStatus, source: EndpointStatus, target: EndpointStatus, at: Moment
) -> Iterator[tuple[FlowState, str]]:
    """Yield what is wrong with a flow, the state that counts first."""
    connected = ConnectionState.CONNECTED.value
    for end in (source, target):
        if end.connection == ConnectionState.REFUSED.value:
            yield FlowState.REFUSING, f"{end.name} refuses the connection: {end.reason}"
    if target.spool_share >= FULL:
        yield FlowState.STUCK, f"the spool of {target.name} is full"
    if source.connection != connected:
        yield FlowState.DISCONNECTED, f"{source.name}: {source.reason or source.connection}"
    if target.spooled_messages and route.lag > 0:  # those of other routes do not count
        waiting = f"the oldest has waited {route.lag:.0f} s for {target.name}"
        yield FlowState.SPOOLING, f"messages are on disk; {waiting}"
    if target.connection != connected:
        yield FlowState.DISCONNECTED, f"{target.name}: {target.reason or target.connection}"
    yield from _silences(route, target, at)


def _silences(
    route: RouteStatus, target: EndpointStatus, at: Moment
) -> Iterator[tuple[FlowState, str]]:
    """Yield what is wrong with a flow whose endpoints are connected."""
    if target.silence >= UNANSWERED_SECONDS:
        yield FlowState.STUCK, f"no answer from {target.name} for {target.silence:.0f} s"
    age = route.heartbeat_age
    if age is not None and age >= at.max_heartbeat_age:
        yield FlowState.STUCK, no_heartbeat(at.max_heartbeat_age)
    for latest in (route.totals.refused.get(name) for name in (target.name, "")):
        if latest is not None and at.time - latest.time / MICROSECONDS < REFUSAL_SECONDS:
            yield FlowState.REFUSING, f"messages become dead letters, the latest by {latest.rule}"
