"""The events of the messages between gateways: a delivery for each reader, and a receipt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.gaps import GapRule, SourceGap
from gateway.archive.layout import safe_name
from gateway.archive.schema import Leg, RowOutcome
from gateway.archive.storage import open_storage
from gateway.model.copy_class import IN_GAP, CopyClass
from gateway.night.archive.intervals import Numbers
from gateway.night.archive.segments.copies import are_thinned
from gateway.night.archive.segments.tables import schema_of
from gateway.night.reconcile.grouping import filled, positions
from gateway.night.reconcile.input.hop_routes import Hops, Reader
from gateway.night.reconcile.input.inputs import Segments
from gateway.night.reconcile.input.row_reader import row_groups

Event: TypeAlias = dict[str, Any]

HOP_KEYS: Final = ("broker", "gateway", "route", "target", "receiver", "receiver_route")
_RECEIVED: Final = dict.fromkeys(
    ("cut", "known", "marked", "signed"), "boolean"
)  # of receipts only
_SENT: Final = {
    **dict.fromkeys(HOP_KEYS, "string"),
    "id": "binary",
    "at": "int64",
    "attempt": "int32",
    "own": "boolean",
    "sure": "boolean",
    "unmatched": "string",
}  # columns of deliveries only
EVENTS: Final[Mapping[str, str]] = {
    "key": "string",
    "name": "string",
    "identity": "binary",
    "exact": "boolean",
    "hash": "binary",
    "sent": "boolean",
    "time": "int64",
    **_RECEIVED,
    **_SENT,
}
_READ: Final = (
    "gateway",
    "route",
    "leg",
    "endpoint",
    "target",
    "name",
    "id",
    "trace",
    "attempt",
    "time",
    "received",
    "redelivered",
    "replayed",
    "hash",
    "outcome",
    "rule",
)
_SCHEMA: Final = schema_of(EVENTS)
_DUPLICATE: Final = "duplicate"  # the rule of a cut
# Without a receipt, a message was sent in an absence of its reader that ended: it may wait at the
# broker, unless the reader has later ones.
AWAITED: Final = "awaited"


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


def run_events(scope: HopScope, segments: Segments) -> Iterator[pa.Table]:
    """Yield the events of the rows of `segments`, tables of EVENTS."""
    storage = open_storage(scope.hops.location)
    bounds = scope.hops.history.bounds()
    for segment in segments:
        for rows in row_groups(storage, segment.path, _READ):
            times = rows["time"].cast(pa.int64())
            timed = rows.append_column("at", times)
            timed = timed.append_column(
                "first", pc.coalesce(rows["received"].cast(pa.int64()), times)
            )
            for name, column in (("era", "at"), ("first_era", "first")):
                era = np.searchsorted(bounds, timed[column].to_numpy(), side="right")
                timed = timed.append_column(name, pa.array(era))
            yield from _deliveries(timed, scope)
            yield from _receipts(timed, scope)


def _deliveries(rows: pa.Table, scope: HopScope) -> Iterator[pa.Table]:
    """Yield an event for each delivery and each reader that must receive it."""
    hops = scope.hops
    own = rows.filter(pc.equal(rows["leg"], Leg.DELIVERED.value))
    found: dict[tuple[str, Reader], list[Numbers]] = defaultdict(list)
    keys = ("gateway", "route", "target", "replayed", "era", "first_era")
    for (gateway, route, target, again, *_), places in positions(own, keys):
        first, at = (own[name][places[0]].as_py() for name in ("first", "at"))
        broker = hops.sent_to(gateway, route, target or "", first, at, replayed=bool(again))
        sent = own.take(pa.array(places)) if broker else own.slice(0, 0)
        for (name,), of_name in positions(sent, ["name"]):
            for reader in hops.readers(gateway, broker, name, at):
                found[broker, reader].append(places[of_name])
    for (broker, reader), parts in found.items():
        yield _sent(own.take(pa.array(np.concatenate(parts))), broker, reader, scope)


def _sent(rows: pa.Table, broker: str, reader: Reader, scope: HopScope) -> pa.Table:
    facts = scope.hops.brokers[broker]
    begin = rows["first"]
    first, last = begin.to_numpy(), rows["at"].to_numpy()
    of_rows = ("gateway", "route", "target", "name", "id", "hash", "at", "attempt")
    columns = {
        **{name: rows[name] for name in of_rows},
        "identity": pc.coalesce(rows["trace"], rows["id"]) if facts.exact else rows["hash"],
        "exact": facts.exact,
        "sent": True,
        "time": begin,
        "broker": facts.name,
        "own": pa.array((first >= scope.day[0]) & (first < scope.day[1])),
        "unmatched": _unmatched(reader, first, last, scope),
        "sure": reader.sure,
        "key": reader.key,
        "receiver": ", ".join(sorted({gateway for gateway, _, _ in reader.members})),
        "receiver_route": ", ".join(sorted({route for _, route, _ in reader.members})),
    }
    return filled(_SCHEMA, rows.num_rows, columns)


def _unmatched(reader: Reader, first: Numbers, last: Numbers, scope: HopScope) -> pa.Array:
    """Return the class of each delivery if the reader has no receipt of it."""
    found = np.full(len(first), CopyClass.MISSING.value, object)
    young = first >= scope.spooled_since
    for gateway, _, endpoint in reader.members:
        until = scope.until.get(gateway, np.iinfo(np.int64).max)
        waiting = last >= until
        lossy, awaited = np.zeros((2, len(first)), np.bool_)
        for gap in scope.gaps:
            if safe_name(gap.gateway) == gateway and gap.endpoint == endpoint:
                inside = (last >= gap.begin) & (first <= gap.end)
                lossy |= inside & gap.counts
                kept = inside & (gap.rule == GapRule.AWAY.value) & (gap.end > last)
                awaited |= kept & (gap.end < until)
                waiting |= kept & (gap.end >= until)
        found[awaited & young] = AWAITED
        found[waiting & young] = CopyClass.IN_FLIGHT.value
        found[lossy] = IN_GAP
    return pa.array(found, pa.string())


def _receipts(rows: pa.Table, scope: HopScope) -> Iterator[pa.Table]:
    """Yield an event for each receipt by a reader; it also received a message that it cut.

    One that `thin` cut has a received row.
    """
    legs = pa.array([Leg.RECEIVED.value, Leg.CUT.value])
    taken = rows.filter(pc.and_(pc.is_in(rows["leg"], legs), pc.invert(are_thinned(rows))))
    keys = ("gateway", "route", "endpoint", "leg", "era")
    for (gateway, route, endpoint, leg, _), places in positions(taken, keys):
        part = taken.take(pa.array(places))
        broker, key = scope.hops.read_by(gateway, (route, endpoint), part["at"][0].as_py())
        if not broker:
            continue
        exact = scope.hops.brokers[broker].exact
        own = part.filter(pc.is_valid(part["trace" if exact else "hash"]))
        columns = {
            **{name: own[name] for name in ("name", "id", "hash", "gateway")},
            "time": own["at"],
            "key": key,
            "identity": own["trace" if exact else "hash"],
            "exact": exact,
            "sent": False,
            "cut": leg == Leg.CUT.value,
            "known": pc.equal(own["rule"], _DUPLICATE),
            "marked": pc.fill_null(own["redelivered"], False),
            "signed": pc.equal(own["outcome"], RowOutcome.SIGNED.value),
        }
        yield filled(_SCHEMA, own.num_rows, columns)
