"""What a running gateway says of itself at one moment; frozen values for whoever shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import monotonic

import gateway
from gateway.check.examine import effective_mode
from gateway.clock import now
from gateway.config.load import Configuration
from gateway.endpoints.base import Sink, Source
from gateway.routing.route import Route
from gateway.runtime.gateway import Gateway
from gateway.runtime.monitor.counters import EndpointState, Refusal, RouteCounters
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.outbound.spool import Spool
from gateway.runtime.pump import Pump


@dataclass(frozen=True, slots=True)
class EndpointStatus:
    """One side of an endpoint. Sizes are bytes, ages seconds."""

    name: str
    side: str  # source or sink
    system: str
    connection: str  # connecting, connected, lost, refused
    reason: str
    reconnects: int
    since: float  # seconds in this state of the connection
    messages: int = 0  # received from it, or answered by it
    held: int = 0  # bytes in memory that no target has answered for
    spooled_messages: int = 0
    spooled_bytes: int = 0
    spooled_age: float = 0.0  # of the oldest parcel on disk
    spool_share: float = 0.0  # of the nearest bound of its spool that is used, 1.0 is full
    counts: Mapping[str, int] = field(default_factory=dict)  # what its driver counts


@dataclass(frozen=True, slots=True)
class RouteStatus:
    """One route and its counters since the start."""

    name: str
    source: str  # endpoint and pattern
    targets: tuple[str, ...]
    guarantee: str
    received: int
    received_bytes: int
    delivered: int
    spooled: int
    ignored: int
    unselected: int
    loops: int
    duplicates: int
    rules: Mapping[str, int]  # dead letters by rule
    lost_fields: Mapping[str, int]
    latency: tuple[int, ...]  # deliveries in each bucket of state.LATENCIES, then slower ones
    latency_sum: float
    heartbeat_age: float | None  # None without a heartbeat
    refusals: tuple[Refusal, ...]  # the latest


@dataclass(frozen=True, slots=True)
class Status:
    """The whole gateway."""

    gateway: str
    version: str
    started: int  # microseconds since 1970-01-01 UTC
    reloaded: int  # when the configuration that runs was taken
    heartbeat_seconds: float  # between two heartbeats of a route
    endpoints: tuple[EndpointStatus, ...]
    routes: tuple[RouteStatus, ...]
    archive_queued: int  # bytes that wait for the disk; 0 without an archive
    archive_failure: str
    spool_failure: str
    dead_letters: int
    dead_letter_bytes: int
    dead_letters_dropped: int


def take_status(running: Gateway) -> Status:
    """What `running` is doing now; it waits for nothing and asks no broker."""
    archive, store, letters = running.archive, running.store, running.letters
    configuration = running.configuration  # once: a reload may exchange it meanwhile
    ends = [_source(name, pump, running) for name, pump in sorted(running.pumps.items())]
    ends += [_sink(lane) for _, lane in sorted(running.lanes.items())]
    ends += [_end(tap.state, tap.tapped.system, {}) for tap in running.taps.values()]
    return Status(
        gateway=configuration.gateway.name,
        version=gateway.__version__,
        started=running.started,
        reloaded=running.reloaded,
        heartbeat_seconds=configuration.gateway.heartbeat_seconds,
        endpoints=tuple(ends),
        routes=tuple(_route(route, running, configuration) for route in configuration.routes),
        archive_queued=archive.queued_bytes if archive else 0,
        archive_failure=str(archive.failure or "") if archive else "",
        spool_failure=store.failure if store else "",
        dead_letters=letters.count if letters else 0,
        dead_letter_bytes=letters.bytes if letters else 0,
        dead_letters_dropped=letters.dropped if letters else 0,
    )


def _source(name: str, pump: Pump, running: Gateway) -> EndpointStatus:
    endpoint = running.configuration.endpoints.get(name)  # None while a reload lets go of it
    system = endpoint.settings.dialect if endpoint else ""
    return _end(pump.state, system, _counts(pump.source))


def _sink(lane: Lane) -> EndpointStatus:
    status = _end(lane.state, lane.outlet.system, _counts(lane.outlet.sink))
    backlog = lane.backlog
    if not isinstance(backlog, Spool):
        return replace(status, held=lane.held)
    oldest = backlog.oldest() if backlog.messages else None
    return replace(
        status,
        held=lane.held,
        spooled_messages=backlog.messages,
        spooled_bytes=backlog.bytes,
        spooled_age=(now() - oldest) / 1_000_000 if oldest else 0.0,
        spool_share=_share(backlog),
    )


def _share(spool: Spool) -> float:
    bytes_ = spool.bytes / spool.bounds.bytes
    return max(bytes_, spool.messages / spool.bounds.messages) if spool.bounds.messages else bytes_


def _counts(driver: Source | Sink) -> Mapping[str, int]:
    """What a driver counts for people, in its attribute `counts`; some have none."""
    counts: Mapping[str, int] = getattr(driver, "counts", {})
    return counts


def _end(state: EndpointState, system: str, counts: Mapping[str, int]) -> EndpointStatus:
    return EndpointStatus(
        state.name,
        state.side,
        system,
        state.connection.value,
        state.reason,
        state.reconnects,
        monotonic() - state.since,
        state.messages,
        counts=dict(counts),
    )


def _route(route: Route, running: Gateway, configuration: Configuration) -> RouteStatus:
    counters = running.counters.get(route.name) or RouteCounters()  # a reload is adding it
    pulse = running.pulses.get(route.name)
    modes = {effective_mode(route, each, configuration) for each in route.targets}
    return RouteStatus(
        name=route.name,
        source=f"{route.endpoint} {route.source.text}",
        targets=tuple(target.label for target in route.targets),
        guarantee=min(modes).name.lower() if modes else "",
        received=counters.received,
        received_bytes=counters.received_bytes,
        delivered=counters.delivered,
        spooled=counters.spooled,
        ignored=counters.ignored,
        unselected=counters.unselected,
        loops=counters.loops,
        duplicates=counters.duplicates,
        rules=dict(counters.rules),
        lost_fields=dict(counters.lost_fields),
        latency=tuple(counters.latencies),
        latency_sum=counters.latency_sum,
        heartbeat_age=pulse.age if pulse else None,
        refusals=tuple(counters.refusals),
    )
