"""The status of a running gateway at one moment, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import monotonic

import gateway
from gateway.archive.journal.rolling import WaitingJournals
from gateway.check.guarantee import effective_mode
from gateway.config.load import Configuration
from gateway.endpoints.base import CountsBacklog, Sink, Source, address_of
from gateway.lease.holder import LeaseHolder
from gateway.routing.route import Route, Target
from gateway.runtime.delivery.backlog import SpoolBacklog
from gateway.runtime.gateway import Gateway
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.pump import Pump
from gateway.runtime.record.counters import EndpointState, RouteCounters, RouteTotals
from gateway.runtime.record.loop_suspicions import SuspectedLoop


@dataclass(frozen=True, slots=True)
class EndpointStatus:
    """The status of one side of an endpoint.

    Units: bytes and seconds.
    """

    name: str
    side: str  # source, sink or tap
    system: str
    connection: str  # connecting, connected, lost, refused
    reason: str
    reconnects: int
    since: float  # seconds in this state of the connection
    messages: int = 0  # received, or answered by the target
    held: int = 0  # unanswered bytes in memory
    spooled_messages: int = 0
    spooled_bytes: int = 0
    spooled_age: float = 0.0  # of the oldest batch on disk
    spool_share: float = 0.0  # used share of the spool's nearest limit; 1.0 is full
    counts: Mapping[str, int] = field(
        default_factory=dict
    )  # the driver's own counters, and `no_route`
    broker_id: str = ""  # endpoints with the same one are connections to one broker
    retry_in: float | None = None  # seconds until the next attempt to connect; None: none waits
    silence: float = 0.0  # seconds for which a connected target has owed an answer
    address: str = ""  # in use, or used last, of an endpoint with several
    gap: str = ""  # the last one of a source in this run, with its seconds and its rule
    backlog: int | None = None  # messages that wait for a source; None where it does not know


@dataclass(frozen=True, slots=True)
class RouteStatus:
    """The status of one route."""

    name: str
    source: str  # endpoint and pattern
    targets: tuple[str, ...]
    guarantee: str
    totals: RouteTotals
    heartbeat_age: float | None  # None without a heartbeat
    lag: float = 0.0  # seconds for which the oldest spooled message of the route has waited
    has_reverse: bool = False  # another route carries the messages of its targets back
    target_names: tuple[str, ...] = ()  # label and templates of each target


@dataclass(frozen=True, slots=True)
class PairStatus:
    """The part of an instance in its pair.

    Units: seconds.
    """

    instance: str
    role: str  # holder or standby
    number: int  # of the lease that it holds, or held last
    since: float  # seconds in this role
    active: str  # the instance that the store named last; empty when none is known
    standby: tuple[str, ...]  # other instances that wait, as a holder sees them
    failure: str = ""  # why the store of the lease does not answer


@dataclass(frozen=True, slots=True)
class Status:
    """The status of the whole gateway."""

    gateway: str
    version: str
    started: int  # microseconds since 1970-01-01 UTC
    reloaded: int  # when the current configuration was applied
    heartbeat_seconds: float  # between two heartbeats of a route
    endpoints: tuple[EndpointStatus, ...]
    routes: tuple[RouteStatus, ...]
    archive_queued: int  # bytes waiting for the disk; 0 without an archive
    archive_failure: str
    spool_failure: str
    thread_failure: str  # why a thread ended, and the process ends
    dead_letters: int
    dead_letter_bytes: int
    dead_letters_dropped: int
    dead_letters_sent_again: int  # by commands, since the start
    pair: PairStatus | None = None  # None for a gateway alone
    reload_refused: str = ""  # why the last one was
    suspected_loops: tuple[SuspectedLoop, ...] = ()
    stranded: tuple[tuple[str, int], ...] = ()  # endpoints without a route: messages on disk
    journals: WaitingJournals = WaitingJournals()  # noqa: RUF009  # a frozen value


def take_status(running: Gateway) -> Status:
    """The status of `running`; the call never blocks and contacts no broker."""
    archive, database, letters = running.archive, running.spool_database, running.dead_letters
    configuration = running.configuration  # read once: a reload may replace it
    endpoints = [_source_status(pump, running) for _, pump in sorted(running.pumps.items())]
    lanes = {lane.state.name: lane for lane in running.lanes.values()}
    endpoints += [_sink_status(lane, running) for _, lane in sorted(lanes.items())]
    endpoints += [_status(tap.state, tap.target.system) for tap in running.taps.values()]
    return Status(
        gateway=configuration.gateway.name,
        version=gateway.__version__,
        started=running.started,
        reloaded=running.reloaded,
        heartbeat_seconds=configuration.gateway.heartbeat_seconds,
        endpoints=tuple(endpoints),
        routes=tuple(
            _route_status(route, running, configuration) for route in configuration.routes
        ),
        archive_queued=archive.queued_bytes if archive else 0,
        archive_failure=str(archive.failure or "") if archive else "",
        spool_failure=database.failure if database else "",
        thread_failure=running.thread_failure,
        dead_letters=letters.count if letters else 0,
        dead_letter_bytes=letters.bytes if letters else 0,
        dead_letters_dropped=letters.dropped if letters else 0,
        dead_letters_sent_again=letters.sent_again if letters else 0,
        pair=None if running.lease is None else _pair_status(running.lease),
        reload_refused=running.reload_refused,
        suspected_loops=running.suspicions.current(),
        stranded=running.stranded,
        journals=archive.backlog if archive else WaitingJournals(),
    )


def _pair_status(lease: LeaseHolder) -> PairStatus:
    return PairStatus(
        lease.instance,
        lease.role.value,
        lease.number,
        lease.since,
        lease.active,
        tuple(lease.standby),
        lease.failure,
    )


def _source_status(pump: Pump, running: Gateway) -> EndpointStatus:
    status = _connected_status(pump.state, pump.source, pump.state.retry_at, running)
    source = pump.source
    backlog = source.backlog if isinstance(source, CountsBacklog) else None
    return replace(status, gap=pump.gaps.last_gap, backlog=backlog)


def _sink_status(lane: Lane, running: Gateway) -> EndpointStatus:
    status = replace(
        _connected_status(lane.state, lane.binding.sink, lane.retry_at, running),
        system=lane.binding.system,
        held=lane.held,
        silence=lane.silence,
    )
    if (spool := lane.spool) is None:
        return status
    return replace(
        status,
        spooled_messages=spool.backlog.messages,
        spooled_bytes=spool.backlog.bytes,
        spooled_age=spool.waited(),
        spool_share=_used_share(spool.backlog),
    )


def _used_share(spool: SpoolBacklog) -> float:
    limits = spool.limits
    messages = spool.messages + spool.held_messages
    used = (spool.bytes + spool.held_bytes) / limits.bytes
    return max(used, messages / limits.messages) if limits.messages else used


def _connected_status(
    state: EndpointState, driver: Source | Sink, retry_at: float | None, running: Gateway
) -> EndpointStatus:
    """The facts that sources and sinks share; `retry_at` is the next attempt to connect."""
    endpoint = running.configuration.endpoints.get(state.name)  # None while a reload removes it
    several = endpoint is not None and len([*endpoint.settings.servers()]) > 1
    return replace(
        _status(state, endpoint.settings.dialect if endpoint else ""),
        counts={
            **getattr(driver, "counts", {}),  # an optional attribute
            **({"no_route": state.untaken} if state.untaken else {}),
        },
        broker_id=(endpoint.broker.given or endpoint.broker.address) if endpoint else "",
        retry_in=None if retry_at is None else max(0.0, retry_at - monotonic()),
        address=address_of(driver) if several else "",
    )


def _status(state: EndpointState, system: str) -> EndpointStatus:
    return EndpointStatus(
        state.name,
        state.side,
        system,
        state.connection.value,
        state.shown_reason,
        state.reconnects,
        monotonic() - state.since,
        state.messages,
    )


def _route_status(route: Route, running: Gateway, configuration: Configuration) -> RouteStatus:
    counters = running.counters.get(route.name) or RouteCounters()  # None while a reload adds it
    heartbeat = running.heartbeats.get(route.name)
    modes = {effective_mode(route, each, configuration) for each in route.targets}
    thinned = any(each.thin is not None for each in route.targets)
    return RouteStatus(
        name=route.name,
        source=f"{route.endpoint} {route.source_text}",
        targets=tuple(target.label for target in route.targets),
        guarantee="thinned" if thinned else min(modes).name.lower() if modes else "",
        totals=counters.totals(),
        heartbeat_age=heartbeat.age if heartbeat else None,
        lag=_lag(route, running),
        has_reverse=bool(route.inverse),
        target_names=tuple(map(_named, route.targets)),
    )


def _named(target: Target) -> str:
    """Return the label of a target with its templates: with a key, where its names have one."""
    return " ".join([target.label, *(each.text for each in target.templates)])


def _lag(route: Route, running: Gateway) -> float:
    """Seconds for which the oldest message of `route` has waited in the spool of any target."""
    lanes = [running.lanes.get(endpoint) for endpoint in {each.endpoint for each in route.targets}]
    spools = [lane.spool for lane in lanes if lane is not None and lane.spool is not None]
    return max((spool.waited(route.name) for spool in spools), default=0.0)
