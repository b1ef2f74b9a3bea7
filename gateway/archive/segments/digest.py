"""Digests and name pairs of archive rows: functions from tables to tables."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.schema import DIGESTS, PAIRS, Leg, RowOutcome
from gateway.archive.segments.hashing import hash_contents, hash_ids, lanes, words
from gateway.archive.segments.latency import buckets, histograms, nonzero_counts
from gateway.archive.segments.parquet import SCHEMA, schema_of

MINUTE: Final = 60_000_000  # microseconds
MAX_PAIRS: Final = 20_000  # distinct pairs of one segment; past it readers use the rows

DIGEST_SCHEMA: Final = schema_of(DIGESTS)
PAIR_SCHEMA: Final = schema_of(PAIRS)

_KEYS: Final = ("gateway", "route", "target", "leg", "minute")
_PAIR_KEYS: Final = ("gateway", "route", "target", "leg", "system", "source_name", "name")
_ENDS: Final = pa.array([Leg.DELIVERED.value, Leg.OBSERVED.value])
_TIME_BITS: Final = 40  # of a time within its segment: 12 days

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def digests_of(rows: pa.Table) -> pa.Table:
    """Return the digest of `rows`; a row counts once for every target it names.

    A column that an older file lacks counts as null.
    """
    rows = _with_all_columns(rows)
    spread, targets = _per_target(rows)
    received, time = _times(rows)
    ids = words(rows["id"])
    hashed = hash_ids(*ids)
    content = hash_contents(hashed, *words(rows["hash"]))
    numbers = {
        "count": np.ones(len(rows), np.int64),
        "converted": _flags(pc.equal(rows["outcome"], RowOutcome.CONVERTED.value)),
        "redelivered": _flags(rows["redelivered"]),
        "retried": _flags(pc.greater(rows["attempt"], 1)),
        "slowest": np.maximum(time - received, 0),
        "disordered": _disordered(rows, ids, time),
        **{f"id_{word}": lane for word, lane in enumerate(lanes(hashed))},
        **{f"content_{word}": lane for word, lane in enumerate(lanes(content))},
    }
    minutes = pa.array((received // MINUTE * MINUTE)[spread]).cast(pa.timestamp("us", tz="UTC"))
    given = {name: _rows_at(rows[name], spread) for name in ("gateway", "route", "leg")}
    given |= {"target": targets, "minute": minutes}
    given |= {name: pa.array(values[spread]) for name, values in numbers.items()}
    known = np.flatnonzero(_has_latency(rows)[spread])
    found = buckets((time - received)[spread][known])
    return _summed(pa.table(given), (known, found, np.ones(len(known), np.int64)))


def add_up(digests: pa.Table) -> pa.Table:
    """Return one row for each gateway, route, target, leg and minute, in that order."""
    return _summed(digests, nonzero_counts(digests["latency"]))


def _summed(digests: pa.Table, latencies: tuple[Numbers, Numbers, Numbers]) -> pa.Table:
    """Sum up digests; `latencies` are row positions, buckets, and numbers of copies in them."""
    sums = [name for name in DIGESTS if name not in (*_KEYS, "latency")]
    functions = [(name, "max" if name == "slowest" else "sum") for name in sums]
    numbered = digests.append_column("row", pa.array(np.arange(len(digests))))
    grouped = numbered.group_by(list(_KEYS)).aggregate([*functions, ("row", "list")])
    named = grouped.rename_columns([*_KEYS, *sums, "row"]).sort_by(_ascending(_KEYS))
    group = _group_indices(named["row"], len(digests))
    rows, bucket, copies = latencies
    lists = histograms(group[rows], bucket, copies, len(named))
    return named.append_column("latency", lists).select(DIGEST_SCHEMA.names).cast(DIGEST_SCHEMA)


def _group_indices(members: pa.ChunkedArray, count: int) -> Numbers:
    """Return the index of the list that contains each of `count` positions."""
    lists = members.combine_chunks()
    group = np.empty(count, np.int64)
    group[lists.flatten().to_numpy()] = pc.list_parent_indices(lists).to_numpy()
    return group


def pairs_of(rows: pa.Table, limit: int | None = MAX_PAIRS) -> pa.Table | None:
    """Return the name pairs of `rows`; None when they are more than `limit`."""
    rows = _with_all_columns(rows)
    ends = rows.filter(pc.is_in(rows["leg"], _ENDS)).select([*_PAIR_KEYS, "id", "time"])
    grouped = ends.group_by(list(_PAIR_KEYS)).aggregate(
        [([], "count_all"), ("id", "min"), ("id", "max"), ("time", "min"), ("time", "max")]
    )
    if limit is not None and grouped.num_rows > limit:
        return None
    named = grouped.rename_columns(PAIR_SCHEMA.names)
    return named.cast(PAIR_SCHEMA).sort_by(_ascending(_PAIR_KEYS))


def disordered_streams(rows: pa.Table) -> pa.Table:
    """Return distinct gateway, route, target and source name of deliveries out of order."""
    rows = _with_all_columns(rows)
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


def _with_all_columns(rows: pa.Table) -> pa.Table:
    for field in SCHEMA:
        if field.name not in rows.column_names:
            rows = rows.append_column(field.name, pa.nulls(len(rows), field.type))
    return rows


def _per_target(rows: pa.Table) -> tuple[Numbers | slice, pa.ChunkedArray]:
    """Return row positions, one for every target that a row names, and those targets.

    With one target in each row the positions are a slice, which copies nothing.
    """
    own = pc.fill_null(rows["target"], "")
    lengths = pc.fill_null(pc.list_value_length(rows["targets"]), 0)
    many = pc.and_(pc.equal(own, ""), pc.greater(lengths, 0))
    repeats = np.where(many.to_numpy(), lengths.to_numpy(), 1)
    once = repeats.max(initial=1) == 1
    spread = slice(None) if once else np.repeat(np.arange(len(rows), dtype=np.int64), repeats)
    labels, where = (_rows_at(each, spread).combine_chunks() for each in (own, many))
    named = pc.list_flatten(rows["targets"].filter(many)).combine_chunks()
    return spread, pc.replace_with_mask(labels, where, pc.fill_null(named, ""))


def _rows_at(column: pa.ChunkedArray, positions: Numbers | slice) -> pa.ChunkedArray:
    return column if isinstance(positions, slice) else column.take(pa.array(positions))


def _times(rows: pa.Table) -> tuple[Numbers, Numbers]:
    """Return the times of receipt and of recording of each row, in microseconds."""
    time = pc.fill_null(rows["time"].cast(pa.int64()), 0)
    received = pc.coalesce(rows["received"].cast(pa.int64()), time)
    return received.to_numpy(), time.to_numpy()


def _has_latency(rows: pa.Table) -> Flags:
    """Flag the deliveries with a time of receipt, which older gateways did not record."""
    delivered = pc.equal(rows["leg"], Leg.DELIVERED.value)
    found: Flags = pc.and_(delivered, pc.is_valid(rows["received"])).to_numpy()
    return found


def _flags(column: pa.ChunkedArray) -> Numbers:
    flags: Numbers = pc.fill_null(column, False).to_numpy().astype(np.int64)
    return flags


def _disordered(
    rows: pa.Table, ids: tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]], time: Numbers
) -> Numbers:
    """Return 1 for each row recorded before one of an earlier message of its name and target."""
    found = np.zeros(len(rows), np.int64)
    ends = np.flatnonzero(pc.is_in(rows["leg"], _ENDS).to_numpy())
    if not len(ends):
        return found
    group = _groups(rows)[ends]
    time = time[ends]
    order = np.lexsort((time, ids[1][ends], ids[0][ends], group))
    since = np.minimum(time[order] - time.min(), (1 << _TIME_BITS) - 1)
    first = np.diff(group[order], prepend=-1) != 0
    key = (np.cumsum(first) << _TIME_BITS) + since  # a later group has larger keys
    found[ends[order]] = key < np.maximum.accumulate(key)
    return found


def _groups(rows: pa.Table) -> Numbers:
    """Number the rows by gateway, route, target, leg and source name: equal keys, equal numbers."""
    names = pc.coalesce(rows["source_name"], rows["name"])
    columns = [*(rows[name] for name in ("gateway", "route", "target", "leg")), names]
    group = np.zeros(len(rows), np.int64)
    for column in columns:
        codes = column.combine_chunks().dictionary_encode(null_encoding="encode")
        group = group * len(codes.dictionary) + codes.indices.to_numpy()
    return group
