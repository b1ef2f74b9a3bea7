"""Archive rows as a gateway writes them, and helpers that write an archive."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from hashlib import blake2b
from pathlib import Path

import pytest

from gateway.archive.journal import rolling
from gateway.archive.journal.records import Cell, Rows
from gateway.archive.journal.rolling import ArchiveOptions
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import journals, writer_name
from gateway.night.archive.segments.convert import convert
from tests.archive.no_converter import NoConverter
from tests.waiting import PATIENCE

DAY = date(2026, 3, 14)
NOON = int(datetime(2026, 3, 14, 12, tzinfo=UTC).timestamp()) * 1_000_000
START = NOON - 3_600_000_000
QUICK = ArchiveOptions(retry_seconds=0.01, close_seconds=PATIENCE)


def identity(number: int, start: int = START) -> bytes:
    return start.to_bytes(8, "big") + number.to_bytes(8, "big")


def digest(payload: str) -> bytes:
    return blake2b(payload.encode(), digest_size=16).digest()


def received(
    numbers: Sequence[int], targets: Sequence[str] = ("erp",), time: int = NOON, **more: Cell
) -> Rows:
    """The received rows of the messages `numbers`."""
    common: dict[str, Cell] = {
        "route": "orders", "leg": "received", "endpoint": "plant", "system": "mqtt",
        "targets": list(targets), "time": time, "outcome": "received", "mode": 1, "attempt": 1,
    }  # fmt: skip
    return _rows(numbers, "a/b", {**common, **more})


def delivered(numbers: Sequence[int], target: str = "erp", time: int = NOON, **more: Cell) -> Rows:
    """The delivered rows of the messages `numbers` at one target."""
    common: dict[str, Cell] = {
        "route": "orders", "leg": "delivered", "endpoint": target, "system": "ems",
        "target": target, "time": time, "outcome": "accepted", "mode": 1, "attempt": 1,
    }  # fmt: skip
    return _rows(numbers, "a.b", {**common, **more})


def dead(number: int, target: str = "erp", time: int = NOON, **more: Cell) -> Rows:
    """The dead row of message `number` for one target."""
    common: dict[str, Cell] = {
        "leg": "dead", "outcome": "rejected", "rule": "empty-element", "reason": "an empty element",
    }  # fmt: skip
    return delivered([number], target, time, **common, **more)


def _rows(numbers: Sequence[int], name: str, common: dict[str, Cell]) -> Rows:
    columns: dict[str, Sequence[Cell]] = {
        "id": [identity(number) for number in numbers],
        "name": [f"{name}{number}" for number in numbers],
        "size": [100 for _ in numbers],
        "hash": [digest(str(number)) for number in numbers],
    }
    shared = {name: value for name, value in common.items() if name not in columns}
    columns |= {name: [common[name]] * len(numbers) for name in columns.keys() & common.keys()}
    return Rows(len(numbers), shared, columns)


def noon() -> int:
    """The clock of the writers: the time of the rows."""
    return NOON


def archive(
    root: Path,
    *batches: Rows,
    gateway: str = "edge",
    start: int = START,
    clock: Callable[[], int] = noon,
) -> None:
    """Write the rows, wait until they are durable, and close the writer: they are in segments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rolling, "Converter", NoConverter)
        writer = ArchiveWriter(root, gateway, start, QUICK, clock=clock)
        put(writer, *batches)
        writer.close()
    for path in journals(root, writer_name(gateway)):
        convert(root, path)


def put(writer: ArchiveWriter, *batches: Rows) -> None:
    """Append the rows and wait until they are durable."""
    durable = threading.Event()
    writer.append(batches, durable.set)
    assert durable.wait(PATIENCE)
