from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.base import Dialect, matches_text, parse_pattern
from gateway.dialects.systems.ems import EMS
from gateway.dialects.systems.mqtt import MQTT
from gateway.imports.route_checks import find_route_fault, is_covered, may_overlap, selects
from gateway.model.language import overlaps

FAULTS = [
    pytest.param("a/+/#", "b/{1}/{2...}", None, id="fine"),
    pytest.param("a/#/b", "b", "not last", id="pattern"),
    pytest.param("a/+", "b/{2}", "unknown capture", id="template"),
    pytest.param("a", "b/+", "'+'", id="wildcard-in-template"),
]


@pytest.mark.parametrize(("pattern", "template", "reason"), FAULTS)
def test_a_route_has_the_faults_that_the_loader_finds(
    pattern: str, template: str, reason: str | None
) -> None:
    fault = find_route_fault(pattern, template, MQTT)

    assert fault is None if reason is None else reason in str(fault)


WORDS = st.lists(st.sampled_from(["a", "b", "one", "many"]), min_size=1, max_size=4)


def spelled(words: list[str], dialect: Dialect) -> str:
    """A pattern of `dialect`: the rest-of-name wildcard stays at the end."""
    last = len(words) - 1
    wild = {"one": dialect.any_one, "many": dialect.any_many}
    return dialect.separator.join(
        "a" if word == "many" and at < last else wild.get(word, word)
        for at, word in enumerate(words)
    )


@given(one=WORDS, other=WORDS, name=st.lists(st.sampled_from("ab"), min_size=1, max_size=4))
def test_the_quick_comparison_changes_no_answer(
    one: list[str], other: list[str], name: list[str]
) -> None:
    for dialect in (EMS, MQTT):
        a, b = spelled(one, dialect), spelled(other, dialect)
        exact = overlaps(parse_pattern(a, dialect), parse_pattern(b, dialect))
        assert may_overlap(a, b, dialect) == exact
        text = dialect.separator.join(name)
        assert selects(a, text, dialect) == matches_text(a, text, dialect)


COVERED = [
    pytest.param("a/b", ["a/+"], True, id="inside"),
    pytest.param("a/#", ["a", "a/+/#"], True, id="together"),
    pytest.param("a/#", ["a/+/#"], False, id="without-the-parent"),
    pytest.param("a/b", [], False, id="by-nothing"),
]


@pytest.mark.parametrize(("pattern", "others", "expected"), COVERED)
def test_several_patterns_may_cover_one(pattern: str, others: list[str], expected: bool) -> None:
    assert is_covered(pattern, others, MQTT) == expected
