"""Memory of the latest dead letters, whose names and reasons a publisher can make long."""

from __future__ import annotations

from gateway.runtime.record.counters import MAX_REFUSAL_TEXT, MAX_REFUSALS, Refusal, RouteCounters


def test_the_latest_dead_letters_keep_the_begin_of_long_texts() -> None:
    counters = RouteCounters()
    for number in range(2 * MAX_REFUSALS):
        counters.count_refusal(Refusal(number, "n" * 60_000, "too-long", "r" * 60_000))

    assert len(counters.refusals) == MAX_REFUSALS
    assert {len(each.name) for each in counters.refusals} == {MAX_REFUSAL_TEXT}
    assert {len(each.reason) for each in counters.refusals} == {MAX_REFUSAL_TEXT}
    assert counters.rules == {"too-long": 2 * MAX_REFUSALS}
