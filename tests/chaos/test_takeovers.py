"""A pair under traffic: killed, frozen, cut off and handed over; nothing is lost or out of order.

Over YAMI4, which keeps nothing, the lost ones are those of the gaps that the archive names.
"""

from __future__ import annotations

import random
import re
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import quantiles
from typing import Final, Protocol

import pytest

from gateway.archive.gaps import SourceGap, merge_gaps
from gateway.cli import main
from gateway.lease.file_store import FileLeaseStore
from gateway.night.archive.lookup.row_files import Row
from tests.archived import archived
from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.running import Process
from tests.brokers.wire import Wire
from tests.chaos.archived import check_marked, check_without_gap, digest_of, read_archive
from tests.chaos.rig import FAST_BACKOFF, Load, Witness, load_and_witness, repetitions, spans
from tests.chaos.test_other_systems import (
    AMQP,
    JMS,
    MAPPING,
    NATS_LATER,
    RABBITMQ,
    SOLACE,
    Broker,
    started,
    yami4,
)
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.broker

SECONDS: Final = 1.0  # of the lease
RATE: Final = 1_000  # messages a second
SLOW: Final = 300  # likewise, over systems that confirm each message
INACTIVITY: Final = (
    "wireFormat.maxInactivityDuration=2000"  # ms after which ActiveMQ drops a client
)
WAYS: Final = ("SIGKILL", "SIGSTOP", "handover", "SIGTERM", "cut")
HEAD = """\
gateway: {{name: plant-1, instance: "{instance}"}}
standby: {{lease: {{kind: file, path: {folder}/lease-{instance}}}, seconds: {seconds}}}
archive: {{path: {folder}/archive}}
"""
PORT: Final = re.compile(r"(?<=[ :])\d{4,5}(?=[,/?'\"])")
DIRECT = """\
endpoints:
  source: {{kind: mqtt, host: 127.0.0.1, port: {source}, {settings}}}
  target: {{kind: mqtt, host: 127.0.0.1, port: {target}, {settings}}}
routes:
  relay:
    from: {{endpoint: source, pattern: "src/{{rest...}}"}}
    to: {{endpoint: target, template: "dst/{{rest...}}"}}
"""


class Network:
    """The way of one instance to the brokers and to the folder of the lease. Mutable."""

    def __init__(self, folder: Path, instance: str) -> None:
        self._lease = folder / f"lease-{instance}"
        self._wires: dict[str, Wire] = {}  # by port of the broker
        self._reach(folder / "lease")

    def through(self, mapping: str) -> str:
        """Return the mapping with ports of this network."""
        return PORT.sub(lambda found: str(self._wire(found[0]).port), mapping)

    def cut(self) -> None:
        """Let nothing through, and no sign of that."""
        self._reach(Path(__file__))  # no folder
        for wire in self._wires.values():
            wire.stall()

    def heal(self) -> None:
        self._reach(self._lease.with_name("lease"))
        for wire in self._wires.values():
            wire.flow()

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()

    def _wire(self, port: str) -> Wire:
        return self._wires.get(port) or self._wires.setdefault(port, Wire(int(port)))

    def _reach(self, folder: Path) -> None:
        new = self._lease.with_suffix(".new")
        new.symlink_to(folder)
        new.replace(self._lease)


class Arrivals(Protocol):
    """The signs of a new holder; the times are monotonic seconds."""

    def arrived(self, since: float) -> bool: ...

    def pause(self, begun: float) -> float: ...


class Pair:
    """Two instances, each started again when it ends, as a supervisor does.

    `pauses` are in seconds, by the way of the takeover. Mutable.
    """

    def __init__(self, folder: Path, mapping: str) -> None:
        (folder / "lease").mkdir()
        self.store = FileLeaseStore(folder / "lease")
        self.pauses: dict[str, list[float]] = defaultdict(list)
        self.configs: dict[str, Path] = {}
        self.networks: dict[str, Network] = {}
        for instance in ("a", "b"):
            network = self.networks[instance] = Network(folder, instance)
            config = self.configs[instance] = folder / f"{instance}.yaml"
            head = HEAD.format(folder=folder, instance=instance, seconds=SECONDS)
            config.write_text(head + network.through(mapping))
        self.runs: list[tuple[str, Process]] = []
        self.processes: dict[str, Process] = {}
        for name in self.configs:
            self.start_again(name)
        self.standby_waits()
        self.processes[self.holder].connected()

    @property
    def holder(self) -> str:
        record = self.store.look()
        return "" if record.given else record.holder

    def standby_waits(self) -> None:
        """Wait until one instance carries the messages and the other one waits for the lease."""
        until(self._is_whole, "one instance runs and the other one waits")
        until(lambda: self.holder in self.processes, "a lease has its holder")  # it may move now

    def _is_whole(self) -> bool:
        holder = self.holder
        for name in self.processes:
            self._supervise(name)
        return all(
            process.logged("standby") and process.logged("running") == (name == holder)
            for name, process in self.processes.items()
        )

    def _supervise(self, name: str) -> None:
        """Start an instance again that has ended: a busy machine costs it its lease."""
        if self.processes[name].process.poll() is not None:
            self.start_again(name)

    def start_again(self, name: str) -> None:
        self.processes[name] = Process(self.configs[name])
        self.runs.append((name, self.processes[name]))

    def take_over(self, how: str, witness: Arrivals) -> None:
        """Let the other instance take over, and wait for the next message."""
        self.standby_waits()
        name, number = self.holder, self.store.look().number
        process, other = self.processes[name], "b" if name == "a" else "a"
        begun = time.monotonic()
        if how == "handover":
            assert main(["handover", str(self.configs[name])]) == 0
        elif how == "cut":
            self.networks[name].cut()
        else:
            process.process.send_signal(getattr(signal, how))
        if how in {"handover", "SIGTERM"}:
            assert process.process.wait(60) == 0

        def is_taken() -> bool:
            self._supervise(other)
            return self.store.look().number > number

        until(is_taken, "the other instance takes the lease")
        taken = time.monotonic()
        while not witness.arrived(taken):
            assert time.monotonic() < taken + PATIENCE, "nothing arrived in time"
            self._supervise(other)
        self.pauses[how].append(witness.pause(begun))
        if how in {"SIGSTOP", "cut"}:
            process.process.send_signal(signal.SIGCONT)
            self.networks[name].heal()
            process.wait_for("the lease is lost")
        process.process.wait(60)
        self.start_again(name)

    def stop(self) -> None:
        """Stop both, so that the archive is whole."""
        self.standby_waits()
        for process in self.processes.values():
            assert process.end() == 0

    def end(self) -> None:
        for process in self.processes.values():
            process.end(signal.SIGKILL)
        for network in self.networks.values():
            network.close()

    def log(self) -> str:
        """Return the log lines of all processes, by time."""
        facts = ("time", "message", "endpoint", "side", "rule", "reason")
        lines = [
            f"{line.get('time')} {name} {' '.join(str(line.get(each, '')) for each in facts[1:])}"
            for name, process in self.runs
            for line in process.lines
        ]
        return "\n".join(sorted(lines))

    def histogram(self) -> str:
        """Return a table of the pauses."""
        lines = [
            "| takeover by | times | pause: median | 90 % | 99 % | longest |",
            "|---" * 6 + "|",
        ]
        for how, pauses in self.pauses.items():
            cuts = quantiles([*pauses, pauses[-1]], n=100)
            shown = (cuts[49], cuts[89], cuts[98], max(pauses))
            texts = (f"{min(each, max(pauses)):.2f} s" for each in shown)
            lines.append(f"| {how} | {len(pauses)} | {' | '.join(texts)} |")
        return "\n".join(lines)


@contextmanager
def pair_under_load(
    folder: Path, source: int, target: int, mapping: str, rate: float = RATE
) -> Iterator[tuple[Pair, Load, Witness]]:
    pair = Pair(folder, mapping)
    try:
        with load_and_witness(source, target, rate) as (load, witness):
            load.start()
            yield pair, load, witness
    except BaseException:
        print(pair.log())  # noqa: T201  # the evidence
        raise
    finally:
        pair.end()


def direct(source: int, target: int, version: str = "5") -> str:
    settings = f'version: "{version}", {FAST_BACKOFF}'
    return DIRECT.format(source=source, target=target, settings=settings)


def detecting(settings: str) -> str:
    """Return the settings with which a broker notices within seconds that a client is frozen."""
    inactive = settings.replace("'], client_id", f"?{INACTIVITY}'], client_id")
    return inactive.replace("keepalive: 0.5", "keepalive: 1")


def take_turns(pair: Pair, witness: Witness, times: int) -> None:
    """Let the instances take over in each way, then in ways drawn at random."""
    chance = random.Random(times)  # noqa: S311  # the same faults in every run
    for turn in range(times):
        pair.take_over(WAYS[turn] if turn < len(WAYS) else chance.choice(WAYS), witness)


def check(folder: Path, pair: Pair, load: Load, witness: Witness) -> None:
    """Check what arrived, and that the archive of the two instances proves it."""
    print(pair.histogram())  # noqa: T201  # shown with -s
    sent = load.finish()
    witness.wait_for(sent)
    witness.check_order(sent)
    pair.stop()
    archived = read_archive(folder)
    check_without_gap(archived, sent)
    check_marked(archived, witness.duplicates)
    assert main(["archive", "verify", str(folder / "archive")]) == 0


@repetitions(None, 200)
@pytest.mark.parametrize("version", ["5", pytest.param("3.1.1", marks=pytest.mark.nightly)])
def test_a_pair_loses_nothing_through_takeovers(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int, version: str
) -> None:
    source, target = start_mosquitto().port, start_mosquitto().port
    mapping = direct(source, target, version)
    with pair_under_load(tmp_path, source, target, mapping) as (pair, load, witness):
        take_turns(pair, witness, times)
        check(tmp_path, pair, load, witness)


@repetitions(None, 100)
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


@repetitions(2, 40)
@pytest.mark.parametrize(("make", "separator"), [JMS, SOLACE, NATS_LATER, RABBITMQ, AMQP])
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


@repetitions(None, 40)
def test_a_pair_over_yami4_loses_only_what_its_gaps_name(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int
) -> None:
    """Its broker keeps nothing: a message that it has during a takeover may be lost."""
    source, target = start_mosquitto().port, start_mosquitto().port
    with started(yami4(tmp_path)) as broker:
        mapping = MAPPING.format(
            source=source, target=target, separator=".", middle=broker.settings,
            backoff=FAST_BACKOFF,
        )  # fmt: skip
        with pair_under_load(tmp_path, source, target, mapping, SLOW) as (pair, load, witness):
            take_turns(pair, witness, times)
            print(pair.histogram())  # noqa: T201  # shown with -s
            sent = load.finish()
            witness.wait_for_number(sent - 1)
            pair.stop()
            rows = archived(tmp_path)
            carried = {row["hash"] for row in rows if _is(row, "back", "delivered")}
            until(lambda: not any(digest_of(each) in carried for each in witness.absent(sent)))
            witness.check_sorted()
    gaps = [gap for gap in merge_gaps(each for each in rows if each["leg"] == "gap") if gap.counts]
    assert all(before.end <= after.begin for before, after in pairwise(gaps))
    assert len(gaps) >= times
    lost = witness.absent(sent)
    seconds = ", ".join(f"{(gap.end - gap.begin) / 1e6:.2f}" for gap in gaps)
    print(f"{len(lost)} of {sent} lost; the gaps have {seconds} s")  # noqa: T201  # shown with -s
    unnamed = {each for each in lost if not is_named(rows, digest_of(each), gaps)}
    assert not unnamed, spans(unnamed)
    check_marked(read_archive(tmp_path), witness.duplicates)


def is_named(rows: Sequence[Row], digest: bytes, gaps: Sequence[SourceGap]) -> bool:
    """Return whether a gap has the time in which the YAMI4 broker got a message."""
    own = [row for row in rows if row["hash"] == digest]
    begin = min(_microseconds(row) for row in own if _is(row, "there", "received"))
    end = max(_microseconds(row) for row in own if _is(row, "there", "delivered"))
    return any(gap.begin <= end and begin <= gap.end for gap in gaps)


def _is(row: Row, route: str, leg: str) -> bool:
    return bool(row["route"] == route and row["leg"] == leg)


def _microseconds(row: Row) -> int:
    return int(row["time"].timestamp() * 1_000_000)
