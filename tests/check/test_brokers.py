"""The proofs know one broker by its address and by its `broker_id`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import load

ROUTES = """\
routes:
  r: {from: {endpoint: a, pattern: "x/{rest...}"}, to: {endpoint: b, template: "x/{rest...}"}}
"""


@pytest.mark.parametrize(
    ("endpoints", "one"),
    [
        ("a: {host: plant, broker_id: p}, b: {host: proxy, broker_id: p}", True),
        ("a: {host: plant, broker_id: p}, b: {host: plant}", True),
        ("a: {host: plant, broker_id: p}, b: {host: plant, broker_id: q}", False),
        (
            (
                "a: {host: plant}, c: {host: plant, broker_id: p}, d: {host: proxy, broker_id: p},"
                " b: {host: proxy}"
            ),
            True,
        ),
        ("a: {host: plant, broker_id: p}, b: {host: proxy, broker_id: q}", False),
        ("a: {host: plant, broker_id: p}, b: {host: proxy}", False),
    ],
)
def test_a_cycle_through_one_broker_is_found(tmp_path: Path, endpoints: str, one: bool) -> None:
    file = tmp_path / "gateway.yaml"
    settings = endpoints.replace("{", "{kind: mqtt, ")
    file.write_text(f"endpoints: {{{settings}}}\n{ROUTES}")

    assert ("cycle" in {each.rule for each in examine(load(file))}) is one
