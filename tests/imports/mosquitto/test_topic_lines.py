from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.base import parse_subject
from gateway.dialects.systems.mqtt import MQTT
from gateway.errors import TranslationError
from gateway.imports.mosquitto.routes import RouteDraft, draft_routes
from gateway.imports.mosquitto.topic_lines import (
    Direction,
    TopicError,
    TopicLine,
    intersect,
    parse_topic,
    with_captures,
)
from gateway.imports.source_lines import SourceLine
from gateway.routing.route import Route, Target
from gateway.routing.source_pattern import parse_source
from gateway.routing.template import parse_template
from gateway.translate.names import Renderer

HERE = SourceLine("m", 1)

LINES = [
    pytest.param("a/#", TopicLine(HERE, "a/#"), id="out-and-qos-0"),
    pytest.param("a in", TopicLine(HERE, "a", Direction.IN), id="direction"),
    pytest.param("a BOTH 2", TopicLine(HERE, "a", Direction.BOTH, 2), id="any-case"),
    pytest.param("a  out  1  L/", TopicLine(HERE, "a", Direction.OUT, 1, "L/"), id="blanks"),
    pytest.param(
        '# both 1 "" R/', TopicLine(HERE, "#", Direction.BOTH, 1, "", "R/"), id="empty-prefix"
    ),
    pytest.param('"" in 0 x y', TopicLine(HERE, "", Direction.IN, 0, "x", "y"), id="one-name"),
]


@pytest.mark.parametrize(("value", "expected"), LINES)
def test_a_topic_line_is_read(value: str, expected: TopicLine) -> None:
    assert parse_topic(value, HERE) == expected


WRONG = [
    pytest.param("", "it has no pattern", id="empty"),
    pytest.param("a sideways", "the direction 'sideways' is none of", id="direction"),
    pytest.param("a in 3", "the QoS '3' is none of 0, 1 and 2", id="qos"),
    pytest.param("a in x", "the QoS 'x' is none of 0, 1 and 2", id="qos-word"),
    pytest.param("a in 00009", "the QoS '00009' is none of 0, 1 and 2", id="qos-with-zeros"),
    pytest.param("a in ٢", "the QoS '٢' is none of 0, 1 and 2", id="qos-in-another-script"),
    pytest.param('"" both', 'the pattern "" needs a local and a remote prefix', id="no-prefix"),
    pytest.param('"" in 0 x ""', 'the pattern "" needs a local', id="one-prefix"),
    pytest.param("a in 0 L+/", "the local prefix 'L+/' has a wildcard", id="wild-prefix"),
    pytest.param(
        "# in 0 L R/", "local prefix and pattern are not a legal subscription", id="local-join"
    ),
    pytest.param("+/x out 0 L/ R", "remote prefix and pattern are not", id="remote-join"),
    pytest.param("a/#/b", "not a legal subscription", id="hash-not-last"),
    pytest.param("a in 0 L/ R/ more", "mosquitto ignores what follows", id="six-words"),
    pytest.param("a/{b}/c out", "'a/{b}/c' has a brace", id="like-a-capture"),
    pytest.param("a/+ out 0 L/ {1}/", "'{1}/a/+' has a brace", id="prefix-like-a-capture"),
    pytest.param("a" + "/" * 201, "more than 200 '/'", id="levels"),
    pytest.param(f"a in 0 x{'/' * 201}", "more than 200 '/'", id="levels-of-a-prefix"),
    pytest.param("$share/g/a in", "is a shared subscription", id="shared"),
]


@pytest.mark.parametrize(("value", "reason"), WRONG)
def test_a_line_that_mosquitto_refuses_is_refused(value: str, reason: str) -> None:
    with pytest.raises(TopicError) as caught:
        parse_topic(value, HERE)

    assert reason in str(caught.value)


# mosquitto.conf(5), "topic": the table of valid combinations.
WAYS = [
    pytest.param("pattern", "L/", "R/", "L/pattern", "R/pattern", id="both"),
    pytest.param("pattern", "L/", "", "L/pattern", "pattern", id="local"),
    pytest.param("pattern", "", "R/", "pattern", "R/pattern", id="remote"),
    pytest.param("pattern", "", "", "pattern", "pattern", id="none"),
    pytest.param("", "local", "remote", "local", "remote", id="single"),
    pytest.param("a/+/#", "L/", "R/", "L/a/{a}/{rest...}", "R/a/{a}/{rest...}", id="captures"),
    pytest.param("#", "L/", "R/", "L/{a}/{rest...}", "R/{a}/{rest...}", id="no-prefix-itself"),
    pytest.param("#", "", "R/", "{a}/{rest...}", "R/{a}/{rest...}", id="everything-below"),
    pytest.param("#", "", "", "{rest...}", "{rest...}", id="everything"),
]


@pytest.mark.parametrize(("pattern", "local", "remote", "here", "there"), WAYS)
def test_prefixes_become_a_pattern_and_a_template(
    pattern: str, local: str, remote: str, here: str, there: str
) -> None:
    ways = {
        direction: draft_routes([TopicLine(HERE, pattern, direction, 0, local, remote)])[0]
        for direction in Direction
    }

    assert [(draft.source_pattern, draft.target_template) for draft in ways[Direction.OUT]] == [
        (here, there)
    ]
    assert [(draft.source_pattern, draft.target_template) for draft in ways[Direction.IN]] == [
        (there, here)
    ]
    assert [(draft.source_pattern, draft.target_template) for draft in ways[Direction.BOTH]] == [
        (here, there)
    ]


def test_captures_have_short_names() -> None:
    stem = "/".join(["+"] * 30)

    assert with_captures(stem).split("/")[::13] == ["{a}", "{n}", "{aa}"]
    assert with_captures("a/+x/#") == "a/+x/{rest...}"


MEETINGS = [
    pytest.param("a/+", "+/b", "a/b", id="crossed"),
    pytest.param("a/#", "a", "a", id="parent"),
    pytest.param("a/#", "a/+/c/#", "a/+/c/#", id="inside"),
    pytest.param("#", "#", "#", id="all"),
    pytest.param("a/b", "a", None, id="longer"),
    pytest.param("a/b", "a/c", None, id="other"),
    pytest.param("+", "+/+", None, id="depths"),
]


@pytest.mark.parametrize(("one", "other", "expected"), MEETINGS)
def test_the_intersection_of_two_patterns_is_one_pattern(
    one: str, other: str, expected: str | None
) -> None:
    assert intersect(one, other) == intersect(other, one) == expected


LEVEL = st.sampled_from(["a", "b", "", "$x", "é", "a%2Eb", "%-"])
PREFIX = st.one_of(
    st.just(""),
    st.lists(LEVEL, min_size=1, max_size=3).map(lambda levels: "/".join(levels) + "/"),
    st.lists(LEVEL, min_size=1, max_size=2).map("/".join),
)
FILTER = st.lists(st.one_of(LEVEL, st.just("+")), max_size=3).flatmap(
    lambda levels: st.sampled_from(["/".join(levels), "/".join([*levels, "#"])])
)


def matches_filter(levels: list[str], wanted: list[str]) -> bool:
    """Match level by level, as in MQTT 5.0, 4.7.1 and 4.7.2."""
    if not wanted:
        return not levels
    if wanted[0] == "#":
        return True
    return bool(levels) and wanted[0] in ("+", levels[0]) and matches_filter(levels[1:], wanted[1:])


def documented(name: str, pattern: str, taken: str, given: str) -> str | None:
    """Return the name by the manual; None when it does not cross, or would be empty."""
    subscription = (taken + pattern).split("/")
    if name.startswith("$") and subscription[0] in ("+", "#"):
        return None
    if not matches_filter(name.split("/"), subscription) or not name.startswith(taken):
        return None
    return given + name.removeprefix(taken) or None


def produced(name: str, draft: RouteDraft) -> str | None:
    """Return the name at the target of a route in one direction."""
    source = parse_source(draft.source_pattern, MQTT)
    target = Target(
        "to", "to", Renderer(MQTT), (parse_template(draft.target_template, MQTT, source),)
    )
    route = Route("r", "from", MQTT, source, (target,))
    subject = parse_subject(name, MQTT)
    if not route.takes(subject.levels):
        return None
    try:
        return target.name_for(subject, source.capture(subject.levels))
    except TranslationError as error:
        return None if error.rule == "empty-name" else str(error)


@given(
    pattern=FILTER, local=PREFIX, remote=PREFIX, filling=st.lists(LEVEL, max_size=5), data=st.data()
)
def test_routes_remap_as_mosquitto_documents(
    pattern: str, local: str, remote: str, filling: list[str], data: st.DataObject
) -> None:
    words = [pattern or '""', "both", "1", local or '""', remote or '""']
    try:
        line = parse_topic(" ".join(words), HERE)
    except TopicError:
        return
    (both,), omitted = draft_routes([line])
    assert (both.direction, omitted) == (Direction.BOTH, [])
    for direction, taken, given_ in (
        (Direction.OUT, local, remote),
        (Direction.IN, remote, local),
    ):
        pieces = iter(filling)
        made = "/".join(
            next(pieces, "a") if level == "+" else "/".join(pieces) if level == "#" else level
            for level in (taken + pattern).split("/")
        )
        name = data.draw(st.sampled_from([made, taken, taken.removesuffix("/"), "/".join(filling)]))
        if name:
            assert produced(name, replace(both, direction=direction)) == documented(
                name, pattern, taken, given_
            )
