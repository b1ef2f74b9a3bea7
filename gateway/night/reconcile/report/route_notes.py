"""Notes about the routes of a report: whether payloads are archived, and targets that need a tap.

They are read from a sample of the segments of the date, and decide nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from gateway.archive.location import ArchiveLocation
from gateway.archive.schema import Leg
from gateway.archive.storage import open_storage
from gateway.model.copy_class import CLASSES, CopyClass
from gateway.night.archive.segments.reading import open_parquet
from gateway.night.reconcile.grouping import grouped
from gateway.night.reconcile.input.executors import collect
from gateway.night.reconcile.input.inputs import Segments
from gateway.night.reconcile.input.row_reader import Targets
from gateway.night.reconcile.report.rows import Row, Rows, count

_MAX_SEGMENTS: Final = 24
_COLUMNS: Final = ("route", "target", "leg", "reason")
# The encoder of a target's payloads, or whether a received row of a route has its payload.
NOTES: Final = {"route": "string", "target": "string", "encoding": "string", "archived": "boolean"}
_HEADER_NAMES: Final = "headers.key_value.key"  # archived with the payload, and never large
_REPLAYABLE: Final = tuple(name for name, each in CLASSES.items() if each.replayable)


def route_notes(  # the rows, and what notes are made of
    spark: SparkSession,
    location: ArchiveLocation,
    day: Segments,
    routes: Rows,
    tapped: Targets,
    *,
    configured: Targets | None,
) -> list[Row]:
    """Return `routes` with notes from a sample of the segments, each read by a task of its own.

    The `configured` targets are those of the newest routes; None: they are not known.
    """
    step = -(-len(day) // _MAX_SEGMENTS) or 1
    read = partial(run_notes, location, lossy_routes(routes))
    notes = collect(spark, NOTES, [[each.path] for each in day[::step]], read)
    found = with_notes(routes, notes, tapped)
    return found if configured is None else list(with_unconfigured(found, configured))


def with_unconfigured(routes: Rows, configured: Targets) -> Iterator[Row]:
    """Yield `routes`, those with copies in flight to no `configured` target as `unconfigured`."""
    for row in routes:
        waits = count(row, CopyClass.IN_FLIGHT.value) > 0
        known = (row["route"], row["target"]) in configured
        yield {**row, "unconfigured": True} if waits and not known else row


def lossy_routes(routes: Rows) -> frozenset[str]:
    """Return the routes with missing or lost messages: the payloads of no other are looked for."""
    found = (row for row in routes if any(count(row, name) for name in _REPLAYABLE))
    return frozenset(str(row["route"]) for row in found)


def run_notes(
    location: ArchiveLocation, lossy: Collection[str], paths: Sequence[Path]
) -> Iterator[pa.Table]:
    """Yield NOTES of some segments, those of payloads for `lossy` routes.

    An unreadable segment has none.
    """
    storage = open_storage(location)
    columns = [*_COLUMNS, _HEADER_NAMES] if lossy else list(_COLUMNS)
    for path in paths:
        with suppress(OSError, pa.ArrowException), open_parquet(storage.open(path)) as file:
            rows = file.read(columns)
            encoding = pc.if_else(pc.equal(rows["leg"], Leg.DELIVERED.value), rows["reason"], None)
            archived = pa.nulls(rows.num_rows, pa.bool_())
            if lossy:
                own = pc.is_in(rows["route"], pa.array(sorted(lossy), pa.string()))
                asked = pc.and_(pc.equal(rows["leg"], Leg.RECEIVED.value), own)
                archived = pc.if_else(asked, pc.is_valid(rows["headers"]), None)
            notes = pa.table([rows["route"], rows["target"], encoding, archived], list(NOTES))
            yield notes.group_by(list(NOTES)).aggregate([])


def with_notes(routes: Rows, notes: pa.Table, tapped: Targets) -> list[Row]:
    """Return `routes` with `taps_needed` and `payloads_archived`, where `notes` know them.

    `notes` are NOTES, and `tapped` the targets with observed rows.
    """
    known = notes.filter(pc.is_valid(notes["encoding"])).to_pylist()
    encodings = {(each["route"], each["target"]): each["encoding"] for each in known}
    of_routes = grouped(notes, ["route"], {"archived": "max"}).to_pylist()
    archived = {each["route"]: each["archived"] for each in of_routes}
    found: list[Row] = []
    for row in routes:
        target = (row["route"], row["target"])
        own = {
            "taps_needed": None if target in tapped else encodings.get(target),
            "payloads_archived": archived.get(row["route"]),
        }
        found.append({**row, **{name: note for name, note in own.items() if note is not None}})
    return found
