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
from gateway.routing.pattern_trie import PatternTrie

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


def trie_of(*patterns: Pattern) -> PatternTrie[str]:
    trie: PatternTrie[str] = PatternTrie()
    for number, pattern in enumerate(patterns):
        trie.add(pattern, f"route {number}")
    return trie


@given(st.lists(PATTERNS, max_size=8), st.lists(NAMES, min_size=1, max_size=30))
def test_a_name_finds_what_a_pass_over_all_patterns_finds(
    patterns: list[Pattern], names: list[tuple[str, ...]]
) -> None:
    trie = trie_of(*patterns)
    for name in names:
        expected = [f"route {n}" for n, one in enumerate(patterns) if matches(one, name)]
        assert list(trie.find(name)) == expected


@settings(deadline=None)  # every short name in one example
@given(st.lists(PATTERNS, min_size=1, max_size=3))
def test_every_short_name_finds_its_patterns(patterns: list[Pattern]) -> None:
    trie = trie_of(*patterns)
    for name in SHORT_NAMES:
        expected = [f"route {n}" for n, one in enumerate(patterns) if matches(one, name)]
        assert list(trie.find(name)) == expected


def test_a_value_with_several_patterns_is_found_once_and_in_order() -> None:
    trie: PatternTrie[list[str]] = PatternTrie()
    first, second = ["first"], ["second"]
    trie.add(Pattern((Literal("a"),)), first)
    trie.add(Pattern((AnyOne(),)), second)
    trie.add(Pattern((AnyMany(1),)), first)
    assert trie.find(("a",)) == (first, second)
    assert trie.find(("b",)) == (first, second)
    assert trie.find(("b", "c")) == (first,)


def test_equal_values_that_are_different_objects_are_both_found() -> None:
    trie: PatternTrie[list[str]] = PatternTrie()
    trie.add(Pattern((AnyOne(),)), ["same"])
    trie.add(Pattern((AnyOne(),)), ["same"])
    assert trie.find(("x",)) == (["same"], ["same"])


def test_patterns_with_different_exclusions_share_a_table() -> None:
    rest = (AnyMany(0),)
    trie = trie_of(Pattern(rest), Pattern(rest, MQTT), Pattern(rest, SMF))
    assert trie.find(("a", "b")) == ("route 0", "route 1", "route 2")
    assert trie.find(("$b", "a")) == ("route 0",)
    assert trie.find(("a", "P")) == ("route 0", "route 1")


def test_a_leading_rest_stops_at_a_level_that_wildcards_never_match() -> None:
    trie = trie_of(Pattern((AnyMany(0), Literal("a")), SMF))
    assert trie.find(("b", "a")) == ("route 0",)
    assert trie.find(("b", "P", "a")) == ()


def test_a_rest_keeps_matching_beside_a_longer_matched_pattern() -> None:
    rest, a = AnyMany(0), Literal("a")
    trie = trie_of(Pattern((rest, a)), Pattern((rest, a, rest, Literal("b"))))
    assert trie.find(("a", "a")) == ("route 0",)
    assert trie.find(("a", "a", "b")) == ("route 1",)


def test_no_levels_find_nothing() -> None:
    assert trie_of(Pattern((AnyMany(0),)), Pattern(())).find(()) == ()


@pytest.mark.timeout(5)
def test_ten_thousand_levels_are_matched_without_recursion() -> None:
    deep = ("a", "b") * 5_000
    plain = Pattern(tuple(map(Literal, deep)))
    starred = Pattern((*map(Literal, deep), Glob(("z", ""))))
    assert trie_of(plain, starred).find(deep) == ("route 0",)
    assert trie_of(plain, starred).find((*deep, "zz")) == ("route 1",)


@pytest.mark.timeout(5)
@pytest.mark.parametrize("loops", [50, 5_000])
def test_hostile_patterns_are_matched_in_bounded_time(loops: int) -> None:
    nasty = Pattern((AnyMany(0), Literal("a")) * loops)
    trie = trie_of(nasty)
    assert trie.find(("a",) * 10_000) == ("route 0",)
    assert trie.find((*(("a",) * 10_000), "b")) == ()
    assert trie.find(("b",) * 10_000) == ()
