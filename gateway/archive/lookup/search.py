"""Searches a local archive by route and time, for a replay; one batch is in memory at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from gateway.archive.layout import HOUR, reconciled_folder, segments
from gateway.archive.lookup.reader import Row
from gateway.archive.schema import Leg
from gateway.errors import ArchiveError

_BATCH_ROWS: Final = 1_000  # in memory at once, with their payloads
_EXCEPTIONS: Final = "exceptions"


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
            start = datetime.fromtimestamp(hour * 3600, UTC)
            hours[start.date()].add(start.hour)
        for day, found in hours.items():
            yield day, range(min(found), max(found) + 1)


def received_rows(root: Path, range_: ReplayRange) -> Iterator[Row]:
    """Yield the received rows of the range, segment by segment, in the order of ids in each.

    Raises:
        ArchiveError: a segment cannot be read; the text names it.
    """
    wanted = pc.field("leg") == Leg.RECEIVED.value
    wanted &= pc.field("route") == range_.route
    time = pc.field("time")
    wanted &= (time >= _timestamp(range_.since)) & (time < _timestamp(range_.until))
    for day, hours in range_.days():
        for path in segments(root, day, hours):
            yield from _rows(path, wanted)


def _rows(path: Path, wanted: pc.Expression) -> Iterator[Row]:
    try:
        found = ds.dataset(path, format="parquet")
        options = {"batch_size": _BATCH_ROWS, "batch_readahead": 1, "use_threads": False}
        for batch in found.to_batches(filter=wanted, **options):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise ArchiveError(f"{path}: is damaged, or no segment: {error}") from error


def sent_names(root: Path, range_: ReplayRange) -> dict[tuple[str, str], set[str]]:
    """Return the target names that were used in the range, by target and source name.

    A delivery counts up to an hour after the end of the range.
    """
    wanted = (pc.field("route") == range_.route) & (pc.field("leg") == Leg.DELIVERED.value)
    found = defaultdict[tuple[str, str], set[str]](set)
    for day, hours in replace(range_, until=range_.until + HOUR).days():
        for path in segments(root, day, hours):
            for row in _names(path, wanted):
                found[row["target"], row["source_name"]].add(row["name"])
    return dict(found)


def _names(path: Path, wanted: pc.Expression) -> Iterator[Row]:
    columns = ["target", "source_name", "name"]
    try:
        found = ds.dataset(path, format="parquet")
        if "source_name" not in found.schema.names:  # an older gateway
            return
        for batch in found.to_batches(columns=columns, filter=wanted, batch_size=100 * _BATCH_ROWS):
            yield from pa.Table.from_batches([batch]).group_by(columns).aggregate([]).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise ArchiveError(f"{path}: is damaged, or no segment: {error}") from error


def ids_in_class(root: Path, range_: ReplayRange, name: str) -> Mapping[bytes, Collection[str]]:
    """Return the ids that the reconciliation put into class `name`, with their targets.

    Raises:
        ArchiveError: a day of the range is not reconciled, or its tables cannot be read.
    """
    found = defaultdict[bytes, set[str]](set)
    for day, _ in range_.days():
        folder = reconciled_folder(root, day) / _EXCEPTIONS
        if not folder.is_dir():
            raise ArchiveError(
                f"{folder}: the table of exceptions is absent; run gateway reconcile --date {day}"
            )
        wanted = (pc.field("class") == name) & (pc.field("route") == range_.route)
        try:
            table = pq.read_table(folder, columns=["id", "target"], filters=wanted)
        except (pa.ArrowException, OSError) as error:
            raise ArchiveError(f"{folder}: cannot be read: {error}") from error
        for row in table.to_pylist():
            found[_id_bytes(row["id"])].add(row["target"])
    return found


def _id_bytes(value: str | bytes) -> bytes:
    return bytes.fromhex(value) if isinstance(value, str) else value


def _timestamp(time: int) -> pa.Scalar:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return pa.scalar(epoch + timedelta(microseconds=time), pa.timestamp("us", tz="UTC"))
