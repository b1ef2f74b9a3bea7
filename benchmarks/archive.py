"""Measures the cost of the archive: time per row, durable batches/s, bytes per message, conversion.

    python benchmarks/archive.py [--messages N] [--batch N] [--folder DIR]

A message has two rows, received and delivered, without its payload. There are 1,000 names.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import pyarrow.parquet as pq

from gateway.archive.journal.records import Cell, Rows
from gateway.archive.journal.rolling import ArchiveOptions
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import journals
from gateway.night.archive.parquet import PAIRS_KEY, SETS_KEY
from gateway.night.archive.segments.convert import convert

NAMES = [f"plant/line{number % 40}/sensor{number}/value" for number in range(1_000)]
DURABLE_TIMEOUT = 600.0
NO_ROLLING = ArchiveOptions(segment_bytes=1 << 40, segment_seconds=1e9, close_seconds=0)


@dataclass
class Countdown:
    """An event that is set when `left` batches are durable.

    Mutable: called by the archive's thread.
    """

    left: int

    def __post_init__(self) -> None:
        self.done = threading.Event()

    def __call__(self) -> None:
        self.left -= 1
        if not self.left:
            self.done.set()


def batch(rng: random.Random, start: int, first: int, count: int) -> list[Rows]:
    """Return the rows of messages from number `first`: random names and payloads, 10,000/s."""
    time_ = start + first * 100
    names = [rng.choice(NAMES) for _ in range(count)]
    columns: dict[str, list[Cell]] = {
        "id": [
            start.to_bytes(8, "big") + number.to_bytes(8, "big")
            for number in range(first, first + count)
        ],
        "hash": [blake2b(rng.randbytes(8), digest_size=16).digest() for _ in range(count)],
        "size": [100] * count,
        "mode": [1] * count,
    }
    shared: dict[str, Cell] = {"route": "sensors", "attempt": 1}
    received: dict[str, Cell] = {
        **shared, "leg": "received", "endpoint": "plant", "system": "mqtt", "targets": ["erp"],
        "outcome": "received", "time": time_, "received": time_,
    }  # fmt: skip
    delivered: dict[str, Cell] = {
        **shared, "leg": "delivered", "endpoint": "erp", "system": "ems", "target": "erp",
        "outcome": "accepted", "time": time_ + rng.randrange(500, 5_000), "received": time_,
    }  # fmt: skip
    renamed = [name.replace("/", ".") for name in names]
    return [
        Rows(count, received, {**columns, "name": names}),
        Rows(count, delivered, {**columns, "name": renamed, "source_name": names}),
    ]


def append_all(root: Path, start: int, batches: list[list[Rows]]) -> tuple[float, float]:
    """Return the processor seconds of the caller, and the seconds until all rows are durable."""
    writer = ArchiveWriter(root, "bench", start, NO_ROLLING)
    durable = Countdown(len(batches))
    started, used = time.perf_counter(), time.thread_time()
    for each in batches:
        writer.append(each, durable)
    used = time.thread_time() - used
    assert durable.done.wait(DURABLE_TIMEOUT)
    elapsed = time.perf_counter() - started
    writer.close()  # does not convert, which is measured below
    return used, elapsed


def one_by_one(root: Path, start: int, batches: list[list[Rows]], sync: str) -> float:
    """Return the batches per second when each waits for the previous one."""
    interval = replace(NO_ROLLING, sync="interval")
    writer = ArchiveWriter(root, "bench", start, interval if sync == "interval" else NO_ROLLING)
    started = time.perf_counter()
    for each in batches:
        durable = Countdown(1)
        writer.append(each, durable)
        assert durable.done.wait(DURABLE_TIMEOUT)
    rate = len(batches) / (time.perf_counter() - started)
    writer.close()
    return rate


def sizes(root: Path) -> dict[str, int]:
    """Return the bytes of segments, id sets and name pairs."""
    found = {"rows": 0, "sets": 0, "pairs": 0}
    for path in root.glob("date=*/*/*"):
        metadata = pq.read_metadata(path).metadata or {}
        places = {"sets": metadata.get(SETS_KEY), "pairs": metadata.get(PAIRS_KEY)}
        sizes = {name: int(place.split()[1]) for name, place in places.items() if place}
        for name, size in {**sizes, "rows": path.stat().st_size - sum(sizes.values())}.items():
            found[name] += size
    return found


def measure(root: Path, messages: int, size: int) -> None:
    rng = random.Random(7)  # noqa: S311  # the same archive in every run
    start = time.time_ns() // 1_000
    batches = [batch(rng, start, first, size) for first in range(0, messages, size)]
    used, elapsed = append_all(root, start, batches)
    rows = 2 * messages
    print(f"append             {used / rows * 1e6:10.2f} us per row, {size} messages per batch")
    print(f"durable            {rows / elapsed:10,.0f} rows/s, {elapsed:.2f} s")
    (journal,) = journals(root)
    print(f"journal            {journal.stat().st_size / messages:10.1f} bytes per message")
    started = time.perf_counter()
    conversion = convert(root, journal)
    assert conversion is not None
    assert conversion.rows == rows
    print(f"conversion         {rows / (time.perf_counter() - started):10,.0f} rows/s")
    size = sum(entry.size for entry in conversion.segments)
    print(f"segments           {size / messages:10.1f} bytes per message, both legs")
    for name, kept in sizes(root).items():
        print(f"  {name:16} {kept / messages:10.1f} bytes per message")
    for number, sync in enumerate(("batch", "interval"), start=1):
        rate = one_by_one(root, start + number, batches[:500], sync)
        print(f"one by one         {rate:10,.0f} batches/s, sync: {sync}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="folder on the disk to measure (temporary)")
    args = parser.parse_args()
    os.sync()
    logging.getLogger("gateway").setLevel(logging.ERROR)  # journals remain unconverted
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        measure(Path(folder), args.messages, args.batch)


if __name__ == "__main__":
    main()
