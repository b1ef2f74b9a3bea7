"""A pair under traffic: killed, frozen and handed over; no message is lost or out of order."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from gateway.cli import main
from gateway.lease.file_store import FileLeaseStore
from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.running import Process
from tests.chaos.archived import check_marked, check_without_gap, read_archive
from tests.chaos.rig import FAST_BACKOFF, Load, Witness, load_and_witness, repetitions
from tests.chaos.test_other_systems import JMS, MAPPING, SOLACE, Broker, started
from tests.waiting import until

pytestmark = pytest.mark.broker

SECONDS: Final = 1.0  # of the lease
RATE: Final = 1_000  # messages a second
SLOW: Final = 300  # likewise, over systems that confirm each message
INACTIVITY: Final = (
    "wireFormat.maxInactivityDuration=2000"  # ms after which ActiveMQ drops a client
)
WAYS: Final = ("SIGKILL", "SIGSTOP", "handover", "SIGTERM")
HEAD = """\
gateway: {{name: plant-1, instance: "{instance}"}}
standby: {{lease: {{kind: file, path: {folder}/lease}}, seconds: {seconds}}}
archive: {{path: {folder}/archive}}
"""
DIRECT = """\
endpoints:
  source: {{kind: mqtt, host: 127.0.0.1, port: {source}, {settings}}}
  target: {{kind: mqtt, host: 127.0.0.1, port: {target}, {settings}}}
routes:
  relay:
    from: {{endpoint: source, pattern: "src/{{rest...}}"}}
    to: {{endpoint: target, template: "dst/{{rest...}}"}}
"""


class Pair:
    """Two instances, each started again when it ends, as a supervisor does. Mutable."""

    def __init__(self, folder: Path, mapping: str) -> None:
        self.store = FileLeaseStore(folder / "lease")
        self.configs: dict[str, Path] = {}
        for instance in ("a", "b"):
            config = self.configs[instance] = folder / f"{instance}.yaml"
            head = HEAD.format(folder=folder, instance=instance, seconds=SECONDS)
            config.write_text(head + mapping)
        self.processes = {name: Process(config) for name, config in self.configs.items()}
        until(lambda: self.holder != "", "an instance takes the lease")
        self.processes[self.holder].connected()

    @property
    def holder(self) -> str:
        record = self.store.look()
        return "" if record.given else record.holder

    def standby_waits(self) -> None:
        """Wait until the other instance waits for the lease."""
        for name, process in self.processes.items():
            if name != self.holder:
                process.wait_for("standby", instance=name)

    def start_again(self, name: str) -> None:
        self.processes[name] = Process(self.configs[name])

    def take_over(self, how: str, witness: Witness) -> float:
        """Let the other instance take over; return the seconds to the next message."""
        self.standby_waits()
        name, number = self.holder, self.store.look().number
        process, other = self.processes[name], self.processes["b" if name == "a" else "a"]
        begun = time.monotonic()
        if how == "handover":
            assert main(["handover", str(self.configs[name])]) == 0
        else:
            process.process.send_signal(getattr(signal, how))
        if how in {"handover", "SIGTERM"}:
            assert process.process.wait(60) == 0
        before = witness.unique
        until(lambda: self.store.look().number > number, "the other instance takes the lease")
        other.connected()
        witness.wait_for(before + 1)
        seconds = time.monotonic() - begun
        if how == "SIGSTOP":
            process.process.send_signal(signal.SIGCONT)
            process.wait_for("the lease is lost")
        process.process.wait(60)
        self.start_again(name)
        return seconds

    def stop(self) -> None:
        """Stop both, so that the archive is whole."""
        self.standby_waits()
        for process in self.processes.values():
            assert process.end() == 0

    def end(self) -> None:
        for process in self.processes.values():
            process.end(signal.SIGKILL)


@contextmanager
def pair_under_load(
    folder: Path, source: int, target: int, mapping: str, rate: float = RATE
) -> Iterator[tuple[Pair, Load, Witness]]:
    pair = Pair(folder, mapping)
    try:
        with load_and_witness(source, target, rate) as (load, witness):
            load.start()
            yield pair, load, witness
    finally:
        pair.end()


def direct(source: int, target: int, version: str = "5") -> str:
    settings = f'version: "{version}", {FAST_BACKOFF}'
    return DIRECT.format(source=source, target=target, settings=settings)


def detecting(settings: str) -> str:
    """Return the settings with which a broker notices within seconds that a client is frozen."""
    return settings.replace("'],", f"?{INACTIVITY}'],").replace("keepalive: 0.5", "keepalive: 1")


def take_turns(pair: Pair, witness: Witness, times: int) -> None:
    """Let the instances take over in each way, then in ways drawn at random."""
    chance = random.Random(times)  # noqa: S311  # the same faults in every run
    for turn in range(times):
        pair.take_over(WAYS[turn] if turn < len(WAYS) else chance.choice(WAYS), witness)


def check(folder: Path, pair: Pair, load: Load, witness: Witness) -> None:
    """Check what arrived, and that the archive of the two instances proves it."""
    sent = load.finish()
    witness.wait_for(sent)
    witness.check_order(sent)
    pair.stop()
    archived = read_archive(folder)
    check_without_gap(archived, sent)
    check_marked(archived, witness.duplicates)
    assert main(["archive", "verify", str(folder / "archive")]) == 0


@repetitions(4, 200)
@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_pair_loses_nothing_through_takeovers(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int, version: str
) -> None:
    source, target = start_mosquitto().port, start_mosquitto().port
    mapping = direct(source, target, version)
    with pair_under_load(tmp_path, source, target, mapping) as (pair, load, witness):
        take_turns(pair, witness, times)
        check(tmp_path, pair, load, witness)


@repetitions(2, 100)
def test_a_handover_doubles_nothing(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int
) -> None:
    source, target = start_mosquitto().port, start_mosquitto().port
    mapping = direct(source, target)
    with pair_under_load(tmp_path, source, target, mapping) as (pair, load, witness):
        for _ in range(times):
            pair.take_over("handover", witness)
        check(tmp_path, pair, load, witness)
        assert witness.duplicates == set()


@repetitions(4, 40)
@pytest.mark.parametrize(("make", "separator"), [JMS, SOLACE])
def test_a_pair_between_other_systems_loses_nothing(
    tmp_path: Path,
    start_mosquitto: StartMosquitto,
    make: Callable[[Path], Broker],
    separator: str,
    times: int,
) -> None:
    source, target = start_mosquitto().port, start_mosquitto().port
    with started(make(tmp_path)) as broker:
        mapping = MAPPING.format(
            source=source, target=target, separator=separator,
            middle=detecting(broker.settings),
            backoff=FAST_BACKOFF,
        )  # fmt: skip
        with pair_under_load(tmp_path, source, target, mapping, SLOW) as (pair, load, witness):
            take_turns(pair, witness, times)
            check(tmp_path, pair, load, witness)
