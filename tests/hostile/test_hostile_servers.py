"""A hostile server costs a connection: no memory, no process, no message, no neighbour's time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from gateway.endpoints.registry import ENDPOINT_KINDS
from tests.hostile.behaviours import Hostile, HostileWire
from tests.hostile.victim import Victim
from tests.hostile.wires import WIRES

MOST: Final = 256 << 20  # bytes that a hostile server may make a process take
MOST_SECONDS: Final = 1.0  # of all but one message in a hundred of a neighbour
MOST_LINES: Final = 20  # that a hostile server may make a process log
CASES: Final = [
    pytest.param(wire, each, id=f"{wire.name}-{each.name}")
    for wire in WIRES
    for each in wire.behaviours
]


class Victims:
    """The process of one wire format after the other, each with an honest neighbour in it.

    Mutable: it has one process at a time, for all tests of its format.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request, self._stack = request, ExitStack()
        self._wire: HostileWire | None = None
        self._victim: Victim | None = None

    def of(self, wire: HostileWire) -> Victim:
        if self._victim is None or self._wire is not wire:
            self.stop()
            honest = wire.honest(self._request, self._stack)
            self._victim = self._stack.enter_context(Victim(honest, wire.pattern, wire.address))
            self._wire = wire
        return self._victim

    def stop(self) -> None:
        """End the process; fail if its neighbour was slow."""
        victim, self._victim = self._victim, None
        with self._stack:
            if victim is not None and self._wire is not None:
                quick = sorted(victim.seconds())
                assert quick[len(quick) * 99 // 100] < MOST_SECONDS, self._wire.name


@pytest.fixture(scope="module")
def victims(request: pytest.FixtureRequest) -> Iterator[Victims]:
    found = Victims(request)
    yield found
    found.stop()


@pytest.mark.parametrize(("wire", "hostile"), CASES)
def test_a_hostile_server_costs_no_more_than_a_connection(
    wire: HostileWire, hostile: Hostile, victims: Victims
) -> None:
    victim = victims.of(wire)
    with wire.serve(hostile.behave) as place:
        found = victim.ask(wire.settings(place), hostile.cost)
    assert not found.failure, found.failure
    assert found.memory < MOST
    assert (found.tracebacks, found.lines < MOST_LINES) == (0, True), found.log


def test_every_kind_has_hostile_servers() -> None:
    """A kind whose broker is this process has no wire."""
    remote = {name for name, kind in ENDPOINT_KINDS.items() if not kind.in_process}
    assert {each.kind for each in WIRES} == remote


@pytest.mark.parametrize("wire", WIRES, ids=[each.name for each in WIRES])
def test_each_wire_format_has_many_behaviours(wire: HostileWire) -> None:
    names = [each.name for each in wire.behaviours]
    assert len(names) == len({*names}) >= wire.fewest
