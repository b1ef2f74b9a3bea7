"""Comparison of the names that were sent with their translation by the routes of their time.

The distinct names are compared first. Rows are read only for names about which the routes of the
time disagree: after a reload, or where some routes are not known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from gateway.archive.findings import Finding, error
from gateway.archive.location import ArchiveLocation
from gateway.archive.schema import Leg
from gateway.archive.storage import Storage, open_storage
from gateway.night.archive.intervals import Numbers
from gateway.night.archive.segments.tables import schema_of
from gateway.night.reconcile.classify.result_tables import counting
from gateway.night.reconcile.grouping import ascending, grouped, summed
from gateway.night.reconcile.input.executors import Row, collect, divided
from gateway.night.reconcile.input.hop_routes import parsed_rules
from gateway.night.reconcile.input.inputs import Segments
from gateway.night.reconcile.input.route_history import RouteHistory
from gateway.night.reconcile.input.row_reader import read_pairs, row_groups
from gateway.routing.name_rules import NOT_RECORDED
from gateway.terminal.units import counted

Copy: TypeAlias = tuple[str | None, ...]  # the values of `_COPY`

_NAMES: Final = ("route", "target", "source_name", "name", "fields")
_TARGET: Final = ("route", "target")
_COPY: Final = ("gateway", *_NAMES)
# A copy that was not checked has no `now`; the archive does not have what is in `lack`.
RESULT: Final = {**dict.fromkeys((*_COPY, "now", "lack"), "string"), "copies": "int64"}
_ROUTES: Final = "the routes of {}"
_FIELDS: Final = "the fields in the names of {} (`archive_redact`)"
_DISTINCT: Final = [*_COPY, "first_id", "last", "copies"]
_TIMED: Final = (*_COPY, "leg", "time", "received", "replayed")
_RUN_BYTES: Final = 8  # of a message id: the start of the process that received it
_BATCH_ROWS: Final = 10_000  # in memory at once, as Python objects
_MAX_WAITING: Final = 200_000  # name pairs in memory before they are made distinct


def renamed(
    spark: SparkSession, location: ArchiveLocation, history: RouteHistory, segments: Segments
) -> tuple[pa.Table, str]:
    """Return the distinct names that differ from their translation, with their copies.

    Beside them, why the names of other copies were not checked; empty when all were.

    Raises:
        ArchiveError: a segment cannot be read.
    """
    tasks = divided(spark, segments, [each.size for each in segments])
    rows = collect(spark, RESULT, tasks, partial(run_renames, location, history))
    wrong = summed(rows.filter(pc.is_valid(rows["now"])), [*_NAMES, "now"], ["copies"])
    wrong = wrong.sort_by(ascending("route", "target", "name", "source_name"))
    unchecked = summed(rows.filter(pc.is_null(rows["now"])), ["lack", "gateway"], ["copies"])
    listed: dict[str, list[str]] = {}
    for row in unchecked.to_pylist():
        copies = f"{counted(row['copies'], 'copy', 'copies')} of {row['gateway']!r}"
        listed.setdefault(row["lack"], []).append(copies)
    lacks = [lack.format(", ".join(listed[lack])) for lack in sorted(listed, reverse=True)]
    return wrong, f"the archive does not have {', nor '.join(lacks)}" if lacks else ""


def renamed_findings(wrong: pa.Table, day: date, by: str) -> list[Finding]:
    """Return a finding for each target with wrong names; `by` are the routes that translate."""
    found = summed(counting(wrong, "names"), _TARGET, ["names"])
    return [
        error(
            "renamed",
            f"date={day}",
            f"{counted(row['names'], 'name')} of route {row['route']!r} to"
            f" {row['target']!r}: not as {by} would translate; the table `renamed` has them",
        )
        for row in found.to_pylist()
    ]


def run_renames(
    location: ArchiveLocation, history: RouteHistory, segments: Segments
) -> Iterator[pa.Table]:
    """Yield the copies in `segments` with a wrong name, and without `now` those not checked."""
    storage = open_storage(location)
    found: list[Row] = []
    unsure: set[Copy] = set()  # routes disagree: only the times of the rows tell

    def judge(copies: Row, first: int, last: int, *, replay: bool | None) -> None:
        """Without `replay` there are several, of unknown times between `first` and `last`."""
        expected, complete = history.expected(copies["gateway"], first, last, replay=replay)
        route, target, source, name, fields = (copies[each] for each in _NAMES)
        made = [
            parsed_rules(location, rules).made.names(route, target, source, fields)
            for rules in expected
        ]
        right = [name in names for names in made]
        if [NOT_RECORDED] in made:
            found.append({**copies, "lack": _FIELDS})
            return
        if made and (all(right) or (any(right) and replay is not None)):
            return
        if made and complete and not any(right):
            found.append({**copies, "now": made[-1][0]})
        elif made and replay is None:
            unsure.add(_copy(copies))
        else:
            found.append({**copies, "lack": _ROUTES})

    for pair in _rows(_distinct(storage, segments)):
        first = int.from_bytes((pair["first_id"] or b"")[:_RUN_BYTES], "big")
        judge(pair, first, pair["last"], replay=None)
    for copies in _timed(storage, segments, history.bounds(), unsure) if unsure else ():
        replay = bool(copies["replayed"])
        judge(copies, copies["received"], copies["time"], replay=replay)
    yield pa.Table.from_pylist(found, schema_of(RESULT))


def _distinct(storage: Storage, segments: Segments) -> pa.Table:
    """Return the distinct names of all segments, with the first id and the last time."""
    waiting: list[pa.Table] = []
    limit = _MAX_WAITING
    for segment in segments:
        waiting.append(_pairs(storage, segment.path))
        if sum(map(len, waiting)) > limit:
            waiting = [_grouped(waiting)]
            limit = max(_MAX_WAITING, 2 * len(waiting[0]))
    return _grouped(waiting)


def _timed(
    storage: Storage, segments: Segments, bounds: Numbers, wanted: Collection[Copy]
) -> Iterator[Row]:
    """Yield the wanted copies, those of a row group together that have the same routes."""
    names = pa.array({copy[_COPY.index("name")] for copy in wanted}, pa.string())
    for segment in segments:
        for group in row_groups(storage, segment.path, _TIMED):
            delivered = pc.equal(group["leg"], Leg.DELIVERED.value)
            rows = group.filter(pc.and_(delivered, pc.is_in(group["name"], names)))
            yield from (each for each in _rows(_by_era(rows, bounds)) if _copy(each) in wanted)


def _by_era(rows: pa.Table, bounds: Numbers) -> pa.Table:
    """Return the distinct names of `rows`; apart, those received or delivered between bounds."""
    time = rows["time"].cast(pa.int64())
    received = pc.coalesce(rows["received"].cast(pa.int64()), time)
    table = counting(rows.select([*_COPY, "replayed"]))
    for name, values in (("received", received), ("time", time)):
        era = np.searchsorted(bounds, values.to_numpy(), side="right")
        table = table.append_column(name, values).append_column(f"{name}_era", pa.array(era))
    keys = [*_COPY, "replayed", "received_era", "time_era"]
    return grouped(table, keys, {"received": "min", "time": "min", "copies": "sum"})


def _pairs(storage: Storage, path: Path) -> pa.Table:
    """Return the name pairs of the deliveries of a segment."""
    pairs = read_pairs(storage, path)
    delivered = pc.equal(pairs["leg"], Leg.DELIVERED.value)
    own = pairs.filter(pc.and_(delivered, pc.is_valid(pairs["source_name"])))
    last = own["last_time"].cast(pa.int64())
    return pa.table([*own.select([*_COPY, "first_id"]), last, own["count"]], _DISTINCT)


def _grouped(pairs: Sequence[pa.Table]) -> pa.Table:
    found = {"first_id": "min", "last": "max", "copies": "sum"}
    return grouped(pa.concat_tables(pairs), _COPY, found)


def _rows(table: pa.Table) -> Iterator[Row]:
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        yield from batch.to_pylist()


def _copy(copies: Row) -> Copy:
    return tuple(copies[name] for name in _COPY)
