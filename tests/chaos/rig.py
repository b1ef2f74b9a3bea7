"""Test rig for fault tests: a load, a witness, a gateway process and a memory sampler."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from gateway.endpoints.base import Batch, Sink, Source, Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import NotConnectedError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, Outcome
from tests.brokers.running import Process
from tests.endpoints.exchange import Answer
from tests.waiting import PATIENCE

CONFIRMED: Final = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
BATCH: Final = 200  # messages a load sends at once, if its rate allows
BURSTS: Final = 10  # a second, of a load with a rate
TOPICS: Final = 20
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
INFINITE: Final = float("inf")

CONFIG = """\
gateway: {{name: test}}
endpoints:
  source: {{kind: mqtt, host: 127.0.0.1, port: {source}, {backoff}{source_settings}}}
  target: {{kind: mqtt, host: 127.0.0.1, port: {target}, {backoff}{target_settings}}}
routes:
  relay:
    from: {{endpoint: source, pattern: "src/{{rest...}}"}}
    to: {{endpoint: target, template: "dst/{{rest...}}"{tap}}}
{route}archive: {{path: {folder}/archive{archive}}}
{spool}"""
FAST_BACKOFF = "backoff_min: 0.05, backoff_max: 0.2"


def repetitions(short: int | None, long: int) -> pytest.MarkDecorator:
    """The parameter `times` of a test: `short` in every run, `long` in `make test-chaos`."""
    rows = [pytest.param(long, id=str(long), marks=pytest.mark.chaos)]
    if short is not None:
        rows.insert(0, pytest.param(short, id=str(short)))
    return pytest.mark.parametrize("times", rows)


@dataclass(frozen=True, slots=True)
class RelayConfig:
    """A relay from one port to another; each text is appended to its section."""

    folder: Path
    source: int
    target: int
    source_settings: str = ""
    target_settings: str = ""
    route: str = ""
    archive: str = ""
    spool: str | None = ""  # None: no spool
    tap: str = ""

    def write(self) -> Path:
        spool = ""
        if self.spool is not None:
            spool = f"spool: {{path: {self.folder}/spool{self.spool}}}\n"
        file = self.folder / "gateway.yaml"
        file.write_text(
            CONFIG.format(
                folder=self.folder, source=self.source, target=self.target,
                source_settings=self.source_settings, target_settings=self.target_settings,
                route=self.route, archive=self.archive, spool=spool, backoff=FAST_BACKOFF,
                tap=self.tap,
            )
        )  # fmt: skip
        return file


@contextmanager
def running(
    config: Path,
    *,
    source: bool = True,
    target: bool = True,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Process]:
    """Run a gateway process and wait for the given connections; it is killed at the end."""
    process = Process(config, environment)
    try:
        if source:
            process.wait_for("connected", endpoint="source", side="source")
        if target:
            process.wait_for("connected", endpoint="target", side="sink")
        yield process
    finally:
        process.end(signal.SIGKILL)


def broker(port: int) -> MqttSettings:
    """Settings of the load and the witness for the broker at `port`."""
    return MqttSettings(host="127.0.0.1", port=port, receive_window=20_000)


class Load:
    """Publishes numbers with QoS 1 until each is acknowledged.

    Number n is published to `src/{n % TOPICS}`, and again, in order, after a lost connection.
    Mutable: owned by its thread between `start` and `stop`.
    """

    def __init__(self, port: int, rate: float = INFINITE, size: int = 0) -> None:
        """`rate` in messages a second; payloads have at least `size` bytes."""
        self.sent = 0  # smaller numbers are acknowledged
        self._tried = 0  # smaller numbers may have arrived
        self._sink = make_sink(broker(port), instance="load")
        self._rate, self._size = rate, size
        self._batch = int(max(1, min(BATCH, rate / BURSTS)))
        self._stop = threading.Event()
        self._end = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self, end: int = sys.maxsize) -> None:
        """Publish all numbers below `end`, in the background."""
        self._end = end
        self._thread.start()

    def publish(self, end: int) -> None:
        """Publish the remaining numbers below `end` and wait until they are acknowledged."""
        self._end = end
        self._run()

    def stop(self) -> int:
        """Stop publishing and return the number of messages sent."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(PATIENCE)
            assert not self._thread.is_alive()
        self._sink.close()
        return self.sent

    def finish(self) -> int:
        """Publish one last number after all others; return the number of messages sent."""
        self.stop()
        self._stop.clear()
        self.publish(self._tried + 1)
        return self.stop()

    def _run(self) -> None:
        reopen(self._sink, self._stop)
        began, before = time.monotonic(), self.sent
        while self.sent < self._end and not self._stop.is_set():
            number = min(self._batch, self._end - self.sent)
            ahead = self.sent - before - self._rate * (time.monotonic() - began + 1e-9)
            if ahead > 0:
                self._stop.wait(ahead / self._rate)
                continue
            self._tried = max(self._tried, self.sent + number)
            if self._send([self._message(self.sent + each) for each in range(number)]):
                self.sent += number

    def _send(self, messages: list[Message]) -> bool:
        """Send until all are acknowledged; return false if the load is stopped before."""
        while messages:
            answer = Answer()
            try:
                self._sink.send(messages, answer)
            except NotConnectedError:
                if not reopen(self._sink, self._stop):
                    return False
                continue
            answers = zip(messages, answer.wait(), strict=True)
            messages = [
                each for each, connection in answers if connection.outcome is not Outcome.ACCEPTED
            ]
        return True

    def _message(self, number: int) -> Message:
        payload = (b"%d " % number).ljust(self._size, b".")
        return Message(f"src/{number % TOPICS}", payload, CONFIRMED)


class Witness:
    """Records the numbers that arrive at the target broker, by topic.

    Mutable: written by its own thread; `wait_for` synchronises.
    """

    def __init__(self, port: int) -> None:
        self.numbers: dict[str, list[int]] = defaultdict(list)
        self.unique = 0  # distinct numbers
        self.arrivals: list[float] = []  # monotonic times of new numbers
        self._source = make_source(broker(port), [Subscription("dst/#")], instance="witness")
        self._seen: set[int] = set()
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._source.open()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        self._source.close()

    def wait_for(self, unique: int, seconds: float = PATIENCE) -> None:
        with self._changed:
            arrived = self._changed.wait_for(lambda: self.unique >= unique, seconds)
        assert arrived, (
            f"{unique - self.unique} of {unique} did not arrive in time;"
            f" absent below {unique}: {spans(self.absent(unique))}"
        )

    def arrived(self, since: float, seconds: float = 0.1) -> bool:
        """Return whether a new number comes within `seconds`, or came `since`, a monotonic time."""
        with self._changed:
            return self._changed.wait_for(lambda: self.arrivals[-1:] > [since], seconds)

    def wait_for_number(self, number: int) -> None:
        with self._changed:
            arrived = self._changed.wait_for(lambda: number in self._seen, PATIENCE)
        assert arrived, f"{number} did not arrive in time"

    def absent(self, sent: int) -> set[int]:
        """Numbers below `sent` that have not arrived."""
        return set(range(sent)) - self._seen

    def pause(self, since: float) -> float:
        """Return the longest time without an arrival since `since`, in monotonic seconds."""
        last = max((each for each in self.arrivals if each < since), default=since)
        times = [last, *(each for each in self.arrivals if each >= since)]
        return max(b - a for a, b in pairwise(times))

    @property
    def duplicates(self) -> set[int]:
        """Numbers that arrived more than once."""
        return {
            number
            for numbers in self.numbers.values()
            for number, times in Counter(numbers).items()
            if times > 1
        }

    def check_order(self, sent: int) -> None:
        """Check that all numbers below `sent` arrived, and that first arrivals are in order.

        Raises:
            AssertionError: a number is missing or out of order in its topic.
        """
        assert self.unique == sent, f"{self.unique} arrived of {sent}"
        self.check_sorted()

    def check_sorted(self) -> None:
        """Check that first arrivals are in order.

        Raises:
            AssertionError: a number is out of order in its topic.
        """
        for topic, numbers in self.numbers.items():
            firsts = list(dict.fromkeys(numbers))
            assert firsts == sorted(firsts), f"{topic} is out of order"

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                batch = self._source.receive(0.2)
            except NotConnectedError:
                reopen(self._source, self._stop)
                continue
            if batch is not None:
                self._take(batch)

    def _take(self, batch: Batch) -> None:
        for message in batch.messages:
            assert isinstance(message.payload, bytes)
            number = int(message.payload.split(b" ", 1)[0])
            if message.headers.redelivered and number in self._seen:
                continue  # redelivered, because this witness had not acknowledged it in time
            self.numbers[message.address].append(number)
            self._seen.add(number)
        batch.settle([ACCEPTED] * len(batch.messages))
        with self._changed:
            if len(self._seen) > self.unique:
                self.arrivals.append(time.monotonic())
            self.unique = len(self._seen)
            self._changed.notify_all()


def spans(numbers: set[int]) -> str:
    """Return the runs of successive numbers, as `3, 7-9`; at most the first ten."""
    first = sorted(each for each in numbers if each - 1 not in numbers)
    last = sorted(each for each in numbers if each + 1 not in numbers)
    runs = [f"{a}-{b}" if b > a else f"{a}" for a, b in zip(first, last, strict=True)]
    return ", ".join(runs[:10] + ["..."] * (len(runs) > 10))


@contextmanager
def load_and_witness(
    source: int, target: int, rate: float = INFINITE, size: int = 0
) -> Iterator[tuple[Load, Witness]]:
    load, witness = Load(source, rate, size), Witness(target)
    try:
        yield load, witness
    finally:
        load.stop()
        witness.stop()


def end_after_all(gateway: Process, load: Load, witness: Witness) -> int:
    """Stop the load, wait until all has arrived, end the gateway; return the number sent.

    Raises:
        AssertionError: a number is missing or out of order, or the gateway fails.
    """
    sent = load.finish()
    witness.wait_for(sent)
    assert gateway.end() == 0
    witness.check_order(sent)
    return sent


def reopen(end: Source | Sink, stop: threading.Event) -> bool:
    """Open `end`, with retries; return false if `stop` is set before."""
    while not stop.is_set():
        with suppress(NotConnectedError):
            end.open()
            return True
        stop.wait(0.05)
    return False


class MemorySampler:
    """Samples the resident memory of a process.

    Mutable: the list grows in its own thread.
    """

    def __init__(self, pid: int) -> None:
        self.samples: list[float] = []  # MB
        self._file = Path(f"/proc/{pid}/statm")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Sample for `seconds` more."""
        self._stop.wait(seconds)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            with suppress(OSError):
                self.samples.append(int(self._file.read_text().split()[1]) * PAGE / 1e6)
