"""The class of each cut: a message that a route left out for a target.

A cut is an outcome where the archive has what it repeats: an earlier row at the broker of its
source or target with the same name and payload, received or delivered. Each route and target uses
such a row once. Tasks make *events* of the rows; Spark brings those of one broker, name and payload
together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from gateway.archive.layout import DAY
from gateway.archive.schema import Leg
from gateway.model.cut_class import CutClass
from gateway.night.archive.intervals import Flags, Numbers
from gateway.night.archive.segments.tables import schema_of
from gateway.night.reconcile.classify.crossing import codes_of
from gateway.night.reconcile.classify.cut_events import EVENTS, SKEW, CutScope, run_cut_events
from gateway.night.reconcile.grouping import TARGET_KEYS, filled
from gateway.night.reconcile.input.cut_rows import CUT_KEYS
from gateway.night.reconcile.input.executors import PARTITION_ROWS, divided, map_tables, read_tasks
from gateway.night.reconcile.input.inputs import Segments

_PLACE: Final = ("place", "repeated", "hash")  # of the events that belong together
_NEVER: Final = int(np.iinfo(np.int64).max)
_SPAN: Final = 4 * DAY  # of the times of events
# Proven cuts are counted together; every other one has a row of its own.
CUT_MESSAGES: Final[Mapping[str, str]] = {
    "class": "string",
    **dict.fromkeys(CUT_KEYS, "string"),
    "id": "string",
    "name": "string",
    "received_time": "timestamp",
    "size": "int64",
    "copies": "int64",
}
_SCHEMA: Final = schema_of(CUT_MESSAGES)
CUT_EXCEPTIONS: Final = _SCHEMA.remove(_SCHEMA.get_field_index("copies"))


def judged_cuts(spark: SparkSession, scope: CutScope, segments: Segments, rows: int) -> DataFrame:
    """Return CUT_MESSAGES of the cuts to judge, from executors; `rows` are those of the date."""
    tasks = divided(spark, segments, [each.size for each in segments])
    events = read_tasks(spark, EVENTS, tasks, partial(run_cut_events, scope))
    number = max(len(tasks), rows // PARTITION_ROWS if scope.hashes is None else 1)
    return map_tables(events.repartition(number, *_PLACE), CUT_MESSAGES, partial(judge, scope))


def judge(scope: CutScope, events: pa.Table) -> Iterator[pa.Table]:
    """Yield CUT_MESSAGES of all `events` of some brokers, names and payloads."""
    events = _distinct(events).sort_by("time")
    proven = _proven(events, scope)
    cuts = events.filter(pc.equal(events["leg"], Leg.CUT.value))
    keys = cuts.select(CUT_KEYS).filter(pa.array(proven))
    counted = keys.group_by(list(CUT_KEYS)).aggregate([([], "count_all")])
    columns = {name: counted[name] for name in CUT_KEYS} | {"class": CutClass.PROVEN.value}
    yield filled(_SCHEMA, counted.num_rows, {**columns, "copies": counted["count_all"]})
    others = cuts.filter(pa.array(~proven))
    waiting = pc.greater_equal(others["time"], scope.open_since or _NEVER)
    names = pc.if_else(waiting, CutClass.IN_FLIGHT.value, CutClass.ON_WORD.value)
    columns = {name: others[name] for name in (*CUT_KEYS, "name", "size")} | {
        "class": pc.if_else(others["earlier"], CutClass.RETAINED.value, names),
        "id": pa.array([each.hex() for each in others["id"].to_pylist()], pa.string()),
        "received_time": others["time"],
        "copies": 1,
    }
    yield filled(_SCHEMA, others.num_rows, columns)


def _distinct(events: pa.Table) -> pa.Table:
    """Return the events with one receipt of each message: it has a row for each of its routes."""
    received = pc.equal(events["leg"], Leg.RECEIVED.value)
    receipts = events.filter(received)
    _, first = np.unique(codes_of(receipts, (*_PLACE, "gateway", "id")), return_index=True)
    return pa.concat_tables([events.filter(pc.invert(received)), receipts.take(pa.array(first))])


def _proven(events: pa.Table, scope: CutScope) -> Flags:
    """Return which cuts repeat a row; the `events` are in the order of time."""
    cut = pc.equal(events["leg"], Leg.CUT.value).to_numpy()
    rows, room = np.flatnonzero(~cut), events["room"].to_numpy()[~cut]
    cuts = np.flatnonzero(cut)
    time = np.clip(events["time"].to_numpy() - scope.day[0] + 2 * DAY, 0, _SPAN - SKEW - 1)

    def room_until(keys: tuple[str, ...], until: Numbers) -> Numbers:
        code = codes_of(events, keys)
        return _Room.of(code[rows], time[rows], room).until(code[cuts], until)

    at, own = time[cuts], (*_PLACE, "gateway")
    # The clock of its own gateway is exact. The rows of the message itself prove nothing.
    others = room_until(_PLACE, at + SKEW) - room_until(own, at + SKEW)
    itself = room_until((*own, "id"), np.full(len(cuts), _SPAN - 1))
    free = others + room_until(own, at) - itself
    users = codes_of(events, (*_PLACE, *TARGET_KEYS))[cuts]
    again = events["again"].to_numpy()[cuts]
    return _matched(users, free, again)


@dataclass(frozen=True, slots=True)
class _Room:
    """How many cuts the rows of each code explain until a time."""

    places: Numbers  # code and time in one number, ascending
    total: Numbers  # before each place

    @classmethod
    def of(cls, code: Numbers, time: Numbers, room: Numbers) -> _Room:
        places = code * _SPAN + time
        order = np.argsort(places, kind="stable")
        return cls(places[order], np.concatenate([[0], np.cumsum(room[order])]))

    def until(self, code: Numbers, time: Numbers) -> Numbers:
        first = np.searchsorted(self.places, code * _SPAN)
        last = np.searchsorted(self.places, code * _SPAN + time, side="right")
        found: Numbers = self.total[last] - self.total[first]
        return found


def _matched(users: Numbers, free: Numbers, again: Flags) -> Flags:
    """Return which cuts have a row that no earlier cut of their user has; they are in its order.

    A cut that is there `again` is the same message as an earlier one, and uses no row.
    """
    order = np.argsort(users, kind="stable")
    of_user, new = users[order], ~again[order]
    before: Numbers = np.cumsum(new) - new
    starts = np.flatnonzero(np.diff(of_user, prepend=-1))
    lengths = np.diff(np.append(starts, len(order)))
    rank: Numbers = before - np.repeat(before[starts], lengths)
    found = np.zeros(len(users), np.bool_)
    found[order] = np.where(new, free[order] > rank, free[order] > 0)
    wrong = np.unique(users[~found])
    for user in wrong:  # a cut without a row leaves the row to the next one
        used = 0
        for place in order[
            np.searchsorted(of_user, user) : np.searchsorted(of_user, user, "right")
        ]:
            found[place] = free[place] > (0 if again[place] else used)
            used += int(found[place] and not again[place])
    return found
