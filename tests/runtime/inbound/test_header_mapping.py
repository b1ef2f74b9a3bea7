"""Header mapping: cached results and lost fields."""

from __future__ import annotations

from dataclasses import replace
from operator import is_
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.endpoints.mqtt import publish_encoder
from gateway.endpoints.mqtt.publish_encoder import PublishEncoder
from gateway.endpoints.mqtt.session import BrokerLimits
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import HEADER_FIELDS, NO_HEADERS, Headers, Message
from gateway.routing.origin_path import GatewayIdentity
from gateway.routing.router import Router
from gateway.runtime.inbound import copy_maker
from gateway.runtime.inbound.copy_maker import HeaderMapper
from gateway.runtime.record.counters import RouteCounters
from gateway.runtime.wiring import make_source_binding
from gateway.wire.mqtt.publish_properties import encode_properties
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
    monkeypatch.setattr(copy_maker, "MAX_CACHE_SIZE", 3_500)  # four results
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


def test_twenty_thousand_names_keep_their_mapped_and_encoded_headers(
    router: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without them each message costs five times as much."""
    mapper = HeaderMapper(GatewayIdentity("test"), router.dialect, {"all": RouteCounters()})
    encoder = PublishEncoder(MqttSettings(version="5"), BrokerLimits())
    deliveries = [router[f"a/plant/{number}"][0].deliveries[0] for number in range(20_000)]
    encoded: list[Headers] = []

    def counted(headers: Headers, *, text: bool, now: int) -> bytes:
        encoded.append(headers)
        return encode_properties(headers, text=text, now=now)

    def send() -> list[Headers]:
        mapped = [mapper.map_headers(NO_HEADERS, each, EVERY) for each in deliveries]
        for delivery, headers in zip(deliveries, mapped, strict=True):
            encoder.add(Message(delivery.address, b"", headers, "p" * 90), 0)
            encoder.take()
        return mapped

    first = send()
    monkeypatch.setattr(publish_encoder, "encode_properties", counted)

    assert all(map(is_, first, send()))
    assert not encoded
