"""Counters of a route."""

from __future__ import annotations

from gateway.runtime.record.counters import RouteCounters


def test_a_latency_is_never_negative() -> None:
    counters = RouteCounters()
    counters.count_delivered(2, 0.5)
    counters.count_delivered(3, -3_600.0)

    assert counters.latency_sum == 1.0  # Prometheus would read a falling sum as a restart
    assert (sum(counters.latencies), counters.latencies[0]) == (5, 3)
