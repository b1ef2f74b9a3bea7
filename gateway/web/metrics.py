"""The gateway's metrics for Prometheus, collected from its status at every scrape.

The label values are names from the configuration, rules and header fields. A route has at most
`MAX_LABELS` rules and header fields with a series of their own; the rest count as "other".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from gateway.runtime.record.counters import LATENCY_BUCKETS, ConnectionState, RouteTotals
from gateway.runtime.status import EndpointStatus, RouteStatus, Status
from gateway.web.flow_state import MICROSECONDS
from gateway.web.snapshot import StatusSnapshot, by_name, lag

MAX_LABELS: Final = 64  # series of one route and metric
OTHER: Final = "other"
_BOUNDS: Final = (*map(str, LATENCY_BUCKETS), "+Inf")


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
    ("gateway_route_loops_total", "Looped messages dropped.", lambda r: r.loops),
    ("gateway_route_duplicates_total", "Duplicates dropped.", lambda r: r.duplicates),
    ("gateway_route_refused_messages_total", "Messages refused.", lambda r: r.dead),
)
_ENDPOINT_METRICS: Final[Sequence[_EndpointMetric]] = (
    ("gateway_endpoint_connected", "1 while connected.", lambda e: float(_is_connected(e))),
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


def _is_connected(endpoint: EndpointStatus) -> bool:
    return endpoint.connection == ConnectionState.CONNECTED.value


class StatusCollector(Collector):
    """Collects metrics from the status that `snapshot` returns."""

    def __init__(self, snapshot: Callable[[], StatusSnapshot]) -> None:
        self._moment = snapshot

    def collect(self) -> Iterator[Metric]:
        snapshot = self._moment()
        yield from _gateway(snapshot)
        yield from _pair(snapshot.status)
        yield _certificates(snapshot.expiries)
        yield from _endpoints(snapshot.status)
        yield from _routes(snapshot.status)

    def describe(self) -> list[Metric]:
        """Return nothing, so that the registry does not collect once to learn the names."""
        return []


def make_registry(snapshot: Callable[[], StatusSnapshot]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(StatusCollector(snapshot))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry


def _gateway(snapshot: StatusSnapshot) -> Iterator[Metric]:
    status = snapshot.status
    info = GaugeMetricFamily("gateway_info", "Name and version.", labels=("gateway", "version"))
    info.add_metric((status.gateway, status.version), 1)
    yield info
    gauges = {
        "gateway_ready": ("1 while /readyz answers 200.", not snapshot.reasons),
        "gateway_start_time_seconds": (
            "Start time, seconds since 1970-01-01 UTC.",
            status.started / MICROSECONDS,
        ),
        "gateway_reload_time_seconds": (
            "Time at which the configuration was loaded, seconds since 1970-01-01 UTC.",
            status.reloaded / MICROSECONDS,
        ),
        "gateway_reload_successful": (
            "0 after a reload that was refused: the previous configuration runs.",
            not status.reload_refused,
        ),
        "gateway_heartbeat_interval_seconds": (
            "Seconds between two heartbeats.",
            status.heartbeat_seconds,
        ),
        "gateway_archive_queued_bytes": (
            "Bytes of archive rows not yet on disk.",
            status.archive_queued,
        ),
        "gateway_archive_journals": (
            "Closed journals that are not converted to segments yet.",
            status.journals.journals,
        ),
        "gateway_archive_buffer_used_ratio": (
            "Used share of the buffer of a remote archive, 0 to 1.",
            status.journals.buffer_share,
        ),
        "gateway_archive_writing": (
            "0 while the archive cannot be written.",
            not status.archive_failure,
        ),
        "gateway_spool_writing": ("0 while the spool cannot be written.", not status.spool_failure),
        "gateway_dead_letters": ("Dead letters on disk.", status.dead_letters),
        "gateway_dead_letter_bytes": ("Bytes of dead letters on disk.", status.dead_letter_bytes),
    }
    for name, (doc, value) in gauges.items():
        yield GaugeMetricFamily(name, doc, value)
    dropped = status.dead_letters_dropped
    name = "gateway_dead_letters_dropped_total"
    yield CounterMetricFamily(name, "Oldest dead letters dropped at the limit.", dropped)
    name = "gateway_archive_failed_conversions_total"
    yield CounterMetricFamily(name, "Conversions that failed.", status.journals.failed)


def _pair(status: Status) -> Iterator[Metric]:
    """Yield the metrics of a pair; a gateway alone has none."""
    if (pair := status.pair) is None:
        return
    gauges = {
        "gateway_lease_held": ("1 at the instance that holds the lease.", pair.role == "holder"),
        "gateway_lease_number": ("The number of the lease held, or held last.", pair.number),
        "gateway_lease_standbys": ("Instances that wait, as the holder sees.", len(pair.standby)),
        "gateway_lease_reachable": ("0 while the lease's store is away.", not pair.failure),
    }
    for name, (doc, value) in gauges.items():
        family = GaugeMetricFamily(name, doc, labels=("gateway",))
        family.add_metric((status.gateway,), float(value))
        yield family


def _certificates(expiries: Mapping[str, float]) -> Metric:
    name = "gateway_certificate_expiry_time_seconds"
    family = _family(name, "Expiry of a PEM file, seconds since 1970-01-01 UTC.", ("setting",))
    for setting, time in expiries.items():
        family.add_metric((setting,), time)
    return family


def _endpoints(status: Status) -> Iterator[Metric]:
    for name, doc, read in _ENDPOINT_METRICS:
        family = _family(name, doc, ("endpoint", "side", "system"))
        for end in status.endpoints:
            family.add_metric((end.name, end.side, end.system), float(read(end)))
        yield family
    sinks = [end for end in status.endpoints if end.side == "sink"]
    for name, doc, read in _TARGET_METRICS:
        family = _family(name, doc, ("endpoint",))
        for end in sinks:
            family.add_metric((end.name,), float(read(end)))
        yield family
    family = _family(
        "gateway_endpoint_events_total",
        "Events counted by the endpoint's driver.",
        ("endpoint", "side", "event"),
    )
    for end in status.endpoints:
        for event, count in _bounded(end.counts):
            family.add_metric((end.name, end.side, event), count)
    yield family


def _routes(status: Status) -> Iterator[Metric]:
    routes = [parts[0] for parts in by_name(status.routes)]
    for name, doc, read in _ROUTE_METRICS:
        family = _family(name, doc, ("route",))
        for route in routes:
            family.add_metric((route.name,), read(route.totals))
        yield family
    refusals = _family(
        "gateway_route_refusals_total", "Messages refused, by rule.", ("route", "rule")
    )
    lost = _family(
        "gateway_route_lost_fields_total",
        "Header fields that the target cannot carry.",
        ("route", "field"),
    )
    heartbeats = _family(
        "gateway_route_heartbeat_age_seconds", "Seconds since the last heartbeat.", ("route",)
    )
    for route in routes:
        for rule, count in _bounded(route.totals.rules):
            refusals.add_metric((route.name, rule), count)
        for field, count in _bounded(route.totals.lost_fields):
            lost.add_metric((route.name, field), count)
        if route.heartbeat_age is not None:
            heartbeats.add_metric((route.name,), route.heartbeat_age)
    yield from (refusals, lost, heartbeats, _lags(status), _latencies(routes))


def _lags(status: Status) -> Metric:
    family = _family(
        "gateway_route_lag_seconds", "Age of the route's oldest spooled message.", ("route",)
    )
    for parts in by_name(status.routes):
        family.add_metric((parts[0].name,), lag(parts))
    return family


def _latencies(routes: list[RouteStatus]) -> Metric:
    """Return the latency histogram."""
    name = "gateway_route_delivery_seconds"
    family = HistogramMetricFamily(
        name, "Seconds from receipt to the target's acknowledgement.", labels=("route",)
    )
    for route in routes:
        buckets = list(zip(_BOUNDS, map(float, accumulate(route.totals.latencies)), strict=True))
        family.add_metric((route.name,), buckets, route.totals.latency_sum)
    return family


def _family(
    name: str, doc: str, labels: tuple[str, ...]
) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    return kind(name, doc, labels=labels)


def _bounded(counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the largest counts, and the sum of the others as "other"."""
    if len(counts) <= MAX_LABELS:
        yield from dict(counts).items()
        return
    ordered = sorted(dict(counts).items(), key=lambda item: item[1], reverse=True)
    yield from ordered[: MAX_LABELS - 1]
    yield OTHER, sum(count for _, count in ordered[MAX_LABELS - 1 :])
