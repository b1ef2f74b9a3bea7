"""Many routes have the findings of each route and each pair, and every search ends."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.proof_sets import SETS, SYSTEMS
from gateway.errors import SearchBudgetExceeded
from gateway.proofs import RouteFinding, budget, prove
from gateway.proofs.flows.target_expressions import extract_flows
from gateway.proofs.rules import shares
from gateway.routing.route import Route
from tests.proofs.routes import BROKERS, route

EVERY = BROKERS | {name: name for name in SYSTEMS}
MANY = 14
ALONE = {
    "past-limit", "first-place", "not-injective", "possible-loss", "capture-unused", "widened",
    "outside-allow", "never-sent", "unreachable", "idle-exclude",
}  # fmt: skip
CLEAN = {"single_wildcards", "chained", "meshed"}  # sets whose routes are right, each alone
FEW = 8
LATE = {"everything", "globs", "meshed"}  # sets whose first eight routes have no finding together
PAIRED = {"delivered-twice", "copies", "collision", "merged"}


def of(rules: set[str], routes: Sequence[Route]) -> list[RouteFinding]:
    return [found for found in prove(routes, EVERY) if found.rule in rules]


@pytest.mark.parametrize("name", SETS)
def test_the_findings_of_a_single_route_are_found_among_many(name: str) -> None:
    routes = SETS[name](MANY)
    alone = [found for each in routes for found in of(ALONE, [each])]

    assert bool(alone) is (name not in CLEAN)
    assert of(ALONE, routes) == alone


PAIRED_SETS = [
    *((name, FEW) for name in SETS if name not in LATE),
    *(pytest.param(name, MANY, marks=pytest.mark.nightly) for name in SETS),
]


@pytest.mark.parametrize(("name", "count"), PAIRED_SETS)
def test_the_findings_of_two_routes_are_found_among_many(name: str, count: int) -> None:
    check_pairs(SETS[name](count))


ENDS = ("mqtt", "mqtt-2", "ems", "smf")
PATTERNS = {"mqtt": ("a/{x}", "a/b/{x}", "{x}/#", "#"), "ems": ("a.{x}", "a.b.{x}", "{x}.>", ">"),
            "smf": ("a/{x}", "a/b*", "{x}/>", ">")}  # fmt: skip
TEMPLATES = {"mqtt": ("a/{1}", "b/{1}", None), "ems": ("a.{1}", "b.{1}", None),
             "smf": ("a/{1}", "b/{1}", None)}  # fmt: skip


@st.composite
def mixtures(draw: st.DrawFn) -> list[Route]:
    """Generate some routes that are often alike."""
    routes: list[Route] = []
    for number in range(draw(st.integers(2, 5))):
        source, target = draw(st.sampled_from(ENDS)), draw(st.sampled_from(ENDS))
        system, other = (end.partition("-")[0] for end in (source, target))
        pattern = draw(st.sampled_from(PATTERNS[system]))
        template = draw(st.sampled_from(TEMPLATES[other]))
        exclude = draw(st.sampled_from(([], ["a/b"]))) if system != "ems" else []
        routes.append(route(source, pattern, (target, template), name=f"r{number}",
                            exclude=exclude))  # fmt: skip
    return routes


@given(mixtures())
def test_similar_routes_have_the_findings_of_each_pair(routes: list[Route]) -> None:
    check_pairs(routes)


def check_pairs(routes: list[Route]) -> None:
    """Compare the findings of all routes with those of every pair."""
    every = of(PAIRED, routes)
    slow: dict[str, list[RouteFinding]] = {each.name: [] for each in routes}
    for one, other in combinations(routes, 2):
        slow[other.name] += [each for each in of(PAIRED, [one, other]) if each.route == other.name]
    for name, expected in slow.items():
        found = [each for each in every if each.route == name]
        twice = {"delivered-twice"} & {each.rule for each in expected}
        assert set(found) <= set(expected)
        assert twice <= {each.rule for each in found}
        assert twice or {each.rule for each in found} == {each.rule for each in expected}


def test_a_question_has_its_own_steps_when_the_shared_budget_is_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "SHARED_BUDGET", 50)
    with budget.search_budget(per_question=10):
        budget.start_question()
        budget.spend(60)
        with pytest.raises(SearchBudgetExceeded):
            budget.spend(1)
        budget.start_question()
        budget.spend(10)
        with pytest.raises(SearchBudgetExceeded):
            budget.spend(1)
    budget.spend(1_000_000)  # outside of a budget no step is counted


@pytest.mark.parametrize("name", SETS)
def test_a_question_without_budget_is_unproven(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "SHARED_BUDGET", 0)
    monkeypatch.setattr(budget, "PER_QUESTION", 1)
    monkeypatch.setattr(budget, "PER_QUESTION_LARGE", 1)
    found = prove(SETS[name](MANY), EVERY)

    unproven = {each.route for each in found if each.rule in {"unproven", "possible-cycle"}}
    assert {each.severity for each in found if each.rule == "unproven"} == {"warning"}
    assert len(unproven) == MANY


def test_shares_are_compared_without_testing_every_pair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(shares, "covers", lambda *both: asked.append(both))
    apart = [route("mqtt", f"$share/team/{n}/#", ("ems", f"A.{n}")) for n in range(200)]
    alike = [route("mqtt", "$share/team/x/#", ("ems", "B")) for _ in range(200)]
    sources, _ = extract_flows([*apart, *alike], EVERY)

    assert list(shares.prove_shares(sources)) == []
    assert asked == []


def test_shares_that_take_too_long_to_compare_are_unproven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def search(*_: object) -> None:
        raise SearchBudgetExceeded("pattern algebra", "a question", "steps", 2, 1)

    monkeypatch.setattr(shares, "covers", search)
    routes = [
        route("mqtt", pattern, ("ems", f"A.{number}.{{r...}}"), name=f"r{number}")
        for number, pattern in enumerate(("$share/team/a/{r...}", "$share/team/+/{r...}"))
    ]
    sources, _ = extract_flows(routes, EVERY)

    assert [(each.route, each.rule) for each in shares.prove_shares(sources)] == [
        ("r1", "unproven")
    ]
