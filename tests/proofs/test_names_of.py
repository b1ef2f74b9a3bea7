"""Proofs about routes over the names of another route."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.proofs import RouteFinding, prove
from tests.config.test_names_of import BACK, OUT, configuration
from tests.proofs.routes import QUIET

MANY_TO_ONE = OUT.replace(", lossy: true", "")
PLAIN = """\
  plain:
    from: {endpoint: lake, topic: plant, key: "{key...}"}
    to: {endpoint: plant2, template: "TEMPLATE"}
"""


def found(folder: Path, routes: str, quiet: frozenset[str] = QUIET) -> list[RouteFinding]:
    read = configuration(folder, routes)
    return [each for each in prove(read.routes, read.brokers) if each.rule not in quiet]


def test_a_template_that_is_not_one_to_one_is_an_error_without_a_way_back(tmp_path: Path) -> None:
    (one,) = found(tmp_path, MANY_TO_ONE)

    assert (one.rule, one.severity) == ("not-injective", "error")


def test_a_way_back_by_proven_names_is_one_to_one_whatever_the_template(tmp_path: Path) -> None:
    (one,) = found(tmp_path, MANY_TO_ONE + BACK, frozenset())

    assert (one.rule, one.severity) == ("not-injective", "note")
    assert one.hint == "route 'back' brings the names back"


def test_a_way_back_that_merges_names_is_reported(tmp_path: Path) -> None:
    back = BACK.replace("back/{line}/{rest...}", "back/{line}")
    one = next(each for each in found(tmp_path, OUT + back) if each.severity == "error")

    assert (one.route, one.rule) == ("back", "not-injective")


def test_an_unused_capture_is_one_of_the_other_route(tmp_path: Path) -> None:
    back = BACK.replace("back/{line}/{rest...}", "back/{rest...}")
    notes = [each for each in found(tmp_path, OUT + back, frozenset()) if each.route == "back"]

    assert "{line} is not used" in next(e.text for e in notes if e.rule == "capture-unused")


def test_names_that_go_round_are_reported(tmp_path: Path) -> None:
    back = BACK.replace("plant2", "plant").replace("back/{line}", "x{line}/plant")
    assert [each.rule for each in found(tmp_path, OUT + back)] == ["not-injective"]

    back = BACK.replace("plant2", "plant").replace("back/{line}", "plant/{line}")
    one = next(each for each in found(tmp_path, OUT + back) if each.rule == "cycle")
    assert one.severity == "error"
    assert "'plant/x' at 'lake' (route 'out')" in one.text


def test_two_ways_back_to_one_place_are_reported(tmp_path: Path) -> None:
    rules = [each.rule for each in found(tmp_path, OUT + BACK + BACK.replace("back:", "again:"))]

    assert "delivered-twice" in rules


@pytest.mark.parametrize(
    ("template", "rule", "severity"),
    [("unnamed/{key...}", "copies", "note"), ("back/{key...}/x", "delivered-twice", "error")],
)
def test_a_route_with_topic_and_key_beside_it_is_reported(
    tmp_path: Path, template: str, rule: str, severity: str
) -> None:
    out = OUT.replace("{rest...}", "x")
    back = BACK.replace("{rest...}", "x")
    routes = out + back + PLAIN.replace("TEMPLATE", template)
    one = next(each for each in found(tmp_path, routes) if each.rule == rule)

    assert one.severity == severity
    assert "plant/" in one.example[0]
    assert "by route 'plain' and by route 'back'" in one.text


def test_a_route_to_another_topic_is_not_beside_it(tmp_path: Path) -> None:
    plain = PLAIN.replace("topic: plant", "topic: other").replace("TEMPLATE", "unnamed/{key...}")

    assert [each.rule for each in found(tmp_path, OUT + BACK + plain)] == ["not-injective"]


def test_several_patterns_of_one_way_back_are_one_source(tmp_path: Path) -> None:
    out = """\
  out: {from: {endpoint: plant, pattern: "p/{r...}"}, to: {endpoint: lake, topic: "p.{r...}"}}
"""
    back = """\
  back: {from: {endpoint: lake, names_of: out}, to: {endpoint: plant2, template: "b/{r...}"}}
"""
    assert found(tmp_path, out + back) == []


def test_a_chain_over_two_clusters_is_proven(tmp_path: Path) -> None:
    more = """\
  on:
    from: {endpoint: lake, names_of: out}
    to: {endpoint: mill, topic: all, key: "{line}"}
  home:
    from: {endpoint: mill, names_of: on}
    to: {endpoint: plant, template: "HOME/{line}/{rest...}"}
"""
    assert not any(each.severity == "error" for each in found(tmp_path, MANY_TO_ONE + more))
    rules = [each.rule for each in found(tmp_path, MANY_TO_ONE + more.replace("HOME", "plant"))]
    assert "cycle" in rules
