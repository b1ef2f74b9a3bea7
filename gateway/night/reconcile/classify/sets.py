"""Proof by id sets: the copies of a date whose rows need not be read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.layout import SECOND
from gateway.archive.schema import SETS
from gateway.night.archive.intervals import Flags, Intervals, Numbers, overlapping, union
from gateway.night.archive.segments.latency import histograms, nonzero_counts
from gateway.night.archive.segments.tables import schema_of
from gateway.night.reconcile.classify.crossing import are_crossing, codes_of, in_crossing_parts
from gateway.night.reconcile.grouping import (
    RUN_KEYS,
    TARGET_KEYS,
    ascending,
    grouped,
    positions,
    summed,
)
from gateway.night.reconcile.input.inputs import day_range
from gateway.night.reconcile.input.row_reader import TargetName, Targets, are_of_targets

# Blocks of all files of a gateway; `file` is the path of the segment in its archive.
BLOCKS: Final = pa.schema([pa.field("file", pa.string()), *schema_of(SETS)])

# One row for each route, target and minute of the date with proven copies. Their `received` are all
# delivered; `latency` is as in `gateway.night.archive.segments.latency`.
PROVEN: Final = schema_of(
    {
        **dict.fromkeys(TARGET_KEYS, "string"),
        "minute": "timestamp",
        **dict.fromkeys(("received", "converted", "redelivered"), "int64"),
        "latency": "counts",
    }
)

# One row for each route, target and run: the ids to join, as sorted and disjoint intervals of
# counters.
UNPROVEN: Final = schema_of(
    {**dict.fromkeys(TARGET_KEYS, "string"), "run": "int64", "first": "counts", "last": "counts"}
)

# The parts of files: a part is a row group of a merged segment, and 0 in any other segment.
PARTS: Final = schema_of({"file": "string", "part": "int32"})


@dataclass(frozen=True, slots=True)
class BlockIds:
    """The intervals of `number` blocks, each of one block and settled or open; they may overlap."""

    number: int
    block: Numbers
    settled: Flags
    first: Numbers
    last: Numbers

    @classmethod
    def of(cls, blocks: pa.Table, members: Numbers) -> BlockIds:
        """Return the ids of the blocks at `members`, which become the numbers of the blocks."""
        own = blocks.take(pa.array(members))
        parts = []
        for settled in (True, False):
            name = "settled" if settled else "open"
            first, last = (own[f"{name}_{end}"] for end in ("first", "last"))
            block = np.repeat(np.arange(len(members)), pc.list_value_length(first).to_numpy())
            values = (pc.list_flatten(each).to_numpy() for each in (first, last))
            parts.append((block, np.full(len(block), settled), *values))
        return cls(len(members), *map(np.concatenate, zip(*parts, strict=True)))

    def shared_blocks(self) -> Flags:
        """Return which blocks have a settled id that is also in another interval."""
        order = np.argsort(self.first, kind="stable")
        first, last = self.first[order], self.last[order]
        with_earlier = first[1:] <= np.maximum.accumulate(last)[:-1]
        with_later = last[:-1] >= first[1:]
        shared = np.zeros(len(order), np.bool_)
        shared[order[1:]] |= with_earlier
        shared[order[:-1]] |= with_later
        return self._blocks(shared & self.settled)

    def unproven(self, whole: Flags, on_day: Flags, proven: Flags) -> Intervals:
        """Return the ids to join: those of `whole` blocks, and those of the day not proven."""
        todo = on_day[self.block] & ~(self.settled & proven[self.block])
        chosen = whole[self.block] | todo
        return union(self.first[chosen], self.last[chosen])

    def blocks_with(self, ids: Intervals) -> Flags:
        """Return which blocks have one of the `ids`."""
        return self._blocks(overlapping(self.first, self.last, ids))

    def _blocks(self, chosen: Flags) -> Flags:
        found = np.zeros(self.number, np.bool_)
        found[self.block[chosen]] = True
        return found


def tapped_targets(blocks: pa.Table) -> frozenset[TargetName]:
    """Return route and target of every observed row; unite them over all gateways."""
    observed = blocks.filter(pc.greater(blocks["observed"], 0))
    keys = positions(observed, ("route", "target"))
    return frozenset((route, target) for (route, target), _ in keys)


def crossing_parts(blocks: pa.Table, day: date) -> pa.Table:
    """Return the PARTS whose pairs `evaluate` needs to prove the order of deliveries.

    They have deliveries that overlap with those of another part, by id or by time.
    """
    return _parts(blocks, in_crossing_parts(blocks, _are_on(blocks, day)))


def evaluate(
    blocks: pa.Table, day: date, late: int, pairs: pa.Table | None = None, tapped: Targets = ()
) -> dict[str, pa.Table]:
    """Evaluate BLOCKS for `day`: all blocks of a gateway that may have an id of the date.

    Return the tables `proven`, `unproven` and `parts`. A row of the archive belongs to the join
    when its part is in `parts`, and its id, route and one of its targets are in `unproven`. All
    copies of the date are either in `proven`, or have all their rows in the join. The join computes
    the order of deliveries before it drops the copies of other dates: `unproven` also has ids of
    the day before that a copy of the date may have overtaken.

    A copy is proven when it is settled in one part and has no row in any other, and when for all
    copies of its block the same is true, none was delivered later than `late` seconds after its
    receipt, and no delivery crosses one of another part.

    `pairs` are the name pairs of `crossing_parts`, with the columns `file` and `part`. Where one of
    these parts has none, all crossing parts of its target are unproven. A target in `tapped`, a
    route and a target, has no proven copy, and all ids of its blocks are in `unproven`.
    """
    blocks = blocks.combine_chunks()
    on_day = _are_on(blocks, day)
    whole = are_of_targets(blocks, tapped) | are_crossing(blocks, on_day, pairs)
    may_prove = on_day & ~whole & (blocks["slowest"].to_numpy() <= late * SECOND)
    proven, needed = np.zeros((2, len(blocks)), np.bool_)
    unproven: list[dict[str, object]] = []
    for key, members in positions(blocks, RUN_KEYS):
        ids = BlockIds.of(blocks, members)
        proven[members] = may_prove[members] & ~ids.shared_blocks()
        found = ids.unproven(whole[members], on_day[members], proven[members])
        needed[members] = ids.blocks_with(found)
        if len(found.first):
            row = (*key, found.first, found.last)
            unproven.append(dict(zip(UNPROVEN.names, row, strict=True)))
    return {
        "proven": _tallies(blocks.filter(pa.array(proven))),
        "unproven": pa.Table.from_pylist(unproven, UNPROVEN),
        "parts": _parts(blocks, needed),
    }


def _are_on(blocks: pa.Table, day: date) -> Flags:
    begin, end = day_range(day)
    minute = blocks["minute"].cast(pa.int64()).to_numpy()
    found: Flags = (minute >= begin) & (minute < end)
    return found


def _tallies(blocks: pa.Table) -> pa.Table:
    """Return the PROVEN counts of proven blocks."""
    blocks = blocks.filter(pc.greater(blocks["settled"], 0))
    keys = [*TARGET_KEYS, "minute"]
    code = codes_of(blocks, keys)
    sums = dict.fromkeys(("settled", "converted", "redelivered"), "sum")
    found = grouped(blocks.append_column("code", pa.array(code)), ["code", *keys], sums)
    rows, bucket, copies = nonzero_counts(blocks["latency"])
    latency = histograms(code[rows], bucket, copies, int(code.max(initial=-1)) + 1)
    columns = [*found.columns[1:], latency.take(found["code"].combine_chunks())]
    return pa.table(columns, PROVEN.names).cast(PROVEN).sort_by(ascending(*keys))


def _parts(blocks: pa.Table, chosen: Flags) -> pa.Table:
    """Return the distinct parts of the chosen blocks."""
    parts = blocks.select(PARTS.names).filter(pa.array(chosen))
    return summed(parts, PARTS.names, []).cast(PARTS)
