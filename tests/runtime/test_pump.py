"""A pump alone: what it does with its source when a reload gives it another one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from gateway.config.load import load
from gateway.endpoints.base import Batch
from gateway.model.message import Message
from gateway.model.outcome import Settlement
from gateway.runtime.context import Identities, Surroundings
from gateway.runtime.inbound.echo_cache import Echoes
from gateway.runtime.monitor.counters import EndpointState, RouteCounters
from gateway.runtime.outbound.lane import Lane, Outlet
from gateway.runtime.pump import Pump
from gateway.runtime.record.ledger import Ledger
from gateway.runtime.wiring import make_intake
from tests.runtime.one_route import ONE_ROUTE
from tests.runtime.targets import ScriptedSink
from tests.waiting import until


class Brought:
    """A source that hands out one batch; mutable, it remembers what became of it."""

    def __init__(self, *names: str) -> None:
        self._left = [Batch([Message(name, b"x") for name in names], self._settle)]
        self._quiet = threading.Event()
        self.unsettled = bool(names)
        self.let_go = ""

    def open(self) -> None:
        """Always there."""

    def receive(self, timeout: float) -> Batch | None:
        if self._left and self._left[0].messages:
            return self._left.pop()
        self._quiet.wait(timeout)
        return None

    def close(self) -> None:
        self.let_go = self.let_go or ("unsettled" if self.unsettled else "settled")

    def _settle(self, _: Sequence[Settlement]) -> None:
        self.unsettled = False


def test_a_source_is_let_go_when_what_it_brought_has_ended(tmp_path: Path) -> None:
    """Else its broker gives all of that again, to the one that follows."""
    file = tmp_path / "gateway.yaml"
    file.write_text(ONE_ROUTE)
    configuration = load(file)
    sink = ScriptedSink()
    sink.mute = True
    lane = Lane(Outlet(sink, "mqtt", frozenset(), (0.01, 0.02)), EndpointState("there", "sink"))
    ledger = Ledger({"all": RouteCounters()})
    around = Surroundings("test", {"there": lane}, ledger, Identities(1), Echoes(), {})
    before, after = Brought("a/1", "a/2"), Brought()
    pump = Pump(make_intake(configuration, "here", before), EndpointState("here", "source"), around)
    lane.start()
    pump.start()
    until(lambda: len(sink.got) == 2)

    pump.exchange(make_intake(configuration, "here", after))
    answer = threading.Timer(1, sink.speak)  # while the pump waits for it
    answer.start()
    until(lambda: not pump.changing)

    answer.join()
    pump.close()
    lane.stop()
    assert before.let_go == "settled"
