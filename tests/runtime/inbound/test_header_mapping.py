"""Header mapping: cached results and lost fields."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.model.message import HEADER_FIELDS, NO_HEADERS
from gateway.routing.origin_path import GatewayIdentity
from gateway.routing.router import Router
from gateway.runtime.inbound import copy_maker
from gateway.runtime.inbound.copy_maker import HeaderMapper
from gateway.runtime.record.counters import RouteCounters
from gateway.runtime.wiring import make_source_binding
from tests.model.test_memory_size import taken
from tests.runtime.one_route import ONE_ROUTE

EVERY = frozenset(HEADER_FIELDS)


@pytest.fixture
def router(tmp_path: Path) -> Router:
    config = tmp_path / "gateway.yaml"
    config.write_text(ONE_ROUTE)
    return make_source_binding(load(config), "here").rules.router


def test_cached_headers_are_never_given_to_other_headers(
    router: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_maker, "MAX_CACHE_SIZE", 5_000)  # four results
    mapper = HeaderMapper(GatewayIdentity("test"), router.dialect, {"all": RouteCounters()})
    urgent = replace(NO_HEADERS, priority=9)
    deliveries = [router[f"a/{number}"][0].deliveries[0] for number in range(6)] * 2
    pairs = [
        (each, delivery) for delivery in deliveries for each in (NO_HEADERS, urgent, NO_HEADERS)
    ]

    made = [mapper.map_headers(each, delivery, EVERY) for each, delivery in pairs]

    assert [each.priority for each in made] == [each.priority for each, _ in pairs]
    assert [each.origin for each in made] == [
        (delivery.source_mark, GatewayIdentity("test").entry("all")) for _, delivery in pairs
    ]


def test_a_lost_field_is_counted_for_every_message(router: Router) -> None:
    counters = RouteCounters()
    mapper = HeaderMapper(GatewayIdentity("test"), router.dialect, {"all": counters})
    given = replace(NO_HEADERS, priority=9)

    made = [
        mapper.map_headers(given, router["a/1"][0].deliveries[0], EVERY - {"priority"})
        for _ in range(3)
    ]

    assert counters.lost_fields == {"priority": 3}
    assert [each.priority for each in made] == [9, 9, 9]  # the sink omits it


def test_cached_headers_take_limited_memory(
    router: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_maker, "MAX_CACHE_SIZE", 1 << 20)
    delivery = router["a/1"][0].deliveries[0]

    def fill() -> HeaderMapper:
        mapper = HeaderMapper(GatewayIdentity("test"), router.dialect, {"all": RouteCounters()})
        for number in range(200):
            headers = replace(NO_HEADERS, reply_to=f"a/{number}" + "x" * 30_000)
            mapper.map_headers(headers, delivery, EVERY)
        return mapper

    assert taken(fill) < 1 << 20
