"""Topic lines that overlap: what mosquitto 2.0.11 was seen to do between two brokers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.base import matches_text, parse_subject
from gateway.dialects.systems.mqtt import MQTT
from gateway.errors import TranslationError
from gateway.imports.document import Rule, Send
from gateway.imports.lines import Place
from gateway.imports.mosquitto.echoes import echoes
from gateway.imports.mosquitto.routes import Part, parts_of
from gateway.imports.mosquitto.topic_lines import Direction, TopicError, TopicLine, parse_topic
from gateway.imports.verify import routes_of


def lines_of(text: str) -> list[TopicLine]:
    return [
        parse_topic(value, Place("m", number)) for number, value in enumerate(text.split("; "), 1)
    ]


def shown(part: Part) -> str:
    without = f" without {', '.join(part.exclude)}" if part.exclude else ""
    return f"{part.direction.value} {part.taken} -> {part.given}{without}"


OVERLAPS = [
    pytest.param("a/b; c", ["out a/b -> a/b", "out c -> c"], id="none"),
    pytest.param(
        "a/# out; a/# in", ["both a/{rest...} -> a/{rest...}"], id="out-and-in-are-both"
    ),
    pytest.param(
        "# out; cmd/# in",
        ["both cmd/{rest...} -> cmd/{rest...}", "out {rest...} -> {rest...} without cmd/#"],
        id="everything-out-commands-in",
    ),
    pytest.param(
        "a/+/# out; +/b in",
        ["both a/b -> a/b", "out a/{a}/{rest...} -> a/{a}/{rest...} without a/b",
         "in {a}/b -> {a}/b without a/b"],
        id="crossed",
    ),
    pytest.param(
        "a/+ both; +/b both",
        ["both a/{a} -> a/{a}", "both {a}/b -> {a}/b without a/+"],
        id="two-ways-twice",
    ),
    pytest.param(
        'a/# out 1; b/# in 1 "" a/; +/# in 1 a/ a/',
        ["both a/{a}/{rest...} -> a/{a}/{rest...}", "out a/{rest...} -> a/{rest...} without a/+/#",
         "in a/b/{rest...} -> b/{rest...}"],
        id="same-names-behind-other-prefixes",
    ),
    pytest.param(
        'a/# out 0 "" q/; a/b out 0 "" r/; c out',
        ["out a/{rest...} -> q/a/{rest...}", "out c -> c"],
        id="the-first-takes-all",
    ),
    pytest.param(
        'a/# out; a/b out 0 "" r/',
        ["out a/{rest...} -> a/{rest...} without a/b", "out a/b -> r/a/b"],
        id="a-prefix-goes-first",
    ),
    pytest.param(
        '$SYS/# out 0 "" x/; # in 0 "" x/',
        ["out $SYS/{rest...} -> x/$SYS/{rest...}",
         "in x/{a}/{rest...} -> {a}/{rest...}"],
        id="a-wildcard-takes-no-dollar",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), OVERLAPS)
def test_overlapping_lines_share_their_names(text: str, expected: list[str]) -> None:
    parts, _ = parts_of(lines_of(text))

    assert [shown(part) for part in parts] == expected


TOLD = [
    pytest.param('a/# out 0 "" q/; a/b out 0 "" r/', [2], "mosquitto does not use it", id="unused"),
    pytest.param('a/# out 0 "" q/; # both 0 L/ R/', [], "", id="apart"),
    pytest.param('a/# out 0 "" q/; # both', [2], "crosses under two names", id="two-names"),
    pytest.param(
        'a out 0 "" b/; # out 0 "" a/; # both 0 "" b/',
        [1],
        "crosses under two names",
        id="two-names-with-a-line-inside",
    ),
]


@pytest.mark.parametrize(("text", "places", "reason"), TOLD)
def test_what_the_parts_do_not_do_is_told(text: str, places: list[int], reason: str) -> None:
    _, left = parts_of(lines_of(text))

    assert [each.place.line for each in left] == places
    assert all(reason in each.reason for each in left)


ECHOES = [
    pytest.param('# out 0 "" p/; s/# in', [1], id="what-comes-in-goes-out"),
    pytest.param("a/# both; b/# both", [], id="apart"),
    pytest.param("# out; s/# in", [], id="same-names"),
    pytest.param('a/# out 0 "" x/; x/# in 0 y/', [2], id="what-goes-out-comes-in"),
    pytest.param('a/# both 0 "" x/; x/# in 0 y/', [], id="the-first-takes-it-in"),
]


@pytest.mark.parametrize(("text", "places"), ECHOES)
def test_what_a_bridge_never_sends_back_is_told(text: str, places: list[int]) -> None:
    parts, _ = parts_of(lines_of(text))

    assert [each.place.line for each in echoes(parts)] == places


LEVEL = st.sampled_from(["a", "b", "+"])
PATTERN = st.builds(
    lambda levels, rest: "/".join([*levels, *rest]),
    st.lists(LEVEL, min_size=1, max_size=2),
    st.sampled_from([[], ["#"]]),
)
PREFIX = st.sampled_from(['""', "a/", "b/", "L/"])
LINE = st.builds(
    lambda pattern, direction, local, remote: f"{pattern} {direction} 1 {local} {remote}",
    st.one_of(PATTERN, st.just("#")),
    st.sampled_from(["out", "in", "both"]),
    PREFIX,
    PREFIX,
)
NAME = st.lists(st.sampled_from(["a", "b", "L", "c"]), min_size=1, max_size=4).map("/".join)


def mosquitto_sends(name: str, lines: list[TopicLine], direction: Direction) -> str | None:
    """The name on the other side: of the lines that match, the first with a prefix decides."""
    for line in sorted(lines, key=lambda line: not (line.local or line.remote)):
        taken, given = line.local, line.remote
        if direction is Direction.IN:
            taken, given = given, taken
        if line.direction not in {direction, Direction.BOTH}:
            continue
        if matches_text(taken + line.pattern, name, MQTT):
            return given + name.removeprefix(taken) if name.startswith(taken) else None
    return None


def routes_send(name: str, parts: list[Part], direction: Direction) -> list[str]:
    """The names on the other side, by the routes that the configuration makes of the parts."""
    ends = {Direction.OUT: ("here", "there"), Direction.IN: ("there", "here")}
    found: list[str] = []
    for number, part in enumerate(parts):
        start, end = ends[Direction.IN if part.direction is Direction.IN else Direction.OUT]
        both = part.direction is Direction.BOTH
        sends = (Send(end, part.given),)
        place = part.lines[0].place
        rule = Rule(f"r{number}", place, start, part.taken, sends, part.exclude, both=both)
        for route in routes_of(rule, MQTT):
            levels = parse_subject(name, MQTT).levels
            if route.endpoint == ends[direction][0] and route.takes(levels):
                captures = route.source.capture(levels)
                found.append(route.targets[0].name_for(parse_subject(name, MQTT), captures))
    return found


@given(texts=st.lists(LINE, min_size=1, max_size=4), name=NAME)
def test_every_name_crosses_as_with_mosquitto_or_its_lines_are_told(
    texts: list[str], name: str
) -> None:
    try:
        lines = [parse_topic(text, Place("m", at)) for at, text in enumerate(texts)]
    except TopicError:
        return
    parts, left = parts_of(lines)
    undecided = any("under two names" in each.reason for each in left)
    for direction in (Direction.OUT, Direction.IN):
        try:
            sent = routes_send(name, parts, direction)
        except TranslationError:
            raise AssertionError(name) from None
        expected = mosquitto_sends(name, lines, direction)
        if undecided:
            assert len(sent) <= len(lines)
            assert expected is None or expected in sent
        elif is_prefix_alone(name, lines, direction):
            assert len(sent) <= 1
        else:
            assert sent == ([] if expected is None else [expected])


def is_prefix_alone(name: str, lines: list[TopicLine], direction: Direction) -> bool:
    """Whether `name` is the prefix of a line with `#` alone, which the routes leave to others."""
    inward = direction is Direction.IN
    return any(
        line.pattern == "#" and name == (line.remote if inward else line.local).removesuffix("/")
        for line in lines
    )


def test_a_part_keeps_the_lines_that_asked_for_it() -> None:
    (part, _), _ = parts_of(lines_of("# out; cmd/# in"))

    assert [line.place.line for line in part.lines] == [1, 2]
    assert replace(part, direction=Direction.IN).taken == "cmd/{rest...}"
