"""The proofs against slow models that translate every name of a few levels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.base import parse_subject
from gateway.errors import SubjectError, TranslationError
from gateway.model.matching import matches
from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern, WildcardExclusions
from gateway.proofs import prove_inverse
from gateway.proofs.fleet import FleetEndpoint, prove_fleet
from gateway.proofs.search.examples import find_example
from gateway.proofs.search.translated_name import TranslatedName, translate_name
from gateway.routing.route import Route
from tests.proofs.routes import dialect_of, findings, route

SYSTEMS = ("mqtt", "ems", "smf", "ibm", "yami4", "smartsockets")
TEXTS = ("a", "b", "-", "a-", "-a", "aa", "ba", "c", "A")
NAMES = [name for size in (1, 2, 3) for name in product(TEXTS, repeat=size)]
DEEP = [name for size in (1, 2, 3, 4) for name in product(("a", "b", "c", "d"), repeat=size)]
FUNCTIONS = ("", "", "", "", "|upper", "|slice:0:1", "|split:-:0")


def sources(system: str) -> st.SearchStrategy[str]:
    """Generate patterns with captures {x}, {y}, {z} and {rest...}; some do not parse."""
    dialect = dialect_of(system)
    one = st.sampled_from(("a", "b", "{x}", "{y}", "{z}", dialect.any_one))
    end = st.sampled_from(("", "{rest...}", dialect.any_many, *GLOBS.get(system, ())))
    parts = st.tuples(st.lists(one, max_size=3), end).map(lambda each: [*each[0], each[1]])
    if system == "ibm":
        parts = parts | st.lists(st.sampled_from(("#", "a", "{x}", "b")), max_size=4)
    return parts.map(
        lambda each: dialect.leading + dialect.separator.join(filter(None, each))
    ).filter(lambda text: text not in {"", "/"})


GLOBS = {"smf": ("a*",), "yami4": ("a*", "b.a*"), "smartsockets": ("a*", "*-*", "*a")}


def templates(system: str) -> st.SearchStrategy[str | None]:
    dialect = dialect_of(system)
    holes = [f"{{{name}{function}}}" for name in ("x", "y", "1", "2") for function in FUNCTIONS]
    piece = st.sampled_from([*holes, "a", "b", "-"])
    level = st.lists(piece, min_size=1, max_size=3).map("".join)
    level |= st.sampled_from(("{rest...}", "{rest...|upper}", "{rest...|join:-}", "{x}", "{y}"))
    texts = st.lists(level, min_size=1, max_size=4).map(
        lambda levels: dialect.leading + dialect.separator.join(levels)
    )
    return st.none() | texts | texts | texts


@st.composite
def routes(draw: st.DrawFn, name: str = "r", ends: tuple[str, ...] = SYSTEMS) -> Route:
    """Generate any route that the configuration would accept."""
    source, target = draw(st.sampled_from(ends)), draw(st.sampled_from(ends))
    pattern = sources(source)
    exclude = draw(st.lists(pattern, max_size=2))
    plain = [text for text in exclude if "{" not in text]
    while True:
        try:
            return route(
                source, draw(pattern), (target, draw(templates(target))), name=name, exclude=plain
            )
        except (SubjectError, TranslationError):
            continue


def shown(*some: Route) -> str:
    """Return the routes as text, for a failure."""
    lines = [
        f"{one.endpoint} {one.source.text!r} less {[each.text for each in one.excludes]} to "
        f"{[(t.endpoint, t.template and t.template.text) for t in one.targets]}"
        for one in some
    ]
    return "; ".join(lines)


def sendings(each: Route, names: list[tuple[str, ...]]) -> Iterator[TranslatedName]:
    found = (translate_name(each, target, name) for target in each.targets for name in names)
    return (one for one in found if isinstance(one, TranslatedName))


@given(routes())
def test_two_names_that_become_one_are_found(each: Route) -> None:
    made: dict[str, set[str]] = {}
    for one in sendings(each, NAMES):
        made.setdefault(one.target_name, set()).add(one.source_name)
    collide = any(len(names) > 1 for names in made.values())

    found = [one for one in findings(each) if one.rule in {"not-injective", "possible-loss"}]

    assert found or not collide, shown(each)
    if "|" not in shown(each):  # behind functions a doubt may be left
        assert {finding.rule for finding in found} <= {"not-injective"}, shown(each)


@given(routes())
def test_the_two_names_of_a_finding_do_become_one(each: Route) -> None:
    for found in findings(each):
        if found.rule == "not-injective":
            first, second, *_ = found.example
            assert first != second
            assert made_of(each, first) == made_of(each, second)


def made_of(each: Route, name: str) -> str:
    levels = parse_subject(name, each.dialect).levels
    found = translate_name(each, each.targets[0], levels)
    assert isinstance(found, TranslatedName)
    return found.target_name


@given(routes("r", ("mqtt", "ems", "smf")), routes("s", ("mqtt", "ems", "smf")))
def test_a_message_that_arrives_twice_is_found(one: Route, other: Route) -> None:
    if one.endpoint != other.endpoint or one.targets[0].endpoint != other.targets[0].endpoint:
        return
    first = {(sent.source_name, sent.target_name) for sent in sendings(one, NAMES)}
    twice = first & {(sent.source_name, sent.target_name) for sent in sendings(other, NAMES)}

    found = {each.rule for each in findings(one, other)}

    assert not twice or "delivered-twice" in found, shown(one, other)


@given(routes("r", ("mqtt", "ems", "smf")), routes("s", ("mqtt", "ems", "smf")))
def test_colliding_names_of_two_routes_are_found(one: Route, other: Route) -> None:
    if one.targets[0].endpoint != other.targets[0].endpoint:
        return
    first = {sent.target_name: sent.source_levels for sent in sendings(one, NAMES)}
    others = sendings(other, NAMES)
    collide = any(
        first.get(sent.target_name, sent.source_levels) != sent.source_levels for sent in others
    )

    found = {each.rule for each in findings(one, other)}
    reported = found & {"collision", "merged", "delivered-twice", "copies", "never-sent"}

    assert not collide or reported, shown(one, other)


@given(st.lists(routes(ends=("mqtt", "ems", "smf")), min_size=1, max_size=4))
def test_a_cycle_is_found(some: list[Route]) -> None:
    named = [
        Route(f"r{number}", one.endpoint, one.dialect, one.source, one.targets, one.excludes)
        for number, one in enumerate(some)
    ]
    found = {each.rule for each in findings(*named)}

    assert not endless(named) or found & {"cycle", "possible-cycle"}, shown(*named)


@given(st.lists(routes(ends=("mqtt", "ems", "smf")), min_size=2, max_size=4))
def test_a_cycle_through_gateways_is_found(some: list[Route]) -> None:
    """Each gateway has one route and no origin path; a cycle of its own is not told again."""
    named = [
        replace(
            one,
            name=f"g{number}:r",
            endpoint=f"g{number}:{one.endpoint}",
            targets=tuple(
                replace(each, endpoint=f"g{number}:{each.endpoint}") for each in one.targets
            ),
        )
        for number, one in enumerate(some)
    ]
    fleet = {
        f"g{number}:{system}": FleetEndpoint(f"g{number}", system, system, f"{number}{system}")
        for number in range(len(some))
        for system in ("mqtt", "ems", "smf")
    }
    found = {each.rule for each in prove_fleet(named, fleet)}
    alone = any(endless([one]) for one in some)

    assert alone or not endless(some) or found & {"cycle", "possible-cycle"}, shown(*some)
    assert found <= {"cycle", "possible-cycle", "delivered-twice", "copies", "unproven", "more"}


def endless(some: list[Route]) -> bool:
    """Return whether a name comes back as itself."""
    steps: dict[tuple[str, tuple[str, ...]], set[tuple[str, tuple[str, ...]]]] = {}
    for one in some:
        for name in DEEP:
            for target in one.targets:
                sent = translate_name(one, target, name)
                if isinstance(sent, TranslatedName):
                    steps.setdefault((one.endpoint, name), set()).add(
                        (target.endpoint, sent.target_levels)
                    )
    while True:
        left = {
            place: {after for after in afters if after in steps} for place, afters in steps.items()
        }
        left = {place: afters for place, afters in left.items() if afters}
        if left == steps:
            return bool(steps)
        steps = left


@given(routes("r", ("mqtt", "ems")), routes("s", ("mqtt", "ems")))
def test_a_name_that_does_not_come_back_is_found(forward: Route, backward: Route) -> None:
    if backward.endpoint != forward.targets[0].endpoint:
        return
    if backward.targets[0].endpoint != forward.endpoint:
        return
    lost = any(not comes_back(sent, backward) for sent in sendings(forward, NAMES))

    assert not lost or prove_inverse(forward, backward) is not None, shown(forward, backward)


def comes_back(forth: TranslatedName, backward: Route) -> bool:
    found = translate_name(backward, backward.targets[0], forth.target_levels)
    return isinstance(found, TranslatedName) and found.target_name == forth.source_name


LEVELS: st.SearchStrategy[Level] = st.one_of(
    st.sampled_from(("a", "b", "$x", "")).map(Literal),
    st.builds(AnyOne),
    st.sampled_from((0, 1)).map(AnyMany),
    st.sampled_from((("a", ""), ("", "a"), ("a", "b"))).map(Glob),
)
PATTERNS = st.builds(
    Pattern,
    st.lists(LEVELS, min_size=1, max_size=3).map(tuple),
    st.sampled_from(
        (
            WildcardExclusions(),
            WildcardExclusions(first_level_prefixes=("$",)),
            WildcardExclusions(whole_levels=("b",)),
        )
    ),
)
UNIONS = st.lists(PATTERNS, min_size=1, max_size=2)
WORDS = [
    name for size in (1, 2, 3) for name in product(("a", "b", "$x", "", "ab", "z"), repeat=size)
]


@given(st.lists(UNIONS, min_size=1, max_size=2), st.lists(PATTERNS, max_size=2))
def test_an_example_meets_every_condition_and_is_found_when_there_is_one(
    every: list[list[Pattern]], none: list[Pattern]
) -> None:
    def fits(name: tuple[str, ...]) -> bool:
        wanted = all(any(matches(one, name) for one in union) for union in every)
        return wanted and not any(matches(one, name) for one in none) and name != ("",)

    found = find_example(every, none)

    assert fits(found) if found is not None else not any(map(fits, WORDS))
