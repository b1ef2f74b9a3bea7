from __future__ import annotations

import pytest

from gateway.dialects.registry import DIALECTS
from gateway.routing.other_separator import corrected

MISTAKES = [
    ("ems", "A/{x}", "A.{x}"),
    ("ems", "A/{x}/{rest...}", "A.{x}.{rest...}"),
    ("ems", "A/B", "A.B"),
    ("ems", "/plant/{x|split:/:0}/", "plant.{x|split:/:0}"),
    ("ems", "orders/+/#", "orders.*.>"),
    ("rv", "orders/*/>", "orders.*.>"),
    ("yami4", "a/{x}", "a.{x}"),
    ("mqtt", "line.{x}", "line/{x}"),
    ("mqtt", "{a}.{b}.{rest...}", "{a}/{b}/{rest...}"),
    ("mqtt", "orders.*", "orders/+"),
    ("mqtt", "orders.>", "orders/#"),
    ("smf", "orders.*.>", "orders/*/>"),
    ("smartsockets", "/orders.{x}", "/orders/{x}"),
    ("smartsockets", "orders.{x}", "/orders/{x}"),
]
MEANT = [
    ("ems", "A.{x}"),
    ("ems", "A/{x}.b"),
    ("ems", "A{x}"),
    ("ems", "{rest...}"),
    ("ems", "{x|join:/}"),
    ("mqtt", "spBv1.0/{group}"),
    ("mqtt", "a/{x}.json"),
    ("mqtt", "v1.2"),
    ("mqtt", "orders.new"),
    ("mqtt", "{x...}"),
    ("mqtt", "#"),
    ("smf", "a.b/>"),
    ("smartsockets", "/a.b"),
]


@pytest.mark.parametrize(("system", "text", "better"), MISTAKES)
def test_a_text_of_another_system_is_corrected(system: str, text: str, better: str) -> None:
    assert corrected(text, DIALECTS[system]) == better


@pytest.mark.parametrize(("system", "text"), MEANT)
def test_a_plausible_text_stays(system: str, text: str) -> None:
    assert not corrected(text, DIALECTS[system])


def test_the_name_of_a_queue_stays() -> None:
    assert not corrected("queue:a/{x}", DIALECTS["ems"].with_kinds(["queue:"]))
