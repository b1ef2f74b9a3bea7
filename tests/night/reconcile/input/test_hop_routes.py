"""The routes of the gateways at a broker, by time."""

from __future__ import annotations

from pathlib import Path

from gateway.archive.location import ArchiveLocation
from gateway.night.reconcile.input.hop_routes import Broker, Hops
from gateway.night.reconcile.input.route_history import RouteHistory, RulePeriod


def test_a_gateway_whose_routes_are_damaged_reads_from_no_broker() -> None:
    history = RouteHistory([RulePeriod("core", 0, 10, "")])
    hops = Hops(ArchiveLocation(Path()), history, {"b": Broker("b", exact=True, reading=["core"])})

    assert hops.read_by("core", ("orders", "plant"), 5) == ("", "")
    assert hops.readers("edge", "b", "a/b", 5) == []
