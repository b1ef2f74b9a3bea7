from __future__ import annotations

from gateway.runtime.monitor.counters import RouteCounters


def test_a_clock_that_was_set_back_makes_no_latency_negative() -> None:
    counters = RouteCounters()
    counters.delivers(2, 0.5)
    counters.delivers(3, -3_600.0)

    assert counters.latency_sum == 1.0  # a sum that falls looks like a restart to who scrapes it
    assert (sum(counters.latencies), counters.latencies[0]) == (5, 3)
