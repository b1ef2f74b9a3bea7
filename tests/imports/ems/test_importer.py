from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.base import parse_subject
from gateway.dialects.systems.ems import EMS
from gateway.endpoints.settings.jms import JmsSettings
from gateway.imports.document import Document, RouteEntry, render
from gateway.imports.ems import bridge_selection
from gateway.imports.ems.importer import import_ems
from tests.imports.imported import loaded, omitted, sample, settings_of

ALL = ("bridges.conf", "topics.conf", "transports.conf")


def bridges(text: str) -> Document:
    return import_ems([("bridges.conf", text.encode())])


def shape(entry: RouteEntry) -> tuple[str, tuple[str, ...]]:
    return entry.pattern, tuple(target.template for target in entry.targets)


def test_the_samples_become_a_configuration(tmp_path: Path) -> None:
    document = import_ems([sample(name) for name in ALL])

    configuration = loaded(document, tmp_path)

    assert [route.source.text for route in configuration.routes] == [
        "orders.new", "orders.new", "audit.>", "audit.>", "orders.*",
    ]  # fmt: skip
    selectors = [route.selector.text for route in configuration.routes if route.selector]
    assert selectors == ["urgency in ('medium', 'high')"]
    settings = settings_of(configuration, "ems", JmsSettings)
    assert (settings.client_id, settings.durable) == ("ems-bridge-ems", "gateway-{pattern}")
    assert list(configuration.endpoints) == ["ems"]


def test_a_route_names_its_targets_as_the_endpoint_does(tmp_path: Path) -> None:
    document = bridges("[topic:foo.*]\nqueue=Q.B\ntopic=C.B\n")
    (route,) = loaded(document, tmp_path).routes
    subject = parse_subject("foo.bar", EMS)

    names = [target.name_for(subject, {}) for target in route.targets]

    assert names == ["queue:Q.B", "C.B"]
    assert [target.label for target in route.targets] == ["ems", "ems:2"]
    assert document.omitted == ()


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
    pytest.param("[topic:A]\ntopic=B\n[topic:B]\ntopic=A\n", [("A", ("B",))], id="pair"),
    pytest.param(
        "[topic:queue:x]\ntopic=topic:y\n",
        [("topic:queue:x", ("topic:topic:y",))],
        id="like-prefix",
    ),
    pytest.param(
        '[topic:a.>]\nqueue=Q selector="x = 1"\ntopic=b selector="x = 1"\n',
        [("a.>", ("queue:Q", "b"))],
        id="two-targets-of-one-selector",
    ),
]


@pytest.mark.parametrize(("text", "expected"), ROUTES)
def test_bridges_become_routes(text: str, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    document = bridges(text)

    assert [shape(entry) for entry in document.routes] == expected
    assert document.omitted == ()


LEFT = [
    pytest.param(
        "[queue:Q.1]\ntopic=A\n",
        ["bridges.conf:1: bridge from queue 'Q.1'", "bridges.conf:2: bridge from queue 'Q.1'"],
        "removes them",
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
        "[topic:A]\ntopic=B\ntopic=B\n",
        ["bridges.conf:3: target topic 'B'"],
        "repeats a line above",
        id="twice",
    ),
    pytest.param(
        '[topic:A]\ntopic=B selector="x = ="\n',
        ["bridges.conf:2: target topic 'B'"],
        "selector: 'x = ='",
        id="selector",
    ),
    pytest.param(
        "[topic:A]\ntopic=B\n[topic:B]\ntopic=C\n",
        ["bridges.conf:2: target topic 'B'"],
        "bridges.conf:3 bridges this topic too",
        id="chain",
    ),
    pytest.param(
        "[topic:A]\ntopic=B\n[topic:B]\ntopic=A\n[topic:A.x]\nqueue=Q\n[topic:*]\nqueue=P\n",
        ["bridges.conf:2: target topic 'B'", "bridges.conf:3: target topic 'A'"],
        "bridges.conf:7 bridges this topic too",
        id="chain-of-a-pair",
    ),
    pytest.param(
        "[topic:a.>]\nqueue=Q\ntopic=a.all\n",
        ["bridges.conf:3: target topic 'a.all'"],
        "bridges.conf:1 bridges this topic too",
        id="chain-in-one-bridge",
    ),
    pytest.param(
        "[topic:Q.*]\nqueue=QX\n[topic:Q.1]\nqueue=QX\n",
        ["bridges.conf:4: target queue 'QX'"],
        "delivers two copies; the mapping delivers one",
        id="inside-another",
    ),
    pytest.param(
        "[topic:A]\ntopic=B selector=\"x = '${env:HOME}'\"\n",
        ["bridges.conf:2: target topic 'B'"],
        "would replace",
        id="reference-in-selector",
    ),
]


@pytest.mark.parametrize(("text", "locations", "reason"), LEFT)
def test_a_line_that_no_route_expresses_is_listed(
    text: str, locations: list[str], reason: str
) -> None:
    found = omitted(bridges(text))

    assert [each.partition(": not carried over; ")[0] for each in found] == locations
    assert all(reason in each for each in found)


def test_overlapping_bridges_of_one_target_become_one_copy_and_are_listed() -> None:
    """The guide's example of two copies, "Destination Bridges"; there with queues."""
    document = bridges("[topic:Q.1]\nqueue=QX\n[topic:Q.>]\nqueue=QX\ntopic=Y\n")

    assert [(entry.pattern, entry.exclude, shape(entry)[1]) for entry in document.routes] == [
        ("Q.1", (), ("queue:QX",)),
        ("Q.>", ("Q.1",), ("queue:QX",)),
        ("Q.>", (), ("Y",)),
    ]
    (line,) = omitted(document)
    assert line.startswith("bridges.conf:4: target queue 'QX': not carried over; bridges.conf:2")
    assert line.endswith("the server delivers two copies; the mapping delivers one")


def test_bridges_with_too_many_overlaps_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_selection, "MAX_OVERLAPS", 1)

    document = bridges("[topic:a.*]\nqueue=q\n[topic:*.b]\nqueue=q\n[topic:a.>]\nqueue=q\n")

    assert [each.pattern for each in document.routes] == ["a.*", "*.b"]
    assert [each.location.line for each in document.omitted] == [4, 6]
    assert "more than 1 pairs" in document.omitted[1].reason


def test_bridges_with_different_selectors_exclude_nothing() -> None:
    text = '[topic:a.*]\nqueue=Q selector="x = 1"\n[topic:a.>]\nqueue=Q selector="x = 2"\n'

    assert [entry.exclude for entry in bridges(text).routes] == [(), ()]


LOSSY = [
    pytest.param("[topic:a.b]\nqueue=Q\n", [False], id="one-name"),
    pytest.param("[topic:a.*]\nqueue=Q\n", [True], id="wildcard"),
    pytest.param("[topic:a]\nqueue=Q\n[topic:b]\nqueue=Q\n", [True, True], id="two-sources"),
    pytest.param("[topic:a]\nqueue=Q\n[topic:b]\ntopic=Q\n", [False, False], id="two-kinds"),
]


@pytest.mark.parametrize(("text", "expected"), LOSSY)
def test_a_target_of_many_names_is_lossy_and_has_a_note(text: str, expected: list[bool]) -> None:
    targets = [target for entry in bridges(text).routes for target in entry.targets]

    assert [target.lossy for target in targets] == expected
    assert [
        any("To keep them apart, use" in note for note in target.notes) for target in targets
    ] == expected


def test_topics_bridged_to_each_other_are_one_route_in_both_directions(tmp_path: Path) -> None:
    document = bridges("[topic:A]\ntopic=B\nqueue=Q\n[topic:B]\ntopic=A\n")

    routes = loaded(document, tmp_path).routes

    assert [(route.name, route.source.text, route.inverse) for route in routes] == [
        ("A", "A", "A.back"), ("A.back", "B", "A"), ("A-2", "A", ""),
    ]  # fmt: skip


def test_a_cycle_of_wildcard_bridges_is_listed_with_a_name_that_travels_it() -> None:
    found = omitted(bridges("[topic:x.*]\ntopic=y.all\n[topic:y.*]\ntopic=x.all\n"))

    assert any(each.startswith("bridges.conf:2: route 'x.each'") for each in found)
    assert any("and so on without end" in each for each in found)


OWN = [
    pytest.param("[topic:a.>]\ntopic=a.all\n", ("a.all",), id="topic"),
    pytest.param("[topic:>]\nqueue=all\n", ("queue:all",), id="queue"),
    pytest.param("[topic:a.>]\nqueue=a.all\n", (), id="another-kind"),
]


@pytest.mark.parametrize(("text", "exclude"), OWN)
def test_a_route_excludes_its_own_target(text: str, exclude: tuple[str, ...]) -> None:
    (entry,) = bridges(text).routes

    assert entry.exclude == exclude


def test_exchanged_topics_have_remarks_with_the_dialects_of_their_transports() -> None:
    document = import_ems([sample(name) for name in ALL])
    text = "\n".join(document.remarks)

    assert "'audit.>' to RV02 (tibrvcm), SS01 (tibss); dialect: [ems, rv, smartsockets]" in text
    assert "there it is '/audit/...'" in text
    assert "never exported again" in text
    assert any("RV01 (tibrv) as TIBEMS_NON_PERSISTENT" in n for n in document.routes[0].notes)


TIES = [
    pytest.param('a import="NO"', "no transport 'NO' is known", id="unknown-transport"),
    pytest.param(f'{"x" * 127}.{"y" * 127} import="RV"', "", id="too-long"),
    pytest.param('a..b import="RV"', "empty", id="illegal"),
    pytest.param('a.... import="SS"', "empty", id="dots"),
]


@pytest.mark.parametrize(("line", "reason"), TIES)
def test_a_name_that_is_illegal_on_one_side_is_listed(line: str, reason: str) -> None:
    transports = b"[RV]\ntype=tibrv\n[SS]\ntype=tibss\n"
    document = import_ems([("topics.conf", line.encode()), ("transports.conf", transports)])

    (found,) = omitted(document)
    assert found.startswith("topics.conf:1: topic ")
    assert reason in found


def test_other_properties_stay_at_the_server_and_no_password_is_repeated() -> None:
    document = import_ems([sample(name) for name in ALL])

    assert "topics.conf:1: property 'global' of topic 'orders.new': stays where it is" in "\n".join(
        omitted(document)
    )
    assert "hunter2" not in render(document) + "\n".join(omitted(document))


NAMES = st.text(st.sampled_from("ab.*>{}:#$é\u2028\"' \t"), min_size=1, max_size=8)


@given(source=NAMES, target=NAMES, selector=st.text(st.sampled_from("a='\\#\u0085é\t"), max_size=6))
def test_the_mapping_of_any_names_loads(
    tmp_path_factory: pytest.TempPathFactory, source: str, target: str, selector: str
) -> None:
    document = bridges(f'[topic:{source}]\nqueue={target} selector="{selector}"\n')

    if document.routes:
        configuration = loaded(document, tmp_path_factory.mktemp("ems"))
        assert len(configuration.routes) == len(document.routes)
    else:
        assert document.omitted


def test_two_sections_of_one_source_are_one_bridge() -> None:
    text = b"[topic:A]\ntopic=B\n[topic:C]\ntopic=D\n[topic:A]\ntopic=E\ntopic=B\n"

    document = import_ems([("bridges.conf", text)])

    assert [(each.pattern, [t.template for t in each.targets]) for each in document.routes] == [
        ("A", ["B", "E"]),
        ("C", ["D"]),
    ]
    assert [str(each) for each in document.omitted] == [
        "bridges.conf:7: target topic 'B': not carried over; it repeats a line above it"
    ]
