"""The status as Prometheus has it; the families are made anew at every scrape.

Labels are names from the configuration, rules and header fields. The first are as many as people
wrote, the last two are words of the gateway, and past `RULES` of a route they count together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from gateway.runtime.monitor.counters import LATENCIES, Connection
from gateway.runtime.monitor.status import EndpointStatus, RouteStatus, Status
from gateway.web.view import MICROSECONDS, Moment, by_name, lag, lags_of

RULES: Final = 64  # of one route that have a series of their own
OTHER: Final = "other"
_BOUNDS: Final = (*map(str, LATENCIES), "+Inf")


@dataclass(frozen=True, slots=True)
class _Figure:
    """One figure of a route or an endpoint; a counter when its name ends in `_total`."""

    name: str
    doc: str
    read: Callable[[RouteStatus], float]


_ROUTE: Final = (
    _Figure("gateway_route_received_messages_total", "Messages taken.", lambda r: r.received),
    _Figure("gateway_route_received_bytes_total", "Payload taken.", lambda r: r.received_bytes),
    _Figure("gateway_route_delivered_messages_total", "Copies delivered.", lambda r: r.delivered),
    _Figure("gateway_route_spooled_messages_total", "Copies put on disk.", lambda r: r.spooled),
    _Figure("gateway_route_ignored_messages_total", "Retained, left alone.", lambda r: r.ignored),
    _Figure("gateway_route_unselected_messages_total", "Not selected.", lambda r: r.unselected),
    _Figure("gateway_route_loops_total", "Messages that came back, cut.", lambda r: r.loops),
    _Figure("gateway_route_duplicates_total", "Messages seen before.", lambda r: r.duplicates),
)


@dataclass(frozen=True, slots=True)
class _End:
    """One figure of one side of an endpoint."""

    name: str
    doc: str
    read: Callable[[EndpointStatus], float]


_ENDPOINT: Final = (
    _End(
        "gateway_endpoint_connected",
        "1 while the connection works.",
        lambda e: e.connection == Connection.CONNECTED.value,
    ),
    _End("gateway_endpoint_state_seconds", "Since the connection changed.", lambda e: e.since),
    _End("gateway_endpoint_messages_total", "Received, or taken by it.", lambda e: e.messages),
    _End("gateway_endpoint_reconnects_total", "Connections made again.", lambda e: e.reconnects),
)
_SINK: Final = (
    _End("gateway_target_held_bytes", "In memory, without an answer.", lambda e: e.held),
    _End("gateway_spool_messages", "Waiting on disk.", lambda e: e.spooled_messages),
    _End("gateway_spool_bytes", "Waiting on disk.", lambda e: e.spooled_bytes),
    _End("gateway_spool_oldest_seconds", "Age of the oldest on disk.", lambda e: e.spooled_age),
    _End("gateway_spool_used_ratio", "Of the spool's bound, 1 is full.", lambda e: e.spool_share),
)


class StatusCollector(Collector):
    """Families over the status that `moment` gives."""

    def __init__(self, moment: Callable[[], Moment]) -> None:
        self._moment = moment

    def collect(self) -> Iterator[Metric]:
        moment = self._moment()
        yield from _whole(moment)
        yield from _endpoints(moment.status)
        yield from _routes(moment.status)

    def describe(self) -> list[Metric]:
        """Nothing: without it the registry would collect once to learn the names."""
        return []


def make_registry(moment: Callable[[], Moment]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(StatusCollector(moment))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry


def _whole(moment: Moment) -> Iterator[Metric]:
    status = moment.status
    info = GaugeMetricFamily("gateway_info", "What runs.", labels=("gateway", "version"))
    info.add_metric((status.gateway, status.version), 1)
    yield info
    gauges = {
        "gateway_ready": ("1 while /readyz says yes.", not moment.reasons),
        "gateway_start_time_seconds": ("Start.", status.started / MICROSECONDS),
        "gateway_reload_time_seconds": (
            "When the configuration was taken.",
            status.reloaded / MICROSECONDS,
        ),
        "gateway_heartbeat_interval_seconds": ("Between two.", status.heartbeat_seconds),
        "gateway_archive_queued_bytes": ("Waiting for the disk.", status.archive_queued),
        "gateway_archive_writing": ("0 while it cannot write.", not status.archive_failure),
        "gateway_spool_writing": ("0 while it cannot write.", not status.spool_failure),
        "gateway_dead_letters": ("On disk.", status.dead_letters),
        "gateway_dead_letter_bytes": ("On disk.", status.dead_letter_bytes),
    }
    for name, (doc, value) in gauges.items():
        yield GaugeMetricFamily(name, doc, value)
    dropped = status.dead_letters_dropped
    name = "gateway_dead_letters_dropped_total"
    yield CounterMetricFamily(name, "The oldest, dropped as there were too many.", dropped)


def _endpoints(status: Status) -> Iterator[Metric]:
    for figure in _ENDPOINT:
        family = _family(figure.name, figure.doc, ("endpoint", "side", "system"))
        for end in status.endpoints:
            family.add_metric((end.name, end.side, end.system), float(figure.read(end)))
        yield family
    sinks = [end for end in status.endpoints if end.side == "sink"]
    for figure in _SINK:
        family = _family(figure.name, figure.doc, ("endpoint",))
        for end in sinks:
            family.add_metric((end.name,), float(figure.read(end)))
        yield family
    family = _family(
        "gateway_endpoint_events_total", "What a driver counts.", ("endpoint", "side", "event")
    )
    for end in status.endpoints:
        for event, count in _bounded(end.counts):
            family.add_metric((end.name, end.side, event), count)
    yield family


def _routes(status: Status) -> Iterator[Metric]:
    routes = [parts[0] for parts in by_name(status.routes)]
    for figure in _ROUTE:
        family = _family(figure.name, figure.doc, ("route",))
        for route in routes:
            family.add_metric((route.name,), figure.read(route))
        yield family
    refusals = _family("gateway_route_refusals_total", "Dead letters.", ("route", "rule"))
    lost = _family("gateway_route_lost_fields_total", "Could not cross.", ("route", "field"))
    beats = _family("gateway_route_heartbeat_age_seconds", "Since the last one.", ("route",))
    for route in routes:
        for rule, count in _bounded(route.rules):
            refusals.add_metric((route.name, rule), count)
        for field, count in _bounded(route.lost_fields):
            lost.add_metric((route.name, field), count)
        if route.heartbeat_age is not None:
            beats.add_metric((route.name,), route.heartbeat_age)
    yield from (refusals, lost, beats, _lags(status), _latencies(routes))


def _lags(status: Status) -> Metric:
    family = _family("gateway_route_lag_seconds", "Of the slowest target.", ("route",))
    lags = lags_of(status.endpoints)
    for parts in by_name(status.routes):
        family.add_metric((parts[0].name,), lag(parts, lags))
    return family


def _latencies(routes: list[RouteStatus]) -> Metric:
    """From receipt to the target's answer; a route that delivered nothing yet has no series."""
    name = "gateway_route_delivery_seconds"
    family = HistogramMetricFamily(name, "From receipt to answer.", labels=("route",))
    for route in routes:
        if any(route.latency):
            buckets = list(zip(_BOUNDS, map(float, accumulate(route.latency)), strict=True))
            family.add_metric((route.name,), buckets, route.latency_sum)
    return family


def _family(
    name: str, doc: str, labels: tuple[str, ...]
) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    return kind(name, doc, labels=labels)


def _bounded(counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """The counts, the small ones together when there are very many."""
    if len(counts) <= RULES:
        yield from dict(counts).items()
        return
    ordered = sorted(dict(counts).items(), key=lambda item: item[1], reverse=True)
    yield from ordered[: RULES - 1]
    yield OTHER, sum(count for _, count in ordered[RULES - 1 :])
