from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.base import parse_subject
from gateway.dialects.ems import EMS
from gateway.endpoints.jms_settings import JmsSettings
from gateway.imports.document import Document, Rule, render
from gateway.imports.ems import import_ems
from tests.imports.reading import left, loaded, sample, settings_of

ALL = ("bridges.conf", "topics.conf", "transports.conf")


def bridges(text: str) -> Document:
    return import_ems([("bridges.conf", text.encode())])


def shape(rule: Rule) -> tuple[str, tuple[str, ...]]:
    return rule.pattern, tuple(send.template for send in rule.sends)


def test_the_samples_become_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = import_ems([sample(name) for name in ALL])

    configuration = loaded(document, tmp_path, monkeypatch)

    assert [route.source.text for route in configuration.routes] == [
        "orders.new", "orders.new", "audit.>", "audit.>", "orders.*",
    ]  # fmt: skip
    plain, selecting = (
        settings_of(configuration, name, JmsSettings) for name in ("ems", "ems-selector-1")
    )
    assert (plain.selector, selecting.selector) == ("", "urgency in ('medium', 'high')")
    assert (plain.client_id, selecting.client_id) == ("gateway-ems", "gateway-ems-selector-1")
    assert plain.durable == selecting.durable == "gateway-{pattern}"


def test_a_route_names_its_targets_as_the_endpoint_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = bridges("[topic:foo.*]\nqueue=Q.B\ntopic=C.B\n")
    (route,) = loaded(document, tmp_path, monkeypatch).routes
    subject = parse_subject("foo.bar", EMS)

    names = [target.name_for(subject, {}) for target in route.targets]

    assert names == ["queue:Q.B", "C.B"]
    assert [target.label for target in route.targets] == ["ems", "ems:2"]
    assert document.left == ()


ROUTES = [
    pytest.param(
        "[topic:A.B]\nqueue=Q.B\ntopic=C.B\n", [("A.B", ("queue:Q.B", "C.B"))], id="two-targets"
    ),
    pytest.param(
        '[topic:A.B]\nqueue=Q.B selector="x = 1"\ntopic=C.B selector="x = 1"\ntopic=D\n',
        [("A.B", ("queue:Q.B", "C.B")), ("A.B", ("D",))],
        id="one-route-a-selector",
    ),
    pytest.param("[topic:>]\nqueue=all\n", [(">", ("queue:all",))], id="everything"),
    pytest.param(
        "[topic:queue:x]\ntopic=topic:y\n",
        [("topic:queue:x", ("topic:topic:y",))],
        id="like-prefix",
    ),
    pytest.param(
        "[topic:a.>]\nqueue=Q\ntopic=a.all\n",
        [("a.>", ("queue:Q",)), ("a.>", ("a.all",))],
        id="own-target-apart",
    ),
]


@pytest.mark.parametrize(("text", "expected"), ROUTES)
def test_bridges_become_routes(text: str, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    document = bridges(text)

    assert [shape(rule) for rule in document.rules] == expected
    assert document.left == ()


LEFT = [
    pytest.param(
        "[queue:Q.1]\ntopic=A\n",
        ["bridges.conf:1: bridge from queue 'Q.1'", "bridges.conf:2: bridge from queue 'Q.1'"],
        "takes it away",
        id="queue-source",
    ),
    pytest.param(
        "[topic:A]\ntopic=B.*\n", ["bridges.conf:2: target topic 'B.*'"], "'*'", id="wild-target"
    ),
    pytest.param(
        "[topic:A]\ntopic=B..C\n", ["bridges.conf:2: target topic 'B..C'"], "empty", id="illegal"
    ),
    pytest.param(
        "[topic:a.{b}.c]\ntopic=B\n",
        [
            "bridges.conf:1: bridge from topic 'a.{b}.c'",
            "bridges.conf:2: bridge from topic 'a.{b}.c'",
        ],
        "has a brace",
        id="source-like-a-capture",
    ),
    pytest.param(
        "[topic:a.*]\ntopic=b.{1}\n",
        ["bridges.conf:2: target topic 'b.{1}'"],
        "has a brace",
        id="target-like-a-capture",
    ),
    pytest.param(
        "[topic:A]\ntopic=A\n", ["bridges.conf:2: target topic 'A'"], "own source", id="itself"
    ),
    pytest.param(
        "[topic:A]\ntopic=B\ntopic=B\n", ["bridges.conf:3: target topic 'B'"], "above", id="twice"
    ),
    pytest.param(
        "[topic:A]\ntopic=B\n[topic:A]\ntopic=C\n",
        ["bridges.conf:3: bridge from topic 'A'", "bridges.conf:4: bridge from topic 'A'"],
        "refuses a second",
        id="two-headings",
    ),
    pytest.param(
        "[topic:A]\ntopic=B selector=\"x = '${env:HOME}'\"\n",
        ["bridges.conf:2: target topic 'B'"],
        "would replace",
        id="reference-in-selector",
    ),
]


@pytest.mark.parametrize(("text", "places", "reason"), LEFT)
def test_what_no_route_says_is_left_with_its_reason(
    text: str, places: list[str], reason: str
) -> None:
    found = left(bridges(text))

    assert [each.partition(": not carried over; ")[0] for each in found] == places
    assert all(reason in each for each in found)


def test_overlapping_bridges_and_chains_are_told() -> None:
    document = bridges(
        "[topic:Q.1]\nqueue=QX\ntopic=Q.2\n[topic:Q.>]\nqueue=QX\n[topic:Z]\nqueue=QX\n"
    )
    one, many, other = document.rules

    assert any("Q.>" in note or "bridges.conf:4 bridges" in note for note in one.sends[1].notes)
    (note,) = [note for note in many.notes if "overlaps" in note]
    assert note.startswith("bridges.conf:5: overlaps with the route 'Q.1': queue 'QX' gets two")
    assert not [note for note in other.notes if "overlaps" in note]
    assert any("not transitive" in note for note in document.notes)


def test_a_pattern_that_loses_its_names_is_told() -> None:
    plain, wild = bridges("[topic:a.b]\nqueue=Q\n[topic:c.*]\nqueue=P\n").rules

    assert [any("Many names become one" in n for n in r.notes) for r in (plain, wild)] == [
        False, True,
    ]  # fmt: skip


def test_a_route_leaves_out_its_own_target() -> None:
    (rule,) = bridges("[topic:a.>]\ntopic=a.all\n").rules

    assert rule.exclude == ("a.all",)


def test_ties_are_told_with_the_dialects_of_their_transports() -> None:
    document = import_ems([sample(name) for name in ALL])
    text = "\n".join(document.remarks)

    assert "'audit.>' to RV02 (tibrvcm), SS01 (tibss); dialect: [ems, rv, smartsockets]" in text
    assert "there it is '/audit/...'" in text
    assert "never exported again" in text
    assert any("RV01 (tibrv) as TIBEMS_NON_PERSISTENT" in n for n in document.rules[0].notes)


TIES = [
    pytest.param('a import="NO"', "no transport 'NO' is known", id="unknown-transport"),
    pytest.param(f'{"x" * 127}.{"y" * 127} import="RV"', "", id="too-long"),
    pytest.param('a..b import="RV"', "empty", id="illegal"),
    pytest.param('a.... import="SS"', "empty", id="dots"),
]


@pytest.mark.parametrize(("line", "reason"), TIES)
def test_a_tie_that_one_side_cannot_keep_is_left(line: str, reason: str) -> None:
    transports = b"[RV]\ntype=tibrv\n[SS]\ntype=tibss\n"
    document = import_ems([("topics.conf", line.encode()), ("transports.conf", transports)])

    (found,) = left(document)
    assert found.startswith("topics.conf:1: topic ")
    assert reason in found


def test_properties_of_the_server_stay_there_and_no_password_is_repeated() -> None:
    document = import_ems([sample(name) for name in ALL])

    assert "topics.conf:1: property 'global' of topic 'orders.new': stays where it is" in "\n".join(
        left(document)
    )
    assert "hunter2" not in render(document) + "\n".join(left(document))


NAMES = st.text(st.sampled_from("ab.*>{}:#$é\u2028\"' \t"), min_size=1, max_size=8)


@given(source=NAMES, target=NAMES, selector=st.text(st.sampled_from("a='\\#\u0085é\t"), max_size=6))
def test_whatever_the_names_the_mapping_loads(
    tmp_path_factory: pytest.TempPathFactory, source: str, target: str, selector: str
) -> None:
    document = bridges(f'[topic:{source}]\nqueue={target} selector="{selector}"\n')

    with pytest.MonkeyPatch.context() as patch:
        if document.rules:
            configuration = loaded(document, tmp_path_factory.mktemp("ems"), patch)
            assert len(configuration.routes) == len(document.rules)
        else:
            assert document.left
