from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.config.load import load
from gateway.dialects.registry import DIALECTS
from gateway.routing.route import Route
from gateway.routing.source_pattern import parse_source
from gateway.web.application import WebApplication
from gateway.web.exchange import HttpError, HttpRequest
from gateway.web.lookup import look_up, propose_route
from tests.web.status_samples import LOCAL, FakeStatus, status

CONFIG = """\
endpoints:
  plant: {kind: memory, dialect: mqtt}
  office: {kind: memory, dialect: ems, broker: b}
routes:
  there:
    from:
      endpoint: plant
      pattern: "line/{line}/{rest...}"
      exclude: ["line/test/#"]
      selector: "amount > 100"
    to: {endpoint: office, template: "LINE.{line}.{rest...}"}
  back:
    from: {endpoint: office, pattern: "LINE.{rest...}"}
    to: {endpoint: plant, template: "seen/{rest...}"}
"""


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Route]:
    file: Path = tmp_path_factory.mktemp("lookup") / "gateway.yaml"
    file.write_text(CONFIG)
    return load(file).routes


def looked_up(text: str, system: str, kind: str, routes: Sequence[Route]) -> Any:  # noqa: ANN401  # JSON
    return look_up(text, system, kind, routes)


def test_a_name_is_translated_to_its_target_and_back(routes: Sequence[Route]) -> None:
    found = looked_up("line/7/v1.2", "mqtt", "name", routes)

    (taken,) = found["routes"]
    (made,) = taken["made"]
    assert (taken["route"], taken["captures"]) == ("there", (("line", "7"), ("rest", "v1.2")))
    assert taken["selector"] == "amount > 100"
    assert (made["target"], made["name"]) == ("office", "LINE.7.v1%2E2")
    assert [back["name"] for back in made["back"]] == ["seen/7/v1.2"]
    names = {each["system"]: each.get("names") for each in found["elsewhere"]}
    assert names.keys() == DIALECTS.keys() - {"mqtt"}
    assert names["ems"] == ("line.7.v1%2E2",)
    assert names["smf"] == ("line/7/v1.2",)
    assert names["smartsockets"] == ("/line/7/v1%2E2",)


def test_a_refusal_names_the_rule_of_each_system(routes: Sequence[Route]) -> None:
    found = looked_up("line/" + "x" * 300, "mqtt", "name", routes)

    refused = {each["system"]: each["rule"] for each in found["elsewhere"] if "refused" in each}
    assert {"ems", "rv", "smf"} <= refused.keys()
    assert found["used"] == [{"unit": "bytes", "actual": 305, "maximum": 65_535, "why": ""}]


@pytest.mark.parametrize(
    ("text", "kind", "system"),
    [
        pytest.param("line/7/a", "name", "mqtt", id="the first route takes it"),
        pytest.param("LINE.7", "name", "ems", id="a later route takes it"),
        pytest.param("LINE.a.*", "pattern", "ems", id="a later route shares its names"),
        pytest.param("line/#", "pattern", "mqtt", id="the first route shares its names"),
        pytest.param("other.7.a", "name", "ems", id="no route: it has the separator"),
        pytest.param("other", "name", "mqtt", id="no route and no separator: the first one"),
    ],
)
def test_without_a_system_a_text_is_of_the_system_of_its_route(
    text: str, kind: str, system: str, routes: Sequence[Route]
) -> None:
    assert looked_up(text, "", kind, routes)["system"] == system


def test_without_routes_a_text_is_of_the_system_whose_separator_it_has() -> None:
    assert looked_up("a/b", "", "name", [])["system"] == "mqtt"
    assert looked_up("a.b", "", "name", [])["system"] == "ems"


@pytest.mark.parametrize(
    ("text", "system", "hint"),
    [
        ("line/7/a", "mqtt", ""),
        ("line.7.a", "mqtt", "did you mean 'line/7/a', with the separator of its system?"),
        ("LINE/7", "", "did you mean 'LINE.7', with the separator of its system?"),
        ("line//7", "ems", "route 'there' takes it as a name of mqtt"),
        ("LINE..7", "ems", ""),
        ("other/7", "mqtt", ""),
    ],
)
def test_a_name_that_no_route_takes_gets_a_hint(
    text: str, system: str, hint: str, routes: Sequence[Route]
) -> None:
    assert looked_up(text, system, "name", routes)["hint"] == hint


@pytest.mark.parametrize(
    ("text", "system", "expected"),
    [
        pytest.param("line/#", "mqtt", [("there", False)], id="wider than the route"),
        pytest.param("line/1/a", "mqtt", [("there", False)], id="the route has exclusions"),
        pytest.param("LINE.a.*", "ems", [("back", True)], id="covered by the route"),
        pytest.param("other/#", "mqtt", [], id="nothing in common"),
        pytest.param("line/test/#", "mqtt", [], id="excluded completely"),
    ],
)
def test_a_pattern_shows_the_routes_that_select_a_part_of_it(
    text: str, system: str, expected: list[tuple[str, bool]], routes: Sequence[Route]
) -> None:
    found = looked_up(text, system, "pattern", routes)

    assert [(each["route"], each["whole"]) for each in found["routes"]] == expected
    for each in found["routes"]:
        assert each["made"][0]["name"]
        assert each["selector"] == ("amount > 100" if each["route"] == "there" else "")


def test_a_route_that_does_not_take_a_name_says_why(routes: Sequence[Route]) -> None:
    found = looked_up("line/test/1", "mqtt", "name", routes)
    assert found["routes"] == []
    assert found["not_taken"] == [
        {
            "route": "there",
            "endpoint": "plant",
            "pattern": "line/{line}/{rest...}",
            "why_not": "excluded by 'line/test/#'",
        }
    ]
    assert looked_up("line/7/a", "mqtt", "name", routes)["not_taken"] == []
    (other,) = looked_up("Line/7", "mqtt", "name", routes)["not_taken"]
    assert "differs in case" in other["why_not"]


def test_the_routes_that_exclude_a_name_come_before_those_of_other_names(
    routes: Sequence[Route],
) -> None:
    there = routes[0]
    source = parse_source("other/#", there.dialect)
    many = [*(replace(there, name=f"other-{n}", source=source) for n in range(60)), there]

    found = looked_up("line/test/1", "mqtt", "name", many)

    assert [each["route"] for each in found["not_taken"][:2]] == ["there", "other-0"]
    assert (len(found["not_taken"]), found["more"]) == (50, 11)


def test_values_of_references_are_hidden(routes: Sequence[Route]) -> None:
    class Guarded(FakeStatus):
        def hide(self, text: str) -> str:
            return text.replace("100", "${env:LEAST}").replace("line/", "${env:SITE}/")

    application = WebApplication(Guarded(status(), routes), mutual_tls=False)
    request = HttpRequest("GET", "/api/explain", "system=mqtt&text=line/7/a", LOCAL)

    (found,) = json.loads(application.answer(request).body)["routes"]

    assert found["selector"] == "amount > ${env:LEAST}"
    assert found["pattern"].startswith("${env:SITE}/")

    request = HttpRequest("GET", "/api/explain", "system=mqtt&text=line/test/a", LOCAL)
    (left_out,) = json.loads(application.answer(request).body)["not_taken"]
    assert left_out["pattern"].startswith("${env:SITE}/")
    assert left_out["why_not"] == "excluded by '${env:SITE}/test/#'"


def test_a_route_is_proposed_for_a_wanted_name(routes: Sequence[Route]) -> None:
    made = propose_route("line/7/a", "mqtt", "STATE.7.a", "ems", routes)

    assert str(made["yaml"]).splitlines() == [
        "routes:",
        "  proposed:",
        '    from: {endpoint: plant, pattern: "line/{rest...}"}',
        '    to: {endpoint: office, template: "STATE.{rest...}"}',
    ]
    refused = propose_route("line/7", "mqtt", "STATE.>", "ems", routes)["refused"]
    assert "wildcard" in str(refused)
    made = propose_route("line/7/a", "mqtt", "LINE.7.a", "ems", routes)
    assert made == {"refused": "there makes it already"}
    with pytest.raises(HttpError, match="unknown system 'jms'; did you mean 'ems'"):
        propose_route("line/7", "mqtt", "STATE", "jms", routes)
    with pytest.raises(HttpError, match="limit 4096"):
        propose_route("line/7", "mqtt", "x" * 5_000, "ems", routes)


def test_invalid_text_has_no_translations_and_no_routes(routes: Sequence[Route]) -> None:
    found = looked_up("a/#/b", "mqtt", "pattern", routes)

    assert found["check"]["valid"] is False
    assert (found["elsewhere"], found["routes"]) == ([], [])


FIELDS = """\
endpoints:
  plant: {kind: memory, dialect: mqtt}
  office: {kind: memory, dialect: ems, allow: ["TO.>"]}
routes:
  orders:
    from: {endpoint: plant, pattern: "o/{m}"}
    to: {endpoint: office, template: "TO.{payload.site}.{property.line|default:none}"}
    retained: ignore
"""
GIVEN = [
    pytest.param("", "'{payload.site}': is a field of a message, and there is only a name"),
    pytest.param("&payload={}", "'{payload.site}': is missing in the message"),
    pytest.param('&payload={"site":"hall"}', '"name":"TO.hall.none"'),
    pytest.param('&payload={"site":"hall"}&properties=x=1%0Aline=7', '"name":"TO.hall.7"'),
    pytest.param("&properties=line", "--property line: write NAME=VALUE"),
]


@pytest.mark.parametrize(
    ("query", "text"), GIVEN, ids=["name", "no-field", "payload", "both", "bad"]
)
def test_names_are_made_of_fields(tmp_path: Path, query: str, text: str) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(FIELDS)
    configuration = load(file)

    settings = {name: each.settings for name, each in configuration.endpoints.items()}
    shown = FakeStatus(status(), configuration.routes, settings)
    application = WebApplication(shown, mutual_tls=False)
    request = HttpRequest("GET", "/api/explain", f"system=mqtt&text=o/m1{query}", LOCAL)
    assert text in application.answer(request).body.decode()
