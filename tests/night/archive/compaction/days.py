"""A sealed day for tests: a few gateways, hours and journals, written as by their converters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from gateway.archive.layout import HOUR, JournalName, day_folder
from gateway.archive.location import ArchiveLocation
from gateway.archive.signed_json import Previous
from gateway.archive.storage import Storage, open_storage
from gateway.night.archive.compaction.merge import MergeResult, MergeTask, merge
from gateway.night.archive.seals.seal import End
from gateway.night.archive.segments.tables import sort_rows, to_table
from gateway.trial.synthetic.sealed_rows import write_sealed
from tests.archive.samples import DAY, NOON, START, delivered, received

MIDNIGHT = NOON - 12 * HOUR


def write_day(
    location: ArchiveLocation,
    gateways: Sequence[str] = ("east", "west"),
    hours: Sequence[int] = (11, 12),
    key: bytes | None = None,
) -> None:
    """Two journals for each gateway and hour; each message is received and delivered in one."""
    storage = open_storage(location)
    for gateway in gateways:
        previous: Previous | None = None
        for number in range(2 * len(hours)):
            at = MIDNIGHT + hours[number // 2] * HOUR + number % 2 * 60_000_000
            ids = range(number * 10, number * 10 + 10)
            table, _ = to_table(
                [
                    received(ids, time=at, received=at, gateway=gateway),
                    delivered(ids, time=at + 5, received=at, gateway=gateway),
                ]
            )
            last = number == 2 * len(hours) - 1
            seal = write_sealed(
                storage,
                str(JournalName(gateway, START, number)),
                sort_rows(table),
                gateway=gateway,
                previous=previous,
                opened=MIDNIGHT - HOUR if previous is None else previous.closed,
                end=End.STOPPED if last else End.CLOSED,
                key=key,
            )
            previous = seal.link


def merged_here(tasks: Sequence[MergeTask]) -> list[MergeResult]:
    """Merge in this process."""
    return [merge(task) for task in tasks]


def rows_of(storage: Storage, paths: Sequence[Path]) -> Counter[str]:
    """The rows of the files."""
    found: Counter[str] = Counter()
    for path in paths:
        with storage.open(path) as file:
            found.update(map(repr, pq.read_table(file).to_pylist()))
    return found


def names(storage: Storage) -> list[str]:
    """The files of the day, below the folder of the date."""
    folder = day_folder(Path(), DAY)
    return [path.relative_to(folder).as_posix() for path, _ in storage.files(folder)]
