"""The setting `rate` of every kind of endpoint reaches the lane of its targets."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.endpoints.registry import ENDPOINT_KINDS
from gateway.runtime.inbound.echo_cache import EchoCache
from gateway.runtime.wiring import make_sink_binding


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
