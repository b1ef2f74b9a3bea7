"""Names from fields of the message, and picked fields, at each kind, through a running gateway.

A field that is not a level is a dead letter of the rule `field`, beside honest neighbours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.model.message import Message
from tests.conformance.bridged import Bridged
from tests.conformance.test_endpoints import systems
from tests.endpoints.systems import SYSTEMS, System

pytestmark = pytest.mark.usefixtures("journals_stay")


FIELDS = "{payload.site}", "{property.line|default:none}"
ROUTES = """\
  out:
    from: {{endpoint: here, pattern: "out/{{m}}"}}
    to: {{endpoint: there, template: "{there}", lossy: true}}
    retained: ignore
  back:
    from: {{endpoint: there, pattern: "{rest}"}}
    to:
      endpoint: audit
      template: "back/{{payload.site}}/{{property.line|default:none}}"
      headers: {{set: {{kind: "{{payload.order.kind|default:order}}"}}}}
    retained: ignore
"""
PICK = """\
  out:
    from: {{endpoint: here, pattern: "out/{{m}}"}}
    to:
      endpoint: there
      template: "{there}"
      payload: {{pick: [order.price, id, order.id], set: {{machine: "{{m}}"}}, max: 100}}
      lossy: true
"""
PICKED = b'{"order": {"price": 1.50, "id": 7}, "id": 1e2, "machine": "m"}'
HOSTILE = {
    "separators": json.dumps({"site": "a/b.c:d"}),
    "wildcards": json.dumps({"site": "*#+>?"}),
    "a control character": json.dumps({"site": "a\0b"}),
    "a nested document": json.dumps({"site": {"name": "hall"}}),
    "deep": '{"a": ' * 65 + "1" + "}" * 65,
    "a key twice": '{"site": "x", "site": "y"}',
    "no document": "site: x",
    "long": json.dumps({"site": "x" * 70_000}),
}


@pytest.fixture(params=systems())
def system(request: pytest.FixtureRequest) -> System:
    return SYSTEMS[request.param](request)


def bridged(folder: Path, system: System) -> Bridged:
    rest = system.rest(("t",))
    routes = ROUTES.format(there=system.address("t", *FIELDS), rest=rest)
    return Bridged(folder, system.settings, routes, rest, allow=(rest,))


def message(payload: Mapping[str, object], line: str = "") -> Message:
    made = Message("out/m", json.dumps(payload).encode())
    properties = {"line": line} if line else {}
    return replace(made, headers=replace(made.headers, properties=properties))


def _bytes(of: Message) -> bytes:
    assert isinstance(of.payload, bytes)
    return of.payload


def test_a_name_comes_from_the_message_at_each_kind(tmp_path: Path, system: System) -> None:
    """It goes out by one name from fields and comes back by another."""
    first = message({"site": "hall", "order": {"kind": "urgent"}}, "l1")
    second = message({"site": 7})
    world = bridged(tmp_path, system)

    with world.running(world.audit):
        world.here.publish(first, second)
        arrived = [world.audit.wait_for(_bytes(each)) for each in (first, second)]

    line = "l1" if "properties" in system.settings.carries else "none"
    assert [each.address for each in arrived] == [f"back/hall/{line}", "back/7/none"]
    assert [each.headers.properties["kind"] for each in arrived] == ["urgent", "order"]
    sent = [] if system.address("t", "x") == system.address("t", "y") else [
        system.address("t", "hall", "l1"), system.address("t", "7", "none"),
    ]  # fmt: skip
    rows = world.rows("delivered", "route", "name", "fields")
    names = {name: json.loads(fields) for route, name, fields in rows if route == "out" and fields}
    assert sorted(names) == sorted(sent)
    if sent:
        assert names[sent[0]] == {"payload.site": "hall", "property.line": "l1"}
        assert names[sent[1]] == {"payload.site": "7", "property.line": None}


def test_a_hostile_field_is_a_dead_letter_beside_honest_neighbours(
    tmp_path: Path, system: System
) -> None:
    world = bridged(tmp_path, system)
    fixed = system.address("t", "x") == system.address("t", "y")  # its names have no levels
    hostile = [Message("out/m", each.encode()) for each in HOSTILE.values()]
    neighbours = [message({"site": f"n{number}"}) for number in range(len(hostile) + 1)]
    mixed = [each for pair in zip(neighbours, hostile, strict=False) for each in pair]

    with world.running(world.audit):
        world.here.publish(*mixed, neighbours[-1])
        for each in neighbours:
            world.audit.wait_for(_bytes(each))

    dead = world.rows("dead", "rule", "route")
    assert dead == [("field", "back" if fixed else "out")] * len(hostile)
    assert world.audit.payloads() == [each.payload for each in neighbours]


def test_a_pick_keeps_fields_in_at_each_kind(tmp_path: Path, system: System) -> None:
    """A document that cannot be picked is a dead letter, and never sent whole."""
    there = system.address("t", "{m}")
    world = Bridged(tmp_path, system.settings, PICK.format(there=there), system.rest(("t",)))
    secret = b'{"order": {"id": 7, "price": 1.50, "card": "4111"}, "card": "4111", "id": 1e2}'
    refused = [secret[:-1], secret.replace(b"7", b"7" * 200), b'{"id": 1, "id": 2}']

    with world.running(world.there):
        world.here.publish(*[Message("out/m", each) for each in (*refused, secret)])
        world.there.wait_for(PICKED)

    assert world.there.payloads() == [PICKED]
    assert world.rows("dead", "rule") == [("payload",)] * len(refused)
    assert world.rows("delivered", "outcome") == [("converted",)]
