"""Archive rows for the join: selected, repeated for each target, with ids and hashes as numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gateway.archive.layout import HOUR, gateway_of, is_merged, safe_name, writer_of
from gateway.archive.location import ArchiveLocation
from gateway.archive.schema import COLUMNS, Leg, RowOutcome
from gateway.archive.storage import Storage, open_storage
from gateway.errors import ArchiveError, first_line
from gateway.night.archive.intervals import (
    EMPTY,
    Flags,
    Intervals,
    Numbers,
    contains,
    overlapping,
    union,
)
from gateway.night.archive.parquet import PAIRS_KEY
from gateway.night.archive.segments.copies import are_copies, copy_ids, per_target
from gateway.night.archive.segments.id_columns import words
from gateway.night.archive.segments.pairs import every_pair_of
from gateway.night.archive.segments.reading import ParquetReader, open_parquet
from gateway.night.archive.segments.tables import SCHEMA, schema_of
from gateway.night.reconcile.grouping import RUN_KEYS, TARGET_KEYS, filled, positions, with_values
from gateway.untyped import Untyped

IdKey: TypeAlias = tuple[str, str, str, int]  # gateway, route, target, run
TargetName: TypeAlias = tuple[str, str]  # route, target
Targets: TypeAlias = Collection[TargetName]
TapKey: TypeAlias = tuple[str, str, str]  # gateway, route, target
Parts: TypeAlias = tuple[int, ...] | None  # row groups of a merged segment to read; None: all

_KEPT: Final = (
    "gateway",
    "route",
    "leg",
    "target",
    "name",
    "source_name",
    "attempt",
    "time",
    "mode",
    "redelivered",
    "replayed",
    "size",
    "rule",
    "reason",
)
_READ: Final = (*_KEPT, "targets", "id", "origin_id", "received", "hash", "outcome")
# Rows for the join: one for each row of the archive and each target that it names.
JOIN_ROWS: Final[Mapping[str, str]] = {
    **{name: COLUMNS[name] for name in _KEPT},
    "run": "int64",  # of the id: its first 8 bytes, and the last 8
    "counter": "int64",
    "no_id": "boolean",  # an observed row that does not know the message's id
    "receipt_time": "timestamp",  # time of the row when an older gateway did not record it
    "hash_high": "int64",
    "hash_low": "int64",
    "converted": "boolean",  # the route converted the payload
    "recent": "boolean",  # the outcome may be in an open journal
    "tapped": "boolean",  # the tap of the target was observing at this time
}
JOIN_SCHEMA: Final = schema_of(JOIN_ROWS)
_PAIRED: Final = (
    "gateway",
    "route",
    "target",
    "source_name",
    "name",
    "fields",
    "leg",
    "system",
    "id",
    "time",
)


@dataclass(frozen=True, slots=True)
class TapTimes:
    """The time of the first observed row of a tap, and begin and end of its gaps, by begin.

    Units: microseconds.
    """

    since: int
    gaps: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows to join: by receipt, and with `wanted` by id.

    Rows of a target with a tap count by their own time, because a tap may not know the receipt.
    Units: microseconds.
    """

    since: int  # first and last receipt, the last excluded
    until: int
    around: tuple[int, int]  # time of the rows without a receipt, and of tapped targets
    taps: Mapping[TapKey, TapTimes] = field(default_factory=dict)
    wanted: Mapping[IdKey, Intervals] | None = None  # None: all ids
    open_since: Mapping[str, int] = field(default_factory=dict)  # writer -> first recent receipt
    late: Collection[int] = ()  # hours since 1970 of the rows of tapped targets, beside `around`


def run_read(
    location: ArchiveLocation, selection: Selection, files: Sequence[tuple[Path, Parts]]
) -> Iterator[pa.Table]:
    """Yield the selected rows of some segments as tables of JOIN_SCHEMA.

    Raises:
        ArchiveError: a file cannot be read; the text names it.
    """
    storage = open_storage(location)
    for path, parts in files:
        for rows in row_groups(storage, path, _READ, parts, selection):
            yield selected(rows, selection, writer_of(path))


def row_groups(
    storage: Storage,
    path: Path,
    columns: Sequence[str],
    parts: Parts = None,
    selection: Selection | None = None,
) -> Iterator[pa.Table]:
    """Yield the row groups of a segment, without those that have no row of `selection`.

    Raises:
        ArchiveError: the file cannot be read; the text names it.
    """
    with opened(storage, path, pre_buffer=True) as parquet:
        present = [name for name in columns if name in parquet.schema.names]
        every = range(parquet.metadata.num_row_groups)
        for number in every if parts is None or not is_merged(path) else parts:
            group = parquet.metadata.row_group(number)
            if selection is None or may_have_rows(group, selection):
                yield _completed(parquet.row_group(number, present), columns)


def read_segment(storage: Storage, path: Path, columns: Sequence[str] = SCHEMA.names) -> pa.Table:
    """Return all rows of a segment.

    Raises:
        ArchiveError: the file cannot be read; the text names it.
    """
    groups = row_groups(storage, path, columns)
    return pa.concat_tables([_completed(SCHEMA.empty_table(), columns), *groups])


def read_beside(storage: Storage, path: Path, key: bytes) -> pa.Table | None:
    """Return the id sets or the name pairs in a segment; None when it has none.

    Raises:
        ArchiveError: the file cannot be read; the text names it.
    """
    with opened(storage, path) as file:
        return file.beside(key)


def read_pairs(storage: Storage, path: Path) -> pa.Table:
    """Return the name pairs in a segment, those of its rows when it has too many to keep.

    Raises:
        ArchiveError: the file cannot be read; the text names it.
    """
    pairs = read_beside(storage, path, PAIRS_KEY)
    return every_pair_of(read_segment(storage, path, _PAIRED)) if pairs is None else pairs


@contextmanager
def opened(storage: Storage, path: Path, *, pre_buffer: bool = False) -> Iterator[ParquetReader]:
    """Open a segment, and close it at the end.

    Raises:
        ArchiveError: the file cannot be read; the text names it.
    """
    try:
        with open_parquet(storage.open(path), pre_buffer=pre_buffer) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise ArchiveError(f"{path}: cannot be read: {first_line(error)}") from error


def may_have_rows(group: pq.RowGroupMetaData, selection: Selection) -> bool:
    """Return whether the statistics of `received` allow rows of the selection."""
    if selection.taps:
        return True
    stats = statistics(group, "received")
    if stats is None or not stats.has_min_max or not stats.has_null_count or stats.null_count:
        return True
    return bool(micros(stats.max) >= selection.since and micros(stats.min) < selection.until)


def statistics(group: pq.RowGroupMetaData, name: str) -> Untyped:
    """Return the statistics of a column of a row group; None when there are none."""
    columns = map(group.column, range(group.num_columns))
    return next((each.statistics for each in columns if each.path_in_schema == name), None)


def micros(value: Untyped) -> int:
    return int(pa.scalar(value).cast(pa.timestamp("us", tz="UTC")).value)


def _completed(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return `rows` with the types of the archive, and null in columns of newer gateways."""
    schema = pa.schema([SCHEMA.field(name).with_nullable(True) for name in columns])
    return filled(schema, rows.num_rows, {name: rows[name] for name in rows.column_names})


def selected(rows: pa.Table, selection: Selection, writer: str | None = None) -> pa.Table:
    """Return the selected rows of a table of COLUMNS as a table of JOIN_SCHEMA.

    Without a `writer`, any instance of the gateway of a row may have written it.
    """
    rows = _completed(rows, _READ) if rows.column_names != list(_READ) else rows
    rows = rows.filter(are_copies(rows))
    places, targets = per_target(rows)
    rows = rows.drop_columns(["target", "targets"]).take(pa.array(places))
    rows = rows.append_column("target", targets)
    rows = rows.filter(pa.array(_is_near(rows, selection)))
    observed = pc.equal(rows["leg"], Leg.OBSERVED.value)
    run, counter, no_id = copy_ids(rows, pc.fill_null(observed, False).to_numpy())
    if selection.wanted is not None:
        kept = _is_wanted(rows, run, counter, selection.wanted)
        rows = rows.filter(pa.array(kept))
        run, counter, no_id = run[kept], counter[kept], no_id[kept]
    receipt = pc.coalesce(rows["received"], rows["time"])
    receipts = _numbers(receipt)
    unhashed = rows["hash"].is_null().to_numpy()
    tapped = _is_tapped(rows, receipts, selection.taps)
    if tapped.any():
        tapped &= ~_is_recent(rows, _numbers(rows["time"]), selection.open_since, writer)
    high, low = (pa.array(each, mask=unhashed) for each in words(rows["hash"]))
    columns = {
        **{name: rows[name] for name in _KEPT},
        "run": run,
        "counter": counter,
        "no_id": no_id,
        "receipt_time": receipt,
        "hash_high": high,
        "hash_low": low,
        "redelivered": pc.fill_null(rows["redelivered"], False),
        "replayed": pc.fill_null(rows["replayed"], False),
        "converted": pc.fill_null(pc.equal(rows["outcome"], RowOutcome.CONVERTED.value), False),
        "recent": pa.array(_is_recent(rows, receipts, selection.open_since, writer)),
        "tapped": pa.array(tapped),
    }
    return pa.table([columns[name] for name in JOIN_SCHEMA.names], schema=JOIN_SCHEMA)


def _is_near(rows: pa.Table, selection: Selection) -> Flags:
    received = _numbers(rows["received"])
    time = _numbers(rows["time"])
    unknown = rows["received"].is_null().to_numpy()
    inside = (received >= selection.since) & (received < selection.until) & ~unknown
    by_time = unknown | are_of_targets(rows, {key[1:] for key in selection.taps})
    begin, end = selection.around
    late = np.isin(time // HOUR, list(selection.late)) if selection.late else False
    near: Flags = inside | (by_time & ((time >= begin) & (time < end) | late))
    return near


def are_of_targets(rows: pa.Table, targets: Targets) -> Flags:
    """Return which rows are of one of `targets`."""
    found = np.zeros(rows.num_rows, np.bool_)
    for route, target in targets:
        found |= with_values(rows, route=route, target=target)
    return found


def _numbers(column: pa.ChunkedArray) -> Numbers:
    """Return times as microseconds; a null is 0."""
    numbers: Numbers = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    return numbers


def _is_recent(
    rows: pa.Table, times: Numbers, open_since: Mapping[str, int], writer: str | None
) -> Flags:
    """Return whether what followed `times` may still be in the open journal of the row's writer."""
    recent = np.zeros(rows.num_rows, np.bool_)
    names = {safe_name(each): each for each in pc.unique(rows["gateway"]).drop_null().to_pylist()}
    for each, since in open_since.items():
        if writer in {None, each} and (name := names.get(gateway_of(each))):
            recent |= with_values(rows, gateway=name) & (times >= since)
    return recent


def _is_tapped(rows: pa.Table, receipts: Numbers, taps: Mapping[TapKey, TapTimes]) -> Flags:
    """Return whether the tap of the row's target was observing from the receipt to the row."""
    tapped = np.zeros(rows.num_rows, np.bool_)
    times = _numbers(rows["time"])
    for key, tap in taps.items():
        gaps = union(*np.array(tap.gaps, np.int64).reshape(-1, 2).T)
        seen = (times >= tap.since) & ~overlapping(receipts, times, gaps)
        tapped |= with_values(rows, **dict(zip(TARGET_KEYS, key, strict=True))) & seen
    return tapped


def _is_wanted(
    rows: pa.Table, run: Numbers, counter: Numbers, wanted: Mapping[IdKey, Intervals]
) -> Flags:
    found = np.zeros(rows.num_rows, np.bool_)
    for key, places in positions(rows.append_column("run", pa.array(run)), RUN_KEYS):
        found[places] = contains(wanted.get(key, EMPTY), counter[places])
    return found
