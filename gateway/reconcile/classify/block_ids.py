"""The ids of the blocks of one route, target and run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.intervals import Flags, Intervals, Numbers, overlapping, union


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
        """Return which blocks have a settled id that is in another interval, too."""
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
