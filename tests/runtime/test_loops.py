"""Loops between brokers and gateways: every broker gets each message once."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from uuid import uuid4

import pytest

from gateway.config.load import load
from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.memory import MemorySettings
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED
from gateway.runtime.gateway import Gateway
from tests.systems import SYSTEMS
from tests.waiting import PATIENCE, until

REST = {name: row.spell("a", "{rest...}") for name, row in SYSTEMS.items()}
NAME = {name: row.spell(*"abc") for name, row in SYSTEMS.items()}
NAMES = sorted(SYSTEMS)
EACH_ON_BOTH_SIDES = set(zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True))
PAIRS = [
    pytest.param(one, other, number % 3, marks=[] if each else [pytest.mark.nightly])
    for number, (one, other) in enumerate(product(NAMES, NAMES))
    for each in [(one, other) in EACH_ON_BOTH_SIDES]
]  # of the product, every system once on each side; the rest at night


class RecordingBroker:
    """A broker in this process that records all arriving names.

    Mutable: the list grows in its own thread.
    """

    def __init__(self, run: str, name: str, system: str, *, headers: bool = True) -> None:
        self.name, self.system = name, system
        self.settings = MemorySettings(
            name=f"observer-{name}", dialect=system, broker=f"{name}-{run}", headers=headers
        )
        self.yaml = (
            f"{{kind: memory, dialect: {system}, broker: {name}-{run}, broker_id: {name}-{run},"
            f" durable: false, headers: {str(headers).lower()}}}"
        )
        self.received: list[str] = []
        self.markers: list[str] = []
        self._stop = threading.Event()
        self._source = make_source(self.settings, [Subscription(SYSTEMS[system].everything)])
        self._source.open()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def publish(self, name: str) -> None:
        sink = make_sink(self.settings)
        sink.open()
        done = threading.Event()
        sink.send([Message(name, b"once")], lambda _: done.set())
        assert done.wait(PATIENCE)
        sink.close()

    def marker(self, number: int) -> str:
        return SYSTEMS[self.system].spell("a", "marker", str(number))

    def close(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        self._source.close()

    def _listen(self) -> None:
        while not self._stop.is_set():
            batch = self._source.receive(0.02)
            if batch is not None:
                for message in batch.messages:
                    marked = "marker" in message.address
                    (self.markers if marked else self.received).append(message.address)
                batch.settle([ACCEPTED] * len(batch.messages))


def config(
    gateway: str, brokers: Sequence[RecordingBroker], links: Sequence[tuple[str, str, str]]
) -> str:
    """A configuration with a route for each of `links`: source, target, `forward` or `both`."""
    by_name = {broker.name: broker for broker in brokers}
    lines = [f"gateway: {{name: {gateway}}}", "endpoints:"]
    lines += [f"  {broker.name}: {broker.yaml}" for broker in brokers]
    lines.append("routes:")
    for source, target, direction in links:
        here, there = REST[by_name[source].system], REST[by_name[target].system]
        lines.append(f"  {source}-{target}:")
        lines.append(f"    direction: {direction}")
        lines.append(f"    from: {{endpoint: {source}, pattern: '{here}'}}")
        lines.append(f"    to: {{endpoint: {target}, template: '{there}'}}")
    return "\n".join(lines) + "\n"


@contextmanager
def running(
    folder: Path, brokers: Sequence[RecordingBroker], *link_lists: Sequence[tuple[str, str, str]]
) -> Iterator[None]:
    """Run one gateway for each list of links."""
    gateways: list[Gateway] = []
    with ExitStack() as stack:
        for broker in brokers:
            stack.callback(broker.close)
        for number, links in enumerate(link_lists):
            named = {name for link in links for name in link[:2]}
            file = folder / f"gateway{number}.yaml"
            here = [broker for broker in brokers if broker.name in named]
            file.write_text(config(f"g{number}", here, links))
            gateway = Gateway(load(file))
            gateway.start()
            stack.callback(gateway.stop, 5)
            gateways.append(gateway)
        for gateway in gateways:
            until(lambda g=gateway: all(lane.direct for lane in g.lanes.values()))  # type: ignore[misc]  # a default binds it now
            until(lambda g=gateway: all(s.connection.value == "connected" for s in g.states))  # type: ignore[misc]
        yield


def pass_markers(brokers: Sequence[RecordingBroker]) -> None:
    """Send a marker from each broker in turn, and wait for it at every broker.

    Routes keep the order: a broker has received every earlier copy when it receives the marker.
    """
    for number, sender in enumerate(brokers):
        sender.publish(sender.marker(number))
        until(lambda n=number: all(each.marker(n) in each.markers for each in brokers))  # type: ignore[misc]  # a default binds it now


@pytest.mark.parametrize(("one", "other", "start"), PAIRS)
def test_a_ring_of_three_brokers_delivers_each_message_once_to_every_broker(
    tmp_path: Path, one: str, other: str, start: int
) -> None:
    run = uuid4().hex
    brokers = [
        RecordingBroker(run, "x", one),
        RecordingBroker(run, "y", other),
        RecordingBroker(run, "z", one),
    ]
    ring = [[("x", "y", "forward"), ("y", "z", "forward")], [("z", "x", "forward")]]
    with running(tmp_path, brokers, *ring):
        brokers[start].publish(NAME[brokers[start].system])
        until(lambda: all(broker.received for broker in brokers))
        pass_markers(brokers)

    assert [broker.received for broker in brokers] == [[NAME[one]], [NAME[other]], [NAME[one]]]


@pytest.mark.parametrize(("one", "other", "start"), PAIRS)
def test_two_gateways_in_both_directions_deliver_each_message_once_to_every_broker(
    tmp_path: Path, one: str, other: str, start: int
) -> None:
    run = uuid4().hex
    brokers = [
        RecordingBroker(run, "x", one),
        RecordingBroker(run, "y", other),
        RecordingBroker(run, "z", one),
    ]
    with running(tmp_path, brokers, [("x", "y", "both")], [("y", "z", "both")]):
        brokers[start].publish(NAME[brokers[start].system])
        until(lambda: all(broker.received for broker in brokers))
        pass_markers(brokers)

    assert [len(broker.received) for broker in brokers] == [1, 1, 1]


@pytest.mark.parametrize("start", [0, 1, 2])
def test_echoes_are_recognised_at_brokers_that_carry_no_origin_path(
    tmp_path: Path, start: int
) -> None:
    run = uuid4().hex
    brokers = [RecordingBroker(run, name, "mqtt", headers=False) for name in "xyz"]
    with running(tmp_path, brokers, [("x", "y", "both"), ("y", "z", "both")]):
        for _ in range(5):  # equal messages are still five messages
            brokers[start].publish("a/b/c")
        until(lambda: all(len(broker.received) >= 5 for broker in brokers))
        pass_markers(brokers)

    assert [len(broker.received) for broker in brokers] == [5, 5, 5]


def test_an_echo_window_ends_a_loop_of_two_gateways_without_origin_paths(
    tmp_path: Path,
) -> None:
    run = uuid4().hex
    brokers = [RecordingBroker(run, name, "mqtt", headers=False) for name in "xyz"]
    for broker in brokers:
        broker.yaml = broker.yaml.replace("}", ", echo_window: 30}")
    ring = [[("x", "y", "forward"), ("y", "z", "forward")], [("z", "x", "forward")]]
    with running(tmp_path, brokers, *ring):
        brokers[0].publish("a/b/c")
        until(lambda: len(brokers[0].received) >= 2)  # it came back once and was dropped
        pass_markers(brokers)

    assert [len(broker.received) for broker in brokers] == [2, 1, 1]
