from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import SearchBudgetExceeded
from gateway.model import subject_search
from gateway.model.alphabet import sample_levels
from gateway.model.chain import chain_of
from gateway.model.matching import glob_matches, matches
from gateway.model.pattern import (
    NO_EXCLUSIONS,
    AnyMany,
    AnyOne,
    Glob,
    Level,
    Literal,
    Pattern,
    WildcardExclusions,
)
from gateway.model.quick_overlap import quick_overlap
from gateway.model.subject_search import (
    covers,
    difference_example,
    intersection_example,
    overlaps,
)

WORDS = ("", "a", "ab", "$b", "P")
SUBJECTS = tuple(
    levels for depth in range(1, 5) for levels in itertools.product(WORDS, repeat=depth)
)
MQTT = WildcardExclusions(first_level_prefixes=("$",))
SMF = WildcardExclusions(first_level_prefixes=("$",), whole_levels=("P",))


def slow_matches(pattern: Pattern, levels: tuple[str, ...]) -> bool:
    return bool(levels) and _rest_matches(pattern, 0, levels, 0)


def _rest_matches(pattern: Pattern, place: int, levels: tuple[str, ...], depth: int) -> bool:
    if place == len(pattern.levels):
        return depth == len(levels)
    level = pattern.levels[place]
    if isinstance(level, AnyMany):
        takes = range(level.minimum, len(levels) - depth + 1)
        return any(
            all(_seen(pattern.exclusions, levels, at) for at in range(depth, depth + take))
            and _rest_matches(pattern, place + 1, levels, depth + take)
            for take in takes
        )
    if depth == len(levels) or not _one_matches(level, pattern.exclusions, levels, depth):
        return False
    return _rest_matches(pattern, place + 1, levels, depth + 1)


def _one_matches(
    level: Literal | Glob | AnyOne,
    exclusions: WildcardExclusions,
    levels: tuple[str, ...],
    depth: int,
) -> bool:
    text = levels[depth]
    match level:
        case Literal():
            return text == level.text
        case AnyOne():
            return _seen(exclusions, levels, depth)
        case Glob(parts, minimum):
            form = "(.*)".join(map(re.escape, parts))
            found = re.fullmatch(form, text, re.DOTALL)
            runs = sum(map(len, found.groups())) if found else 0
            return text not in exclusions.whole_levels and found is not None and runs >= minimum


def _seen(exclusions: WildcardExclusions, levels: tuple[str, ...], depth: int) -> bool:
    text = levels[depth]
    reserved = depth == 0 and any(
        text.startswith(prefix) for prefix in exclusions.first_level_prefixes
    )
    return text not in exclusions.whole_levels and not reserved


PARTS = st.sampled_from(
    [
        ("a", ""),
        ("", "b"),
        ("", ""),
        ("a", "b"),
        ("", "a", ""),
        ("$", ""),
        ("", "P"),
        ("a", "", ""),
    ]
)
LEVELS = st.one_of(
    st.builds(Literal, st.sampled_from(WORDS)),
    st.builds(AnyOne),
    st.builds(AnyMany, st.sampled_from([0, 1])),
    st.builds(Glob, PARTS, st.sampled_from([0, 0, 1, 2])),
)
PATTERNS = st.builds(
    Pattern,
    st.lists(LEVELS, max_size=4).map(tuple),
    st.sampled_from(
        [NO_EXCLUSIONS, NO_EXCLUSIONS, MQTT, SMF, WildcardExclusions(whole_levels=("P", "ab"))]
    ),
)
BRUTE_FORCE = settings(deadline=None)  # hundreds of subjects in one example
UNIONS = st.lists(PATTERNS, max_size=3)
MARKS: dict[str, Level] = {"+": AnyOne(), "#": AnyMany(0), ">": AnyMany(1)}


def pattern(text: str, exclusions: WildcardExclusions = NO_EXCLUSIONS) -> Pattern:
    """`+`, `#` (none or more), `>` (one or more), stars inside a level, all else literal."""
    return Pattern(tuple(map(level, text.split("/"))), exclusions)


def level(text: str) -> Level:
    if text in MARKS:
        return MARKS[text]
    return Glob(tuple(text.split("*"))) if "*" in text else Literal(text)


def takes(union: list[Pattern], levels: tuple[str, ...]) -> bool:
    return any(slow_matches(one, levels) for one in union)


@pytest.mark.parametrize(
    ("wide", "narrow", "example"),
    [
        pytest.param("a/#", "a/>", None, id="rest-of-none-or-more-covers-one-or-more"),
        pytest.param("a/>", "a/#", ("a",), id="the-parent-itself"),
        pytest.param("+/+", "a/b", None, id="literals-in-wildcards"),
        pytest.param("a/b", "+/b", ("x", "b"), id="a-readable-level-in-place-of-a-wildcard"),
        pytest.param("#/b", "#/a/b", None, id="rest-in-front"),
        pytest.param("#/a/b", "#/b", ("b",), id="rest-in-front-reversed"),
        pytest.param("red*", "+", ("x",), id="glob-narrower-than-any"),
        pytest.param("+", "red*", None, id="any-covers-glob"),
        pytest.param("r*", "red*", None, id="prefix-of-prefix"),
        pytest.param("red*", "r*", ("r",), id="prefix-of-prefix-reversed"),
        pytest.param("a*b", "a*c*b", None, id="star-over-stars"),
        pytest.param("#/+/#", ">", None, id="a-run-of-wildcards"),
        pytest.param("x/#", "#", ("y",), id="the-usual-example-is-taken"),
    ],
)
def test_cover_or_a_counterexample(wide: str, narrow: str, example: tuple[str, ...] | None) -> None:
    assert difference_example([pattern(narrow)], [pattern(wide)]) == example
    assert covers([pattern(wide)], [pattern(narrow)]) is (example is None)


@pytest.mark.parametrize(
    ("a", "b", "example"),
    [
        pytest.param("a/+", "+/b", ("a", "b"), id="crossing"),
        pytest.param("a/b", "a/c", None, id="other-literals"),
        pytest.param("a/#", "#/b", ("a", "b"), id="rests-at-both-ends"),
        pytest.param("a/#", "#/a", ("a",), id="one-level-is-both"),
        pytest.param("a/>", "a", None, id="one-or-more-is-not-the-parent"),
        pytest.param("red*", "*bro", ("redbro",), id="globs-that-meet"),
        pytest.param("red*", "blue*", None, id="globs-that-differ"),
        pytest.param("ab*", "*ba", ("aba",), id="globs-that-share-a-character"),
        pytest.param("#/z/#", "+", ("z",), id="none-around"),
    ],
)
def test_overlap_with_an_example(a: str, b: str, example: tuple[str, ...] | None) -> None:
    assert intersection_example([pattern(a)], [pattern(b)]) == example
    assert overlaps([pattern(a)], [pattern(b)]) is (example is not None)


def test_the_first_overlap_of_long_lists_is_the_last_pair_that_is_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[tuple[Pattern, Pattern]] = []

    def spy(one: Pattern, other: Pattern) -> bool | None:
        compared.append((one, other))
        return quick_overlap(one, other)

    monkeypatch.setattr(subject_search, "quick_overlap", spy)
    many = [pattern(f"a/{number}") for number in range(100)]

    assert overlaps(many, many)
    assert compared == [(many[0], many[0])]


def test_a_union_covers_what_no_part_of_it_covers() -> None:
    parts = [pattern("a"), pattern("a/>")]
    assert covers(parts, [pattern("a/#")])
    assert covers([pattern("a/#")], parts)
    assert not covers(parts[:1], [pattern("a/#")])


def test_wildcards_do_not_match_excluded_levels() -> None:
    assert difference_example([pattern("#")], [pattern("#", MQTT)]) == ("$",)
    assert not overlaps([pattern("$SYS/a")], [pattern("+/a", MQTT)])
    assert overlaps([pattern("x/P")], [pattern("x/P", SMF)])
    assert not overlaps([pattern("x/P")], [pattern("x/>", SMF)])
    assert difference_example([pattern("+/P*")], [pattern("#", SMF)]) == ("x", "P")


@pytest.mark.parametrize(
    "impossible",
    [
        pytest.param(Pattern(()), id="no-level"),
        pytest.param(
            Pattern((AnyOne(),), WildcardExclusions(first_level_prefixes=("",))),
            id="wildcards-exclude-everything",
        ),
    ],
)
def test_a_pattern_may_match_nothing(impossible: Pattern) -> None:
    assert difference_example([impossible], ()) is None
    assert not overlaps([impossible], [pattern("#")])


def test_one_empty_level_is_an_example() -> None:
    assert difference_example([pattern("/#")], [pattern("/>")]) == ("",)


@BRUTE_FORCE
@given(UNIONS, UNIONS)
def test_an_overlap_is_reported_exactly_when_there_is_one(
    a: list[Pattern], b: list[Pattern]
) -> None:
    example = intersection_example(a, b)
    assert overlaps(a, b) is (example is not None)
    assert overlaps(b, a) is (example is not None)
    if example is None:
        assert not [levels for levels in SUBJECTS if takes(a, levels) and takes(b, levels)]
    else:
        assert takes(a, example)
        assert takes(b, example)


@BRUTE_FORCE
@given(UNIONS, UNIONS)
def test_cover_is_reported_exactly_when_no_difference_exists(
    a: list[Pattern], b: list[Pattern]
) -> None:
    example = difference_example(a, b)
    assert covers(b, a) is (example is None)
    if example is None:
        assert not [levels for levels in SUBJECTS if takes(a, levels) and not takes(b, levels)]
    else:
        assert takes(a, example)
        assert not takes(b, example)


@given(PATTERNS, PATTERNS, PATTERNS)
def test_cover_is_an_order(a: Pattern, b: Pattern, c: Pattern) -> None:
    assert covers([a], [a])
    assert covers([a, b], [b])
    assert not (covers([a], [b]) and covers([b], [c])) or covers([a], [c])


@given(PATTERNS, st.lists(st.sampled_from(SUBJECTS), max_size=20))
def test_the_matcher_and_the_algebra_agree_with_the_definition(
    one: Pattern, subjects: list[tuple[str, ...]]
) -> None:
    for levels in subjects:
        subject = Pattern(tuple(map(Literal, levels)))
        assert matches(one, levels) == slow_matches(one, levels) == overlaps([one], [subject])


@BRUTE_FORCE
@given(PATTERNS)
def test_the_normal_form_of_a_pattern_matches_the_same(one: Pattern) -> None:
    chain = chain_of(one)
    levels: list[Level] = []
    for state in range(len(chain.steps) + 1):
        levels += [AnyMany(0)] if state in chain.loops else []
        levels += chain.steps[state : state + 1]
    again = Pattern(tuple(levels), chain.exclusions)
    assert all(slow_matches(one, x) == slow_matches(again, x) for x in SUBJECTS)


@given(
    st.lists(st.lists(st.text("ab", max_size=2), min_size=2, max_size=4), max_size=3),
    st.sets(st.text("ab")),
)
def test_sample_levels_distinguish_every_class_of_level(
    forms: list[list[str]], exact: set[str]
) -> None:
    globs = [Glob(tuple(form)) for form in forms]
    found = sample_levels(sorted(exact), globs)
    kinds = {
        (text in exact and text, *(glob_matches(glob, text) for glob in globs)) for text in found
    }
    assert len(kinds) == len(found)
    for text in ("", "a", "b", "ab", "ba", "aab", "abab", "c", "acb", "bac", "cab"):
        kind = (text in exact and text, *(glob_matches(glob, text) for glob in globs))
        assert kind in kinds


NASTY = pattern("/".join(["#", "a"] * 50))
DEEP = "/".join(["a", "b"] * 5_000)


@pytest.mark.timeout(10)
def test_patterns_for_exponential_search_are_answered() -> None:
    longer = pattern("/".join(["#", "a"] * 51))
    assert covers([NASTY], [longer])
    assert difference_example([NASTY], [longer]) == ("a",) * 50
    assert intersection_example([NASTY], [longer]) == ("a",) * 51


@pytest.mark.timeout(20)
def test_ten_thousand_levels_are_answered() -> None:
    assert covers([pattern(DEEP + "/#")], [pattern(DEEP)])
    assert difference_example([pattern(DEEP + "/#")], [pattern(DEEP)]) is not None
    assert intersection_example([pattern("+/b/#")], [pattern(DEEP)]) == tuple(DEEP.split("/"))


def test_a_search_past_its_budget_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject_search, "MAX_STEPS", 100)
    with pytest.raises(
        SearchBudgetExceeded, match=r"^pattern algebra: .* is \d+ steps, limit 100$"
    ):
        covers([NASTY], [pattern("a/#/" + "/".join(["#", "a"] * 51))])


def test_globs_past_their_budget_raise() -> None:
    with pytest.raises(
        SearchBudgetExceeded, match=r"^pattern algebra: .* is \d+ texts, limit 100$"
    ):
        sample_levels((), [Glob(("", "abcdabcd", "cdefcdef", ""))], 100)
