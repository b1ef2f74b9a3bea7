from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model.matching import glob_matches, matches
from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern, WildcardExclusions

EXCLUSIONS = WildcardExclusions(first_level_prefixes=("$",), whole_levels=("x",))
TEXTS = st.sampled_from(["", "a", "b", "ab", "$", "$a", "x"])
LEVELS: st.SearchStrategy[Level] = st.one_of(
    TEXTS.map(Literal),
    st.builds(AnyOne),
    st.builds(AnyMany, st.sampled_from([0, 1])),
    st.builds(Glob, st.tuples(TEXTS, TEXTS), st.sampled_from([0, 1])),
)
PATTERNS = st.builds(
    Pattern,
    st.lists(LEVELS, min_size=1, max_size=5).map(tuple),
    st.sampled_from([WildcardExclusions(), EXCLUSIONS]),
)


def _slow(
    wanted: tuple[Level, ...], name: tuple[str, ...], exclusions: WildcardExclusions, *, first: bool
) -> bool:
    if not wanted:
        return not name
    part, rest = wanted[0], wanted[1:]
    if isinstance(part, AnyMany):
        if part.minimum == 0 and _slow(rest, name, exclusions, first=first):
            return True
        return _free(name, exclusions, first=first) and _slow(
            (AnyMany(0), *rest), name[1:], exclusions, first=False
        )
    return (
        bool(name)
        and _takes(part, name, exclusions, first=first)
        and _slow(rest, name[1:], exclusions, first=False)
    )


def _takes(
    part: Level, name: tuple[str, ...], exclusions: WildcardExclusions, *, first: bool
) -> bool:
    if isinstance(part, Literal):
        return part.text == name[0]
    if isinstance(part, Glob):
        start, end = part.parts
        inner = len(name[0]) - len(start) - len(end)
        return (
            name[0] not in exclusions.whole_levels
            and inner >= part.minimum
            and name[0][: len(start)] == start
            and name[0][len(name[0]) - len(end) :] == end
        )
    return _free(name, exclusions, first=first)


def _free(name: tuple[str, ...], exclusions: WildcardExclusions, *, first: bool) -> bool:
    if not name or name[0] in exclusions.whole_levels:
        return False
    return not (first and name[0][:1] in exclusions.first_level_prefixes and name[0] != "")


@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=5).map(tuple))
def test_the_matcher_agrees_with_trying_every_alternative(
    pattern: Pattern, name: tuple[str, ...]
) -> None:
    assert matches(pattern, name) == _slow(pattern.levels, name, pattern.exclusions, first=True)


@pytest.mark.parametrize(
    ("parts", "minimum", "text", "matched"),
    [
        (("red", ""), 0, "red", True),
        (("red", ""), 1, "red", False),
        (("red", ""), 1, "reds", True),
        (("b", "z"), 0, "bz", True),
        (("ab", "ba"), 0, "aba", False),
        (("a", "b", "c"), 0, "axbxc", True),
        (("a", "b", "b"), 0, "ab", False),
    ],
)
def test_a_glob_matches_a_level(
    parts: tuple[str, ...], minimum: int, text: str, matched: bool
) -> None:
    assert glob_matches(Glob(parts, minimum), text) is matched


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        pytest.param((AnyMany(0), Literal("a")) * 5_000, ("a",) * 9_999 + ("b",), id="one-by-one"),
        pytest.param(
            (AnyMany(0), *(Literal("a"),) * 4_000, Literal("c"), AnyMany(0)),
            ("a",) * 10_000,
            id="one-long-run",
        ),
    ],
)
def test_a_pattern_for_exponential_backtracking_is_matched_quickly(
    pattern: tuple[Level, ...], name: tuple[str, ...]
) -> None:
    start = process_time()

    assert not matches(Pattern(pattern), name)
    assert process_time() - start < 10  # it takes milliseconds; backtracking takes years
