"""Order of deliveries across the parts of an archive: the blocks whose ranges cross.

Two ranges of deliveries are in order when one ends, by id and by time, before the other begins.
Within a part, `gateway.night.archive.segments.sets` has checked every delivery.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.schema import Leg
from gateway.night.archive.intervals import Flags, Numbers
from gateway.night.archive.segments.copies import encoded
from gateway.night.archive.segments.id_columns import words
from gateway.night.reconcile.grouping import TARGET_KEYS, grouped

Ids: TypeAlias = tuple[Numbers, Numbers]  # runs and counters

_NEVER: Final = np.iinfo(np.int64).max
_PLACE: Final = [*TARGET_KEYS, "file", "part"]  # the deliveries of one part at one target


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges of deliveries, one for each stream and owner, a part or a block.

    An id is here its rank among all ids of these ranges, and a time its rank among all times.
    """

    stream: Numbers
    owner: Numbers
    first: Numbers  # ids
    last: Numbers
    begin: Numbers  # times
    end: Numbers
    on_day: Flags

    def merged(self, owner: Numbers) -> Ranges:
        """Return one range for each stream and new owner."""
        columns = {each.name: getattr(self, each.name) for each in fields(self)} | {"owner": owner}
        ends = {"first": "min", "last": "max", "begin": "min", "end": "max", "on_day": "max"}
        found = grouped(pa.table(columns), ("stream", "owner"), ends)
        return Ranges(*(found[name].to_numpy() for name in columns))

    def crossing(self) -> Flags:
        """Return which ranges cross another of their stream so that one on the day may be late.

        A delivery on the day may have overtaken one of any day, and not the other way round: a
        range of another day counts only where its ids overlap, or where its times reach beyond the
        begin of a range on the day with larger ids.
        """
        width = int(max(self.last.max(initial=0), self.end.max(initial=0))) + 1
        first, last, begin, end = (
            self.stream * width + each for each in (self.first, self.last, self.begin, self.end)
        )
        order = np.argsort(first, kind="stable")
        first, last, begin, end = (each[order] for each in (first, last, begin, end))
        today = self.on_day[order]
        overlaps = np.where(today, _before(last), _before(np.where(today, last, -1))) >= first
        overtakes = today & (_before(end) > begin)
        later = np.where(today, _after(first), _after(np.where(today, first, _NEVER)))
        overtaken = _after(np.where(today, begin, _NEVER)) < end
        found = np.zeros(len(order), np.bool_)
        found[order] = overlaps | overtakes | (later <= last) | overtaken
        return found


def codes_of(table: pa.Table, names: Sequence[str]) -> Numbers:
    """Return a number for each row: the same for rows with the same values of `names`."""
    found = np.zeros(len(table), np.int64)
    for name in names:
        codes, distinct = encoded(table[name])
        found, _ = encoded(pa.array(found * len(distinct) + codes))
    return found


def in_crossing_parts(blocks: pa.Table, on_day: Flags) -> Flags:
    """Return the blocks in parts whose deliveries at their target cross those of another part."""
    place = codes_of(blocks, _PLACE)
    ranges = _ranges_of_blocks(blocks, on_day)
    parts = ranges.merged(place[ranges.owner])
    return np.isin(place, parts.owner[parts.crossing()])


def are_crossing(blocks: pa.Table, on_day: Flags, pairs: pa.Table | None = None) -> Flags:
    """Return the blocks whose deliveries cross those of another part, or the day's in their own.

    With the `pairs` of these parts, only deliveries of one stream cross. Without them, and where
    the pairs of one part are not known, all deliveries at a target count as one stream. In their
    own part only blocks of other days count: a delivery of the day that has overtaken one of theirs
    is open, for the part is out of order.
    """
    found = in_crossing_parts(blocks, on_day)
    if pairs is not None and found.any():
        found &= _in_crossing_streams(blocks, on_day, found, pairs)
    ranges = _ranges_of_blocks(blocks, on_day)
    own = replace(ranges, stream=codes_of(blocks, _PLACE)[ranges.owner])
    every = np.arange(len(blocks))
    crossing, in_part = (np.isin(every, each.owner[each.crossing()]) for each in (ranges, own))
    return (found & crossing) | (in_part & ~on_day)


def _in_crossing_streams(
    blocks: pa.Table, on_day: Flags, candidates: Flags, pairs: pa.Table
) -> Flags:
    """Return the blocks in parts where a stream crosses, and those whose pairs are incomplete."""
    pairs = pairs.filter(pc.equal(pairs["leg"], Leg.DELIVERED.value))
    keys = blocks.select(_PLACE)
    both = pa.concat_tables([keys, pairs.select(_PLACE).cast(keys.schema)])
    place, theirs = np.split(codes_of(both, _PLACE), [len(blocks)])
    group, own = np.split(codes_of(both, TARGET_KEYS), [len(blocks)])
    unknown = np.isin(group, group[candidates & ~np.isin(place, theirs)])
    streams = _ranges_of_pairs(pairs, own, theirs, np.isin(theirs, place[on_day]))
    found: Flags = unknown | np.isin(place, streams.owner[streams.crossing()])
    return found


def _ranges_of_blocks(blocks: pa.Table, on_day: Flags) -> Ranges:
    """Return the ranges of the blocks that have deliveries; the stream is the target."""
    owner = np.flatnonzero(blocks["first_counter"].is_valid().to_numpy())
    found = blocks.take(pa.array(owner))
    run = found["run"].to_numpy()
    ids = [(run, found[name].to_numpy()) for name in ("first_counter", "last_counter")]
    return _ranked(found, codes_of(found, TARGET_KEYS), owner, ids, on_day[owner])


def _ranges_of_pairs(pairs: pa.Table, group: Numbers, place: Numbers, on_day: Flags) -> Ranges:
    """Return the ranges of each stream in each part, from the name pairs of its deliveries."""
    names, distinct = encoded(pc.coalesce(pairs["source_name"], pairs["name"]))
    stream, _ = encoded(pa.array(group * len(distinct) + names))
    ids = [words(pairs[name]) for name in ("first_id", "last_id")]
    return _ranked(pairs, stream, place, ids, on_day).merged(place)


def _ranked(
    rows: pa.Table, stream: Numbers, owner: Numbers, ids: Sequence[Ids], on_day: Flags
) -> Ranges:
    """Return the ranges of `rows` from their first and their last `ids`."""
    times = [rows[name].cast(pa.int64()).to_numpy() for name in ("first_time", "last_time")]
    first, last = np.split(np.unique(np.hstack(ids), axis=1, return_inverse=True)[1], 2)
    begin, end = np.split(np.unique(np.concatenate(times), return_inverse=True)[1], 2)
    return Ranges(stream, owner, first, last, begin, end, on_day)


def _before(values: Numbers) -> Numbers:
    """Return the largest value before each place; -1 before the first."""
    return np.append(-1, np.maximum.accumulate(values)[:-1]) if len(values) else values


def _after(values: Numbers) -> Numbers:
    """Return the smallest value behind each place."""
    tops = np.minimum.accumulate(values[::-1])[::-1]
    return np.append(tops[1:], _NEVER) if len(values) else values
