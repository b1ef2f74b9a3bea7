"""Id sets of archive rows: a function from a table of rows to a table of blocks."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.schema import SETS, RowOutcome
from gateway.night.archive.intervals import Flags, Numbers, from_sorted
from gateway.night.archive.segments.copies import (
    DELIVERED,
    LEGS,
    RECEIVED,
    Copies,
    copies_of,
    encoded,
)
from gateway.night.archive.segments.id_columns import are_whole, words
from gateway.night.archive.segments.latency import buckets, histograms
from gateway.night.archive.segments.tables import TYPES, schema_of

MINUTE: Final = 60_000_000  # microseconds
SET_SCHEMA: Final = schema_of(SETS)

_KEYS: Final = ("gateway", "route", "target", "run", "minute")
_OUTCOMES: Final = pa.array([RowOutcome.ACCEPTED.value, RowOutcome.CONVERTED.value])
_ACCEPTED, _CONVERTED, _OTHER = range(3)


def blocks_of(rows: pa.Table, part: int = 0) -> pa.Table:
    """Return the id sets of the rows of one part: a row for each block, sorted by its keys."""
    copies = copies_of(rows)
    block, keys = _blocks(copies)
    number = len(keys)
    received, delivered = _settled(copies)
    is_open = np.ones(len(block), np.bool_)
    is_open[received] = is_open[delivered] = False
    columns = {
        **{name: keys[name] for name in _KEYS},
        "part": pa.array(np.full(number, part, np.int32)),
        **_lists("settled", block[received], copies.counter[received], number),
        **_lists("open", block[is_open], copies.counter[is_open], number),
        **_counts(copies, block, number),
        **_sums(copies, received, delivered, block[received], number),
        **_ranges(copies, block, number),
    }
    found = pa.table([columns[name] for name in SETS], names=list(SETS)).cast(SET_SCHEMA)
    return found.sort_by([(name, "ascending") for name in _KEYS])


def _settled(copies: Copies) -> tuple[Numbers, Numbers]:
    """Return the positions of the received and the delivered element of each settled copy."""
    bounds = copies.bounds()
    first = bounds[:-1][np.diff(bounds) == len((RECEIVED, DELIVERED))]
    swapped = copies.leg[first] == DELIVERED
    received, delivered = first + swapped, first + ~swapped
    one, other = copies.source[received], copies.source[delivered]
    fits = (copies.leg[received] == RECEIVED) & (copies.leg[delivered] == DELIVERED)
    fits &= copies.receipt[received] == copies.receipt[delivered]
    fits &= _have_whole_values(copies.rows)[one] & _are_settling(copies.rows)[other]
    fits &= _have_fitting_hashes(copies.rows, one, other)
    fits &= ~in_disordered_stream(copies)[delivered]
    return received[fits], delivered[fits]


def _have_whole_values(rows: pa.Table) -> Flags:
    return are_whole(rows["id"]) & are_whole(rows["hash"])


def _are_settling(rows: pa.Table) -> Flags:
    """Return whether each row, as a delivery, may settle its copy by its own values."""
    first_attempt = pc.equal(pc.fill_null(rows["attempt"], 1), 1).to_numpy()
    replayed = pc.fill_null(rows["replayed"], False).to_numpy()
    found: Flags = _have_whole_values(rows) & first_attempt & ~replayed
    return found


def _have_fitting_hashes(rows: pa.Table, received: Numbers, delivered: Numbers) -> Flags:
    """Return whether the hashes of two rows are equal, or the outcome allows a difference."""
    outcomes = pc.fill_null(pc.index_in(rows["outcome"], _OUTCOMES), _OTHER)
    outcome = outcomes.to_numpy()[delivered]
    high, low = words(rows["hash"])
    equal = (high[received] == high[delivered]) & (low[received] == low[delivered])
    found: Flags = np.where(outcome == _ACCEPTED, equal, outcome == _CONVERTED)
    return found


def _blocks(copies: Copies) -> tuple[Numbers, pa.Table]:
    """Return the block of each element, and the keys of the blocks."""
    if not len(copies.source):
        return np.empty(0, np.int64), SET_SCHEMA.empty_table()
    minute = copies.receipt // MINUTE * MINUTE
    parts = (copies.group, copies.run, minute)
    changes = np.append(True, np.any([each[1:] != each[:-1] for each in parts], axis=0))
    firsts = np.flatnonzero(changes)  # of stretches of one block; a block may have several
    keys, block = np.unique(np.stack([each[firsts] for each in parts]), axis=1, return_inverse=True)
    named = copies.keys.take(pa.array(keys[0])).append_column("run", pa.array(keys[1]))
    minutes = pa.array(keys[2]).cast(TYPES["timestamp"])
    return block[np.cumsum(changes) - 1], named.append_column("minute", minutes)


def _lists(name: str, block: Numbers, counter: Numbers, number: int) -> dict[str, pa.Array]:
    """Return the intervals of the counters in each block."""
    order = np.lexsort((counter, block))
    intervals, owner = from_sorted(block[order], counter[order])
    lengths = np.bincount(owner, minlength=number)
    offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
    return {
        f"{name}_{end}": pa.ListArray.from_arrays(offsets, pa.array(values))
        for end, values in (("first", intervals.first), ("last", intervals.last))
    }


def _counts(copies: Copies, block: Numbers, number: int) -> dict[str, pa.Array]:
    """Count the rows of each leg."""
    width = len(LEGS) + 1
    counts = np.bincount(block * width + copies.leg, minlength=number * width).reshape(-1, width)
    return {leg.value: pa.array(counts[:, place]) for place, leg in enumerate(LEGS)}


def _sums(
    copies: Copies, received: Numbers, delivered: Numbers, block: Numbers, number: int
) -> dict[str, pa.Array]:
    """Return the counts and latencies of the settled copies, whose blocks are `block`."""
    rows = copies.rows
    marked = pc.fill_null(rows["redelivered"], False).to_numpy()[copies.source[received]]
    outcomes = pc.equal(rows["outcome"], RowOutcome.CONVERTED.value)
    converted = pc.fill_null(outcomes, False).to_numpy()[copies.source[delivered]]
    latency = np.maximum(copies.time[delivered] - copies.receipt[received], 0)
    slowest = np.zeros(number, np.int64)
    np.maximum.at(slowest, block, latency)
    return {
        "settled": pa.array(np.bincount(block, minlength=number)),
        "converted": pa.array(np.bincount(block[converted], minlength=number)),
        "redelivered": pa.array(np.bincount(block[marked], minlength=number)),
        "slowest": pa.array(slowest),
        "latency": histograms(block, buckets(latency), np.ones(len(block), np.int64), number),
    }


def _ranges(copies: Copies, block: Numbers, number: int) -> dict[str, pa.Array]:
    """Return the ranges of time and counter of the deliveries in each block; null without any."""
    at = ordered_deliveries(copies)
    found = {}
    for name, values in (("time", copies.time), ("counter", copies.counter)):
        for end, function in (("first", np.minimum), ("last", np.maximum)):
            found[f"{end}_{name}"] = _reduced(function, block[at], values[at], number)
    return found


def _reduced(function: np.ufunc, block: Numbers, values: Numbers, number: int) -> pa.Array:
    found: npt.NDArray[np.int64] = np.zeros(number, np.int64)
    found[block] = values  # a value of the block to begin with
    function.at(found, block, values)
    return pa.array(found, mask=np.bincount(block, minlength=number) == 0)


def ordered_deliveries(copies: Copies) -> Numbers:
    """Return the positions of the elements that are deliveries with an order."""
    replayed = pc.fill_null(copies.rows["replayed"], False).to_numpy()[copies.source]
    return np.flatnonzero((copies.leg == DELIVERED) & ~replayed)


def in_disordered_stream(copies: Copies) -> Flags:
    """Return for each element whether it is a delivery of a stream that is out of order."""
    found = np.zeros(len(copies.source), np.bool_)
    at = ordered_deliveries(copies)
    group, time = copies.group[at], copies.time[at]
    descents = (group[1:] == group[:-1]) & (time[1:] < time[:-1])
    if not descents.any():  # usual, and needs no names
        return found
    at = at[np.isin(group, group[1:][descents])]
    names = pc.coalesce(copies.rows["source_name"], copies.rows["name"])
    name, distinct = encoded(names.take(pa.array(copies.source[at])))
    stream, _ = encoded(pa.array(copies.group[at] * len(distinct) + name))
    order = np.lexsort((copies.time[at], copies.counter[at], copies.run[at], stream))
    at, stream = at[order], stream[order]
    ranks = np.unique(copies.time[at], return_inverse=True)[1]
    key = stream * len(at) + ranks  # a later stream has larger keys
    late = stream[key < np.maximum.accumulate(key)]
    found[at] = np.isin(stream, late)
    return found
