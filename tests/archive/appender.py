"""A program that archives rows until it is killed, and prints each durable number."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from gateway.archive.journal.rolling import ArchiveOptions
from gateway.archive.journal.writer import ArchiveWriter
from tests.archive.samples import noon, received

BATCH = 20


def acknowledge(numbers: range) -> Callable[[], None]:
    text = "".join(f"{number}\n" for number in numbers).encode()

    def durable() -> None:
        os.write(1, text)

    return durable


def main(root: Path, start: int) -> None:
    writer = ArchiveWriter(root, "edge", start, ArchiveOptions(segment_bytes=20_000), clock=noon)
    first = 0
    while True:
        numbers = range(first, first + BATCH)
        rows = received(numbers)
        ids = [start.to_bytes(8, "big") + number.to_bytes(8, "big") for number in numbers]
        rows = type(rows)(rows.count, rows.common, {**rows.columns, "id": ids})
        writer.append([rows], acknowledge(numbers))
        first += BATCH


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
