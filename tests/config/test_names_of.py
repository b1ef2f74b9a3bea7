"""The name at the source in the copies of a target, and routes over such names, in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.result_copies import copies
from gateway.config.load import Configuration, load
from gateway.errors import ConfigErrors
from gateway.model.message import Headers, Message

ENDPOINTS = """\
endpoints:
  plant: {kind: mqtt, host: localhost}
  plant2: {kind: mqtt, host: localhost, port: 1884}
  lake: {kind: kafka, servers: ["localhost:9092"], group_id: g}
  mill: {kind: kafka, servers: ["localhost:9093"]}
"""
OUT = """\
  out:
    from: {endpoint: plant, pattern: "plant/{line}/{rest...}"}
    to: {endpoint: lake, topic: plant, key: "{line}", lossy: true}
"""
NAME = "plant/7/motor/temp.max"


def configuration(folder: Path, routes: str, endpoints: str = ENDPOINTS) -> Configuration:
    file = folder / "gateway.yaml"
    file.write_text(f"{endpoints}routes:\n{routes}")
    return load(file)


def faults(folder: Path, routes: str) -> list[tuple[str, int, str, str]]:
    """Return the rule, the line of the routes, the reason and the hint of each finding."""
    with pytest.raises(ConfigErrors) as caught:
        configuration(folder, routes)
    above = ENDPOINTS.count("\n") + 1
    return [
        (each.rule, each.line - above, each.reason, each.hint) for each in caught.value.findings
    ]


def made(found: Configuration, message: Message, endpoint: str) -> list[tuple[str, object]]:
    """Return address and carried name of each copy of a message at an endpoint."""
    routes = [each for each in found.routes if each.endpoint == endpoint]
    messages = [each.message for each in copies(routes, message, found)]
    return [
        (each.address, each.headers.properties.get("gateway_name")) for each in messages if each
    ]


@pytest.mark.parametrize("claimed", [{}, {"gateway_name": "plant/9/forged"}])
def test_a_copy_in_kafka_carries_the_name_at_its_source(
    tmp_path: Path, claimed: dict[str, str]
) -> None:
    found = configuration(tmp_path, OUT)
    message = Message(NAME, b"", Headers(properties=claimed))

    assert made(found, message, "plant") == [("plant:7", NAME)]


def test_other_copies_carry_no_name(tmp_path: Path) -> None:
    found = configuration(
        tmp_path, "  r: {from: {endpoint: plant, pattern: a}, to: {endpoint: plant2}}\n"
    )

    assert made(found, Message("a", b""), "plant") == [("a", None)]


def test_the_way_back_of_a_route_in_both_directions_carries_the_name(tmp_path: Path) -> None:
    routes = """\
  r:
    from: {endpoint: lake, topic: "a.{x}", key: "{k}"}
    to: {endpoint: plant, template: "{x}/{k}"}
    direction: both
"""
    found = configuration(tmp_path, routes)

    assert made(found, Message("1/2", b""), "plant") == [("a.1:2", "1/2")]


@pytest.mark.parametrize(
    "rule", ["set: {gateway_name: x}", "rename: {a: gateway_name}", "map: {gateway_name: {a: b}}"]
)
def test_no_rule_writes_the_name_at_the_source(tmp_path: Path, rule: str) -> None:
    routes = f"""\
  r:
    from: {{endpoint: plant, pattern: "a"}}
    to: {{endpoint: lake, topic: a, headers: {{{rule}}}}}
"""
    (found,) = faults(tmp_path, routes)

    assert found[:2] == ("headers", 3)
    assert "which the gateway writes itself" in found[2]


BACK = """\
  back:
    from: {endpoint: lake, names_of: out}
    to: {endpoint: plant2, template: "back/{line}/{rest...}"}
"""


def copied(name: str, claimed: object) -> Message:
    return Message(name, b"", Headers(properties={"gateway_name": claimed}))  # type: ignore[dict-item]


def test_a_proven_name_comes_back_with_the_captures_of_its_route(tmp_path: Path) -> None:
    found = configuration(tmp_path, BACK + OUT)  # in any order

    assert made(found, copied("plant:7", NAME), "lake") == [("back/7/motor/temp.max", None)]


def test_without_a_template_the_name_itself_comes_back(tmp_path: Path) -> None:
    back = "  back: {from: {endpoint: lake, names_of: out}, to: {endpoint: plant2}}\n"
    found = configuration(tmp_path, OUT + back)

    assert made(found, copied("plant:7", NAME), "lake") == [(NAME, None)]


FORGED = [
    pytest.param("plant:7", "plant/8/motor", id="another-key"),
    pytest.param("plant", NAME, id="no-key"),
    pytest.param("plant:7:", NAME, id="longer-key"),
    pytest.param("plants:7", NAME, id="another-topic"),
    pytest.param("plant:7", "other/7/motor", id="outside-the-pattern"),
    pytest.param("plant:7", "plant/7/secret", id="excluded"),
    pytest.param("plant:7", "plant/7/#", id="no-name"),
    pytest.param("plant:7", "", id="empty"),
    pytest.param("plant:7", "plant/7/" + "x" * 70_000, id="too-long"),
    pytest.param("plant:7", [NAME, NAME], id="repeated"),
    pytest.param("plant:7", NAME.encode(), id="bytes"),
    pytest.param("plant:7", None, id="null"),
    pytest.param("plant:7", 7, id="number"),
    pytest.param("plant:7", "plant/7/\ud800", id="surrogate"),
    pytest.param("plant:x", "plant/x/a", id="not-allowed"),
    pytest.param("plant:7", "plant.7.motor", id="name-of-another-system"),
]


@pytest.mark.parametrize(("name", "claimed"), FORGED)
def test_a_name_that_the_route_does_not_make_is_not_believed(
    tmp_path: Path, name: str, claimed: object
) -> None:
    endpoints = ENDPOINTS.replace("group_id: g", 'group_id: g, allow: ["plant:7"]')
    out = OUT.replace('{rest...}"}', '{rest...}", exclude: ["plant/+/secret"]}')
    found = configuration(tmp_path, out + BACK, endpoints)

    assert made(found, copied("plant:7", "plant/7/x"), "lake") == [("back/7/x", None)]
    assert made(found, copied(name, claimed), "lake") == []


def test_another_message_goes_by_routes_with_topic_and_key(tmp_path: Path) -> None:
    plain = """\
  plain:
    from: {endpoint: lake, topic: plant, key: "{key...}"}
    to: {endpoint: plant, template: "unnamed/{key...}"}
"""
    found = configuration(tmp_path, OUT + BACK + plain)

    assert made(found, copied("plant:7", "forged"), "lake") == [("unnamed/7", "forged")]
    assert made(found, copied("plant:7", NAME), "lake") == [
        ("back/7/motor/temp.max", None),
        ("unnamed/7", NAME),
    ]


def test_a_name_crosses_a_second_cluster(tmp_path: Path) -> None:
    more = """\
  on:
    from: {endpoint: lake, names_of: out}
    to: {endpoint: mill, topic: all, key: "{line}", lossy: true}
  home:
    from: {endpoint: mill, names_of: on}
    to: {endpoint: plant2, template: "home/{line}/{rest...}"}
"""
    found = configuration(tmp_path, OUT + more)

    assert made(found, copied("plant:7", NAME), "lake") == [("all:7", NAME)]
    assert made(found, copied("all:7", NAME), "mill") == [("home/7/motor/temp.max", None)]
    assert made(found, copied("all:8", NAME), "mill") == []


@pytest.mark.parametrize(
    ("pattern", "topic", "expected"),
    [
        ("plant/{line}/{rest...}", "plant", ["plant"]),
        ("plant/{line}/{rest...}", "plant.{line}", ["plant.*"]),
        ("plant/{line}/{rest...}", "p-{line}-x.y", ["*.y"]),
        ("plant/{rest...}", "plant.{rest...}", ["plant", "plant.>"]),
        ("{rest...}", "{rest...}", [">"]),
        ("plant/{line}/{rest...}", "plant.{rest...|lower}.{line}", ["plant", "plant.>"]),
        ("plant/{line}/{rest...}", "a_b.{line|lower}", ["a_b.*"]),
        ("plant/+/{rest...}", "a", ["a"]),
    ],
)
def test_the_subscription_is_all_that_the_route_writes(
    tmp_path: Path, pattern: str, topic: str, expected: list[str]
) -> None:
    out = f"""\
  out:
    from: {{endpoint: plant, pattern: "{pattern}"}}
    to: {{endpoint: lake, topic: "{topic}", key: k, lossy: true}}
"""
    back = "  back: {from: {endpoint: lake, names_of: out}, to: {endpoint: plant2}}\n"
    found = configuration(tmp_path, out + back)

    assert [each.source.subscription for each in found.routes if each.name == "back"] == expected


TO = "to: {endpoint: plant2}"
FAULTS = [
    pytest.param("", "names_of: owt", "no route 'owt'", "did you mean 'out'?", id="unknown"),
    pytest.param("", "names_of: back", "in a circle", "a `pattern`", id="circle"),
    pytest.param(
        "", "names_of: aside", "route 'aside' has no target 'lake'", "a route to it", id="elsewhere"
    ),
    pytest.param(
        "", "names_of: out, pattern: a", "`pattern` stands beside `names_of`", "leave it out",
        id="pattern",
    ),
    pytest.param(
        "", "names_of: out, topic: a", "`topic` stands beside", "leave it out", id="topic"
    ),
    pytest.param("", "names_of: out, key: a", "`key` stands beside", "leave it out", id="key"),
    pytest.param(
        "", "names_of: out, exclude: [a]", "`exclude` stands beside", "leave it out", id="exclude"
    ),
    pytest.param(
        "", "names_of: out, tags: {mode: first}", "`tags` stands beside", "leave it out", id="tags"
    ),
    pytest.param(
        """\
  several:
    from: [{endpoint: plant, pattern: a}, {endpoint: plant2, pattern: a}]
    to: {endpoint: lake, topic: a}
""",
        "names_of: several", "has 2 sources", "a route for each", id="sources",
    ),
    pytest.param(
        """\
  field:
    from: {endpoint: plant, pattern: a}
    to: {endpoint: lake, topic: "{property.x}"}
""",
        "names_of: field", "makes names of {property.x}", "a `pattern`", id="field",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("more", "source", "reason", "hint"), FAULTS)
def test_a_source_that_cannot_take_the_names_is_reported(
    tmp_path: Path, more: str, source: str, reason: str, hint: str
) -> None:
    routes = f"""\
{OUT.replace("lossy: true", "lossy: true")}  aside: {{from: {{endpoint: plant, pattern: b}}, {TO}}}
{more}  back:
    from: {{endpoint: lake, {source}}}
    {TO}
"""
    endpoints = ENDPOINTS.replace("group_id: g", 'group_id: g, allow: [">"]')
    with pytest.raises(ConfigErrors) as caught:
        configuration(tmp_path, routes, endpoints)
    found = [each for each in caught.value.findings if each.rule == "names-of"]

    assert len(found) == 1
    assert reason in found[0].reason
    assert hint in found[0].hint
    assert (
        found[0].line
        == (endpoints + "routes:\n" + routes)
        .split("\n")
        .index(f"    from: {{endpoint: lake, {source}}}")
        + 1
    )
    assert found[0].column > 1


OTHERS = [
    pytest.param(
        BACK.replace("to:", "direction: both\n    to:"), "leads one way",  id="both"
    ),
    pytest.param(
        BACK.replace("to:", "heartbeat: plant/7/beat\n    to:"), "no route wrote the heartbeat",
        id="heartbeat",
    ),
    pytest.param(
        BACK.replace("{line}/", "{lines}/"), "lines",  id="capture"
    ),
    pytest.param(
        BACK + """\
  short:
    from: {endpoint: plant2, pattern: "x/#"}
    to: {endpoint: plant, on_too_long: shorten}
""",
        "may be short ones",  id="short",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("back", "reason"), OTHERS)
def test_settings_beside_the_names_are_reported(tmp_path: Path, back: str, reason: str) -> None:
    (found,) = faults(tmp_path, OUT + back)

    assert reason in found[2]


def test_names_in_headers_leave_nothing_to_prove(tmp_path: Path) -> None:
    endpoints = ENDPOINTS.replace("group_id: g", "named_by: header")
    with pytest.raises(ConfigErrors, match="have the names in their headers already"):
        configuration(tmp_path, OUT + BACK, endpoints)


def test_a_kind_whose_copies_have_no_name_is_reported(tmp_path: Path) -> None:
    routes = """\
  out: {from: {endpoint: plant, pattern: "a/{x}"}, to: {endpoint: plant2, template: "b/{x}"}}
  back: {from: {endpoint: plant2, names_of: out}, to: {endpoint: lake, topic: "{x}"}}
"""
    (found,) = faults(tmp_path, routes)

    assert found[:2] == ("names-of", 2)
    assert "do not carry the name at their source" in found[2]


def test_faults_of_both_routes_are_reported_once(tmp_path: Path) -> None:
    found = faults(tmp_path, OUT.replace('{line}",', '{lines}",') + BACK.replace("}/{", "}{"))

    assert [each[1] for each in found] == [3, 6]
