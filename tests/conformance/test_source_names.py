"""Names at the source in the copies at each kind that carries them, and back by what is proven."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.endpoints.registry import ENDPOINT_KINDS
from gateway.model.message import Headers, Message, Value
from tests.conformance.bridged import Bridged
from tests.conformance.test_endpoints import systems
from tests.endpoints.systems import SYSTEMS, System

pytestmark = pytest.mark.usefixtures("journals_stay")

ROUTES = """\
  out:
    from: {{endpoint: here, pattern: "plant/{{line}}/{{rest...}}", exclude: ["plant/+/secret"]}}
    to: {{endpoint: there, template: "{there}", lossy: true}}
  back:
    from: {{endpoint: there, names_of: out}}
    to: {{endpoint: audit, template: "back/{{rest...}}/{{line}}"}}
"""
NAMES = ["plant/7/motor/temp.max", "plant/7", "plant/7//", "plant/7/a b/ü/%2E", "plant/8/motor"]
FORGED: dict[str, Value] = {
    "a name of another route": "other/7/motor",
    "a name of another key": "plant/8/motor",
    "a name that is excluded": "plant/7/secret",
    "no name": "plant/7/#",
    "a repeated header": ["plant/7/motor", "plant/7/motor"],
    "several headers": ["plant/7/motor", "plant/8/motor", "x"],
    "no UTF-8": b"plant/7/\xff",
    "a long one": "plant/7/" + "x" * 70_000,
    "an empty one": "",
    "null": None,
}  # fmt: skip


def carrying() -> Iterator[str]:
    """Yield the systems whose kind carries the name at the source."""
    kinds = [name for name, kind in ENDPOINT_KINDS.items() if kind.carries_name]
    return (each for each in SYSTEMS if each.startswith(tuple(kinds)))


@pytest.fixture(params=[each for each in systems() if each.id in {*carrying()}])
def system(request: pytest.FixtureRequest) -> System:
    return SYSTEMS[request.param](request)


def bridged(folder: Path, system: System) -> Bridged:
    rest = system.rest(("t",))
    routes = ROUTES.format(there=system.address("t", "{line}"))
    return Bridged(folder, system.settings, routes, rest)


def test_names_come_back_whatever_the_template(tmp_path: Path, system: System) -> None:
    world = bridged(tmp_path, system)
    sent = [Message(name, name.encode()) for name in NAMES]

    with world.running(world.audit):
        world.here.publish(*sent)
        arrived = [world.audit.wait_for(name.encode()).address for name in NAMES]

    expected = ["/".join(["back", *name.split("/")[2:], name.split("/")[1]]) for name in NAMES]
    assert arrived == expected
    assert {name for _, name in world.rows("received", "route", "name")} >= {
        system.address("t", "7"), system.address("t", "8"),
    }  # fmt: skip


def test_a_forged_name_comes_back_by_no_route(tmp_path: Path, system: System) -> None:
    world = bridged(tmp_path, system)
    address = system.address("t", "7")
    forged = [
        Message(address, b"forged", Headers(properties={"gateway_name": each}))
        for each in FORGED.values()
    ]
    honest = [Message("plant/7/motor", b"%d" % number) for number in range(len(forged) + 1)]

    with world.running(world.audit):
        for number, each in enumerate(forged):
            world.here.publish(honest[number])
            world.audit.wait_for(b"%d" % number)
            world.there.publish(each)
        world.here.publish(honest[-1])
        world.audit.wait_for(b"%d" % len(forged))

    assert world.audit.payloads() == [each.payload for each in honest]
    assert world.rows("dead", "rule") == []
