"""Rings of real brokers over MQTT 3.1.1, whose messages carry no path.

What the gateways know, ends; what nothing shows, circles: it is suspected and said, and a
`loop_limit` ends it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack, closing
from itertools import islice, pairwise
from pathlib import Path
from typing import TypeAlias

import pytest

from gateway.config.load import load
from gateway.runtime.delivery import repeat_watch
from gateway.runtime.gateway import Gateway
from gateway.runtime.record.counters import RouteCounters
from tests.archived import archived
from tests.brokers.mosquitto import OPEN, Mosquitto, StartMosquitto
from tests.brokers.running import Client
from tests.waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("journals_stay")]

COUNT = 3  # messages
LIMIT = 5
FAST = "with an equal payload comes N times a second"
CONFIG = """\
gateway: {{name: g{number}, heartbeat_seconds: 0.5}}
endpoints:
  source: {{kind: mqtt, version: 3.1.1, host: 127.0.0.1, port: {source}, backoff_max: 1}}
  target: {{kind: mqtt, version: 3.1.1, host: 127.0.0.1, port: {target}, backoff_max: 1}}
routes:
  relay:
    from: {{endpoint: source, pattern: "a/{{rest...}}"}}
    to: {{endpoint: target, template: "a/{{rest...}}"}}
    direction: {direction}
{facts}archive: {{path: {archive}}}
"""


class Ring:
    """Gateways from each broker to the next, and messages at the first broker.

    Mutable: it closes all at the end of its context.
    """

    def __init__(
        self,
        folder: Path,
        brokers: list[Mosquitto],
        stack: ExitStack,
        gateways: int,
        direction: str,
        facts: str,
    ) -> None:
        self.folder = folder
        self.gateways: list[Gateway] = []
        self._before = 0  # messages, as of the last look
        pairs = pairwise([*brokers, brokers[0]])
        for number, (source, target) in enumerate(islice(pairs, gateways)):
            file = folder / f"g{number}.yaml"
            file.write_text(
                CONFIG.format(
                    number=number, source=source.port, target=target.port, direction=direction,
                    facts=facts, archive=folder / f"archive-{number}" / "archive",
                )
            )  # fmt: skip
            gateway = Gateway(load(file))
            gateway.start()
            stack.callback(gateway.stop, 10)
            self.gateways.append(gateway)
        until(lambda: all(lane.direct for each in self.gateways for lane in each.lanes.values()))
        states = [state for each in self.gateways for state in each.states]
        until(lambda: all(state.connection.value == "connected" for state in states))
        client = stack.enter_context(closing(Client(brokers[0].port)))
        for number in range(COUNT):
            client.publish("a/b", b"%d" % number)

    @property
    def counters(self) -> list[RouteCounters]:
        return [each for gateway in self.gateways for each in gateway.counters.values()]

    def received(self) -> int:
        return sum(each.received for each in self.counters)

    def is_quiet(self) -> bool:
        """Whether nothing was received since the last call."""
        before, self._before = self._before, self.received()
        return before == self._before

    @property
    def suspicions(self) -> set[tuple[str, str]]:
        """The example names and the reasons of the suspicions of all gateways, without rates."""
        found = [each for gateway in self.gateways for each in gateway.suspicions.current()]
        return {(each.name, re.sub("[0-9]+", "N", each.reason)) for each in found}

    def rules(self) -> list[str]:
        """The rules of the cut rows, when the gateways are stopped."""
        rows = [
            row
            for number in range(len(self.gateways))
            for row in archived(self.folder / f"archive-{number}")
        ]
        return [str(row["rule"]) for row in rows if row["leg"] == "cut"]


StartRing: TypeAlias = Callable[..., Ring]


@pytest.fixture
def start_ring(tmp_path: Path, start_mosquitto: StartMosquitto) -> StartRing:
    def start(stack: ExitStack, gateways: int, direction: str, facts: str = "") -> Ring:
        """Start two brokers for one gateway, and one for each of several."""
        count = max(2, gateways)
        brokers = [start_mosquitto(*OPEN, "max_queued_messages 0") for _ in range(count)]
        return Ring(tmp_path, brokers, stack, gateways, direction, facts)

    return start


OPEN_RINGS = [
    pytest.param(2, "forward", id="two"),
    pytest.param(2, "both", id="two-both-ways", marks=pytest.mark.nightly),
    pytest.param(3, "forward", id="three", marks=pytest.mark.nightly),
    pytest.param(3, "both", id="three-both-ways"),
]


def test_the_echoes_of_a_gateway_that_is_alone_end(start_ring: StartRing) -> None:
    with ExitStack() as stack:
        ring = start_ring(stack, 1, "both")
        until(lambda: sum(each.loops for each in ring.counters) == COUNT)
        until(lambda: ring.received() == COUNT)
        assert not ring.suspicions

    assert ring.rules() == ["loop"] * COUNT


@pytest.mark.parametrize(("gateways", "direction"), OPEN_RINGS)
def test_what_circles_is_suspected_and_nothing_is_cut_for_it(
    start_ring: StartRing,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    gateways: int,
    direction: str,
) -> None:
    monkeypatch.setattr(repeat_watch, "WINDOW", 1.0)
    with ExitStack() as stack:
        ring = start_ring(stack, gateways, direction)
        until(lambda: bool(ring.suspicions))
        assert ring.suspicions == {("a/b", FAST)}

    assert set(ring.rules()) <= ({"loop"} if direction == "both" else set())
    assert any("a loop is suspected: route" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(("gateways", "direction"), OPEN_RINGS)
def test_a_limit_of_equal_messages_ends_what_circles(
    start_ring: StartRing, caplog: pytest.LogCaptureFixture, gateways: int, direction: str
) -> None:
    facts = f"    loop_limit: {LIMIT}/minute\n"
    with ExitStack() as stack:
        ring = start_ring(stack, gateways, direction, facts)
        until(lambda: sum(each.loops for each in ring.counters) >= COUNT)
        until(ring.is_quiet, every=1.0)
        assert all(each.received == each.delivered for each in ring.counters)
        assert all(each.received <= LIMIT * COUNT for each in ring.counters)

    rules = ring.rules()
    assert rules.count("loop-limit") >= COUNT
    assert set(rules) <= ({"loop-limit", "loop"} if direction == "both" else {"loop-limit"})
    assert any("'loop-limit' since" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(("gateways", "direction"), OPEN_RINGS)
def test_a_heartbeat_that_comes_back_proves_the_loop(
    start_ring: StartRing, gateways: int, direction: str
) -> None:
    facts = f"    heartbeat: a/beat\n    loop_limit: {LIMIT}/minute\n"
    with ExitStack() as stack:
        ring = start_ring(stack, gateways, direction, facts)
        until(lambda: bool(ring.suspicions))
        assert ring.suspicions == {("a/beat", "is its heartbeat, and came back")}


@pytest.mark.parametrize("direction", ["forward", "both"])
def test_the_heartbeats_of_a_gateway_that_is_alone_raise_no_suspicion(
    start_ring: StartRing, direction: str
) -> None:
    """Two routes read the name of the heartbeat, and its echoes come back from the target."""
    with ExitStack() as stack:
        ring = start_ring(stack, 1, direction, "    heartbeat: a/beat\n")
        until(lambda: ring.counters[0].delivered >= COUNT + 5)
        assert not ring.suspicions
