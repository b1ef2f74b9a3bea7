"""Looks up rows of a local archive by time and route, a batch in memory at a time.

For a replay and other tools; the reconciliation reads with Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
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

_ROWS: Final = 1_000  # in memory at once; they have their payloads
_TABLES: Final = "exceptions"


@dataclass(frozen=True, slots=True)
class Span:
    """Messages of `route` received from `since` on and before `until`, microseconds UTC."""

    route: str
    since: int
    until: int

    def days(self) -> Iterator[tuple[date, range]]:
        """The days, and of each the hours, that have rows received in the span."""
        hours = defaultdict[date, set[int]](set)
        for hour in range(self.since // HOUR, -(-self.until // HOUR)):
            moment = datetime.fromtimestamp(hour * 3600, UTC)
            hours[moment.date()].add(moment.hour)
        for day, found in hours.items():
            yield day, range(min(found), max(found) + 1)


def received_rows(root: Path, span: Span) -> Iterator[Row]:
    """The received rows of the span, segment by segment, each in the order of their ids.

    Raises:
        ArchiveError: a segment cannot be read; the text names it.
    """
    wanted = pc.field("leg") == Leg.RECEIVED.value
    wanted &= pc.field("route") == span.route
    wanted &= (pc.field("time") >= _moment(span.since)) & (pc.field("time") < _moment(span.until))
    for day, hours in span.days():
        for path in segments(root, day, hours):
            yield from _rows(path, wanted)


def _rows(path: Path, wanted: pc.Expression) -> Iterator[Row]:
    try:
        found = ds.dataset(path, format="parquet")
        options = {"batch_size": _ROWS, "batch_readahead": 1, "use_threads": False}
        for batch in found.to_batches(filter=wanted, **options):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise ArchiveError(f"{path}: is not a whole segment: {error}") from error


def sent_names(root: Path, span: Span) -> dict[tuple[str, str], set[str]]:
    """What each name was sent as then, by target and the name at the source.

    Ends may come an hour after the receipt; later ones of a name are not looked for.
    """
    wanted = (pc.field("route") == span.route) & (pc.field("leg") == Leg.DELIVERED.value)
    found = defaultdict[tuple[str, str], set[str]](set)
    for day, hours in Span(span.route, span.since, span.until + HOUR).days():
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
        for batch in found.to_batches(columns=columns, filter=wanted, batch_size=100 * _ROWS):
            yield from pa.Table.from_batches([batch]).group_by(columns).aggregate([]).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise ArchiveError(f"{path}: is not a whole segment: {error}") from error


def classed(root: Path, span: Span, name: str) -> Mapping[bytes, Collection[str]]:
    """The ids of the route that the reconciliation put into the class `name`, with their targets.

    Raises:
        ArchiveError: a day of the span is not reconciled, or its tables cannot be read.
    """
    found = defaultdict[bytes, set[str]](set)
    for day, _ in span.days():
        folder = reconciled_folder(root, day) / _TABLES
        if not folder.is_dir():
            raise ArchiveError(
                f"{folder}: there is no table of classes; run gateway reconcile --date {day}"
            )
        wanted = (pc.field("class") == name) & (pc.field("route") == span.route)
        try:
            table = pq.read_table(folder, columns=["id", "target"], filters=wanted)
        except (pa.ArrowException, OSError) as error:
            raise ArchiveError(f"{folder}: cannot be read: {error}") from error
        for row in table.to_pylist():
            found[_identity(row["id"])].add(row["target"])
    return found


def _identity(value: str | bytes) -> bytes:
    return bytes.fromhex(value) if isinstance(value, str) else value


def _moment(time: int) -> pa.Scalar:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return pa.scalar(epoch + timedelta(microseconds=time), pa.timestamp("us", tz="UTC"))
