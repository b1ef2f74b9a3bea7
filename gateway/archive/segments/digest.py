"""What archive rows add up to, and the names among them: tables to tables; it reads no file."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.schema import DIGESTS, PAIRS, Leg, Step
from gateway.archive.segments.hashing import hash_contents, hash_ids, lanes, words
from gateway.archive.segments.latency import buckets, counted, timed
from gateway.archive.segments.parquet import SCHEMA, schema_of

MINUTE: Final = 60_000_000  # microseconds
PAIRS_KEPT: Final = 20_000  # distinct pairs of one segment; past it readers take the rows

DIGEST_SCHEMA: Final = schema_of(DIGESTS)
PAIR_SCHEMA: Final = schema_of(PAIRS)

_KEYS: Final = ("gateway", "route", "target", "leg", "minute")
_PAIR_KEYS: Final = ("gateway", "route", "target", "leg", "system", "source_name", "name")
_ENDS: Final = pa.array([Leg.DELIVERED.value, Leg.OBSERVED.value])
_REACH: Final = 40  # bits of a time within its segment: 12 days

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def digests_of(rows: pa.Table) -> pa.Table:
    """The sums of `rows` as DIGESTS says; a row counts once for every target it names.

    Columns that an older file does not have count as null.
    """
    rows = _complete(rows)
    spread, targets = _per_target(rows)
    received, time = _times(rows)
    ids = words(rows["id"])
    hashed = hash_ids(*ids)
    content = hash_contents(hashed, *words(rows["hash"]))
    numbers = {
        "count": np.ones(len(rows), np.int64),
        "converted": _flags(pc.equal(rows["outcome"], Step.CONVERTED.value)),
        "redelivered": _flags(rows["redelivered"]),
        "retried": _flags(pc.greater(rows["attempt"], 1)),
        "slowest": np.maximum(time - received, 0),
        "disordered": _disordered(rows, ids, time),
        **{f"id_{word}": lane for word, lane in enumerate(lanes(hashed))},
        **{f"content_{word}": lane for word, lane in enumerate(lanes(content))},
    }
    minutes = pa.array((received // MINUTE * MINUTE)[spread]).cast(pa.timestamp("us", tz="UTC"))
    given = {name: _picked(rows[name], spread) for name in ("gateway", "route", "leg")}
    given |= {"target": targets, "minute": minutes}
    given |= {name: pa.array(values[spread]) for name, values in numbers.items()}
    known = np.flatnonzero(_is_timed(rows)[spread])
    places = buckets((time - received)[spread][known])
    return _added(pa.table(given), (known, places, np.ones(len(known), np.int64)))


def add_up(digests: pa.Table) -> pa.Table:
    """Digests with one row for each gateway, route, target, leg and minute, in that order."""
    return _added(digests, timed(digests["latency"]))


def _added(digests: pa.Table, latencies: tuple[Numbers, Numbers, Numbers]) -> pa.Table:
    """The same; `latencies` are positions of rows, buckets and how many copies are in those."""
    sums = [name for name in DIGESTS if name not in (*_KEYS, "latency")]
    how = [(name, "max" if name == "slowest" else "sum") for name in sums]
    numbered = digests.append_column("row", pa.array(np.arange(len(digests))))
    grouped = numbered.group_by(list(_KEYS)).aggregate([*how, ("row", "list")])
    named = grouped.rename_columns([*_KEYS, *sums, "row"]).sort_by(_ascending(_KEYS))
    group = _groups_of(named["row"], len(digests))
    rows, places, copies = latencies
    lists = counted(group[rows], places, copies, len(named))
    return named.append_column("latency", lists).select(DIGEST_SCHEMA.names).cast(DIGEST_SCHEMA)


def _groups_of(members: pa.ChunkedArray, count: int) -> Numbers:
    """The number of the list that each of `count` positions is in; every one is in one."""
    lists = members.combine_chunks()
    group = np.empty(count, np.int64)
    group[lists.flatten().to_numpy()] = pc.list_parent_indices(lists).to_numpy()
    return group


def pairs_of(rows: pa.Table, kept: int | None = PAIRS_KEPT) -> pa.Table | None:
    """The names that `rows` were received and sent under; None when they are more than `kept`."""
    rows = _complete(rows)
    ends = rows.filter(pc.is_in(rows["leg"], _ENDS)).select([*_PAIR_KEYS, "id", "time"])
    grouped = ends.group_by(list(_PAIR_KEYS)).aggregate(
        [([], "count_all"), ("id", "min"), ("id", "max"), ("time", "min"), ("time", "max")]
    )
    if kept is not None and grouped.num_rows > kept:
        return None
    named = grouped.rename_columns(PAIR_SCHEMA.names)
    return named.cast(PAIR_SCHEMA).sort_by(_ascending(_PAIR_KEYS))


def disordered_streams(rows: pa.Table) -> pa.Table:
    """Distinct gateway, route, target and source name of deliveries out of order in `rows`."""
    rows = _complete(rows)
    found = _disordered(rows, words(rows["id"]), _times(rows)[1])
    delivered = pc.equal(rows["leg"], Leg.DELIVERED.value).to_numpy()
    late = rows.filter(pa.array(delivered & (found > 0)))
    streams = {
        "gateway": late["gateway"],
        "route": late["route"],
        "target": pc.fill_null(late["target"], ""),
        "source_name": pc.coalesce(late["source_name"], late["name"]),
    }
    return pa.table(streams).group_by(list(streams)).aggregate([])


def _ascending(names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(name, "ascending") for name in names]


def _complete(rows: pa.Table) -> pa.Table:
    for field in SCHEMA:
        if field.name not in rows.column_names:
            rows = rows.append_column(field.name, pa.nulls(len(rows), field.type))
    return rows


def _per_target(rows: pa.Table) -> tuple[Numbers | slice, pa.ChunkedArray]:
    """Positions of `rows`, once for every target a row speaks of, and those targets.

    Where that is one target a row the positions are a slice, which copies nothing.
    """
    own = pc.fill_null(rows["target"], "")
    lengths = pc.fill_null(pc.list_value_length(rows["targets"]), 0)
    many = pc.and_(pc.equal(own, ""), pc.greater(lengths, 0))
    repeats = np.where(many.to_numpy(), lengths.to_numpy(), 1)
    once = repeats.max(initial=1) == 1
    spread = slice(None) if once else np.repeat(np.arange(len(rows), dtype=np.int64), repeats)
    labels, where = (_picked(each, spread).combine_chunks() for each in (own, many))
    named = pc.list_flatten(rows["targets"].filter(many)).combine_chunks()
    return spread, pc.replace_with_mask(labels, where, pc.fill_null(named, ""))


def _picked(column: pa.ChunkedArray, positions: Numbers | slice) -> pa.ChunkedArray:
    return column if isinstance(positions, slice) else column.take(pa.array(positions))


def _times(rows: pa.Table) -> tuple[Numbers, Numbers]:
    """When each row's message was received and when the row was recorded, in microseconds."""
    time = pc.fill_null(rows["time"].cast(pa.int64()), 0)
    received = pc.coalesce(rows["received"].cast(pa.int64()), time)
    return received.to_numpy(), time.to_numpy()


def _is_timed(rows: pa.Table) -> Flags:
    """Which rows tell how long a delivery took: an older gateway did not note the receipt."""
    delivered = pc.equal(rows["leg"], Leg.DELIVERED.value)
    found: Flags = pc.and_(delivered, pc.is_valid(rows["received"])).to_numpy()
    return found


def _flags(column: pa.ChunkedArray) -> Numbers:
    flags: Numbers = pc.fill_null(column, False).to_numpy().astype(np.int64)
    return flags


def _disordered(
    rows: pa.Table, ids: tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]], time: Numbers
) -> Numbers:
    """1 for each end recorded before an end of an earlier message of its name and target."""
    found = np.zeros(len(rows), np.int64)
    ends = np.flatnonzero(pc.is_in(rows["leg"], _ENDS).to_numpy())
    if not len(ends):
        return found
    group = _groups(rows)[ends]
    time = time[ends]
    order = np.lexsort((time, ids[1][ends], ids[0][ends], group))
    since = np.minimum(time[order] - time.min(), (1 << _REACH) - 1)
    first = np.diff(group[order], prepend=-1) != 0
    place = (np.cumsum(first) << _REACH) + since  # a later group lies above all earlier ones
    found[ends[order]] = place < np.maximum.accumulate(place)
    return found


def _groups(rows: pa.Table) -> Numbers:
    """A number for each gateway, route, target, leg and source name; equal where they are."""
    names = pc.coalesce(rows["source_name"], rows["name"])
    columns = [*(rows[name] for name in ("gateway", "route", "target", "leg")), names]
    group = np.zeros(len(rows), np.int64)
    for column in columns:
        codes = column.combine_chunks().dictionary_encode(null_encoding="encode")
        group = group * len(codes.dictionary) + codes.indices.to_numpy()
    return group
