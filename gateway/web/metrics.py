"""The gateway's metrics for Prometheus, collected from its status at every scrape.

The label values are names from the configuration, rules and header fields. A route has at most
`MAX_LABELS` rules and header fields with a series of their own; the rest count as "other".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, core
from prometheus_client.registry import Collector

from gateway.lease.lease import Role
from gateway.runtime.record.counters import LATENCY_BUCKETS, ConnectionState, RouteTotals
from gateway.runtime.status import EndpointStatus, PairStatus, RouteStatus, Status
from gateway.web.flow_state import MICROSECONDS
from gateway.web.snapshot import StatusSnapshot, by_name, lag

MAX_LABELS: Final = 64  # series of one route and metric
OTHER: Final = "other"
_CONNECTED: Final = ConnectionState.CONNECTED.value
_BOUNDS: Final = (*map(str, LATENCY_BUCKETS), "+Inf")


# Name, documentation, labels, and the samples: label values with a number.
_Series: TypeAlias = tuple[str, str, tuple[str, ...], Iterable[tuple[tuple[str, ...], float]]]
# Name, documentation and value of a metric; a name that ends in `_total` is a counter.
_RouteMetric: TypeAlias = tuple[str, str, Callable[[RouteTotals], float]]
_EndpointMetric: TypeAlias = tuple[str, str, Callable[[EndpointStatus], float]]
_ROUTE_METRICS: Final[Sequence[_RouteMetric]] = (
    ("gateway_route_received_messages_total", "Messages received.", lambda r: r.received),
    ("gateway_route_received_bytes_total", "Payload bytes received.", lambda r: r.received_bytes),
    ("gateway_route_delivered_messages_total", "Copies delivered.", lambda r: r.delivered),
    ("gateway_route_spooled_messages_total", "Copies spooled to disk.", lambda r: r.spooled),
    ("gateway_route_ignored_messages_total", "Retained messages ignored.", lambda r: r.ignored),
    ("gateway_route_unselected_messages_total", "Messages not selected.", lambda r: r.unselected),
    ("gateway_route_thinned_messages_total", "Copies left out by `thin`.", lambda r: r.thinned),
    ("gateway_route_loops_total", "Looped messages dropped.", lambda r: r.loops),
    ("gateway_route_duplicates_total", "Duplicates dropped.", lambda r: r.duplicates),
    ("gateway_route_refused_messages_total", "Messages refused.", lambda r: r.dead),
)
_ENDPOINT_METRICS: Final[Sequence[_EndpointMetric]] = (
    ("gateway_endpoint_connected", "1 while connected.", lambda e: e.connection == _CONNECTED),
    ("gateway_endpoint_state_seconds", "Age of the connection's state.", lambda e: e.since),
    ("gateway_endpoint_messages_total", "Messages received or accepted.", lambda e: e.messages),
    ("gateway_endpoint_reconnects_total", "Reconnects.", lambda e: e.reconnects),
)
_TARGET_METRICS: Final[Sequence[_EndpointMetric]] = (
    ("gateway_target_held_bytes", "Bytes in memory, not acknowledged.", lambda e: e.held),
    ("gateway_spool_messages", "Messages in the spool.", lambda e: e.spooled_messages),
    ("gateway_spool_bytes", "Bytes in the spool.", lambda e: e.spooled_bytes),
    ("gateway_spool_oldest_seconds", "Age of the oldest message.", lambda e: e.spooled_age),
    ("gateway_spool_used_ratio", "Used share of its limit, 0 to 1.", lambda e: e.spool_share),
)


class StatusCollector(Collector):
    """Collects metrics from the status that `snapshot` returns."""

    def __init__(self, snapshot: Callable[[], StatusSnapshot]) -> None:
        self._moment = snapshot

    def collect(self) -> Iterator[core.Metric]:
        snapshot = self._moment()
        for name, doc, labels, samples in _series(snapshot):
            kind = core.CounterMetricFamily if name.endswith("_total") else core.GaugeMetricFamily
            family = kind(name, doc, labels=labels)
            for values, number in samples:
                family.add_metric(values, float(number))
            yield family
        yield _latencies([parts[0] for parts in by_name(snapshot.status.routes)])

    def describe(self) -> list[core.Metric]:
        """Return nothing, so that the registry does not collect once to learn the names."""
        return []


def make_registry(snapshot: Callable[[], StatusSnapshot]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(StatusCollector(snapshot))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry


def _series(snapshot: StatusSnapshot) -> Iterator[_Series]:
    status = snapshot.status
    names = ("gateway", "version")
    yield "gateway_info", "Name and version.", names, [((status.gateway, status.version), 1)]
    for name, doc, number in _gateway(snapshot):
        yield name, doc, (), [((), number)]
    for name, doc, number in _pair(status.pair):
        yield name, doc, ("gateway",), [((status.gateway,), number)]
    expiries = [((setting,), time) for setting, time in snapshot.expiries.items()]
    name = "gateway_certificate_expiry_time_seconds"
    yield name, "Expiry of a PEM file, seconds since 1970-01-01 UTC.", ("setting",), expiries
    yield from _endpoints(status)
    yield from _routes(status)


def _gateway(snapshot: StatusSnapshot) -> Iterator[tuple[str, str, float]]:
    status, journals = snapshot.status, snapshot.status.journals
    yield "gateway_ready", "1 while /readyz answers 200.", not snapshot.reasons
    doc = "Start time, seconds since 1970-01-01 UTC."
    yield "gateway_start_time_seconds", doc, status.started / MICROSECONDS
    doc = "Time at which the configuration was loaded, seconds since 1970-01-01 UTC."
    yield "gateway_reload_time_seconds", doc, status.reloaded / MICROSECONDS
    doc = "0 after a reload that was refused: the previous configuration runs."
    yield "gateway_reload_successful", doc, not status.reload_refused
    doc = "Seconds between two heartbeats."
    yield "gateway_heartbeat_interval_seconds", doc, status.heartbeat_seconds
    doc = "Bytes of archive rows not yet on disk."
    yield "gateway_archive_queued_bytes", doc, status.archive_queued
    doc = "Closed journals that are not converted to segments yet."
    yield "gateway_archive_journals", doc, journals.journals
    doc = "Used share of the buffer of a remote archive, 0 to 1."
    yield "gateway_archive_buffer_used_ratio", doc, journals.buffer_share
    doc = "0 while the archive cannot be written."
    yield "gateway_archive_writing", doc, not status.archive_failure
    doc = "0 while the spool cannot be written."
    yield "gateway_spool_writing", doc, not status.spool_failure
    yield "gateway_dead_letters", "Dead letters on disk.", status.dead_letters
    yield "gateway_dead_letter_bytes", "Bytes of dead letters on disk.", status.dead_letter_bytes
    doc = "Oldest dead letters dropped at the limit."
    yield "gateway_dead_letters_dropped_total", doc, status.dead_letters_dropped
    doc = "Dead letters that a command has sent again."
    yield "gateway_dead_letters_sent_again_total", doc, status.dead_letters_sent_again
    doc = "Conversions that failed."
    yield "gateway_archive_failed_conversions_total", doc, journals.failed


def _pair(pair: PairStatus | None) -> Iterator[tuple[str, str, float]]:
    """Yield the metrics of a pair; a gateway alone has none."""
    if pair is not None:
        held = pair.role == Role.HOLDER.value
        yield "gateway_lease_held", "1 at the instance that holds the lease.", held
        yield "gateway_lease_number", "The number of the lease held, or held last.", pair.number
        doc = "Instances that wait, as the holder sees."
        yield "gateway_lease_standbys", doc, len(pair.standby)
        yield "gateway_lease_reachable", "0 while the lease's store is away.", not pair.failure


def _endpoints(status: Status) -> Iterator[_Series]:
    ends, labels = status.endpoints, ("endpoint", "side", "system")
    for name, doc, read in _ENDPOINT_METRICS:
        yield name, doc, labels, [((end.name, end.side, end.system), read(end)) for end in ends]
    sinks = [end for end in ends if end.side == "sink"]
    for name, doc, read in _TARGET_METRICS:
        yield name, doc, ("endpoint",), [((end.name,), read(end)) for end in sinks]
    suspected = {loop.endpoint for loop in status.suspected_loops}
    sources = [end for end in ends if end.side == "source"]
    doc = "1 while a loop through a route of the source is suspected."
    loops = [((end.name,), end.name in suspected) for end in sources]
    yield "gateway_loop_suspected", doc, ("endpoint",), loops
    waiting = [((end.name,), end.backlog) for end in sources if end.backlog is not None]
    doc = "Messages that wait for the source, or are not settled."
    yield "gateway_source_backlog_messages", doc, ("endpoint",), waiting
    events = [
        ((end.name, end.side, event), count)
        for end in ends
        for event, count in _bounded(end.counts)
    ]
    doc = "Events counted by the endpoint's driver."
    yield "gateway_endpoint_events_total", doc, ("endpoint", "side", "event"), events


def _routes(status: Status) -> Iterator[_Series]:
    grouped = by_name(status.routes)
    totals = {parts[0].name: parts[0].totals for parts in grouped}
    for name, doc, read in _ROUTE_METRICS:
        yield name, doc, ("route",), [((route,), read(each)) for route, each in totals.items()]
    rules = [((r, rule), n) for r, each in totals.items() for rule, n in _bounded(each.rules)]
    doc = "Messages refused, by rule."
    yield "gateway_route_refusals_total", doc, ("route", "rule"), rules
    fields = [((r, key), n) for r, each in totals.items() for key, n in _bounded(each.lost_fields)]
    doc = "Header fields that the target cannot carry."
    yield "gateway_route_lost_fields_total", doc, ("route", "field"), fields
    ages = ((parts[0].name, parts[0].heartbeat_age) for parts in grouped)
    heartbeats = [((route,), age) for route, age in ages if age is not None]
    doc = "Seconds since the last heartbeat."
    yield "gateway_route_heartbeat_age_seconds", doc, ("route",), heartbeats
    doc = "Age of the route's oldest spooled message."
    yield "gateway_route_lag_seconds", doc, ("route",), [((p[0].name,), lag(p)) for p in grouped]


def _latencies(routes: list[RouteStatus]) -> core.Metric:
    """Return the latency histogram."""
    name = "gateway_route_delivery_seconds"
    family = core.HistogramMetricFamily(
        name, "Seconds from receipt to the target's acknowledgement.", labels=("route",)
    )
    for route in routes:
        buckets = list(zip(_BOUNDS, map(float, accumulate(route.totals.latencies)), strict=True))
        family.add_metric((route.name,), buckets, route.totals.latency_sum)
    return family


def _bounded(counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the largest counts, and the sum of the others as "other"."""
    if len(counts) <= MAX_LABELS:
        yield from dict(counts).items()
        return
    ordered = sorted(dict(counts).items(), key=lambda item: item[1], reverse=True)
    yield from ordered[: MAX_LABELS - 1]
    yield OTHER, sum(count for _, count in ordered[MAX_LABELS - 1 :])
