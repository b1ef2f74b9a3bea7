from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.mapping.name_requests import OPERATIONS, answer, answer_line
from tests.systems import SYSTEMS

ROWS: list[tuple[dict[str, object], dict[str, object]]] = [
    ({"op": "match", "system": "mqtt", "pattern": "a/#", "name": "a"}, {"match": True}),
    ({"op": "match", "system": "yami4", "pattern": "x,b", "name": "a,b"}, {"match": True}),
    ({"op": "check", "system": "ems", "name": "a.b"}, {"valid": True}),
    (
        {"op": "check", "system": "ems", "name": "a..b"},
        {
            "valid": False,
            "rule": "empty-element",
            "detail": "ems: 'a..b' at 2: element 2 is empty",
        },
    ),
    ({"op": "check", "system": "mqtt", "pattern": "a/+"}, {"valid": True}),
    (
        {"op": "check", "system": "ems", "name": "a b"},
        {"valid": True, "warnings": ["' ' is legal and advised against"]},
    ),
    ({"op": "translate", "from": "mqtt", "to": "ems", "name": "a//b"}, {"name": "a.%-.b"}),
    (
        {"op": "translate", "from": "rv", "to": "ems", "name": "_LOCAL.x"},
        {
            "refused": "rv: '_LOCAL.x' at 0: '_LOCAL' names never leave the system",
            "rule": "local",
        },
    ),
    (
        {"op": "translate", "from": "yami4", "to": "ems", "name": "a.b,c", "tags": "each"},
        {"names": ["a.b", "c"]},
    ),
    (
        {"op": "subscribe", "from": "ems", "to": "mqtt", "pattern": "orders.>"},
        {"patterns": ["orders/#"], "exact": False, "residual": "not 'orders' itself"},
    ),
    (
        {"op": "subscribe", "from": "mqtt", "to": "ems", "pattern": "orders/#"},
        {"patterns": ["orders", "orders.>"], "exact": True},
    ),
    (
        {"op": "delivers", "from": "mqtt", "to": "ems", "pattern": "a/#", "name": "a"},
        {"match": True},
    ),
]

WRONG: list[tuple[object, str]] = [
    ([], "not-an-object"),
    ({}, "missing-field"),
    ({"op": "frobnicate"}, "unknown-op"),
    ({"op": 1}, "wrong-type"),
    ({"op": "match", "system": "mqtt", "pattern": "a"}, "missing-field"),
    ({"op": "match", "system": "pulsar", "pattern": "a", "name": "a"}, "unknown-system"),
    ({"op": "match", "system": "mqtt", "pattern": None, "name": "a"}, "wrong-type"),
    ({"op": "match", "system": "mqtt", "pattern": "a/#/b", "name": "a"}, "wildcard-not-last"),
    ({"op": "match", "system": "mqtt", "pattern": "#", "name": "\ud800"}, "surrogate"),
    ({"op": "check", "system": "mqtt"}, "missing-field"),
    ({"op": "check", "system": "mqtt", "name": "a", "pattern": "a"}, "missing-field"),
    ({"op": "translate", "from": "ems", "to": "mqtt", "name": "a..b"}, "empty-element"),
    ({"op": "translate", "from": "yami4", "to": "ems", "name": "a", "tags": "all"}, "wrong-value"),
    ({"op": "subscribe", "from": "ems", "to": "mqtt", "pattern": "a*"}, "wildcard-in-element"),
]
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(), inner)),
    max_leaves=4,
)
FIELDS = {
    "op": st.one_of(st.sampled_from(list(OPERATIONS)), JSON),
    "system": st.one_of(st.sampled_from(list(SYSTEMS)), JSON),
    "from": st.one_of(st.sampled_from(list(SYSTEMS)), JSON),
    "to": st.one_of(st.sampled_from(list(SYSTEMS)), JSON),
    "pattern": st.one_of(st.text("a./*#+>$%2E", max_size=8), JSON),
    "name": st.one_of(st.text("a./*#+>$%2E\0\ud800", max_size=8), JSON),
}


@pytest.mark.parametrize(("request_", "expected"), ROWS)
def test_an_answer(request_: dict[str, object], expected: dict[str, object]) -> None:
    assert answer(request_) == expected


@pytest.mark.parametrize(("request_", "rule"), WRONG)
def test_a_wrong_request_is_answered_with_its_rule(request_: object, rule: str) -> None:
    found = answer(request_)

    assert found["rule"] == rule
    assert found["error"]


@pytest.mark.parametrize("line", [b"", b"{", b"\xff", b"[" * 100_000, b"1" * 5_000, b"nul"])
def test_a_line_that_is_no_json_is_answered(line: bytes) -> None:
    found = json.loads(answer_line(line))

    assert found["rule"] == "not-json"


@given(st.fixed_dictionaries({}, optional=FIELDS))
def test_every_request_has_an_answer(request_: dict[str, object]) -> None:
    found = json.loads(answer_line(json.dumps(request_).encode()))

    assert found
