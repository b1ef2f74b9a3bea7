"""The first look at an archive on executors: gaps, cuts, taps, and copies that id sets prove."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from gateway.archive.findings import Finding
from gateway.archive.gaps import NO_ID, SourceGap, merge_gaps
from gateway.archive.heads import open_gaps
from gateway.archive.layout import DAY, HOUR, day_start, is_merged, parse_day
from gateway.archive.location import ArchiveLocation
from gateway.archive.schema import COLUMNS, SETS, Leg
from gateway.archive.storage import Storage, open_storage
from gateway.night.archive.intervals import Intervals
from gateway.night.archive.parquet import PAIRS_KEY, SETS_KEY
from gateway.night.archive.segments.sets import SET_SCHEMA, blocks_of
from gateway.night.archive.segments.tables import SCHEMA, schema_of
from gateway.night.reconcile.classify.sets import (
    BLOCKS,
    PARTS,
    PROVEN,
    UNPROVEN,
    crossing_parts,
    evaluate,
    tapped_targets,
)
from gateway.night.reconcile.grouping import RUN_KEYS, TARGET_KEYS, filled, grouped
from gateway.night.reconcile.input import cut_rows
from gateway.night.reconcile.input.executors import (
    collect,
    divided,
    map_tables,
    read_tasks,
    tables_of,
)
from gateway.night.reconcile.input.inputs import (
    Inputs,
    Scope,
    Segments,
    day_range,
    hours_around,
    hours_near,
)
from gateway.night.reconcile.input.route_history import RouteHistory
from gateway.night.reconcile.input.row_reader import (
    IdKey,
    Parts,
    Selection,
    TapKey,
    TapTimes,
    TargetName,
    Targets,
    are_of_targets,
    may_have_rows,
    opened,
    read_beside,
    read_segment,
    row_groups,
    statistics,
)

_GAP_COLUMNS: Final = (
    "gateway",
    "route",
    "leg",
    "endpoint",
    "name",
    "rule",
    "reason",
    "begin",
    "time",
    "lost",
    "target",
)
_SEEN_COLUMNS: Final = ("gateway", "route", "target", "minute", "delivered", "observed")
_NEVER: Final = int(np.iinfo(np.int64).max)  # microseconds: later than any limit
_TAPS: Final = schema_of({**dict.fromkeys(TARGET_KEYS, "string"), "since": "int64"})
_LATE: Final = schema_of({"route": "string", "target": "string", "hour": "int64"})
_KINDS: Final = {
    "gaps": schema_of({name: COLUMNS[name] for name in _GAP_COLUMNS}),
    "taps": _TAPS,
    "late": _LATE,
    "near": schema_of({"path": "string"}),
    "proven": PROVEN,
    "unproven": UNPROVEN,
    "parts": PARTS,
    "cuts": cut_rows.SEEN,
    "hashes": cut_rows.HASHES,
}  # of the tables that tasks return
SURVEY_COLUMNS: Final[Mapping[str, str]] = {"kind": "string", "content": "binary"}
# Blocks of all files; `file` is the path of the segment in its archive.
BLOCK_COLUMNS: Final[Mapping[str, str]] = {"file": "string", **SETS}
_COMPRESSED: Final = pa.ipc.IpcWriteOptions(compression="zstd")  # a day has a gigabyte of counts


@dataclass(frozen=True, slots=True)
class Survey:
    """The findings of all tasks; the tables are those of `evaluate` over all gateways."""

    gaps: Sequence[SourceGap] = ()
    taps: Mapping[TapKey, TapTimes] = field(default_factory=dict)
    proven: pa.Table = field(default_factory=PROVEN.empty_table)
    unproven: pa.Table = field(default_factory=UNPROVEN.empty_table)
    parts: pa.Table = field(default_factory=PARTS.empty_table)
    near: frozenset[Path] = frozenset()  # segments of other days with rows received on the date
    late: frozenset[int] = frozenset()  # hours since 1970, long after the date, of its deliveries
    cuts: pa.Table = field(default_factory=cut_rows.SEEN.empty_table)
    hashes: pa.Table = field(default_factory=cut_rows.HASHES.empty_table)

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

    def files(self) -> dict[Path, Parts]:
        """Return the segments with rows to join, each with its parts."""
        parts = defaultdict[str, set[int]](set)  # two tasks may leave one part to the join
        for row in self.parts.to_pylist():
            parts[row["file"]].add(row["part"])
        return {Path(file): tuple(sorted(own)) for file, own in sorted(parts.items())}


@dataclass(frozen=True, slots=True)
class DateFiles:
    """The verified files of a date and around it, the first look at them, and their routes.

    `history` has the routes of each time, and `newer` the findings about its files. The gaps that
    are `lasting` have not ended. It took `seconds` to verify the files of the date.
    """

    scope: Scope
    inputs: Inputs
    seconds: float
    found: Survey = field(default_factory=Survey)
    history: RouteHistory = field(default_factory=RouteHistory)
    newer: Sequence[Finding] = ()

    @property
    def lasting(self) -> list[SourceGap]:
        writers = self.inputs.verified.writers
        return open_gaps([each for each in writers.heads if each.writer not in writers.retired])


def survey(spark: SparkSession, scope: Scope, inputs: Inputs) -> Survey:
    """Find the gaps and the taps, and unless `full` the copies that id sets prove."""
    location, day = scope.location, scope.day
    tasks = divided(spark, inputs.all, [each.size for each in inputs.all])
    seen = collect(spark, SURVEY_COLUMNS, tasks, partial(run_survey, location, day))
    found = merged(seen)
    if scope.full:
        return found
    late = hours_near(found.late)
    blocks_of = partial(run_blocks, location, day, tapped=found.tapped, late=late)
    blocks = read_tasks(spark, BLOCK_COLUMNS, tasks, blocks_of)
    run = partial(run_evaluation, location, day, scope.late, found.tapped)
    of_targets = blocks.repartition(max(len(tasks), 1), *TARGET_KEYS)
    proven = map_tables(of_targets, SURVEY_COLUMNS, run).toArrow()
    return merged(pa.concat_tables([seen, proven]))


def run_survey(location: ArchiveLocation, day: date, segments: Segments) -> Iterator[pa.Table]:
    """Yield what some segments have: a row for each table, as an Arrow stream in `content`."""
    storage = open_storage(location)
    received = Selection(*day_range(day), hours_around(day))
    for segment in segments:
        path = segment.path
        with opened(storage, path) as file:
            metadata = file.metadata
            sets = file.beside(SETS_KEY, _SEEN_COLUMNS)
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        if not segment.sealed and any(may_have_rows(group, received) for group in groups):
            yield from _packed("near", pa.table({"path": [path.as_posix()]}))
        parts = tuple(number for number, group in enumerate(groups) if _may_have_gaps(group))
        for rows in row_groups(storage, path, _GAP_COLUMNS, parts) if parts else ():
            yield from _packed("gaps", rows.filter(pc.equal(rows["leg"], Leg.GAP.value)))
        for kind, table in cut_rows.read_cuts(storage, path, groups, day_range(day)):
            yield from _packed(kind, table)
        seen = _computed_sets(storage, path) if sets is None else sets
        yield from _packed("taps", _taps(seen, *hours_around(day)))
        if (late := _late(seen, path, day)).num_rows:
            yield from _packed("late", late)


def _packed(kind: str, table: pa.Table) -> Iterator[pa.Table]:
    content = pa.BufferOutputStream()
    with pa.ipc.new_stream(content, table.schema, options=_COMPRESSED) as stream:
        stream.write_table(table)
    row = {"kind": kind, "content": content.getvalue().to_pybytes()}
    yield from tables_of(SURVEY_COLUMNS, [row])


def merged(rows: pa.Table) -> Survey:
    """Merge the results of all tasks."""
    tables = {kind: [schema.empty_table()] for kind, schema in _KINDS.items()}
    for kind, content in zip(rows["kind"].to_pylist(), rows["content"], strict=True):
        with pa.ipc.open_stream(content.as_buffer()) as stream:
            tables[kind].append(stream.read_all())
    found = {kind: pa.concat_tables(parts) for kind, parts in tables.items()}
    gaps = merge_gaps(found["gaps"].to_pylist())
    taps = _tap_times(found["taps"], gaps)
    tapped = {key[1:] for key in taps}
    late = [row for row in found["late"].to_pylist() if (row["route"], row["target"]) in tapped]
    return Survey(
        [each for each in gaps if not each.target],
        taps,
        found["proven"],
        found["unproven"],
        found["parts"],
        frozenset(map(Path, found["near"]["path"].to_pylist())),
        frozenset(row["hour"] for row in late),
        found["cuts"],
        found["hashes"],
    )


def _tap_times(seen: pa.Table, gaps: Iterable[SourceGap]) -> dict[TapKey, TapTimes]:
    """Return the times of taps; a kept session has the messages of a tap's absence for it."""
    missed = defaultdict[TapKey, list[tuple[int, int]]](list)
    for gap in gaps:
        if gap.counts:
            missed[gap.gateway, gap.route, gap.target].append((gap.begin, gap.end))
    since = grouped(seen, TARGET_KEYS, {"since": "min"}).to_pylist()
    times = {(row["gateway"], row["route"], row["target"]): row["since"] for row in since}
    return {key: TapTimes(first, tuple(missed[key])) for key, first in times.items()}


def _may_have_gaps(group: pq.RowGroupMetaData) -> bool:
    stats = statistics(group, "id")
    return stats is None or not stats.has_min_max or stats.min == NO_ID


def _taps(sets: pa.Table, begin: int, end: int) -> pa.Table:
    """Return the targets with an observed row, and the minute of the first one."""
    seen = _within(sets, begin, end).filter(pc.field("observed") > 0)
    since = seen.select([*TARGET_KEYS, "minute"]).rename_columns(_TAPS.names).cast(_TAPS)
    return grouped(since, TARGET_KEYS, {"since": "min"})


def _late(sets: pa.Table, path: Path, day: date) -> pa.Table:
    """Return the targets to which a segment has deliveries of `day` that its hours lack.

    Copies that were spooled for long, or replayed: a tap sees them in the hour of the segment.
    """
    at = _hour_of(path)
    late = at >= hours_around(day)[1]
    own = _within(sets, *day_range(day)).filter(pc.field("delivered") > 0) if late else sets[:0]
    columns = {"route": own["route"], "target": own["target"], "hour": at // HOUR}
    return filled(_LATE, own.num_rows, columns).group_by(_LATE.names).aggregate([])


def _hour_of(path: Path) -> int:
    """Return the begin of the hour of a segment, in microseconds; 0 when its folder has none."""
    day, hour = parse_day(path.parent.parent.name), path.parent.name.removeprefix("hour=")
    return day_start(day) + int(hour) * HOUR if day and hour.isdecimal() else 0


def _within(sets: pa.Table, begin: int, end: int) -> pa.Table:
    minute = sets["minute"].cast(pa.int64())
    return sets.filter(pc.and_(pc.greater_equal(minute, begin), pc.less(minute, end)))


def run_blocks(
    location: ArchiveLocation, day: date, segments: Segments, tapped: Targets, late: Collection[int]
) -> Iterator[pa.Table]:
    """Yield the blocks of the date, of the day before it, and of the hours in which taps see it.

    Of the `tapped` targets, also the blocks of older messages that were delivered in these hours or
    in the `late` ones: their sightings are among those of the date. Only the blocks of proven
    segments can prove a copy.
    """
    storage = open_storage(location)
    since, (first, until) = day_start(day) - DAY, hours_around(day)
    for segment in segments:
        stored = read_beside(storage, segment.path, SETS_KEY)
        blocks = _computed_sets(storage, segment.path) if stored is None else stored
        at = _hour_of(segment.path)
        seen = tapped if first <= at < until or at // HOUR in late else ()
        minute = blocks["minute"].cast(pa.int64()).to_numpy()
        near = (minute >= since) & (minute < until) | are_of_targets(blocks, seen)
        kept = blocks.filter(pa.array(near))
        columns = {name: kept[name] for name in SETS} | {"file": segment.path.as_posix()}
        yield filled(
            BLOCKS, kept.num_rows, columns if segment.sealed else columns | {"slowest": _NEVER}
        )


def run_evaluation(
    location: ArchiveLocation, day: date, late: int, tapped: Targets, blocks: pa.Table
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
        pairs = _pairs(storage, crossing_parts(own, day))
        for kind, table in evaluate(own, day, late, pairs, observed).items():
            yield from _packed(kind, table)


def _computed_sets(storage: Storage, path: Path) -> pa.Table:
    """Return the blocks of a segment without id sets, from its rows."""
    if not is_merged(path):
        return blocks_of(read_segment(storage, path))
    groups = row_groups(storage, path, SCHEMA.names)
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
