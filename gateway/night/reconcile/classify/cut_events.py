"""The events by which cuts are judged: a cut, and each row that it may repeat.

A row is a receipt of a message, or its delivery. A message that came back to the place of its
source repeats a row there. One that has been at the place of its target repeats a row there, under
the name that the target would have got: its cut row has it as `target_name`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.layout import safe_name
from gateway.archive.location import ArchiveLocation
from gateway.archive.schema import Leg
from gateway.archive.storage import open_storage
from gateway.model.cut_class import RETAINED
from gateway.night.archive.intervals import Numbers
from gateway.night.archive.segments.id_columns import words
from gateway.night.archive.segments.tables import schema_of
from gateway.night.reconcile.grouping import filled, positions
from gateway.night.reconcile.input.cut_rows import (
    CUT_KEYS,
    classes_of,
    cuts_of,
    endpoints_of,
    receipts,
)
from gateway.night.reconcile.input.inputs import Segments
from gateway.night.reconcile.input.row_reader import row_groups

SKEW: Final = 60_000_000  # microseconds by which the clocks of two gateways may differ
MAX_ROOM: Final = 10  # of attempts that may have arrived
EVENTS: Final[Mapping[str, str]] = {
    "place": "string",
    "repeated": "string",  # broker and name of a row, or of what a cut repeats
    "name": "string",  # of a cut, at its source
    "hash": "binary",
    "id": "binary",
    "time": "int64",
    **dict.fromkeys(CUT_KEYS, "string"),
    "leg": "string",
    "room": "int64",  # how many cuts may repeat it; of a cut 0
    "again": "boolean",  # the same message: known by an id, or retained by its broker
    "earlier": "boolean",  # it was retained before the rows that the night reads
    "size": "int64",
}
_SCHEMA: Final = schema_of(EVENTS)
_EVIDENCE: Final = (Leg.RECEIVED.value, Leg.DELIVERED.value)
_READ: Final = (
    *CUT_KEYS,
    "leg",
    "name",
    "id",
    "trace",
    "hash",
    "size",
    "outcome",
    "attempt",
    "received",
    "time",
    "source_time",
    "target_name",
    "redelivered",
    "reason",
)


@dataclass(frozen=True, slots=True)
class CutScope:
    """The date, its cuts to judge, and where gateways meet.

    `places` have the broker of each endpoint, by gateway as its files are named; an endpoint that
    is absent is a place of its own. `hashes` are those of the cuts; None: too many to be listed.
    Units: microseconds.
    """

    location: ArchiveLocation
    day: tuple[int, int]
    rows_since: int  # the receipt of the first rows that the night reads
    open_since: int | None = None  # of the first cut that may repeat a row of an open journal
    places: Mapping[tuple[str, str], str] = field(default_factory=dict)
    at: frozenset[str] = frozenset()  # places of rows that the cuts may repeat
    hashes: frozenset[bytes] | None = None

    def place(self, gateway: str, endpoint: str) -> str:
        """Return the broker of an endpoint."""
        key = safe_name(gateway), endpoint
        return self.places.get(key, "\0".join(key))


def run_cut_events(scope: CutScope, segments: Segments) -> Iterator[pa.Table]:
    """Yield the events of the rows of `segments`, tables of EVENTS."""
    storage = open_storage(scope.location)
    for segment in segments:
        for rows in row_groups(storage, segment.path, _READ):
            yield from _cuts(rows, scope)
            yield from _evidence(rows, scope)


def _cuts(rows: pa.Table, scope: CutScope) -> Iterator[pa.Table]:
    own = cuts_of(rows, *scope.day)
    own = own.filter(pc.equal(classes_of(own), ""))
    if own.num_rows:
        retained = pc.fill_null(pc.equal(own["reason"], RETAINED), False)
        at_target = pc.is_valid(own["target_name"])
        end = pc.if_else(at_target, endpoints_of(own["target"]), own["endpoint"])
        facts = {
            "place": _places(own, end, scope),
            "repeated": pc.coalesce(own["target_name"], own["name"]),
            "name": own["name"],
            "room": 0,
            "again": pc.or_(retained, pc.fill_null(own["redelivered"], False)),
            "earlier": pc.and_(retained, _are_sent_before(own, scope.rows_since)),
        }
        yield _events(own, facts)


def _evidence(rows: pa.Table, scope: CutScope) -> Iterator[pa.Table]:
    """Yield the rows that a cut may repeat: a copy that was sent again may have arrived each time.

    A redelivered message may have been sent before its gateway died, with no row.
    """
    own = rows.filter(pc.is_in(rows["leg"], pa.array(_EVIDENCE)))
    own = own.filter(pc.less(receipts(own), scope.day[1] + SKEW))
    if scope.hashes is not None:
        own = own.filter(pc.is_in(own["hash"], pa.array(sorted(scope.hashes), pa.binary())))
    sent = pc.equal(own["leg"], Leg.DELIVERED.value)
    attempts = pc.min_element_wise(pc.max_element_wise(own["attempt"], 1), MAX_ROOM)
    again = pc.and_(sent, pc.fill_null(own["redelivered"], False))
    room = pc.if_else(again, MAX_ROOM, pc.if_else(sent, attempts, 1))
    place = _places(own, own["endpoint"], scope)
    facts = {"place": place, "repeated": own["name"], "room": room, "again": False}
    found = _events(own, {**facts, "earlier": False})
    kept = pc.and_(
        pc.is_in(found["place"], pa.array(sorted(scope.at), pa.string())),
        pc.is_valid(found["hash"]),
    )
    yield found.filter(kept)


def _events(rows: pa.Table, facts: dict[str, object]) -> pa.Table:
    columns = {name: rows[name] for name in (*CUT_KEYS, "leg", "hash", "id", "size")}
    return filled(_SCHEMA, rows.num_rows, {**columns, "time": receipts(rows), **facts})


def _places(rows: pa.Table, endpoint: pa.ChunkedArray, scope: CutScope) -> pa.Array:
    """Return the broker of an `endpoint` of each row."""
    place = np.empty(rows.num_rows, object)
    ends = pa.table({"gateway": rows["gateway"], "endpoint": endpoint})
    for (gateway, end), at in positions(ends, ends.column_names):
        place[at] = scope.place(gateway, end)
    return pa.array(place, pa.string())


def _are_sent_before(cuts: pa.Table, since: int) -> pa.Array:
    """Return which cuts are messages from before `since`.

    Where a message has no time of sending, its first gateway may have given its id before then: an
    id begins with the start of its gateway.
    """
    first: Numbers = words(pc.coalesce(cuts["trace"], cuts["id"]))[0]
    sent = pc.coalesce(cuts["source_time"].cast(pa.int64()), pa.array(first))
    return pc.less(sent, since)
