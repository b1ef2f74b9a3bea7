"""The reverse route of `direction: both`: its excludes, and a spent search budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.errors import ConfigErrors, SearchBudgetExceeded, TranslationError
from gateway.proofs import prove, reverse_route
from gateway.proofs.reverse_route import both_ways
from tests.proofs.routes import BROKERS, route

# source, pattern, exclude, target, template, excludes of the reverse route
DERIVED = [
    pytest.param(
        ("mqtt", "orders/{id}"), "orders/private", ("ems", "ORDERS.{id}"), ["ORDERS.private"],
        id="one-name",
    ),
    pytest.param(
        ("mqtt", "o/{a}/{rest...}"), "o/x/#", ("smf", "O/{a}/{rest...}"), ["O/x/>"],
        id="a-prefix",
    ),
    pytest.param(
        ("mqtt", "{a}/{b}"), "x.y/+", ("ems", "{b}.{a}"), ["*.x%2Ey", "*.$*"], id="escaped"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("source", "exclude", "target", "derived"), DERIVED)
def test_the_reverse_route_shows_each_exclude_in_its_own_dialect(
    source: tuple[str, str], exclude: str, target: tuple[str, str], derived: list[str]
) -> None:
    forward = route(*source, target, exclude=[exclude])
    _, backward = both_ways(forward, target[1], "r.back")

    assert [each.text for each in backward.excludes] == derived


def test_a_finding_about_the_reverse_route_names_the_excluded_pattern() -> None:
    forward = route("mqtt", "orders/{id}", ("ems", "ORDERS.{id}"), exclude=["orders/private"])
    found = prove(both_ways(forward, "ORDERS.{id}", "r.back"), BROKERS)
    (widened,) = [each for each in found if (each.route, each.rule) == ("r.back", "widened")]

    assert widened.example == ("ORDERS.private",)
    assert widened.text.endswith("the route excludes 'ORDERS.private'")


def test_a_spent_search_budget_is_no_missing_reverse_route(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(*_: object) -> None:
        raise SearchBudgetExceeded("proofs", "a question", "steps", 2, 1)

    monkeypatch.setattr(reverse_route, "find_example", search)
    file = tmp_path / "gateway.yaml"
    file.write_text("""\
endpoints:
  plant: {kind: memory, dialect: mqtt}
  erp: {kind: memory, dialect: ems}
routes:
  orders:
    direction: both
    from: {endpoint: plant, pattern: "orders/{id}", exclude: ["orders/private"]}
    to: {endpoint: erp, template: "ORDERS.{id}"}
""")

    with pytest.raises(ConfigErrors) as caught:
        load(file)

    assert [(each.rule, each.line) for each in caught.value.findings] == [("unproven", 6)]
    assert "the search for an example became too long" in str(caught.value)


def test_a_route_in_both_directions_without_a_target_is_a_finding(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text("""\
endpoints:
  plant: {kind: memory, dialect: mqtt}
routes:
  orders: {direction: both, from: {endpoint: plant, pattern: "orders/{id}"}, to: []}
""")

    with pytest.raises(ConfigErrors, match="has one source, and one target with one template"):
        load(file)


def test_a_spent_search_budget_is_no_refusal() -> None:
    assert not issubclass(SearchBudgetExceeded, TranslationError)
