"""A bridge of mosquitto and the mapping imported from its file deliver the same, both ways."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.cli import main
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.running import Client, Process
from tests.waiting import PATIENCE

pytestmark = pytest.mark.broker

HEAD = "connection c\naddress 127.0.0.1:{port}\nnotifications false\nrestart_timeout 1\n"
MARKS = "topic mark/out out 1\ntopic mark/in in 1\n"
ROUNDS = 3  # marks sent one behind the other: what goes round has come back before the last
Arrived = tuple[list[tuple[str, bytes]], list[tuple[str, bytes]]]

BRIDGES = [
    pytest.param(
        "topic # both 1 line/ plants/7/",
        ["line/a", "line/a/b", "line//x", "other", "lines/a"],
        ["plants/7/a", "plants/7/a/b", "plants/8/a", "line/a"],
        id="both-with-prefixes",
    ),
    pytest.param(
        'topic state/# both 1 "" plants/7/',
        ["state", "state/a", "plants/7/state/l"],
        ["plants/7/state", "plants/7/state/a", "state/r"],
        id="both-with-one-prefix",
    ),
    pytest.param(
        "topic a/# both 1",
        ["a", "a/b", "a/b/c", "b"],
        ["a", "a/b", "a/x", "b"],
        id="both-with-the-same-names",
    ),
    pytest.param(
        "topic a/# out 1\ntopic a/cmd/+ in 1",
        ["a/state", "a/cmd/x", "a/cmd/x/y"],
        ["a/state", "a/cmd/x", "a/cmd/x/y"],
        id="out-and-in-overlap",
    ),
    pytest.param(
        'topic a/# out 1 "" q/\ntopic a/b out 1 "" r/\ntopic b/# out 1\ntopic b/c out 1 "" s/',
        ["a/b", "a/c", "b/b", "b/c"],
        ["q/a/b", "b/b"],
        id="the-first-with-a-prefix-decides",
    ),
    pytest.param(
        "topic +/x/+ both 1 L/ R/\ntopic a/# both 1",
        ["L/k/x/m", "a/k", "L/k/y/m"],
        ["R/k/x/m", "a/k", "L/k/x/m"],
        id="two-lines-both",
    ),
]


class Side(Client):
    """One broker as a person sees it: all that arrives there, and what is sent."""

    def __init__(self, port: int) -> None:
        super().__init__(port, "#")

    def gets(self, name: str, mark: bytes) -> bool:
        """Whether a mark has arrived or does so within 0.3 s."""

        def there() -> bool:
            return any(topic == name and load.startswith(mark) for topic, load in self.arrived)

        with self._changed:
            return self._changed.wait_for(there, timeout=0.3)

    def sends(self, name: str, mark: bytes, other: Side) -> None:
        """Send a mark until one crosses; a bridge that just began carries nothing yet."""
        for _ in range(100):
            self.publish(name, mark).wait_for_publish(PATIENCE)
            if other.gets(name, mark):
                return
        pytest.fail(f"{name} never crossed")

    @property
    def deliveries(self) -> list[tuple[str, bytes]]:
        """All but the marks, sorted."""
        return sorted(each for each in self.arrived if not each[0].startswith("mark/"))


@contextmanager
def sides(local: Mosquitto, remote: Mosquitto) -> Iterator[tuple[Side, Side]]:
    here, there = Side(local.port), Side(remote.port)
    try:
        yield here, there
    finally:
        here.close()
        there.close()


def deliveries(
    local: Mosquitto, remote: Mosquitto, outward: list[str], inward: list[str]
) -> Arrived:
    """Everything that arrives at either side."""
    with sides(local, remote) as (here, there):
        marks = [b"ready", *(b"round-%d" % number for number in range(ROUNDS))]
        for mark in marks:
            here.sends("mark/out", mark, there)
            there.sends("mark/in", mark, here)
            if mark == b"ready":
                for name in outward:
                    here.publish(name, f"L:{name}".encode()).wait_for_publish(PATIENCE)
                for name in inward:
                    there.publish(name, f"R:{name}".encode()).wait_for_publish(PATIENCE)
        return here.deliveries, there.deliveries


def once(arrived: Arrived) -> Arrived:
    """Leave out copies: mosquitto 2.1 sends one for each line that matches, with the same name."""
    here, there = arrived
    return sorted({*here}), sorted({*there})


@contextmanager
def gateway(config: Path) -> Iterator[None]:
    process = Process(config)
    try:
        for endpoint in ("c", "c-local"):
            for side in ("source", "sink"):
                process.wait_for("connected", endpoint=endpoint, side=side)
        yield
    finally:
        process.end(signal.SIGKILL)


@pytest.mark.parametrize(("topics", "outward", "inward"), BRIDGES)
def test_the_imported_mapping_delivers_what_the_bridge_does(
    tmp_path: Path,
    start_mosquitto: StartMosquitto,
    topics: str,
    outward: list[str],
    inward: list[str],
) -> None:
    bridge = f"{HEAD}{topics}\n{MARKS}"
    remote = start_mosquitto()
    local = start_mosquitto("allow_anonymous true", bridge.format(port=remote.port))
    expected = once(deliveries(local, remote, outward, inward))

    local, remote = start_mosquitto(), start_mosquitto()
    file, mapping = tmp_path / "mosquitto.conf", tmp_path / "bridge.yaml"
    file.write_text(f"listener {local.port}\n{bridge.format(port=remote.port)}")
    main(["import", "mosquitto", str(file), "-o", str(mapping)])
    assert main(["check", "--strict", str(mapping)]) == 0
    with gateway(mapping):
        found = deliveries(local, remote, outward, inward)

    assert found == expected
    assert len(expected[0]) + len(expected[1]) > len(outward) + len(inward)  # something crossed
