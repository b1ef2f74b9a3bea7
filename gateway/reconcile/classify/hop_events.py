"""The events of the messages between gateways: a delivery for each reader, and a receipt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.gaps import GapRule, SourceGap
from gateway.archive.intervals import Numbers
from gateway.archive.layout import safe_name
from gateway.archive.schema import Leg
from gateway.archive.segments.copies import encoded
from gateway.archive.segments.tables import schema_of
from gateway.archive.storage import open_storage
from gateway.model.copy_class import IN_GAP, CopyClass
from gateway.reconcile.input.hop_routes import Hops, Reader
from gateway.reconcile.input.inputs import Segment
from gateway.reconcile.input.row_reader import SegmentFile, row_groups

Event: TypeAlias = dict[str, Any]

HOP_KEYS: Final = ("broker", "gateway", "route", "target", "receiver", "receiver_route")
_SENT: Final = {
    **dict.fromkeys(HOP_KEYS, "string"), "id": "binary", "at": "int64", "attempt": "int32",
    "own": "boolean", "sure": "boolean", "unmatched": "string",
}  # fmt: skip  # columns of deliveries only
EVENTS: Final[Mapping[str, str]] = {
    "key": "string", "name": "string", "identity": "binary", "exact": "boolean", "hash": "binary",
    "sent": "boolean", "cut": "boolean", "marked": "boolean", "time": "int64", **_SENT,
}  # fmt: skip
_READ: Final = (
    "gateway", "route", "leg", "endpoint", "target", "name", "id", "trace", "attempt", "time",
    "received", "redelivered", "replayed", "hash",
)  # fmt: skip
_MISSING: Final = CopyClass.MISSING.value
_SCHEMA: Final = schema_of(EVENTS)


@dataclass(frozen=True, slots=True)
class HopScope:
    """The hops, the date, and the knowledge of each gateway about its receipts.

    `until` has the time from which receipts of a gateway may not be in the archive yet.
    Units: microseconds.
    """

    hops: Hops
    day: tuple[int, int]
    spooled_since: int
    gaps: Sequence[SourceGap] = ()
    until: Mapping[str, int] = field(default_factory=dict)  # by gateway, as its files are named


def run_events(scope: HopScope, segments: Sequence[Segment]) -> Iterator[pa.Table]:
    """Yield the events of the rows of `segments`, tables of EVENTS."""
    storage = open_storage(scope.hops.location)
    bounds = np.array(scope.hops.bounds(), np.int64)
    for segment in segments:
        for rows in row_groups(storage, SegmentFile(segment.path), _READ):
            times = rows["time"].cast(pa.int64())
            era = pa.array(np.searchsorted(bounds, times.to_numpy(), side="right"))
            timed = rows.append_column("at", times).append_column("era", era)
            yield from _deliveries(timed, scope)
            yield from _receipts(timed, scope)


def _deliveries(rows: pa.Table, scope: HopScope) -> Iterator[pa.Table]:
    """Yield an event for each delivery and each reader that must receive it."""
    hops = scope.hops
    own = rows.filter(pc.equal(rows["leg"], Leg.DELIVERED.value))
    replayed = pc.fill_null(own["replayed"], False)
    own = own.set_column(own.schema.get_field_index("replayed"), "replayed", replayed)
    for key, part in _parts(own, "gateway", "route", "target", "replayed", "era"):
        at = part["at"][0].as_py()
        broker = hops.sent_to(
            key["gateway"], key["route"], key["target"] or "", at, replayed=key["replayed"]
        )
        if not broker:
            continue
        codes, names = encoded(part["name"])
        places: dict[Reader, int] = {}
        readers = [
            [
                places.setdefault(each, len(places))
                for each in hops.readers(key["gateway"], broker, name, at)
            ]
            for name in names.to_pylist()
        ]
        positions, chosen = _repeated(codes, readers)
        if len(positions):
            yield _sent(part.take(pa.array(positions)), chosen, list(places), broker, scope)


def _repeated(codes: Numbers, readers: Sequence[Sequence[int]]) -> tuple[Numbers, Numbers]:
    """Return each row once for each reader of its name, and the number of that reader."""
    sizes = np.array([len(each) for each in readers], np.int64)
    flat = np.array([each for group in readers for each in group], np.int64)
    begins = np.cumsum(sizes) - sizes
    times = sizes[codes]
    positions = np.repeat(np.arange(len(codes)), times)
    nth = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    return positions, flat[begins[codes][positions] + nth]


def _sent(
    rows: pa.Table, chosen: Numbers, readers: Sequence[Reader], broker: str, scope: HopScope
) -> pa.Table:
    facts = scope.hops.brokers[broker]
    begin = pc.coalesce(rows["received"].cast(pa.int64()), rows["at"])
    first, last = begin.to_numpy(), rows["at"].to_numpy()
    number = rows.num_rows
    trace = pc.coalesce(rows["trace"], rows["id"])
    columns = {
        **{name: rows[name] for name in ("gateway", "route", "target", "name", "id", "hash", "at")},
        "attempt": rows["attempt"],
        "identity": trace if facts.exact else rows["hash"],
        "exact": constant(facts.exact, number),
        "sent": constant(True, number),  # a value
        "cut": constant(False, number),
        "marked": constant(False, number),
        "time": begin,
        "broker": constant(facts.name, number),
        "own": pa.array((first >= scope.day[0]) & (first < scope.day[1])),
        **_of_readers(chosen, readers, first, last, scope),
    }
    return _events(columns)


def _of_readers(
    chosen: Numbers, readers: Sequence[Reader], first: Numbers, last: Numbers, scope: HopScope
) -> dict[str, pa.Array]:
    """Return the columns that the readers of deliveries decide."""
    unmatched = np.full(len(chosen), _MISSING, object)
    young = first >= scope.spooled_since
    for number in np.unique(chosen):
        own = chosen == number
        for gateway, _, endpoint in readers[number].members:
            waiting = last >= scope.until.get(gateway, np.iinfo(np.int64).max)
            lossy = np.zeros(len(chosen), np.bool_)
            for gap in scope.gaps:
                if safe_name(gap.gateway) == gateway and gap.endpoint == endpoint:
                    inside = (last >= gap.begin) & (first <= gap.end)
                    lossy |= inside & gap.counts
                    waiting |= inside & (gap.rule == GapRule.AWAY.value) & (gap.end > last)
            unmatched[own & waiting & young] = CopyClass.IN_FLIGHT.value
            unmatched[own & lossy] = IN_GAP
    order = pa.array(chosen)
    return {
        "unmatched": pa.array(unmatched, pa.string()),
        "sure": pa.array([each.sure for each in readers], pa.bool_()).take(order),
        "key": pa.array([each.key for each in readers]).take(order),
        **{
            name: pa.array([_joined(each, place) for each in readers]).take(order)
            for place, name in enumerate(("receiver", "receiver_route"))
        },
    }


def _joined(reader: Reader, place: int) -> str:
    return ", ".join(sorted({member[place] for member in reader.members}))


def _receipts(rows: pa.Table, scope: HopScope) -> Iterator[pa.Table]:
    """Yield an event for each receipt by a reader; a message that it cut was received, too."""
    legs = pa.array([Leg.RECEIVED.value, Leg.CUT.value])
    for each, part in _parts(
        rows.filter(pc.is_in(rows["leg"], legs)), "gateway", "route", "endpoint", "leg", "era"
    ):
        source = (each["route"], each["endpoint"])
        broker, key = scope.hops.read_by(each["gateway"], source, part["at"][0].as_py())
        if not broker:
            continue
        exact = scope.hops.brokers[broker].exact
        own = part.filter(pc.is_valid(part["trace" if exact else "hash"]))
        number = own.num_rows
        columns = {
            **{name: own[name] for name in ("name", "id", "hash", "gateway")},
            "time": own["at"],
            "key": constant(key, number),
            "identity": own["trace" if exact else "hash"],
            "exact": constant(exact, number),
            "sent": constant(False, number),  # a value
            "cut": constant(each["leg"] == Leg.CUT.value, number),
            "marked": pc.fill_null(own["redelivered"], False),
        }
        yield _events(columns)


def _parts(rows: pa.Table, *keys: str) -> Iterator[tuple[Event, pa.Table]]:
    """Yield the distinct values of `keys`, each with its rows."""
    numbered = rows.append_column("row", pa.array(np.arange(rows.num_rows)))
    groups = numbered.group_by(list(keys), use_threads=False).aggregate([("row", "list")])
    for group in groups.to_batches():
        for key, own in zip(group.select(list(keys)).to_pylist(), group["row_list"], strict=True):
            yield key, rows.take(own.values)


def constant(value: str | bool, number: int) -> pa.Array:
    return pa.repeat(pa.scalar(value), number)


def _events(columns: Mapping[str, pa.Array]) -> pa.Table:
    number = len(columns["name"])
    arrays = [
        columns[each.name].cast(each.type) if each.name in columns else pa.nulls(number, each.type)
        for each in _SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)
