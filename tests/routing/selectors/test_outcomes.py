"""The possible outcomes of a selector contain the outcome for every message."""

from __future__ import annotations

import pytest
from hypothesis import given

from gateway.model.message import Headers, Value
from gateway.routing.selectors.ast import Node, SelectorField
from gateway.routing.selectors.compile import compile_test
from gateway.routing.selectors.outcomes import ANY, Kind, Possible, possible_outcomes
from gateway.routing.selectors.selector import parse_selector
from gateway.routing.selectors.values import compile_value
from tests.routing.selectors.test_selector import CONDITIONS, MESSAGES

TEXT = Possible(frozenset({Kind.NULL, Kind.TEXT}))
ABSENT = Possible(frozenset({Kind.NULL}))
THREE = Possible(frozenset({Kind.NUMBER}), (1, 2, 3))


def kind_of(value: Value) -> Kind:
    match value:
        case None:
            return Kind.NULL
        case bool():
            return Kind.TRUTH
        case int() | float():
            return Kind.NUMBER
        case str():
            return Kind.TEXT
        case _:
            return Kind.OTHER


@given(CONDITIONS, MESSAGES)
def test_the_outcome_of_a_message_is_possible(tree: Node, headers: Headers) -> None:
    def fields(name: str) -> Possible:
        return Possible(frozenset({kind_of(compile_value(SelectorField(name))(headers))}))

    outcome = compile_test(tree)(headers)

    assert outcome in possible_outcomes(tree, fields)
    assert outcome in possible_outcomes(tree, lambda _: Possible(ANY))


OUTCOMES = [
    pytest.param("t > 100", {False, None}, id="texts-have-no-order"),
    pytest.param("t <> 100", {False, None}, id="a-text-is-never-unequal-to-a-number"),
    pytest.param("NOT t > 100", {True, None}, id="not"),
    pytest.param("t = '100'", {True, False, None}, id="text"),
    pytest.param("t", {False, None}, id="no-truth-value"),
    pytest.param("t * 2 = 4", {None}, id="arithmetic-of-a-text"),
    pytest.param("t IN ('a') OR absent LIKE 'x'", {True, None}, id="or"),
    pytest.param("t = 'a' AND absent = 'x'", {False, None}, id="and"),
    pytest.param("absent IS NULL", {True}, id="is-null"),
    pytest.param("absent IS NOT NULL", {False}, id="is-not-null"),
    pytest.param("any > 100", {True, False, None}, id="any"),
    pytest.param("any BETWEEN 2 AND 1", {True, False, None}, id="independent"),
    pytest.param("three > 3", {False}, id="few-values"),
    pytest.param("three < 3", {True, False}, id="some-of-few-values"),
    pytest.param("three IN ('1')", {False}, id="number-in-texts"),
    pytest.param("1 = 2", {False}, id="constants"),
]


@pytest.mark.parametrize(("text", "outcomes"), OUTCOMES)
def test_outcomes(text: str, outcomes: set[bool | None]) -> None:
    known = {"t": TEXT, "absent": ABSENT, "any": Possible(), "three": THREE}

    assert possible_outcomes(parse_selector(text).tree, known.__getitem__) == outcomes
