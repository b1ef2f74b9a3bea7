"""Notes about the routes of a report: whether payloads are archived, and targets that need a tap.

They are read from a sample of the segments of the date, and decide nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.location import ArchiveLocation
from gateway.archive.schema import Leg
from gateway.archive.segments.reading import open_parquet
from gateway.archive.segments.tables import schema_of
from gateway.archive.storage import open_storage
from gateway.model.copy_class import CLASSES
from gateway.reconcile.input.row_reader import TargetName
from gateway.reconcile.report.rows import Row, count

_MAX_SEGMENTS: Final = 24
_COLUMNS: Final = ("route", "target", "leg", "reason")
# The encoder of a target's payloads, or whether a received row of a route has its payload.
NOTES: Final = {"route": "string", "target": "string", "encoding": "string", "archived": "boolean"}
_HEADER_NAMES: Final = "headers.key_value.key"  # archived with the payload, and never large
_REPLAYABLE: Final = tuple(name for name, each in CLASSES.items() if each.replayable)


@dataclass(frozen=True, slots=True)
class NotesTask:
    """The segments that one task looks at, and the routes whose payloads it looks for."""

    location: ArchiveLocation
    segments: Sequence[Path]
    lossy: frozenset[str] = frozenset()


def notes_tasks(
    location: ArchiveLocation, segments: Sequence[Path], routes: Sequence[Row]
) -> list[NotesTask]:
    """Return a task for each segment of a sample.

    Payloads may be large: a task looks for those of routes with missing or lost messages only.
    """
    step = -(-len(segments) // _MAX_SEGMENTS) or 1
    lossy = {str(row["route"]) for row in routes if any(count(row, n) for n in _REPLAYABLE)}
    return [NotesTask(location, [path], frozenset(lossy)) for path in segments[::step]]


def run_notes(task: NotesTask) -> Iterator[pa.Table]:
    """Yield NOTES of the segments of a task; an unreadable segment has none."""
    storage = open_storage(task.location)
    columns = [*_COLUMNS, _HEADER_NAMES] if task.lossy else list(_COLUMNS)
    for path in task.segments:
        try:
            with open_parquet(storage.open(path)) as file:
                rows = file.read(columns)
        except (OSError, pa.ArrowException):
            continue
        notes: list[Row] = [
            {"route": route, "target": target, "encoding": encoding}
            for (route, target), encoding in _encodings(rows).items()
        ]
        payloads = _payloads(rows, task.lossy).items()
        notes += [{"route": route, "archived": valid} for route, valid in payloads]
        yield pa.Table.from_pylist(notes, schema_of(NOTES))


def with_notes(routes: Sequence[Row], notes: pa.Table, tapped: Collection[TargetName]) -> list[Row]:
    """Return `routes` with `taps_needed` and `payloads_archived`, where `notes` know them.

    `notes` are NOTES, and `tapped` the targets with observed rows.
    """
    encodings: dict[TargetName, str] = {}
    archived: dict[str, bool] = {}
    for each in notes.to_pylist():
        if each["archived"] is None:
            encodings[each["route"], each["target"]] = each["encoding"]
        else:
            archived[each["route"]] = archived.get(each["route"], False) or each["archived"]
    return [_noted(row, encodings, archived, tapped) for row in routes]


def _encodings(rows: pa.Table) -> dict[TargetName, str]:
    """Return what encodes the payloads of each target again, by its delivered rows that say so."""
    chosen = pc.and_(pc.equal(rows["leg"], Leg.DELIVERED.value), pc.is_valid(rows["reason"]))
    found = rows.filter(chosen).group_by(["route", "target", "reason"]).aggregate([]).to_pylist()
    return {(row["route"], row["target"]): row["reason"] for row in found}


def _payloads(rows: pa.Table, routes: Collection[str]) -> dict[str, bool]:
    """Return by route whether a received row has its payload: then it has headers, too."""
    if not routes:
        return {}
    received = rows.filter(
        pc.and_(
            pc.equal(rows["leg"], Leg.RECEIVED.value),
            pc.is_in(rows["route"], pa.array(sorted(routes), pa.string())),
        )
    )
    found = dict.fromkeys(received["route"].to_pylist(), False)
    having = received.filter(pc.is_valid(received["headers"]))
    return found | dict.fromkeys(having["route"].to_pylist(), True)


def _noted(
    row: Row,
    encodings: dict[TargetName, str],
    archived: dict[str, bool],
    tapped: Collection[TargetName],
) -> Row:
    route, target = str(row["route"]), str(row["target"])
    notes: dict[str, object] = {}
    if (route, target) in encodings and (route, target) not in tapped:
        notes["taps_needed"] = encodings[route, target]
    if route in archived:
        notes["payloads_archived"] = archived[route]
    return {**row, **notes}
