"""Searches an archive by route and time, for a replay; one batch is in memory at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.layout import (
    HOUR,
    days_in,
    is_replay,
    reconciled_folder,
    writer_of,
)
from gateway.archive.lookup.reader import Row, find_batches, python_rows, row_files
from gateway.archive.schema import Leg
from gateway.archive.storage import Storage
from gateway.clock import moment
from gateway.errors import ArchiveError

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
        hours = defaultdict[date, set[int]](set)
        for hour in range(self.since // HOUR, -(-self.until // HOUR)):
            start = moment(hour * HOUR)
            hours[start.date()].add(start.hour)
        for day, found in hours.items():
            yield day, range(min(found), max(found) + 1)


def received_rows(storage: Storage, range_: ReplayRange) -> Iterator[Row]:
    """Yield the received rows of the range, segment by segment, in the order of ids in each.

    Raises:
        ArchiveError: a segment cannot be read; the text names it.
    """
    wanted = pc.field("leg") == Leg.RECEIVED.value
    wanted &= pc.field("route") == range_.route
    time = pc.field("time")
    wanted &= (time >= _timestamp(range_.since)) & (time < _timestamp(range_.until))
    for day, hours in range_.days():
        for path in row_files(storage, day, hours):
            for batch in find_batches(storage, path, wanted, _BATCH_ROWS):
                yield from python_rows(batch)


def sent_names(storage: Storage, range_: ReplayRange) -> dict[tuple[str, str], set[str]]:
    """Return the target names that were used in the range, by target and source name.

    A delivery counts up to an hour after the end of the range.
    """
    wanted = (pc.field("route") == range_.route) & (pc.field("leg") == Leg.DELIVERED.value)
    columns = ["target", "source_name", "name"]
    found = defaultdict[tuple[str, str], set[str]](set)
    for day, hours in replace(range_, until=range_.until + HOUR).days():
        for path in row_files(storage, day, hours):
            for batch in find_batches(
                storage, path, wanted, 100 * _BATCH_ROWS, [*columns, "route", "leg"]
            ):
                distinct = batch.group_by(columns).aggregate([])
                for row in distinct.to_pylist():
                    found[row["target"], row["source_name"]].add(row["name"])
    return dict(found)


def replayed_copies(storage: Storage, route: str, since: int) -> Mapping[bytes, Collection[str]]:
    """Return the targets to which replays delivered messages of `route`, by their ids.

    `since` is the first receipt, in microseconds; a replay runs on any date after it. Segments of
    gateways have no row of one.

    Raises:
        ArchiveError: a file is damaged, or no segment.
    """
    found = defaultdict[bytes, set[str]](set)
    wanted = (pc.field("route") == route) & (pc.field("leg") == Leg.DELIVERED.value)
    wanted &= pc.field("replayed")
    first = moment(since).date()
    days = days_in(storage.names(Path()))
    for path in (path for day in days if day >= first for path in row_files(storage, day)):
        if (writer := writer_of(path)) is None or is_replay(writer):
            columns = [*_COPY, "route", "leg", "replayed"]
            for batch in find_batches(storage, path, wanted, 100 * _BATCH_ROWS, columns):
                for row in batch.to_pylist():
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
                )
            files = storage.files(folder / _EXCEPTIONS)
        except OSError as error:
            raise ArchiveError(f"{folder}: cannot be read: {error}") from error
        for path, _ in files:
            if path.suffix == ".parquet":
                columns = [*_COPY, "class", "route"]
                batches = find_batches(storage, path, wanted, _BATCH_ROWS, columns)
                for row in (row for batch in batches for row in batch.to_pylist()):
                    found[_id_bytes(row["id"])].add(row["target"])
    return found


def _id_bytes(value: str | bytes) -> bytes:
    return bytes.fromhex(value) if isinstance(value, str) else value


def _timestamp(time: int) -> pa.Scalar:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return pa.scalar(epoch + timedelta(microseconds=time), pa.timestamp("us", tz="UTC"))
