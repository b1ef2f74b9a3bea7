"""A file of many connections: what is compared grows with their number, and not with its square."""

from __future__ import annotations

import pytest

from gateway.imports.document import Document
from gateway.imports.mosquitto.importer import import_mosquitto
from gateway.imports.mosquitto.states import MANY
from gateway.proofs.flows.flow import Flow
from gateway.proofs.rules import overlap
from gateway.proofs.rules.overlap_search import Overlap, Trials, find_overlap


def imported(count: int, topic: str) -> Document:
    lines = [f"connection s{at}\naddress h{at}.example\ntopic {topic}\n" for at in range(count)]
    return import_mosquitto("m.conf", "".join(lines).encode(), lambda _: (), "here")


@pytest.mark.parametrize("topic", ["# in 1", "# out 1", "# both 1"])
def test_connections_to_different_brokers_are_not_compared(
    monkeypatch: pytest.MonkeyPatch, topic: str
) -> None:
    compared: list[Flow] = []

    def find(one: Flow, other: Flow, trials: Trials) -> Overlap | None:
        compared.append(other)
        return find_overlap(one, other, trials)

    monkeypatch.setattr(overlap, "find_overlap", find)
    found = imported(12, topic)

    assert len(found.live_routes) == 12
    assert compared == []


@pytest.mark.parametrize("topic", ["# out 1", "# both 1"])
def test_many_states_are_excluded_together(topic: str) -> None:
    few, many = imported(MANY, topic).live_routes, imported(MANY + 1, topic).live_routes

    assert {len(each.exclude) for each in few} == {MANY}
    assert {each.exclude[0] for each in many} == {"bridge/+/state"}
    assert max(len(each.exclude) for each in many) <= 2  # and its own one at the other side
