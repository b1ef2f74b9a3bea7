"""The rules of names make the same names as the routes, and hold no secret."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.errors import GatewayError
from gateway.routing.name_rules import RouteNames, to_routes, to_rules
from gateway.routing.route import Route
from gateway.routing.router import Router
from gateway.translate.shorten import ShortNamesInMemory, digest_of

ROOT = Path(__file__).parents[2]
MAPPINGS = sorted((ROOT / "mappings").rglob("*.yaml"))
TAGS = "pump.7.on,site.north,spare.tag"

EVERYTHING = """\
endpoints:
  plant:
    kind: mqtt
    host: ${env:SECRET_HOST}
    username: ${env:SECRET_USER}
    password: ${env:SECRET_PASSWORD}
    limits: {levels: 9}
  ems:
    kind: jms
    urls: ["tcp://${env:SECRET_HOST}:7222"]
    password: ${env:SECRET_PASSWORD}
    dialect: [ems, rv]
    limits: {bytes: 60, forbidden_characters: "!", forbidden_patterns: [LINE.PRIVATE.>]}
    allow: ["LINE.>", "ANY.>"]
    on_too_long: shorten
  tags: {kind: yami4, url: "tcp://127.0.0.1:5009"}
routes:
  telemetry:
    from:
      endpoint: plant
      pattern: "line/{line}/{rest...}"
      exclude: ["line/+/test/#"]
      selector: "customer = '${env:SECRET_SELECTOR}'"
    to:
      - endpoint: ems
        template: "LINE.{line|upper}.{@system}.{@endpoint}.{rest...|slice:0:2}"
        headers: {set: {token: "${env:SECRET_HEADER}"}}
      - {endpoint: ems, template: "ANY.{line}", on_unmappable: replace, replacement: "_",
         lossy: true}
      - {endpoint: tags, template: ["line.{line}", "all.x"], on_unmappable: reject, lossy: true}
  both: {from: {endpoint: plant, pattern: "b/{n}/{rest...}"},
         to: {endpoint: tags, template: "B.{n}.{rest...}"}, direction: both}
  chosen:
    from:
      endpoint: tags
      pattern: "pump.{id}.*"
      tags: {mode: combine, prefer: ["pump.7.*"], require_tags: ["site.{site}"]}
    to: {endpoint: plant, template: "pump/{site}/{id}"}
  back: {from: {endpoint: ems, pattern: "BACK.>"}, to: {endpoint: tags}}
  several:
    from: [{endpoint: plant, pattern: "s/#"}, {endpoint: tags, pattern: "s.*"}]
    to: {endpoint: ems, template: "ANY.s"}
"""
NAMES = (
    "line/a/x", "line/a.b/x/y/z", "line/a/test/x", "line/a/!", "line/private/x",
    "line/" + "a" * 70 + "/x", "b/1/x", "b/1/x/y",
    "line/1/2/3/4/5/6/7/8/9", "B.1.x", "B.1.x.y", "b/B/b", "s/1", "s.1", TAGS, "BACK.x",
    "pump.8.on,pump.7.on,site.x", "pump.8.on", "no/route", "", "$SYS/x", "~" + "a" * 26,
)  # fmt: skip


def names_of(routes: Sequence[Route], name: str) -> list[tuple[str, str, str, str]]:
    return [
        (route.name, each.label, each.address, each.rule)
        for route in routes
        for match in Router(route.dialect, [route])[name]
        for each in match.deliveries
    ]


def restored(routes: Sequence[Route]) -> tuple[Route, ...]:
    return to_routes(json.loads(json.dumps(to_rules(routes))))


@pytest.fixture
def everything(tmp_path: Path) -> tuple[Route, ...]:
    """The routes of EVERYTHING; each reference has a value of its own."""
    file = tmp_path / "gateway.yaml"
    file.write_text(EVERYTHING)
    found = set(re.findall(r"\$\{env:(\w+)\}", EVERYTHING))
    return load(file, {name: f"{name.lower()}-value" for name in found}).routes


@pytest.mark.parametrize("name", NAMES)
def test_restored_routes_make_the_same_names(everything: tuple[Route, ...], name: str) -> None:
    assert names_of(restored(everything), name) == names_of(everything, name)


def test_the_names_of_the_test_reach_every_route_and_most_rules(
    everything: tuple[Route, ...],
) -> None:
    made = [each for name in NAMES for each in names_of(everything, name)]

    assert {route for route, *_ in made} == {route.name for route in everything}
    assert any(rule for *_, rule in made)
    assert any("~" in address for *_, address, _ in made)


@pytest.mark.parametrize("path", MAPPINGS, ids=lambda path: path.stem)
def test_restored_sample_mappings_make_the_same_names(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    values = dict.fromkeys(re.findall(r"\$\{env:(\w+)\}", text), "value.example")
    configuration = load(path, values)
    given = [each.given.name for each in configuration.tests.values()]

    for name in given:
        assert names_of(restored(configuration.routes), name) == names_of(
            configuration.routes, name
        )
    assert given


def test_the_rules_hold_no_secret(everything: tuple[Route, ...]) -> None:
    text = json.dumps(to_rules(everything))

    assert "line/{line}/{rest...}" in text
    assert "secret" not in text
    assert "7222" not in text
    assert "127.0.0.1" not in text


def test_a_name_has_a_translation_for_each_source_of_its_route(
    everything: tuple[Route, ...],
) -> None:
    found = RouteNames(restored(everything), ShortNamesInMemory())

    assert found.names("several", "ems", "s/1") == ["ANY.s"]
    assert found.names("several", "ems", "s.1") == ["ANY.s"]
    assert found.names("chosen", "plant", TAGS) == ["pump/north/7"]
    assert found.names("telemetry", "ems", "line/a/test/x") == ["(not taken)"]
    assert found.names("telemetry", "tags", "line/a.b/x") == ["(refused: unspellable)"]
    assert found.names("telemetry", "ems", "line//\0") == ["(refused: nul)"]
    assert found.names("absent", "ems", "line/a/x") == ["(no such route)"]


def test_short_names_are_resolved_where_a_route_shortens_names(
    everything: tuple[Route, ...],
) -> None:
    dictionary = ShortNamesInMemory()
    levels = ("BACK", *("a-long-level" for _ in range(9)))
    short = f"BACK.{digest_of(levels)}"
    names = RouteNames(restored(everything), dictionary)

    assert names.names("back", "tags", short) == ["(refused: unknown-digest)"]
    dictionary.remember(digest_of(levels), levels)
    names = RouteNames(restored(everything), dictionary)
    assert names.names("back", "tags", short) == [".".join(levels)]


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param([{}], id="empty"),
        pytest.param([7], id="no-object"),
        pytest.param([{"name": "r", "endpoint": "e", "dialect": {"name": "new"}}], id="dialect"),
    ],
)
def test_rules_of_another_version_are_an_error(rules: list[dict[str, object]]) -> None:
    with pytest.raises(GatewayError, match="cannot be read"):
        to_routes(rules)


def test_a_system_of_an_absent_package_is_named(everything: tuple[Route, ...]) -> None:
    text = json.dumps(to_rules(everything)).replace('"name": "yami4"', '"name": "filebus"')

    with pytest.raises(GatewayError, match=r"^unknown system 'filebus'"):
        to_routes(json.loads(text))
