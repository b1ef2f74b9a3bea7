"""Identities seen before: which are known, for how long, and what it takes to know them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import pairwise

import pytest

from gateway.runtime.inbound import dedup
from gateway.runtime.inbound.dedup import AT_ONCE, WINDOW, Landing, Seen


def find_all(seen: Seen, identities: Iterable[int], landing: Landing) -> list[Landing | None]:
    return [seen.find(("a.b", f"ID:{number}"), landing) for number in identities]


def test_an_identity_belongs_to_the_batch_that_had_it_first() -> None:
    seen, first, second = Seen(), Landing(), Landing()
    assert find_all(seen, [1, 2, 1], first) == [None, None, first]
    assert find_all(seen, [2, 3], second) == [first, None]


@pytest.mark.parametrize(("later", "known"), [(29.0, True), (31.0, False)])
def test_an_identity_is_known_for_the_time_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, later: float, *, known: bool
) -> None:
    now = [0.0, later]
    monkeypatch.setattr(dedup, "monotonic", lambda: now.pop(0))
    seen, first, second = Seen(), Landing(), Landing()
    seen.find("x", first, 30.0)
    assert seen.find("x", second, 30.0) is (first if known else None)
    assert seen.find("x", second, 30.0) is (first if known else second)


@pytest.mark.parametrize("surplus", [0, AT_ONCE - 1, AT_ONCE, 3 * AT_ONCE + 7])
def test_the_latest_identities_are_known_whatever_came_before(surplus: int) -> None:
    seen, landing = Seen(), Landing()
    find_all(seen, range(WINDOW + surplus), landing)
    again = find_all(seen, range(surplus, WINDOW + surplus), Landing())
    assert again == [landing] * WINDOW


def test_the_oldest_identities_are_forgotten() -> None:
    seen = Seen()
    find_all(seen, range(WINDOW + AT_ONCE), Landing())
    assert find_all(seen, range(AT_ONCE), Landing()) == [None] * AT_ONCE


def test_what_an_earlier_run_delivered_has_landed() -> None:
    seen, told = Seen(), list[str]()
    seen.remember(["x"])
    found = seen.find("x", Landing())
    assert found is not None
    found.follow(lambda: told.append("landed"))
    assert told == ["landed"]


def test_any_number_of_batches_can_wait_each_for_the_one_before() -> None:
    landings, landed = [Landing() for _ in range(10_000)], list[str]()
    for earlier, later in pairwise(landings):
        earlier.follow(later.land)
    landings[-1].follow(lambda: landed.append("the last"))

    landings[0].land()

    assert landed == ["the last"]


def test_a_batch_that_does_not_land_holds_up_no_other() -> None:
    first, second, landed = Landing(), Landing(), list[str]()

    def fail() -> None:
        raise OSError("the disk is full")

    first.follow(fail)
    first.follow(second.land)
    second.follow(lambda: landed.append("second"))
    with pytest.raises(OSError, match="disk"):
        first.land()

    assert landed == ["second"]


def test_an_identity_costs_no_more_when_many_have_been_forgotten() -> None:
    """By a factor that noise does not reach; a dict emptied from its front was 40 times slower."""
    seen, landing, spent = Seen(), Landing(), list[float]()
    for first in range(0, 4 * WINDOW, WINDOW):
        began = time.thread_time()
        find_all(seen, range(first, first + WINDOW), landing)
        spent.append(time.thread_time() - began)
    assert spent[-1] < 8 * spent[0]
