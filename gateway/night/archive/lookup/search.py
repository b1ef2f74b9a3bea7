"""Searches an archive by route and time, for a replay; one batch is in memory at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import groupby
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.layout import HOUR, is_replay, reconciled_folder, writer_of
from gateway.archive.schema import Leg
from gateway.archive.storage import Storage
from gateway.clock import moment
from gateway.errors import ArchiveError
from gateway.night.archive.lookup.row_files import Row, find_batches, find_rows, row_days, row_files

_BATCH_ROWS: Final = 1_000  # in memory at once, with their payloads
_EXCEPTIONS: Final = "exceptions"
_COPY: Final = ["id", "target"]


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """Messages of `route` received from `since` on and before `until`.

    Units: microseconds UTC.
    """

    route: str
    since: int
    until: int

    def days(self) -> Iterator[tuple[date, range]]:
        """Yield each day of the range with its hours."""
        numbers = range(self.since // HOUR, -(-self.until // HOUR))
        begins = (moment(number * HOUR) for number in numbers)
        for day, group in groupby(begins, key=datetime.date):
            hours = [begin.hour for begin in group]
            yield day, range(hours[0], hours[-1] + 1)


def received_rows(storage: Storage, range_: ReplayRange) -> Iterator[Row]:
    """Yield the received rows of the range, segment by segment, in the order of ids in each.

    Raises:
        ArchiveError: a segment cannot be read; the text names it.
    """
    wanted = pc.field("leg") == Leg.RECEIVED.value
    wanted &= pc.field("route") == range_.route
    time = pc.field("time")
    wanted &= (time >= _timestamp(range_.since)) & (time < _timestamp(range_.until))
    return find_rows(storage, _files(storage, range_), wanted, _BATCH_ROWS)


def _files(storage: Storage, range_: ReplayRange) -> Iterator[Path]:
    for day, hours in range_.days():
        yield from row_files(storage, day, hours)


def sent_names(storage: Storage, range_: ReplayRange) -> dict[tuple[str, str], set[str]]:
    """Return the target names that were used in the range, by target and source name.

    A delivery counts up to an hour after the end of the range.
    """
    wanted = (pc.field("route") == range_.route) & (pc.field("leg") == Leg.DELIVERED.value)
    columns = ["target", "source_name", "name"]
    found = defaultdict[tuple[str, str], set[str]](set)
    later, read = replace(range_, until=range_.until + HOUR), [*columns, "route", "leg"]
    for path in _files(storage, later):
        for batch in find_batches(storage, path, wanted, 100 * _BATCH_ROWS, read):
            for row in batch.group_by(columns).aggregate([]).to_pylist():
                found[row["target"], row["source_name"]].add(row["name"])
    return dict(found)


def replayed_copies(storage: Storage, route: str, since: int) -> Mapping[bytes, Collection[str]]:
    """Return the targets to which replays delivered messages of `route`, by their ids.

    `since` is the first receipt, in microseconds; a replay runs on any date after it. Segments of
    gateways have no row of one.

    Raises:
        ArchiveError: the archive cannot be reached, or a file is damaged, or no segment.
    """
    found = defaultdict[bytes, set[str]](set)
    wanted = (pc.field("route") == route) & (pc.field("leg") == Leg.DELIVERED.value)
    wanted &= pc.field("replayed")
    first = moment(since).date()
    files = (path for day in row_days(storage) if day >= first for path in row_files(storage, day))
    writers = ((path, writer_of(path)) for path in files)
    paths = (path for path, writer in writers if writer is None or is_replay(writer))
    columns = [*_COPY, "route", "leg", "replayed"]
    for row in find_rows(storage, paths, wanted, 100 * _BATCH_ROWS, columns):
        found[row["id"]].add(row["target"])
    return found


def ids_in_class(
    storage: Storage, range_: ReplayRange, name: str
) -> Mapping[bytes, Collection[str]]:
    """Return the ids that the reconciliation put into class `name`, with their targets.

    Raises:
        ArchiveError: a day of the range is not reconciled, or its tables cannot be read.
    """
    found = defaultdict[bytes, set[str]](set)
    wanted = (pc.field("class") == name) & (pc.field("route") == range_.route)
    for day, _ in range_.days():
        folder = reconciled_folder(Path(), day)
        try:
            if not storage.names(folder):
                raise ArchiveError(
                    f"{folder}: the date has no results; run gateway reconcile --date {day}"
                    " without --output"
                )
            files = storage.files(folder / _EXCEPTIONS)
        except OSError as error:
            raise ArchiveError(f"{folder}: cannot be read: {error}") from error
        paths = [path for path, _ in files if path.suffix == ".parquet"]
        for row in find_rows(storage, paths, wanted, _BATCH_ROWS, [*_COPY, "class", "route"]):
            found[bytes.fromhex(row["id"])].add(row["target"])
    return found


def _timestamp(time: int) -> pa.Scalar:
    return pa.scalar(time, pa.timestamp("us", tz="UTC"))
