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
