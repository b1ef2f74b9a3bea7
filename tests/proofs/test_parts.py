"""The small tools of the proofs, each against something slow and obvious."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model.alphabet import EVERYTHING
from gateway.model.language import overlaps
from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern, Shy
from gateway.model.pattern_index import overlapping
from gateway.proofs.flows.extract import survey
from gateway.proofs.flows.flow import Part, Var, spread
from gateway.proofs.rules.ambiguity import divided_twice
from gateway.proofs.search.equations import restricted, restricted_exactly
from gateway.proofs.search.examples import exactly, example
from gateway.proofs.search.witness import sent
from tests.proofs.routes import BROKERS, route

LEVELS: st.SearchStrategy[Level] = st.one_of(
    st.sampled_from("abc").map(Literal),
    st.builds(AnyOne),
    st.sampled_from((0, 1)).map(AnyMany),
    st.just(Glob(("a", ""))),
)
PATTERNS = st.lists(LEVELS, min_size=1, max_size=4).map(tuple).map(Pattern)


@given(st.lists(PATTERNS, max_size=30), st.lists(PATTERNS, max_size=30))
def test_the_index_misses_no_pair(lefts: list[Pattern], rights: list[Pattern]) -> None:
    found = set(
        overlapping(
            [(one, at) for at, one in enumerate(lefts)],
            [(one, at) for at, one in enumerate(rights)],
        )
    )
    every = {
        (left, right)
        for (left, one), (right, other) in product(enumerate(lefts), enumerate(rights))
        if overlaps([one], [other], EVERYTHING)
    }

    assert every <= found


ALPHABET = ["".join(text) for size in range(4) for text in product("ax-", repeat=size)]
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.sampled_from(("-", "a", "x-")), st.sampled_from((0, 1, 2)).map(Var)
)
KINDS = st.sampled_from((AnyOne(), Glob(("a", "")), Glob(("", "-"))))


@given(
    st.lists(PARTS, min_size=1, max_size=4, unique=True), st.lists(KINDS, min_size=3, max_size=3)
)
def test_a_level_divides_twice_when_brute_force_says_so(
    parts: list[Part], kinds: list[AnyOne | Glob]
) -> None:
    pattern = Pattern(tuple(kinds))
    texts = [
        [t for t in ALPHABET if fits(kinds[part.at], t)] if isinstance(part, Var) else [str(part)]
        for part in parts
    ]
    seen: dict[str, tuple[str, ...]] = {}
    twice = any(seen.setdefault("".join(one), one) != one for one in product(*texts))

    found = divided_twice(parts, pattern)

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
def test_names_are_found_for_what_was_made(
    pattern: str, template: str, made: tuple[str, ...], names: set[tuple[str, ...]]
) -> None:
    _, (flow,) = survey([route("mqtt", pattern, ("mqtt-2", template))], BROKERS)
    found = [example([[one]]) for one in restricted(flow, exactly(made))]

    assert names <= set(found)
    for levels in names:
        there = sent(flow, levels)
        assert there is not None
        assert there.arrived == made


def test_no_name_becomes_one_without_levels() -> None:
    _, (flow,) = survey([route("mqtt", "a/{x}", ("ems", "A.{x}"))], BROKERS)

    assert restricted(flow, Pattern((), Shy(first=("$",)))) == []
    assert restricted_exactly(flow, Pattern((), Shy(first=("$",)))) == []


def test_a_name_is_spread_over_the_levels_of_its_pattern() -> None:
    pattern = Pattern((AnyMany(0), Literal("a"), AnyOne(), AnyMany(1)))

    assert spread(pattern, ("b", "a", "c", "d", "e")) == [("b",), ("a",), ("c",), ("d", "e")]
