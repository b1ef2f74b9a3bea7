"""The parts that a gateway makes of the settings of its endpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.endpoints.registry import ENDPOINT_KINDS
from gateway.runtime.endpoint_uses import echo_brokers
from gateway.runtime.inbound.echo_cache import EchoCache
from gateway.runtime.wiring import make_sink_binding, make_source_binding


@pytest.mark.parametrize("kind", ENDPOINT_KINDS)
def test_a_kind_has_a_rate(kind: str) -> None:
    assert ENDPOINT_KINDS[kind].settings(rate=7.5).rate == 7.5


def test_the_lane_of_a_target_has_the_rate_of_its_endpoint(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(
        "endpoints:\n  a: {kind: memory}\n  b: {kind: memory, broker: b, rate: 12.5}\n"
        "routes:\n  r: {from: {endpoint: a, pattern: x}, to: {endpoint: b}}\n"
    )

    binding = make_sink_binding(load(file), "b", EchoCache())

    assert binding.limits.rate == 12.5


@pytest.mark.parametrize(
    ("source", "others", "takes"),
    [
        pytest.param("mqtt", "forward", {True, False}, id="the-flag-tells"),
        pytest.param("mqtt", "ignore", {True}, id="the-broker-sends-none"),
        pytest.param("nats, stream: s", "forward", {True}, id="a-header-of-the-publisher"),
    ],
)
def test_a_route_looks_at_the_retained_flag_only_where_the_broker_sets_it(
    tmp_path: Path, source: str, others: str, takes: set[bool]
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(
        f"endpoints:\n  a: {{kind: {source}}}\n  b: {{kind: memory}}\nroutes:\n"
        "  r: {from: {endpoint: a, pattern: x}, to: {endpoint: b}, retained: ignore}\n"
        f"  s: {{from: {{endpoint: a, pattern: y}}, to: {{endpoint: b}}, retained: {others}}}\n"
    )

    routes = make_source_binding(load(file), "a").rules.router.routes

    assert {route.take_retained for route in routes} == takes


@pytest.mark.parametrize(
    ("kind", "removed"),
    [pytest.param("mqtt", ["b/x"], id="a-share"), pytest.param("memory", [], id="no-such-kind")],
)
def test_a_binding_says_where_its_source_removes_what_it_reads(
    tmp_path: Path, kind: str, removed: list[str]
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(
        f"endpoints:\n  a: {{kind: {kind}}}\n  b: {{kind: memory, broker: b}}\nroutes:\n"
        '  r: {from: {endpoint: a, pattern: "a/{x}"}, to: {endpoint: b}}\n'
        '  s: {from: {endpoint: a, pattern: "$share/g/b/{x}"}, to: {endpoint: b}}\n'
    )

    removes = make_source_binding(load(file), "a").rules.removes

    assert [each for each in ("a/x", "b/x") if removes(each)] == removed


def test_endpoints_with_one_broker_id_share_the_echoes_of_their_broker(tmp_path: Path) -> None:
    """A proxy or a second address hides that both are one broker; MQTT 3.1.1 has no path."""
    file = tmp_path / "gateway.yaml"
    file.write_text(
        "endpoints:\n"
        "  a: {kind: mqtt, host: plant, version: 3.1.1, broker_id: p}\n"
        "  b: {kind: mqtt, host: proxy, version: 3.1.1, broker_id: p}\n"
        "  c: {kind: mqtt, host: other, version: 3.1.1}\n"
        "routes:\n"
        "  r: {from: {endpoint: a, pattern: x}, to: [{endpoint: b}, {endpoint: c}]}\n"
    )

    assert echo_brokers(load(file)) == dict.fromkeys("ab", "id p")
