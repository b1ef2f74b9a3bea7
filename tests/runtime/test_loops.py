"""Loops: however the brokers are joined, a message is nowhere twice by our doing."""

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
from tests.waiting import PATIENCE, until

EVERYTHING = {
    "ems": ">", "rv": ">", "mqtt": "#", "ibm": "#", "smf": ">", "yami4": "*",
    "smartsockets": "/...",
}  # fmt: skip
REST = {
    "ems": "a.{rest...}", "rv": "a.{rest...}", "mqtt": "a/{rest...}", "ibm": "a/{rest...}",
    "smf": "a/{rest...}", "yami4": "a.{rest...}", "smartsockets": "/a/{rest...}",
}  # fmt: skip
NAME = {
    "ems": "a.b.c", "rv": "a.b.c", "mqtt": "a/b/c", "ibm": "a/b/c", "smf": "a/b/c",
    "yami4": "a.b.c", "smartsockets": "/a/b/c",
}  # fmt: skip
PAIRS = sorted(product(EVERYTHING, EVERYTHING))


class Place:
    """A broker in this process, and all that arrives there; mutable, it grows."""

    def __init__(self, run: str, name: str, system: str, *, headers: bool = True) -> None:
        self.name, self.system = name, system
        self.settings = MemorySettings(
            name=f"look-{name}", dialect=system, broker=f"{name}-{run}", headers=headers
        )
        self.yaml = (
            f"{{kind: memory, dialect: {system}, broker: {name}-{run},"
            f" durable: false, headers: {str(headers).lower()}}}"
        )
        self.got: list[str] = []
        self._stop = threading.Event()
        self._source = make_source(self.settings, [Subscription(EVERYTHING[system])])
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

    def close(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        self._source.close()

    def _listen(self) -> None:
        while not self._stop.is_set():
            batch = self._source.receive(0.02)
            if batch is not None:
                self.got += [message.address for message in batch.messages]
                batch.settle([ACCEPTED] * len(batch.messages))


def config(gateway: str, places: Sequence[Place], joins: Sequence[tuple[str, str, str]]) -> str:
    """Routes between places: from, to, and `forward` or `both`."""
    by_name = {place.name: place for place in places}
    lines = [f"gateway: {{name: {gateway}}}", "endpoints:"]
    lines += [f"  {place.name}: {place.yaml}" for place in places]
    lines.append("routes:")
    for source, target, direction in joins:
        here, there = REST[by_name[source].system], REST[by_name[target].system]
        lines.append(f"  {source}-{target}:")
        lines.append(f"    direction: {direction}")
        lines.append(f"    from: {{endpoint: {source}, pattern: '{here}'}}")
        lines.append(f"    to: {{endpoint: {target}, template: '{there}'}}")
    return "\n".join(lines) + "\n"


@contextmanager
def joined(
    folder: Path, places: Sequence[Place], *gateways: Sequence[tuple[str, str, str]]
) -> Iterator[list[Gateway]]:
    """Gateways that run, each with its joins."""
    running: list[Gateway] = []
    with ExitStack() as stack:
        for place in places:
            stack.callback(place.close)
        for number, joins in enumerate(gateways):
            named = {name for join in joins for name in join[:2]}
            file = folder / f"gateway{number}.yaml"
            here = [place for place in places if place.name in named]
            file.write_text(config(f"g{number}", here, joins))
            gateway = Gateway(load(file))
            gateway.start()
            stack.callback(gateway.stop, 5)
            running.append(gateway)
        for gateway in running:
            until(lambda g=gateway: all(lane.direct for lane in g.lanes.values()))  # type: ignore[misc]  # a default binds it now
            until(lambda g=gateway: all(s.connection.value == "connected" for s in g.states))  # type: ignore[misc]
        yield running


def quiet(gateways: Sequence[Gateway]) -> bool:
    """Whether nothing is under way anywhere."""
    return all(pump.settled for gateway in gateways for pump in gateway.pumps.values()) and all(
        lane.idle() for gateway in gateways for lane in gateway.lanes.values()
    )


def settle_down(gateways: Sequence[Gateway], places: Sequence[Place]) -> None:
    """Wait until ten looks in a row find nothing new and nothing under way."""
    looks = 0
    before = -1

    def still() -> bool:
        nonlocal looks, before
        count = sum(len(place.got) for place in places)
        looks = looks + 1 if count == before and quiet(gateways) else 0
        before = count
        return looks >= 10

    tick = threading.Event()

    def slowly() -> bool:
        tick.wait(0.03)
        return still()

    until(slowly)


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=lambda system: system)
def test_a_ring_of_three_brokers_and_two_gateways_has_each_message_once_at_every_place(
    tmp_path: Path, one: str, other: str
) -> None:
    run = uuid4().hex
    places = [Place(run, "x", one), Place(run, "y", other), Place(run, "z", one)]
    ring = [[("x", "y", "forward"), ("y", "z", "forward")], [("z", "x", "forward")]]
    with joined(tmp_path, places, *ring) as gateways:
        places[0].publish(NAME[one])
        until(lambda: all(place.got for place in places))
        settle_down(gateways, places)

    assert [place.got for place in places] == [[NAME[one]], [NAME[other]], [NAME[one]]]


@pytest.mark.parametrize(
    ("one", "other", "start"),
    [(one, other, number % 3) for number, (one, other) in enumerate(PAIRS)],
)
def test_two_gateways_in_both_directions_bring_each_message_once_to_every_place(
    tmp_path: Path, one: str, other: str, start: int
) -> None:
    run = uuid4().hex
    places = [Place(run, "x", one), Place(run, "y", other), Place(run, "z", one)]
    with joined(tmp_path, places, [("x", "y", "both")], [("y", "z", "both")]) as gateways:
        places[start].publish(NAME[places[start].system])
        until(lambda: all(place.got for place in places))
        settle_down(gateways, places)

    assert [len(place.got) for place in places] == [1, 1, 1]


@pytest.mark.parametrize("start", [0, 1, 2])
def test_brokers_that_carry_no_origin_path_are_told_apart_by_their_echo(
    tmp_path: Path, start: int
) -> None:
    run = uuid4().hex
    places = [Place(run, name, "mqtt", headers=False) for name in "xyz"]
    with joined(tmp_path, places, [("x", "y", "both"), ("y", "z", "both")]) as gateways:
        for _ in range(5):  # the same name and payload, and five messages all the same
            places[start].publish("a/b/c")
        until(lambda: all(len(place.got) >= 5 for place in places))
        settle_down(gateways, places)

    assert [len(place.got) for place in places] == [5, 5, 5]


def test_two_gateways_without_origin_paths_end_a_loop_where_the_user_gives_a_time(
    tmp_path: Path,
) -> None:
    run = uuid4().hex
    places = [Place(run, name, "mqtt", headers=False) for name in "xyz"]
    for place in places:
        place.yaml = place.yaml.replace("}", ", echo_seconds: 30}")
    ring = [[("x", "y", "forward"), ("y", "z", "forward")], [("z", "x", "forward")]]
    with joined(tmp_path, places, *ring) as gateways:
        places[0].publish("a/b/c")
        until(lambda: all(place.got for place in places))
        settle_down(gateways, places)

    assert [len(place.got) for place in places] == [2, 1, 1]  # it came back once, and stopped
