"""The searches of the proofs, each against a slow model."""

from __future__ import annotations

import tracemalloc
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model.overlap_index import OverlapIndex, candidate_pairs
from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern, WildcardExclusions
from gateway.model.subject_search import overlaps
from gateway.proofs.flows.flow import LevelVariable, Part, levels_by_position
from gateway.proofs.flows.target_expressions import extract_flows
from gateway.proofs.rules.ambiguity import ambiguous_texts
from gateway.proofs.search.equations import exact_source_patterns, source_patterns
from gateway.proofs.search.examples import exact_pattern, find_example
from gateway.proofs.search.translated_name import translate_by_flow
from tests.proofs.routes import BROKERS, route

LEVELS: st.SearchStrategy[Level] = st.one_of(
    st.sampled_from("abc").map(Literal),
    st.builds(AnyOne),
    st.sampled_from((0, 1)).map(AnyMany),
    st.just(Glob(("a", ""))),
)
PATTERNS = st.lists(LEVELS, min_size=1, max_size=4).map(tuple).map(Pattern)


@given(st.lists(PATTERNS, max_size=30), st.lists(PATTERNS, max_size=30))
def test_the_overlap_index_finds_every_pair(lefts: list[Pattern], rights: list[Pattern]) -> None:
    found = set(
        candidate_pairs(
            [(one, at) for at, one in enumerate(lefts)],
            [(one, at) for at, one in enumerate(rights)],
        )
    )
    every = {
        (left, right)
        for (left, one), (right, other) in product(enumerate(lefts), enumerate(rights))
        if overlaps([one], [other])
    }

    assert every <= found


def test_the_overlap_index_looks_at_the_children_of_a_node_one_by_one() -> None:
    """A node has a child for each route; each of 10,000 routes made a list of all."""
    index: OverlapIndex[int] = OverlapIndex()
    for number in range(5_000):
        index.add(Pattern((Literal("a"), Literal(str(number)), AnyOne())), number)
    wide = Pattern((Literal("a"), AnyOne(), AnyOne()))

    tracemalloc.start()
    found = next(index.candidates(wide))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert 0 <= found < 5_000
    assert peak < 20_000  # bytes


ALPHABET = ["".join(text) for size in range(4) for text in product("ax-", repeat=size)]
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.sampled_from(("-", "a", "x-")), st.sampled_from((0, 1, 2)).map(LevelVariable)
)
KINDS = st.sampled_from((AnyOne(), Glob(("a", "")), Glob(("", "-"))))


@given(
    st.lists(PARTS, min_size=1, max_size=4, unique=True), st.lists(KINDS, min_size=3, max_size=3)
)
def test_a_level_is_ambiguous_when_brute_force_finds_two_divisions(
    parts: list[Part], kinds: list[AnyOne | Glob]
) -> None:
    pattern = Pattern(tuple(kinds))
    texts = [
        [t for t in ALPHABET if fits(kinds[part.position], t)]
        if isinstance(part, LevelVariable)
        else [str(part)]
        for part in parts
    ]
    seen: dict[str, tuple[str, ...]] = {}
    twice = any(seen.setdefault("".join(one), one) != one for one in product(*texts))

    found = ambiguous_texts(parts, pattern)

    assert found is not None or not twice
    if found is not None:
        assert found[0] != found[1]
        assert "".join(found[0]) == "".join(found[1])


def fits(kind: AnyOne | Glob, text: str) -> bool:
    if isinstance(kind, AnyOne):
        return True
    return text.startswith(kind.parts[0]) and text.endswith(kind.parts[1])


SOLVED = [
    ("a/{x}/{y}", "{y}/{x}", ("q", "p"), {("a", "p", "q")}),
    ("a/{x}/{y}", "{x}-{y}", ("p-q-r",), {("a", "p-q", "r"), ("a", "p", "q-r")}),
    ("a/{r...}", "b/{r...}", ("b", "1", "2"), {("a", "1", "2")}),
    ("a/{r...}", "b/{r...}", ("c",), set()),
    ("a/{x}", "b/x{x}", ("b", "xp"), {("a", "p")}),
    ("a/{x}", "b/{x}/{x}", ("b", "p", "q"), set()),
]


@pytest.mark.parametrize(("pattern", "template", "made", "names"), SOLVED)
def test_source_names_are_found_for_a_target_name(
    pattern: str, template: str, made: tuple[str, ...], names: set[tuple[str, ...]]
) -> None:
    _, (flow,) = extract_flows([route("mqtt", pattern, ("mqtt-2", template))], BROKERS)
    found = [find_example([[one]]) for one in source_patterns(flow, exact_pattern(made))]

    assert names <= set(found)
    for levels in names:
        there = translate_by_flow(flow, levels)
        assert there is not None
        assert there.target_levels == made


def test_no_name_translates_to_a_name_without_levels() -> None:
    _, (flow,) = extract_flows([route("mqtt", "a/{x}", ("ems", "A.{x}"))], BROKERS)

    assert source_patterns(flow, Pattern((), WildcardExclusions(first_level_prefixes=("$",)))) == []
    assert (
        exact_source_patterns(flow, Pattern((), WildcardExclusions(first_level_prefixes=("$",))))
        == []
    )


def test_the_levels_of_a_name_are_divided_among_its_pattern() -> None:
    pattern = Pattern((AnyMany(0), Literal("a"), AnyOne(), AnyMany(1)))

    assert levels_by_position(pattern, ("b", "a", "c", "d", "e")) == [
        ("b",),
        ("a",),
        ("c",),
        ("d", "e"),
    ]
