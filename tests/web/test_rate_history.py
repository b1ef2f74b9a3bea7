"""The rates of the last ten minutes: their ring, its bounds and its cost."""

from __future__ import annotations

import json
import time
import tracemalloc
from typing import Any

import pytest

from gateway.errors import GatewayError
from gateway.web.rate_history import SAMPLES, RateHistory
from tests.waiting import until
from tests.web.status_samples import FakeStatus, served, status


class Counts:
    """Counts and a clock for a history. Mutable: a test changes both."""

    def __init__(self, *keys: str) -> None:
        self.counts = dict.fromkeys(keys, 0)
        self.time = 0.0

    def history(self) -> RateHistory:
        return RateHistory(lambda: dict(self.counts), lambda: self.time)

    def step(self, history: RateHistory, seconds: float = 10.0, **added: int) -> None:
        for key, count in added.items():
            self.counts[key] = self.counts.get(key, 0) + count
        self.time += seconds
        history.sample()


def since(history: RateHistory, number: int = 0) -> Any:  # noqa: ANN401  # JSON
    return json.loads(json.dumps(history.since(number)))


def test_a_rate_is_the_messages_of_the_measured_time() -> None:
    source = Counts("a", "quiet")
    history = source.history()
    source.step(history, 10.0, a=50)
    source.step(history, 20.0, a=50)  # a sample that was late

    found = since(history)

    assert found["rates"] == {"a": [5.0, 2.5]}
    assert (found["number"], found["samples"]) == (2, 2)


def test_only_the_samples_after_a_number_are_given() -> None:
    source = Counts("a", "b")
    history = source.history()
    source.step(history, a=10, b=10)
    source.step(history, a=20)

    assert since(history, 1)["rates"] == {"a": [2.0]}
    assert since(history, 2)["samples"] == 0
    assert since(history, 99)["samples"] == 2  # the number of an earlier run


def test_the_ring_keeps_ten_minutes() -> None:
    source = Counts("a")
    history = source.history()
    for each in range(SAMPLES + 5):
        source.step(history, a=each * 10)

    found = since(history)

    assert found["rates"]["a"] == [float(each) for each in range(5, SAMPLES + 5)]
    assert since(history, 3)["samples"] == SAMPLES


def test_a_reload_adds_and_removes_routes() -> None:
    source = Counts("old")
    history = source.history()
    source.step(history, old=10)
    del source.counts["old"]
    source.step(history, new=20)
    source.step(history, old=5, new=10)  # counted again
    source.step(history, old=5)

    assert since(history)["rates"] == {"new": [0.0, 0.0, 1.0, 0.0], "old": [0.0, 0.0, 0.0, 0.5]}


def test_a_route_that_comes_back_has_no_peak() -> None:
    source = Counts()
    history = source.history()
    source.step(history, a=1_000_000)
    kept = source.counts.pop("a")
    source.step(history)
    source.step(history, a=kept)
    source.step(history, a=50)

    assert since(history)["rates"] == {"a": [0.0, 0.0, 0.0, 5.0]}


def test_a_thousand_routes_need_less_than_a_megabyte_and_little_time() -> None:
    keys = [f"route imported.bridge.route-{number:04}" for number in range(1_000)]
    source = Counts(*keys)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    history = source.history()
    for _ in range(2 * SAMPLES):
        source.step(history, **dict.fromkeys(keys, 7))
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    start = time.process_time()
    source.step(history)
    sampled = time.process_time() - start
    start = time.process_time()
    size = len(json.dumps(history.since(0)))
    given = time.process_time() - start

    assert used < 1 << 20
    assert sampled < 0.1
    assert given < 0.5
    assert size < 500_000


def test_the_server_samples_without_an_open_page_and_survives_a_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.web.server.SAMPLE_INTERVAL", 0.01)

    class Failing(RateHistory):
        calls = 0

        def sample(self) -> None:
            self.calls += 1
            if self.calls == 1:
                raise GatewayError("a reload changed the routes")
            super().sample()

    shown = FakeStatus(status())
    shown.history = Failing(dict)
    with served(shown):
        until(lambda: since(shown.history)["number"] >= 2, "no sample")
