"""Notes about the routes of a report: whether payloads are archived, and targets that need a tap.

They are read from a sample of the segments of the date, and decide nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gateway.archive.schema import Leg
from gateway.archive.storage import Storage
from gateway.reconcile.input.row_reader import TargetName
from gateway.reconcile.report.text import Row, count_of
from gateway.reconcile.report.wording import CLASSES

_MAX_SEGMENTS: Final = 24
_COLUMNS: Final = ("route", "target", "leg", "reason")
_HEADER_NAMES: Final = "headers.key_value.key"  # archived with the payload, and never large
_REPLAYABLE: Final = tuple(name for name, each in CLASSES.items() if each.replayable)


def with_notes(
    routes: Sequence[Row],
    storage: Storage,
    segments: Sequence[Path],
    tapped: Collection[TargetName],
) -> list[Row]:
    """Return `routes` with `taps_needed` and `payloads_archived`, where they are known.

    `tapped` are the targets with observed rows. Only routes with missing or lost messages get
    `payloads_archived`, because payloads may be large. An unreadable segment is left out.
    """
    lossy = {str(row["route"]) for row in routes if any(count_of(row, n) for n in _REPLAYABLE)}
    encodings: dict[TargetName, str] = {}
    archived: dict[str, bool] = {}
    for rows in _samples(storage, segments, payloads=bool(lossy)):
        encodings |= _encodings(rows)
        for route, valid in _payloads(rows, lossy).items():
            archived[route] = archived.get(route, False) or valid
    return [_noted(row, encodings, archived, tapped) for row in routes]


def _samples(storage: Storage, segments: Sequence[Path], *, payloads: bool) -> Iterator[pa.Table]:
    step = -(-len(segments) // _MAX_SEGMENTS) or 1
    columns = [*_COLUMNS, _HEADER_NAMES] if payloads else list(_COLUMNS)
    for path in segments[::step]:
        try:
            with storage.open(path) as file:
                yield pq.ParquetFile(file).read(columns)
        except (OSError, pa.ArrowException):
            continue


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
