"""Topic lines that overlap: what mosquitto 2.0.11 was seen to do between two brokers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.base import matches_text, parse_subject
from gateway.dialects.systems.mqtt import MQTT
from gateway.errors import TranslationError
from gateway.imports.document import RouteEntry, TargetEntry
from gateway.imports.mosquitto import routes
from gateway.imports.mosquitto.importer import find_echoes
from gateway.imports.mosquitto.routes import RouteDraft, draft_routes
from gateway.imports.mosquitto.topic_lines import Direction, TopicError, TopicLine, parse_topic
from gateway.imports.route_checks import routes_of
from gateway.imports.source_lines import SourceLine


def lines_of(text: str) -> list[TopicLine]:
    return [
        parse_topic(value, SourceLine("m", number))
        for number, value in enumerate(text.split("; "), 1)
    ]


def shown(draft: RouteDraft) -> str:
    without = f" without {', '.join(draft.exclude)}" if draft.exclude else ""
    return f"{draft.direction.value} {draft.source_pattern} -> {draft.target_template}{without}"


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
    drafts, _ = draft_routes(lines_of(text))

    assert [shown(draft) for draft in drafts] == expected


LISTED = [
    pytest.param('a/# out 0 "" q/; a/b out 0 "" r/', [2], "mosquitto does not use it", id="unused"),
    pytest.param('a/# out 0 "" q/; # both 0 L/ R/', [], "", id="apart"),
    pytest.param('a/# out 0 "" q/; # both', [2], "cross under two names", id="two-names"),
    pytest.param(
        'a out 0 "" b/; # out 0 "" a/; # both 0 "" b/',
        [1],
        "cross under two names",
        id="two-names-with-a-line-inside",
    ),
]


@pytest.mark.parametrize(("text", "locations", "reason"), LISTED)
def test_a_line_that_routes_do_not_fully_replace_is_listed(
    text: str, locations: list[int], reason: str
) -> None:
    _, omitted = draft_routes(lines_of(text))

    assert [each.location.line for each in omitted] == locations
    assert all(reason in each.reason for each in omitted)


REPEATED = [
    pytest.param("a/# both; b; a/# both", [3], id="as-it-is"),
    pytest.param("x/a/# both 1 l/x/ r/x/; a/# both 1 l/x/x/ r/x/x/", [2], id="other-prefixes"),
]


@pytest.mark.parametrize(("text", "locations"), REPEATED)
def test_a_repeated_line_never_decides(text: str, locations: list[int]) -> None:
    lines = lines_of(text)
    drafts, omitted = draft_routes(lines)

    kept = [line for line in lines if line.location.line not in locations]
    assert (drafts, []) == draft_routes(kept)
    assert [each.location.line for each in omitted] == locations


def test_lines_with_too_many_overlaps_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a/+ out; a/# out; a/b out; c out"
    monkeypatch.setattr(routes, "MAX_OVERLAPS", 3)
    drafts, _ = draft_routes(lines_of(text))
    monkeypatch.setattr(routes, "MAX_OVERLAPS", 2)
    none, omitted = draft_routes(lines_of(text))

    assert drafts
    assert none == []
    assert [each.location.line for each in omitted] == [1, 2, 3, 4]
    assert all("more than 2 pairs" in each.reason for each in omitted)


ECHOES = [
    pytest.param('# out 0 "" p/; s/# in', [1], id="what-comes-in-goes-out"),
    pytest.param("a/# both; b/# both", [], id="apart"),
    pytest.param("# out; s/# in", [], id="same-names"),
    pytest.param('a/# out 0 "" x/; x/# in 0 y/', [2], id="what-goes-out-comes-in"),
    pytest.param('a/# both 0 "" x/; x/# in 0 y/', [], id="the-first-takes-it-in"),
]


@pytest.mark.parametrize(("text", "locations"), ECHOES)
def test_an_echo_is_listed(text: str, locations: list[int]) -> None:
    drafts, _ = draft_routes(lines_of(text))

    assert [each.location.line for each in find_echoes(drafts)] == locations


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


def routes_send(name: str, drafts: list[RouteDraft], direction: Direction) -> list[str]:
    """Return the names at the other broker, by the routes of the configuration."""
    ends = {Direction.OUT: ("here", "there"), Direction.IN: ("there", "here")}
    found: list[str] = []
    for number, draft in enumerate(drafts):
        start, end = ends[Direction.IN if draft.direction is Direction.IN else Direction.OUT]
        both = draft.direction is Direction.BOTH
        targets = (TargetEntry(end, draft.target_template),)
        location = draft.lines[0].location
        entry = RouteEntry(
            f"r{number}", location, start, draft.source_pattern, targets, draft.exclude, both=both
        )
        for route in routes_of(entry, MQTT):
            levels = parse_subject(name, MQTT).levels
            if route.endpoint == ends[direction][0] and route.takes(levels):
                captures = route.source.capture(levels)
                found.append(route.targets[0].name_for(parse_subject(name, MQTT), captures))
    return found


@given(texts=st.lists(LINE, min_size=1, max_size=4), name=NAME)
def test_every_name_crosses_as_in_mosquitto_or_its_lines_are_listed(
    texts: list[str], name: str
) -> None:
    try:
        lines = [parse_topic(text, SourceLine("m", at)) for at, text in enumerate(texts)]
    except TopicError:
        return
    drafts, omitted = draft_routes(lines)
    undecided = any("under two names" in each.reason for each in omitted)
    for direction in (Direction.OUT, Direction.IN):
        try:
            sent = routes_send(name, drafts, direction)
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
    """Return whether `name` is the prefix of a line with the pattern `#`, which routes exclude."""
    inward = direction is Direction.IN
    return any(
        line.pattern == "#" and name == (line.remote if inward else line.local).removesuffix("/")
        for line in lines
    )


def test_a_route_keeps_the_lines_it_was_made_from() -> None:
    (draft, _), _ = draft_routes(lines_of("# out; cmd/# in"))

    assert [line.location.line for line in draft.lines] == [1, 2]
    assert replace(draft, direction=Direction.IN).source_pattern == "cmd/{rest...}"
