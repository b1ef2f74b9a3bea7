from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.model.matching import matches
from gateway.model.pattern import (
    NO_EXCLUSIONS,
    AnyMany,
    AnyOne,
    Glob,
    Literal,
    Pattern,
    WildcardExclusions,
)
from gateway.routing.pattern_table import PatternTable

WORDS = ("", "a", "ab", "$b", "P")
NAMES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(tuple)
SHORT_NAMES = tuple(
    levels for depth in range(1, 4) for levels in itertools.product(WORDS, repeat=depth)
)
MQTT = WildcardExclusions(first_level_prefixes=("$",))
SMF = WildcardExclusions(first_level_prefixes=("$",), whole_levels=("P",))
LEVELS = st.one_of(
    st.builds(Literal, st.sampled_from(WORDS)),
    st.builds(AnyOne),
    st.builds(AnyMany, st.sampled_from([0, 1])),
    st.builds(Glob, st.sampled_from([("a", ""), ("", "b"), ("", ""), ("", "P"), ("", "a", "")])),
)
PATTERNS = st.builds(
    Pattern, st.lists(LEVELS, max_size=5).map(tuple), st.sampled_from([NO_EXCLUSIONS, MQTT, SMF])
)


def table_of(*patterns: Pattern) -> PatternTable[str]:
    table: PatternTable[str] = PatternTable()
    for number, pattern in enumerate(patterns):
        table.add(pattern, f"route {number}")
    return table


@given(st.lists(PATTERNS, max_size=8), st.lists(NAMES, min_size=1, max_size=30))
def test_a_name_finds_what_a_pass_over_all_patterns_finds(
    patterns: list[Pattern], names: list[tuple[str, ...]]
) -> None:
    table = table_of(*patterns)
    for name in names:
        expected = [f"route {n}" for n, one in enumerate(patterns) if matches(one, name)]
        assert list(table.find(name)) == expected


@settings(deadline=None)  # every short name in one example
@given(st.lists(PATTERNS, min_size=1, max_size=3))
def test_every_short_name_finds_its_patterns(patterns: list[Pattern]) -> None:
    table = table_of(*patterns)
    for name in SHORT_NAMES:
        expected = [f"route {n}" for n, one in enumerate(patterns) if matches(one, name)]
        assert list(table.find(name)) == expected


def test_a_value_with_several_patterns_is_found_once_and_in_order() -> None:
    table: PatternTable[list[str]] = PatternTable()
    first, second = ["first"], ["second"]
    table.add(Pattern((Literal("a"),)), first)
    table.add(Pattern((AnyOne(),)), second)
    table.add(Pattern((AnyMany(1),)), first)
    assert table.find(("a",)) == (first, second)
    assert table.find(("b",)) == (first, second)
    assert table.find(("b", "c")) == (first,)


def test_equal_values_that_are_different_objects_are_both_found() -> None:
    table: PatternTable[list[str]] = PatternTable()
    table.add(Pattern((AnyOne(),)), ["same"])
    table.add(Pattern((AnyOne(),)), ["same"])
    assert table.find(("x",)) == (["same"], ["same"])


def test_patterns_with_different_exclusions_share_a_table() -> None:
    rest = (AnyMany(0),)
    table = table_of(Pattern(rest), Pattern(rest, MQTT), Pattern(rest, SMF))
    assert table.find(("a", "b")) == ("route 0", "route 1", "route 2")
    assert table.find(("$b", "a")) == ("route 0",)
    assert table.find(("a", "P")) == ("route 0", "route 1")


def test_a_leading_rest_stops_at_a_level_that_wildcards_never_match() -> None:
    table = table_of(Pattern((AnyMany(0), Literal("a")), SMF))
    assert table.find(("b", "a")) == ("route 0",)
    assert table.find(("b", "P", "a")) == ()


def test_a_rest_keeps_matching_beside_a_longer_matched_pattern() -> None:
    rest, a = AnyMany(0), Literal("a")
    table = table_of(Pattern((rest, a)), Pattern((rest, a, rest, Literal("b"))))
    assert table.find(("a", "a")) == ("route 0",)
    assert table.find(("a", "a", "b")) == ("route 1",)


def test_no_levels_find_nothing() -> None:
    assert table_of(Pattern((AnyMany(0),)), Pattern(())).find(()) == ()


@pytest.mark.timeout(5)
def test_ten_thousand_levels_are_matched_without_recursion() -> None:
    deep = ("a", "b") * 5_000
    plain = Pattern(tuple(map(Literal, deep)))
    starred = Pattern((*map(Literal, deep), Glob(("z", ""))))
    assert table_of(plain, starred).find(deep) == ("route 0",)
    assert table_of(plain, starred).find((*deep, "zz")) == ("route 1",)


@pytest.mark.timeout(5)
@pytest.mark.parametrize("loops", [50, 5_000])
def test_hostile_patterns_are_matched_in_bounded_time(loops: int) -> None:
    nasty = Pattern((AnyMany(0), Literal("a")) * loops)
    table = table_of(nasty)
    assert table.find(("a",) * 10_000) == ("route 0",)
    assert table.find((*(("a",) * 10_000), "b")) == ()
    assert table.find(("b",) * 10_000) == ()
