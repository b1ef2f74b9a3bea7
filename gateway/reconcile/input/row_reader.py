"""Archive rows for the join: selected, repeated for each target, with ids and hashes as numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gateway.archive.intervals import Flags, Intervals, Numbers, contains
from gateway.archive.layout import gateway_of, is_merged, safe_name, writer_of
from gateway.archive.parquet import PAIRS_KEY
from gateway.archive.schema import Leg, RowOutcome
from gateway.archive.segments.copies import are_copies
from gateway.archive.segments.pairs import every_pair_of
from gateway.archive.segments.reading import ParquetReader, open_parquet
from gateway.archive.segments.tables import SCHEMA, schema_of
from gateway.archive.segments.words import hex_ids, words
from gateway.archive.storage import Storage
from gateway.errors import ArchiveError, first_line
from gateway.reconcile.grouping import TARGET_KEYS, filled, positions, with_values
from gateway.reconcile.schema import JOIN_ROWS

IdKey: TypeAlias = tuple[str, str, str, int]  # gateway, route, target, run
TargetName: TypeAlias = tuple[str, str]  # route, target
TapKey: TypeAlias = tuple[str, str, str]  # gateway, route, target

JOIN_SCHEMA: Final = schema_of(JOIN_ROWS)
_READ: Final = (
    "gateway", "route", "leg", "target", "targets", "name", "source_name", "id", "origin_id",
    "attempt", "time", "received", "mode", "redelivered", "replayed", "size", "hash", "outcome",
    "rule", "reason",
)  # fmt: skip
_PAIRED: Final = (
    "gateway", "route", "target", "source_name", "name", "leg", "system", "id", "time",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment to read; of a merged one, the row groups in `parts`, or all when it is None."""

    path: Path
    parts: tuple[int, ...] | None = None


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

    @property
    def tapped(self) -> frozenset[TargetName]:
        """The targets with a tap of any gateway."""
        return frozenset((route, target) for _, route, target in self.taps)


def read_rows(storage: Storage, file: SegmentFile, selection: Selection) -> Iterator[pa.Table]:
    """Yield the selected rows of `file` as tables of JOIN_SCHEMA.

    Raises:
        ArchiveError: the file cannot be read; the text names it.
    """
    for rows in row_groups(storage, file, _READ, selection):
        table = selected(rows, selection, writer_of(file.path))
        if table.num_rows:
            yield table


def row_groups(
    storage: Storage,
    file: SegmentFile,
    columns: Sequence[str],
    selection: Selection | None = None,
) -> Iterator[pa.Table]:
    """Yield the row groups of a segment, without those that have no row of `selection`.

    Raises:
        ArchiveError: the file cannot be read; the text names it.
    """
    with opened(storage, file.path, pre_buffer=True) as parquet:
        present = [name for name in columns if name in parquet.schema.names]
        numbers: Sequence[int] = range(parquet.metadata.num_row_groups)
        if file.parts is not None and is_merged(file.path):
            numbers = file.parts
        for number in numbers:
            group = parquet.metadata.row_group(number)
            if selection is None or may_have_rows(group, selection):
                yield _completed(parquet.row_group(number, present), columns)


def read_segment(storage: Storage, path: Path, columns: Sequence[str] = SCHEMA.names) -> pa.Table:
    """Return all rows of a segment.

    Raises:
        ArchiveError: the file cannot be read; the text names it.
    """
    groups = row_groups(storage, SegmentFile(path), columns)
    return pa.concat_tables([_completed(SCHEMA.empty_table(), columns), *groups])


def read_beside(
    storage: Storage, path: Path, key: bytes, columns: Sequence[str] | None = None
) -> pa.Table | None:
    """Return the id sets or the name pairs in a segment; None when it has none.

    Raises:
        ArchiveError: the file cannot be read; the text names it.
    """
    with opened(storage, path) as file:
        return file.beside(key, columns)


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
    if selection.tapped:
        return True
    stats = statistics(group, "received")
    if stats is None or not stats.has_min_max or not stats.has_null_count or stats.null_count:
        return True
    return bool(micros(stats.max) >= selection.since and micros(stats.min) < selection.until)


def statistics(group: pq.RowGroupMetaData, name: str) -> Any:  # noqa: ANN401  # pyarrow has no types
    """Return the statistics of a column of a row group; None when there are none."""
    for index in range(group.num_columns):
        column = group.column(index)
        if column.path_in_schema == name:
            return column.statistics if column.is_stats_set else None
    return None


def micros(value: Any) -> int:  # noqa: ANN401  # statistics have the type of their file
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
    rows = rows.filter(are_copies(rows["leg"]))
    rows = _with_targets(rows)
    rows = rows.filter(pa.array(_is_near(rows, selection)))
    run, counter, no_id = _ids(rows)
    if selection.wanted is not None:
        kept = _is_wanted(rows, run, counter, selection.wanted)
        rows = rows.filter(pa.array(kept))
        run, counter, no_id = run[kept], counter[kept], no_id[kept]
    receipt = pc.coalesce(rows["received"], rows["time"])
    high, low = _hash_words(rows["hash"])
    columns = {
        **{name: rows[name] for name in JOIN_SCHEMA.names if name in rows.column_names},
        "run": run,
        "counter": counter,
        "no_id": no_id,
        "receipt_time": receipt,
        "hash_high": high,
        "hash_low": low,
        "redelivered": pc.fill_null(rows["redelivered"], False),
        "replayed": pc.fill_null(rows["replayed"], False),
        "converted": pc.fill_null(pc.equal(rows["outcome"], RowOutcome.CONVERTED.value), False),
        "recent": _is_recent(rows["gateway"], receipt, selection.open_since, writer),
        "tapped": _is_tapped(rows, selection.taps),
    }
    return pa.table([columns[name] for name in JOIN_SCHEMA.names], schema=JOIN_SCHEMA)


def _with_targets(rows: pa.Table) -> pa.Table:
    """Repeat each row for every target it names; a row without a target gets the empty one."""
    target = pc.fill_null(rows["target"], "")
    listed = pc.and_(
        pc.equal(target, ""), pc.greater(pc.fill_null(pc.list_value_length(rows["targets"]), 0), 0)
    )
    place = rows.schema.get_field_index("target")
    single = rows.set_column(place, "target", target).filter(pc.invert(listed))
    several = rows.filter(listed)
    lists = several["targets"].combine_chunks()
    repeated = several.take(pc.list_parent_indices(lists))
    repeated = repeated.set_column(place, "target", pc.fill_null(pc.list_flatten(lists), ""))
    return pa.concat_tables([single, repeated]).drop_columns("targets")


def _is_near(rows: pa.Table, selection: Selection) -> Flags:
    received = _numbers(rows["received"])
    time = _numbers(rows["time"])
    unknown = rows["received"].is_null().to_numpy()
    inside = (received >= selection.since) & (received < selection.until) & ~unknown
    by_time = unknown
    if selection.tapped:
        by_time |= are_of_targets(rows, selection.tapped)
    begin, end = selection.around
    near: Flags = inside | (by_time & (time >= begin) & (time < end))
    return near


def are_of_targets(rows: pa.Table, targets: Collection[TargetName]) -> Flags:
    """Return which rows are of one of `targets`."""
    found = np.zeros(rows.num_rows, np.bool_)
    for route, target in targets:
        found |= with_values(rows, route=route, target=target)
    return found


def _numbers(column: pa.ChunkedArray) -> Numbers:
    """Return times as microseconds; a null is 0."""
    numbers: Numbers = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    return numbers


def _ids(rows: pa.Table) -> tuple[Numbers, Numbers, Flags]:
    """Return run and counter of each row, and whether an observed row lacks the message's id.

    The id of an observed row is that of the message in `origin_id`, where the system carries it.
    """
    run, counter = words(rows["id"])
    observed = pc.equal(rows["leg"], Leg.OBSERVED.value).to_numpy()
    known, runs, counters = hex_ids(pc.if_else(pa.array(observed), rows["origin_id"], None))
    run[known], counter[known] = runs, counters
    return run, counter, observed & ~known


def _hash_words(column: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    absent = column.is_null().to_numpy()
    high, low = words(column)
    return pa.array(high, mask=absent), pa.array(low, mask=absent)


def _is_recent(
    gateways: pa.ChunkedArray,
    receipt: pa.ChunkedArray,
    open_since: Mapping[str, int],
    writer: str | None,
) -> pa.Array:
    """Return whether the outcome may still be in the open journal of the row's writer."""
    recent = np.zeros(len(gateways), np.bool_)
    times = _numbers(receipt)
    for gateway in pc.unique(gateways).to_pylist():
        near = [
            since
            for each, since in open_since.items()
            if writer in {None, each} and gateway_of(each) == safe_name(gateway)
        ]
        if near:
            recent |= pc.equal(gateways, gateway).to_numpy() & (times >= min(near))
    return pa.array(recent)


def _is_tapped(rows: pa.Table, taps: Mapping[TapKey, TapTimes]) -> pa.Array:
    """Return whether the tap of the row's target was observing from the receipt to the row."""
    tapped = np.zeros(rows.num_rows, np.bool_)
    times, receipts = _numbers(rows["time"]), _numbers(pc.coalesce(rows["received"], rows["time"]))
    for (gateway, route, target), tap in taps.items():
        seen = (times >= tap.since) & ~_is_in_gap(receipts, times, tap.gaps)
        tapped |= with_values(rows, gateway=gateway, route=route, target=target) & seen
    return pa.array(tapped)


def _is_in_gap(begins: Numbers, ends: Numbers, gaps: Sequence[tuple[int, int]]) -> Flags:
    """Return whether each interval meets one of `gaps`, which are sorted by their begin."""
    if not gaps:
        return np.zeros(len(begins), np.bool_)
    first, last = np.array(gaps, np.int64).T
    at = np.searchsorted(np.maximum.accumulate(last), begins)  # the first gap that ends later
    found: Flags = (at < len(gaps)) & (first[np.minimum(at, len(gaps) - 1)] <= ends)
    return found


def _is_wanted(
    rows: pa.Table, run: Numbers, counter: Numbers, wanted: Mapping[IdKey, Intervals]
) -> Flags:
    found = np.zeros(rows.num_rows, np.bool_)
    names = {name: rows[name].cast(pa.string()) for name in TARGET_KEYS}
    keys = pa.table({**names, "run": pa.array(run)})
    for key, places in positions(keys, keys.column_names):
        ids = wanted.get(key)
        if ids is not None:
            found[places] = contains(ids, counter[places])
    return found
