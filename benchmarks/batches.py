"""Measures what a batch costs the runtime whatever its size, and what each message of it adds.

    python -m benchmarks.batches [--seconds N]

Batches of a source with 1 to 300 messages of 100 bytes pass from `Relay.relay` by a lane to a sink
that accepts at once, in this process and without sockets. The time is processor time of all
threads. First each batch follows when the rows of the last one are durable. Then there are 1,000
batches a second, with rows that a broker awaits and with rows that none awaits.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.columns import table
from gateway.archive.journal.writer import ArchiveWriter
from gateway.config.load import load
from gateway.endpoints.base import Batch, Settle
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.routing.origin_path import GatewayIdentity
from gateway.runtime.context import GatewayContext
from gateway.runtime.delivery.lane_limits import LaneLimits
from gateway.runtime.delivery.rows import message_ids
from gateway.runtime.inbound.echo_cache import EchoCache
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.outbound.sink_binding import SinkBinding
from gateway.runtime.record.batch_recorder import BatchRecorder
from gateway.runtime.record.counters import EndpointState, RouteCounters
from gateway.runtime.relay import Relay
from gateway.runtime.wiring import make_source_binding

SIZES: Final = (1, 10, 20, 100, 300)
PAUSE: Final = 0.001  # seconds between batches that do not wait for each other
PACED: Final = 1_000  # of these
ROUNDS: Final = 5
CONFIG: Final = """\
gateway: {name: bench}
endpoints:
  from: {kind: memory, dialect: mqtt}
  to: {kind: memory, dialect: mqtt}
routes:
  all:
    from: {endpoint: from, pattern: "src/{rest...}"}
    to: {endpoint: to, template: "dst/{rest...}"}
"""


class AcceptingSink:
    """Accepts every message at once."""

    def open(self) -> None:
        """Do nothing."""

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        settled([ACCEPTED] * len(messages))

    def close(self) -> None:
        """Do nothing."""


@contextmanager
def open_relay(archive: ArchiveWriter | None, *, awaited: bool = True) -> Iterator[Relay]:
    """Yield a relay whose lane is connected."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "gateway.yaml")
        file.write_text(CONFIG)
        append = None if archive is None else partial(archive.append, awaited=awaited)
        recorder = BatchRecorder({"all": RouteCounters()}, append)
        binding = SinkBinding(AcceptingSink(), "mqtt", frozenset(), LaneLimits((0.1, 1.0)))
        lane = Lane(binding, EndpointState("to", "sink"))
        identity, ids = GatewayIdentity("bench"), message_ids(1)
        context = GatewayContext(identity, {"to": lane}, recorder, ids, EchoCache(), {})
        source = make_source_binding(load(file), "from")
        lane.start()
        while not lane.direct:
            time.sleep(0.01)
        yield Relay(source, EndpointState("from", "source"), context, threading.Event())
        lane.stop()


def batch_of(size: int, settled: threading.Semaphore) -> Batch:
    headers = Headers()
    messages = [Message(f"src/{number}", bytes(100), headers) for number in range(size)]
    return Batch(messages, lambda _: settled.release())


def one_by_one(relay: Relay, size: int, duration: float) -> float:
    """Return the microseconds of a batch of `size` messages: the median of some rounds."""
    settled = threading.Semaphore(0)
    batch = batch_of(size, settled)
    rounds: list[float] = []
    end = time.monotonic() + duration
    while time.monotonic() < end:
        number = max(1, 1_000 // size)
        before = time.process_time()
        for _ in range(number):
            relay.relay(batch)
            settled.acquire()
        rounds.append(1e6 * (time.process_time() - before) / number)
    return statistics.median(rounds)


def paced(relay: Relay, size: int) -> float:
    """Return the microseconds of a batch of `size` messages at 1,000 batches a second."""
    settled = threading.Semaphore(0)
    batch = batch_of(size, settled)
    rounds: list[float] = []
    for _ in range(ROUNDS):
        before = time.process_time()
        for _ in range(PACED):
            relay.relay(batch)
            time.sleep(PAUSE)
        for _ in range(PACED):
            settled.acquire()
        rounds.append(1e6 * (time.process_time() - before) / PACED)
    return statistics.median(rounds)


def lines(name: str, archive: ArchiveWriter | None, duration: float) -> Iterator[dict[str, object]]:
    """Yield a row for each size, then the line through them."""
    with open_relay(archive) as relay:
        found = [one_by_one(relay, size, duration) for size in SIZES]
    for size, each in zip(SIZES, found, strict=True):
        yield _row(name, size, each, each / size)
    slope, base = statistics.linear_regression(SIZES, found)
    yield _row(name, "the line", base, slope)


def _row(name: str, messages: object, batch: float, message: float) -> dict[str, object]:
    return {
        "rows": name,
        "messages": messages,
        "us a batch": round(batch, 1),
        "us a message": round(message, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each size, one by one")
    args = parser.parse_args()
    print(table([*lines("none", None, args.seconds)]), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        archive = ArchiveWriter(Path(folder, "archive"), "bench", time.time_ns() // 1000)
        print(table([*lines("durable", archive, args.seconds)]), flush=True)
        shown: list[dict[str, object]] = []
        for name, kept, awaited in (
            ("none", None, True),
            ("awaited", archive, True),
            ("not awaited", archive, False),
        ):
            with open_relay(kept, awaited=awaited) as relay:
                for size in SIZES[:2]:
                    each = paced(relay, size)
                    shown.append(_row(name, size, each, each / size))
        print(table(shown), flush=True)
        archive.close(0)


if __name__ == "__main__":
    main()
