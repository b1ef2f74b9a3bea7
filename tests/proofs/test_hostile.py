"""A hostile name stays under the fixed prefix of its template."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.base import Dialect, check_name, parse_subject
from gateway.dialects.registry import DIALECTS
from gateway.errors import TranslationError
from gateway.model.subject import Subject
from gateway.proofs.search.translated_name import spell_subject
from gateway.routing.route import Route
from gateway.translate.names import OnTooLong, OnUnmappable
from tests.proofs.routes import allowing, route

SYSTEMS = tuple(DIALECTS)
HOSTILE = (
    "*", ">", "#", "+", "**", "a*", "*.>", "...", "..", ".", "", "/", "//", "a.b", "a/b", "a,b",
    ",", "$", "$SYS", "$sys", "$TMP$", "$share", "_RV", "_LOCAL", "_INBOX", "#P2P", "%2E", "%2F",
    "%252E", "%2A", "%2523P2P", "%23P2P", "%24sys", "%-", "%", "%25", "~" + "a" * 26, "\0", "\n",
    " ", "漢", "\u202e", "{x}", "\ue000",
)  # fmt: skip
LEVELS = st.one_of(
    st.sampled_from(HOSTILE),
    st.lists(st.sampled_from(HOSTILE), max_size=3).map("".join),
    st.text(max_size=6),
)
MODES = list(product(OnUnmappable, OnTooLong))


def pattern_of(dialect: Dialect) -> str:
    return dialect.leading + dialect.separator.join(["in", "{x}", "{r...}"])


def template_of(dialect: Dialect) -> str:
    return dialect.leading + dialect.separator.join(["out", "p{x}s", "{x}", "{r...}"])


@cache
def route_between(source: str, target: str, escape: OnUnmappable, length: OnTooLong) -> Route:
    return route(
        source,
        pattern_of(DIALECTS[source]),
        (target, template_of(DIALECTS[target])),
        escape=escape,
        length=length,
    )


@given(
    st.sampled_from(SYSTEMS),
    st.sampled_from(SYSTEMS),
    st.sampled_from(MODES),
    LEVELS,
    st.lists(LEVELS, max_size=3),
)
def test_a_hostile_name_stays_under_the_prefix_of_its_template(
    source: str, target: str, mode: tuple[OnUnmappable, OnTooLong], first: str, rest: list[str]
) -> None:
    one = route_between(source, target, *mode)
    levels = ("in", first, *rest)
    made = made_by(one, levels)
    if made is None:
        return
    dialect = DIALECTS[target]
    check_name(made, dialect)  # a client may send to it, and it has no wildcard
    start = dialect.leading + "out" + dialect.separator
    arrived = parse_subject(made, dialect).levels

    assert made.startswith(start)
    if mode == (OnUnmappable.ESCAPE, OnTooLong.REFUSE):
        assert made.startswith(start + "p")
        assert arrived == ("out", f"p{first}s", first, *rest)
    if mode[1] is OnTooLong.REFUSE:
        assert made.count(dialect.separator) == len(levels) + len(dialect.leading)


@given(st.sampled_from(SYSTEMS), st.sampled_from(SYSTEMS), LEVELS, st.lists(LEVELS, max_size=2))
def test_a_hostile_first_level_makes_no_reserved_name(
    source: str, target: str, first: str, rest: list[str]
) -> None:
    here, there = DIALECTS[source], DIALECTS[target]
    one = route(
        source,
        here.leading + here.separator.join(["in", "{x}", "{r...}"]),
        (target, there.leading + there.separator.join(["{x}", "{r...}"])),
    )
    made = made_by(one, ("in", first, *rest))
    if made is not None:
        check_name(made, there)
        assert parse_subject(made, there).levels == (first, *rest)


def made_by(one: Route, levels: tuple[str, ...]) -> str | None:
    """Return the target name; None when the source has no such name or the target refuses it."""
    if spell_subject(levels, one.dialect) is None or not one.takes(levels):
        return None
    try:
        return one.targets[0].name_for(Subject(levels), one.source.capture(levels))
    except TranslationError:
        return None


@pytest.mark.parametrize("target", SYSTEMS)
@pytest.mark.parametrize("source", SYSTEMS)
def test_every_hostile_level_is_translated_or_refused(source: str, target: str) -> None:
    one = route_between(source, target, OnUnmappable.ESCAPE, OnTooLong.REFUSE)
    carried = [made_by(one, ("in", level, "x")) for level in HOSTILE]

    assert sum(made is not None for made in carried) > len(HOSTILE) // 2


def limited(source: str, target: str, mode: tuple[OnUnmappable, OnTooLong]) -> Route:
    """Return a route to an endpoint with `allow`, whose publishers choose the first level."""
    here, there = DIALECTS[source], DIALECTS[target]
    pattern = here.leading + here.separator.join(["in", "{x}", "{r...}"])
    template = there.leading + there.separator.join(["{x}", "{r...}"])
    one = route(source, pattern, (target, template), escape=mode[0], length=mode[1])
    return allowing(one, [there.leading + there.separator.join(["out", there.any_many])])


LIMITED = {
    (source, target, mode): limited(source, target, mode)
    for source, target in product(SYSTEMS, SYSTEMS)
    for mode in MODES
}


@given(
    st.sampled_from(SYSTEMS),
    st.sampled_from(SYSTEMS),
    st.sampled_from(MODES),
    LEVELS | st.just("out"),
    st.lists(LEVELS, max_size=3),
)
def test_no_hostile_name_is_outside_of_allow(
    source: str, target: str, mode: tuple[OnUnmappable, OnTooLong], first: str, rest: list[str]
) -> None:
    dialect = DIALECTS[target]
    made = made_by(LIMITED[source, target, mode], ("in", first, *rest))
    if made is None:
        return
    check_name(made, dialect)

    assert made.removeprefix(dialect.leading).split(dialect.separator)[0] == "out"


@pytest.mark.parametrize("target", SYSTEMS)
@pytest.mark.parametrize("source", SYSTEMS)
def test_an_allowed_name_is_sent_and_other_names_are_refused(source: str, target: str) -> None:
    one = LIMITED[source, target, MODES[0]]

    assert made_by(one, ("in", "out", "x")) is not None
    assert [made_by(one, ("in", level, "x")) for level in HOSTILE] == [None] * len(HOSTILE)
