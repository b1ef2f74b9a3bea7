from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.config.load import load
from gateway.dialects.registry import DIALECTS
from gateway.routing.other_separator import corrected, respelled

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


ROUTES = """\
endpoints:
  plant: {kind: memory, dialect: mqtt}
  bus: {kind: memory, dialect: ems, broker: bus}
routes:
  up:
    from: {endpoint: plant, pattern: "plant/{line}/{rest...}"}
    to: {endpoint: bus, template: "PLANT.{line}.{rest...}"}
  down:
    from: {endpoint: bus, pattern: "ORDERS.{id}"}
    to: {endpoint: plant, template: "orders/{id}"}
"""


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("plant.7.temperature", "plant/7/temperature"),
        ("ORDERS/7", "ORDERS.7"),
        ("ORDERS/7/8", ""),
        ("other.7", ""),
    ],
)
def test_a_name_that_no_route_takes_is_respelled_for_one(
    tmp_path: Path, name: str, better: str
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(ROUTES)

    assert respelled(name, load(file).routes) == better


def test_explain_and_try_ask_whether_it_was_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(ROUTES)
    hint = "did you mean 'plant/7/x', with the separator of its system?\n"

    assert main(["explain", "plant.7.x", str(file)]) == 1
    assert hint in capsys.readouterr().out
    assert main(["explain", "plant/7/x", str(file)]) == 0
    assert "did you mean" not in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.StringIO("plant.7.x 1\n"))
    assert main(["try", str(file)]) == 0
    assert hint in capsys.readouterr().out
