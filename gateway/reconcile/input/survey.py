"""The first look at an archive on executors: gaps, taps, and copies that id sets prove."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gateway.archive.gaps import NO_ID, SourceGap, merge_gaps
from gateway.archive.intervals import Intervals
from gateway.archive.layout import is_merged
from gateway.archive.location import ArchiveLocation
from gateway.archive.parquet import PAIRS_KEY, SETS_KEY
from gateway.archive.schema import SETS, Leg
from gateway.archive.segments.sets import SET_SCHEMA, blocks_of
from gateway.archive.segments.tables import SCHEMA, schema_of
from gateway.archive.storage import Storage, open_storage
from gateway.archive.verification.contents import VerifiedSegment
from gateway.reconcile.classify.sets import (
    BLOCKS,
    PARTS,
    PROVEN,
    UNPROVEN,
    crossing_parts,
    evaluate,
    tapped_targets,
)
from gateway.reconcile.grouping import RUN_KEYS, TARGET_KEYS, filled, grouped
from gateway.reconcile.input.inputs import day_range, hours_around, microseconds
from gateway.reconcile.input.row_reader import (
    IdKey,
    SegmentFile,
    Selection,
    TapKey,
    TapTimes,
    TargetName,
    may_have_rows,
    opened,
    read_beside,
    read_segment,
    row_groups,
    statistics,
)

_GAP_COLUMNS: Final = (
    "gateway", "route", "leg", "endpoint", "name", "rule", "reason", "source_time", "time", "size",
    "target",
)  # fmt: skip
_SEEN_COLUMNS: Final = ("gateway", "route", "target", "minute", "observed")
_NEVER: Final = int(np.iinfo(np.int64).max)  # microseconds: later than any limit
_TAPS: Final = schema_of({**dict.fromkeys(TARGET_KEYS, "string"), "since": "int64"})


# Blocks of all files; `file` is the path of the segment in its archive.
BLOCK_COLUMNS: Final[Mapping[str, str]] = {"file": "string", **SETS}
_COMPRESSED: Final = pa.ipc.IpcWriteOptions(compression="zstd")  # a day has a gigabyte of counts


@dataclass(frozen=True, slots=True)
class Survey:
    """The findings of all tasks; the tables are those of `Evaluation` over all gateways."""

    gaps: Sequence[SourceGap] = ()
    taps: Mapping[TapKey, TapTimes] = field(default_factory=dict)
    proven: pa.Table = field(default_factory=PROVEN.empty_table)
    unproven: pa.Table = field(default_factory=UNPROVEN.empty_table)
    parts: pa.Table = field(default_factory=PARTS.empty_table)
    near: frozenset[Path] = frozenset()  # segments of other days with rows received on the date

    @property
    def tapped(self) -> frozenset[TargetName]:
        return frozenset((route, target) for _, route, target in self.taps)

    def wanted(self) -> dict[IdKey, Intervals]:
        """Return the ids to join."""
        keys = self.unproven.select(RUN_KEYS).to_pylist()
        ends = (self.unproven[name] for name in ("first", "last"))
        return {
            (*key.values(),): Intervals(first.values.to_numpy(), last.values.to_numpy())
            for key, first, last in zip(keys, *ends, strict=True)
        }

    def files(self) -> list[SegmentFile]:
        """Return the segments with rows to join."""
        parts: dict[str, set[int]] = {}  # two tasks may leave one part to the join
        for row in self.parts.to_pylist():
            parts.setdefault(row["file"], set()).add(row["part"])
        return [SegmentFile(Path(file), tuple(sorted(own))) for file, own in sorted(parts.items())]


SURVEY_COLUMNS: Final[Mapping[str, str]] = {"kind": "string", "content": "binary"}


def run_survey(
    location: ArchiveLocation, day: date, segments: Sequence[VerifiedSegment]
) -> Iterator[pa.Table]:
    """Yield what some segments have: a row for each table, as an Arrow stream in `content`."""
    storage = open_storage(location)
    for each in segments:
        for kind, table in _results(storage, each, day):
            yield from _packed(kind, table)


def _packed(kind: str, table: pa.Table) -> Iterator[pa.Table]:
    content = pa.BufferOutputStream()
    with pa.ipc.new_stream(content, table.schema, options=_COMPRESSED) as stream:
        stream.write_table(table)
    yield pa.table(
        {"kind": pa.array([kind]), "content": pa.array([content.getvalue().to_pybytes()])}
    )


def merged(rows: pa.Table) -> Survey:
    """Merge the results of all tasks."""
    tables: dict[str, list[pa.Table]] = {}
    for kind, content in zip(rows["kind"].to_pylist(), rows["content"], strict=True):
        with pa.ipc.open_stream(content.as_buffer()) as stream:
            tables.setdefault(kind, []).append(stream.read_all())
    gaps = merge_gaps(row for table in tables.get("gaps", ()) for row in table.to_pylist())
    whole = {
        kind: pa.concat_tables([schema.empty_table(), *tables.get(kind, ())])
        for kind, schema in (("proven", PROVEN), ("unproven", UNPROVEN), ("parts", PARTS))
    }
    near = {row["path"] for table in tables.get("near", ()) for row in table.to_pylist()}
    of_sources = [each for each in gaps if not each.target]
    taps = _tap_times(tables.get("taps", ()), gaps)
    return Survey(of_sources, taps, **whole, near=frozenset(map(Path, near)))


def _tap_times(tables: Iterable[pa.Table], gaps: Iterable[SourceGap]) -> dict[TapKey, TapTimes]:
    """Return the times of taps; a kept session has the messages of a tap's absence for it."""
    since: dict[TapKey, int] = {}
    for row in (row for table in tables for row in table.to_pylist()):
        key = row["gateway"], row["route"], row["target"]
        since[key] = min(since.get(key, row["since"]), row["since"])
    missed: dict[TapKey, list[tuple[int, int]]] = {key: [] for key in since}
    for gap in gaps:
        own = missed.get((gap.gateway, gap.route, gap.target))
        if own is not None and gap.counts:
            own.append((gap.begin, gap.end))
    return {key: TapTimes(first, tuple(missed[key])) for key, first in since.items()}


def _results(
    storage: Storage, segment: VerifiedSegment, day: date
) -> Iterator[tuple[str, pa.Table]]:
    with opened(storage, segment.path) as file:
        metadata = file.metadata
        sets = file.beside(SETS_KEY, _SEEN_COLUMNS)
    if sets is None:
        sets = _computed_sets(storage, segment.path)
    yield from _of_footer(storage, segment, metadata, day)
    yield "taps", _taps(sets, *hours_around(day))


def _of_footer(
    storage: Storage, segment: VerifiedSegment, metadata: pq.FileMetaData, day: date
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the gap rows of a segment, and whether an unproven one may have rows of the date.

    The statistics in the footer exclude most row groups.
    """
    path = segment.path
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    received = Selection(*day_range(day), hours_around(day))
    if not segment.sealed and any(may_have_rows(group, received) for group in groups):
        yield "near", pa.table({"path": [path.as_posix()]})
    parts = tuple(number for number, group in enumerate(groups) if _may_have_gaps(group))
    if parts:
        for rows in row_groups(storage, SegmentFile(path, parts), _GAP_COLUMNS):
            yield "gaps", rows.filter(pc.equal(rows["leg"], Leg.GAP.value))


def _may_have_gaps(group: pq.RowGroupMetaData) -> bool:
    stats = statistics(group, "id")
    return stats is None or not stats.has_min_max or stats.min == NO_ID


def _taps(sets: pa.Table, begin: int, end: int) -> pa.Table:
    """Return the targets with an observed row, and the minute of the first one."""
    since = sets["minute"].cast(pa.int64())
    inside = pc.and_(pc.greater_equal(since, begin), pc.less(since, end))
    chosen = pc.and_(inside, pc.greater(sets["observed"], 0))
    named = {name: sets[name].cast(pa.string()) for name in TARGET_KEYS}
    seen = pa.table({**named, "since": since}).filter(chosen)
    return grouped(seen, TARGET_KEYS, {"since": "min"}).cast(_TAPS)


def run_blocks(
    location: ArchiveLocation, day: date, segments: Sequence[VerifiedSegment]
) -> Iterator[pa.Table]:
    """Yield the blocks of the date, of the day before it, and of the hours in which taps see it.

    Only the blocks of proven segments can prove a copy.
    """
    storage = open_storage(location)
    kind = pa.timestamp("us", tz="UTC")
    since = pa.scalar(microseconds(day, -24), kind)
    until = pa.scalar(hours_around(day)[1], kind)
    for segment in segments:
        blocks = read_beside(storage, segment.path, SETS_KEY)
        if blocks is None:
            blocks = _computed_sets(storage, segment.path)
        near = pc.and_(pc.greater_equal(blocks["minute"], since), pc.less(blocks["minute"], until))
        kept = blocks.filter(near)
        columns = {name: kept[name] for name in SETS} | {"file": segment.path.as_posix()}
        yield filled(
            BLOCKS, kept.num_rows, columns if segment.sealed else columns | {"slowest": _NEVER}
        )


def run_evaluation(
    location: ArchiveLocation,
    day: date,
    late: int,
    tapped: Collection[TargetName],
    blocks: pa.Table,
) -> Iterator[pa.Table]:
    """Yield the results of BLOCK_COLUMNS as `run_survey` does; of a target, all blocks are there.

    A copy's rows name its gateway, route and target. They may lie in any hour, so the blocks of a
    target are not divided. `late` is in seconds; `tapped` are the targets with a tap of any
    gateway, which sees the messages of all.
    """
    storage = open_storage(location)
    blocks = blocks.cast(BLOCKS).combine_chunks()
    for gateway in pc.unique(blocks["gateway"]).to_pylist():
        own = blocks.filter(pc.equal(blocks["gateway"], gateway))
        observed = tapped_targets(own) | frozenset(tapped)
        found = evaluate(own, day, late, _pairs(storage, crossing_parts(own, day)), observed)
        for kind in ("proven", "unproven", "parts"):
            yield from _packed(kind, getattr(found, kind))


def _computed_sets(storage: Storage, path: Path) -> pa.Table:
    """Return the blocks of a segment without id sets, from its rows."""
    if not is_merged(path):
        return blocks_of(read_segment(storage, path))
    groups = row_groups(storage, SegmentFile(path), SCHEMA.names)
    blocks = [blocks_of(rows, part) for part, rows in enumerate(groups)]
    return pa.concat_tables([SET_SCHEMA.empty_table(), *blocks])


def _pairs(storage: Storage, parts: pa.Table) -> pa.Table | None:
    """Return the stored name pairs of `parts`, with the columns `file` and `part`."""
    tables: list[pa.Table] = []
    for file in pc.unique(parts["file"]).to_pylist():
        pairs = read_beside(storage, Path(file), PAIRS_KEY)
        if pairs is None:
            continue  # too many names: the order is computed from the rows
        if "part" not in pairs.column_names:
            pairs = pairs.append_column("part", pa.array(np.zeros(len(pairs), np.int32)))
        own = parts.filter(pc.equal(parts["file"], file))["part"]
        kept = pairs.filter(pc.is_in(pairs["part"], own.combine_chunks()))
        tables.append(kept.append_column("file", pa.array([file] * len(kept), pa.string())))
    return pa.concat_tables(tables) if tables else None
