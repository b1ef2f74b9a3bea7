"""Headers on their way to a target: what is remembered of them is never another message's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.model.message import PLAIN, Headers
from gateway.routing.router import Router
from gateway.runtime.inbound import header_mapping
from gateway.runtime.inbound.header_mapping import Adapter
from gateway.runtime.monitor.counters import RouteCounters
from gateway.runtime.wiring import make_intake
from tests.runtime.one_route import ONE_ROUTE

EVERY = frozenset(Headers.__dataclass_fields__)


@pytest.fixture
def router(tmp_path: Path) -> Router:
    config = tmp_path / "gateway.yaml"
    config.write_text(ONE_ROUTE)
    return make_intake(load(config), "here").router


def test_headers_that_take_turns_on_a_name_stay_their_own(
    router: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(header_mapping, "REMEMBERED", 4)
    adapter = Adapter("test", router.dialect, {"all": RouteCounters()})
    urgent = replace(PLAIN, priority=9)
    hops = [router[f"a/{number}"][0].hops[0] for number in range(6)] * 2
    ways = [(each, hop) for hop in hops for each in (PLAIN, urgent, PLAIN)]

    made = [adapter.adapt(each, hop, EVERY) for each, hop in ways]

    assert [each.priority for each in made] == [each.priority for each, _ in ways]
    assert [each.origin for each in made] == [(hop.taken, "test/all") for _, hop in ways]


def test_what_cannot_cross_is_counted_for_every_message(router: Router) -> None:
    counters = RouteCounters()
    adapter = Adapter("test", router.dialect, {"all": counters})
    given = replace(PLAIN, priority=9)

    made = [adapter.adapt(given, router["a/1"][0].hops[0], EVERY - {"priority"}) for _ in range(3)]

    assert counters.lost_fields == {"priority": 3}
    assert [each.priority for each in made] == [9, 9, 9]  # a sink that has no room leaves it out
