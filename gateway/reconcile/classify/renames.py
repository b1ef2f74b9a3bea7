"""Comparison of the names that were sent with their translation by another mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from gateway.archive.location import ArchiveLocation
from gateway.archive.schema import Leg
from gateway.archive.segments.pairs import pairs_of
from gateway.archive.storage import Storage, open_storage
from gateway.reconcile.input.executors import read_tasks
from gateway.reconcile.input.inputs import Segment
from gateway.reconcile.input.row_reader import read_segment
from gateway.reconcile.input.survey import read_sidecar
from gateway.reconcile.schema import spark_schema

# Route, target, source name -> name at the target; without one, the reason in parentheses.
Translator: TypeAlias = Callable[[str, str, str], str]

_KEYS: Final = ("route", "target", "source_name", "name", "now")
_COLUMNS: Final = {**dict.fromkeys(_KEYS, "string"), "copies": "int64"}


@dataclass(frozen=True, slots=True)
class RenameTask:
    """The segments whose names one task translates again."""

    location: ArchiveLocation
    segments: Sequence[Segment]
    translator: Translator


def renamed(spark: SparkSession, tasks: Sequence[RenameTask]) -> pa.Table:
    """Return the distinct names whose translation differs from the sent one, with their copies."""
    rows = read_tasks(spark, spark_schema(_COLUMNS), tasks, run_renames).toArrow()
    order = [(name, "ascending") for name in ("route", "target", "name", "source_name")]
    return _summed(rows, _KEYS).sort_by(order)


def run_renames(task: RenameTask) -> Iterator[pa.Table]:
    """Yield the names of a task that are translated differently now."""
    storage = open_storage(task.location)
    found = [_sent(storage, each) for each in task.segments]
    sent = _summed(pa.concat_tables(found), _KEYS[:-1])
    names = zip(*(sent[name].to_pylist() for name in _KEYS[:3]), strict=True)
    now = pa.array([task.translator(*each) for each in names], pa.string())
    changed = sent.add_column(len(_KEYS) - 1, "now", now)
    yield changed.filter(pc.not_equal(changed["now"], changed["name"]))


def _sent(storage: Storage, segment: Segment) -> pa.Table:
    """Return the name pairs of the deliveries of a segment."""
    if segment.pairs is not None:
        pairs = read_sidecar(storage, segment.pairs)
    else:  # too many to keep
        pairs = pairs_of(read_segment(storage, segment.path), limit=None)
    delivered = pc.equal(pairs["leg"], Leg.DELIVERED.value)
    own = pairs.filter(pc.and_(delivered, pc.is_valid(pairs["source_name"])))
    return own.select([*_KEYS[:-1], "count"]).rename_columns([*_KEYS[:-1], "copies"])


def _summed(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    sums = rows.group_by(list(keys)).aggregate([("copies", "sum")])
    return sums.select([*keys, "copies_sum"]).rename_columns([*keys, "copies"])
