from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import GatewayError
from gateway.imports.ems.config_files import (
    kind_of,
    parse_bridges,
    parse_topics,
    parse_transports,
)
from gateway.imports.ems.importer import import_ems
from gateway.imports.source_lines import read_ems

BRIDGES = [
    pytest.param("queue=Q.B", ("queue", "Q.B", ""), id="queue"),
    pytest.param("Topic = C.B", ("topic", "C.B", ""), id="blanks-and-case"),
    pytest.param(
        "topic=C.B selector=\"urgency in ('medium', 'high')\"",
        ("topic", "C.B", "urgency in ('medium', 'high')"),
        id="selector",
    ),
    pytest.param(
        "queue=Q selector=((a = 1) OR (b in('x')))",
        ("queue", "Q", "((a = 1) OR (b in('x')))"),
        id="parentheses-without-quotes",
    ),
    pytest.param('topic="C B"', ("topic", "C B", ""), id="quoted-name"),
    pytest.param(
        "queue=Q selector=\"a = '#' \" # why", ("queue", "Q", "a = '#'"), id="hash-in-selector"
    ),
]


@pytest.mark.parametrize(("text", "expected"), BRIDGES)
def test_a_target_is_read(text: str, expected: tuple[str, str, str]) -> None:
    (bridge,), omitted = parse_bridges(read_ems("f", f"[topic:A.*]\n{text}\n".encode()))

    assert (bridge.kind, bridge.name) == ("topic", "A.*")
    assert [(each.kind, each.name, each.selector) for each in bridge.targets] == [expected]
    assert omitted == []


WRONG_BRIDGES = [
    pytest.param("queue=Q\n", ["f:1: this line"], id="no-heading"),
    pytest.param("[topic:A\nqueue=Q\n", ["f:1: this heading", "f:2: this line"], id="open-bracket"),
    pytest.param(
        "[stream:A]\nqueue=Q\n", ["f:1: this heading", "f:2: this line"], id="unknown-kind"
    ),
    pytest.param("[]\n", ["f:1: this heading"], id="empty-heading"),
    pytest.param("[topic:A]\nstream=Q\n", ["f:2: this line"], id="unknown-target"),
    pytest.param('[topic:A]\ntopic=B selector="x\n', ["f:2: this line"], id="open-quote"),
    pytest.param("[topic:A]\ntopic=B C\n", ["f:2: this line"], id="two-names"),
]


@pytest.mark.parametrize(("text", "expected"), WRONG_BRIDGES)
def test_a_line_that_is_not_a_bridge_is_listed(text: str, expected: list[str]) -> None:
    _, omitted = parse_bridges(read_ems("f", text.encode()))

    assert [str(each).partition(": not carried over")[0] for each in omitted] == expected


TOPICS = [
    pytest.param("a.b", ("a.b", (), (), ()), id="bare"),
    pytest.param(
        'business.inventory global, import="RV01,RV02", export="RV03",\nmaxbytes=1MB',
        ("business.inventory", ("RV01", "RV02"), ("RV03",), ("global", "maxbytes")),
        id="list-goes-on",
    ),
    pytest.param("a.> import=RV01, trace=body", ("a.>", ("RV01",), (), ("trace",)), id="unquoted"),
    pytest.param("[j1, j2] a secure", ("a", (), (), ("secure",)), id="jndi-names"),
    pytest.param('a import="X , Y"', ("a", ("X", "Y"), (), ()), id="blanks-in-list"),
]


@pytest.mark.parametrize(("text", "expected"), TOPICS)
def test_a_topic_is_read(text: str, expected: tuple[object, ...]) -> None:
    (topic,), omitted = parse_topics(read_ems("f", text.encode(), comma_joins=True))

    assert (topic.name, topic.imports, topic.exports, topic.properties) == expected
    assert omitted == []


@pytest.mark.parametrize("text", ['a import="RV01', "[j1 a", '"'])
def test_a_line_that_is_not_a_topic_is_listed(text: str) -> None:
    topics, omitted = parse_topics(read_ems("f", text.encode()))

    assert topics == ()
    assert [each.location.line for each in omitted] == [1]


def test_a_transport_is_read_without_the_values_of_its_options() -> None:
    text = (
        "[SS01] # here\ntype = TIBSS # there\npassword = hunter2\ntopic_import_dm=tibems_reliable"
    )
    (transport,), omitted = parse_transports(read_ems("f", text.encode()))

    assert (transport.name, transport.type, transport.topic_mode) == (
        "SS01", "tibss", "TIBEMS_RELIABLE",
    )  # fmt: skip
    assert "hunter2" not in repr(transport)
    assert omitted == []


def test_a_transport_of_an_unknown_type_is_listed() -> None:
    _, omitted = parse_transports(read_ems("f", b"[T]\ntype = tibftl\nwhat\n"))

    assert [str(each) for each in omitted] == [
        "f:3: this line: not carried over; it does not read NAME = VALUE",
        "f:1: transport 'T': not carried over; its type is none of tibrv, tibrvcm, tibss",
    ]


KINDS = [
    pytest.param("bridges.conf", "", "bridges", id="bridges"),
    pytest.param("prod-topics.conf", "", "topics", id="topics"),
    pytest.param("TRANSPORTS.CONF", "", "transports", id="transports"),
    pytest.param("a.conf", "[topic:A]\nqueue=Q\n", "bridges", id="says-bridges"),
    pytest.param("a.conf", "[RV]\ntype = tibrv\n", "transports", id="says-transports"),
    pytest.param("a.conf", 'a.b import="RV"\n', "topics", id="says-topics"),
    pytest.param("a.conf", "hello\n", None, id="says-nothing"),
]


@pytest.mark.parametrize(("name", "text", "expected"), KINDS)
def test_a_file_is_recognised_by_name_or_content(
    name: str, text: str, expected: str | None
) -> None:
    assert kind_of(name, read_ems(name, text.encode())) == expected


def test_a_file_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(GatewayError) as caught:
        import_ems([("x", b"hello")])

    assert str(caught.value).startswith(
        "x: is none of bridges.conf, topics.conf and transports.conf, no tibemsd.json and no script"
    )


def test_several_files_of_one_kind_are_read_together() -> None:
    files = [
        ("a/bridges.conf", b"[topic:A]\ntopic=B\n"),
        ("b/bridges.conf", b"[topic:A]\ntopic=C\n"),
    ]

    (route,) = import_ems(files).routes

    assert [each.template for each in route.targets] == ["B", "C"]


WORDS = st.sampled_from(
    ["[", "]", "topic", "queue", ":", "=", '"', "A.B", "selector", " ", "\n", ",", "import", "\\"]
)


@given(words=st.lists(WORDS, max_size=40))
def test_no_file_makes_the_parsers_raise(words: list[str]) -> None:
    parsed = read_ems("f", "".join(words).encode())

    for parse in (parse_bridges, parse_topics, parse_transports):
        _, omitted = parse(parsed)
        assert all(each.location.file == "f" for each in omitted)
