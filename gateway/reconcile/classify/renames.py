"""Comparison of the names that were sent with their translation by the routes of their time.

The distinct names are compared first. Rows are read only for names about which the routes of the
time disagree: after a reload, or where some routes are not known.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import lru_cache, partial
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from gateway.archive.findings import Finding, error
from gateway.archive.location import ArchiveLocation
from gateway.archive.schema import Leg
from gateway.archive.segments.tables import schema_of
from gateway.archive.storage import Storage, open_storage
from gateway.archive.verification.contents import VerifiedSegment
from gateway.reconcile.grouping import ascending, grouped, summed
from gateway.reconcile.input.archived_short_names import ArchivedShortNames
from gateway.reconcile.input.executors import Row, collect, divided
from gateway.reconcile.input.route_history import RouteHistory
from gateway.reconcile.input.row_reader import SegmentFile, read_pairs, row_groups
from gateway.reconcile.report.formatting import amount, counted_as
from gateway.routing.name_rules import RouteNames, to_routes

Copy: TypeAlias = tuple[str, ...]  # the values of `_COPY`

_NAMES: Final = ("route", "target", "source_name", "name")
_TARGET: Final = ("route", "target")
_COPY: Final = ("gateway", *_NAMES)
RESULT: Final = {**dict.fromkeys((*_COPY, "now"), "string"), "copies": "int64"}
_DISTINCT: Final = [*_COPY, "first_id", "last", "copies"]
_TIMED: Final = (*_COPY, "leg", "time", "received", "replayed")
_RUN_BYTES: Final = 8  # of a message id: the start of the process that received it
_MAX_RULES: Final = 64  # routes in memory
_BATCH_ROWS: Final = 10_000  # in memory at once, as Python objects
_MAX_WAITING: Final = 200_000  # name pairs in memory before they are made distinct


class Answer(Enum):
    """The result for copies without a wrong name."""

    RIGHT = "right"
    UNCHECKED = "unchecked"  # the routes of their time are not known
    UNSURE = "unsure"  # routes disagree: only the times of the rows tell


def renamed(
    spark: SparkSession,
    location: ArchiveLocation,
    history: RouteHistory,
    segments: Sequence[VerifiedSegment],
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
    unchecked = summed(rows.filter(pc.is_null(rows["now"])), ["gateway"], ["copies"]).to_pylist()
    listed = ", ".join(f"{amount(row['copies'])} copies of {row['gateway']!r}" for row in unchecked)
    return wrong, f"the archive does not have the routes of {listed}" if unchecked else ""


def renamed_findings(wrong: pa.Table, day: date, by: str) -> list[Finding]:
    """Return a finding for each target with wrong names; `by` are the routes that translate."""
    found = summed(wrong.append_column("names", pa.array([1] * len(wrong))), _TARGET, ["names"])
    return [
        error(
            "renamed",
            f"date={day}",
            f"{counted_as(row['names'], 'name')} of route {row['route']!r} to"
            f" {row['target']!r}: not as {by} would translate; the table `renamed` has them",
        )
        for row in found.to_pylist()
    ]


def run_renames(
    location: ArchiveLocation, history: RouteHistory, segments: Sequence[VerifiedSegment]
) -> Iterator[pa.Table]:
    """Yield the copies in `segments` with a wrong name, and without `now` those not checked."""
    found = list(_Names(location, history, segments, open_storage(location)).check())
    yield pa.Table.from_pylist(found, schema_of(RESULT))


@dataclass(frozen=True, slots=True)
class _Names:
    """The names in the segments of a task, beside the routes."""

    location: ArchiveLocation
    history: RouteHistory
    segments: Sequence[VerifiedSegment]
    storage: Storage

    def check(self) -> Iterator[Row]:
        """Yield rows of RESULT for the copies that are wrong or not checked."""
        unsure: set[Copy] = set()
        for pair in _rows(self._distinct()):
            first = int.from_bytes((pair["first_id"] or b"")[:_RUN_BYTES], "big")
            answer = self._answer(pair, first, pair["last"], replay=None)
            if answer is Answer.UNSURE:
                unsure.add(_copy(pair))
            elif answer is not Answer.RIGHT:
                yield _result(pair, answer)
        for copies in self._timed(unsure) if unsure else ():
            replay = bool(copies["replayed"])
            answer = self._answer(copies, copies["received"], copies["time"], replay=replay)
            if answer is not Answer.RIGHT:
                yield _result(copies, answer)

    def _distinct(self) -> pa.Table:
        """Return the distinct names of all segments, with the first id and the last time."""
        waiting: list[pa.Table] = []
        rows = limit = 0
        for segment in self.segments:
            waiting.append(_pairs(self.storage, segment))
            rows += waiting[-1].num_rows
            if rows > limit:
                waiting = [_grouped(waiting)]
                rows = waiting[0].num_rows
                limit = max(_MAX_WAITING, 2 * rows)
        return _grouped(waiting)

    def _answer(self, copies: Row, first: int, last: int, *, replay: bool | None) -> Answer | str:
        """Return the answer for `copies` received from `first` on; the right name for a wrong one.

        Without `replay` the copies are several, and of unknown times between `first` and `last`.
        """
        expected = self.history.expected(copies["gateway"], first, last, replay=replay)
        route, target, source = (copies[name] for name in _NAMES[:-1])
        made = [
            _route_names(self.location, rules).names(route, target, source)
            for rules in expected.rules
        ]
        right = [copies["name"] in names for names in made]
        if not made:
            return Answer.UNCHECKED
        if all(right) or (any(right) and replay is not None):
            return Answer.RIGHT
        if not any(right) and expected.complete:
            return made[-1][0]
        return Answer.UNSURE if replay is None else Answer.UNCHECKED

    def _timed(self, wanted: Collection[Copy]) -> Iterator[Row]:
        """Yield the wanted copies, those of a row group together that have the same routes."""
        bounds = np.array(self.history.bounds(), dtype=np.int64)
        names = pa.array({copy[-1] for copy in wanted}, pa.string())
        for segment in self.segments:
            for group in row_groups(self.storage, SegmentFile(segment.path), _TIMED):
                delivered = pc.equal(group["leg"], Leg.DELIVERED.value)
                rows = group.filter(pc.and_(delivered, pc.is_in(group["name"], names)))
                yield from (each for each in _rows(_by_era(rows, bounds)) if _copy(each) in wanted)


def _by_era(rows: pa.Table, bounds: npt.NDArray[np.int64]) -> pa.Table:
    """Return the distinct names of `rows`; apart, those received or delivered between bounds."""
    time = rows["time"].cast(pa.int64())
    received = pc.coalesce(rows["received"].cast(pa.int64()), time)
    ones = pa.array(np.ones(rows.num_rows, np.int64))
    table = rows.select([*_COPY, "replayed"]).append_column("copies", ones)
    for name, values in (("received", received), ("time", time)):
        era = np.searchsorted(bounds, values.to_numpy(), side="right")
        table = table.append_column(name, values).append_column(f"{name}_era", pa.array(era))
    keys = [*_COPY, "replayed", "received_era", "time_era"]
    return grouped(table, keys, {"received": "min", "time": "min", "copies": "sum"})


@lru_cache(_MAX_RULES)
def _route_names(location: ArchiveLocation, rules: str) -> RouteNames:
    """Return the names of `rules`; each process of an executor parses them once."""
    return RouteNames(to_routes(json.loads(rules)), ArchivedShortNames(open_storage(location)))


def _pairs(storage: Storage, segment: VerifiedSegment) -> pa.Table:
    """Return the name pairs of the deliveries of a segment."""
    pairs = read_pairs(storage, segment.path)
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


def _result(copies: Row, answer: Answer | str) -> Row:
    now = answer if isinstance(answer, str) else None
    return {name: copies.get(name) for name in RESULT} | {"now": now}
