"""The class of each message between gateways: delivered to a broker by one, received by another.

A message that one gateway delivered must be received by every route of another gateway that reads
its name from the same broker. Tasks make *events* of the rows, a delivery for each reader and a
receipt; Spark brings the events of one reader, name and identity together.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import groupby, repeat
from operator import and_, itemgetter
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gateway.model.copy_class import (
    HOP_CLASSES,
    HOP_RECEIPTS,
    RECOGNISED,
    UNPROVEN,
    CopyClass,
)
from gateway.night.archive.intervals import Numbers
from gateway.night.archive.segments.tables import schema_of
from gateway.night.reconcile.classify.crossing import codes_of
from gateway.night.reconcile.classify.hop_events import (
    AWAITED,
    EVENTS,
    HOP_KEYS,
    Event,
    HopScope,
    run_events,
)
from gateway.night.reconcile.classify.result_tables import by_class
from gateway.night.reconcile.grouping import filled, summed
from gateway.night.reconcile.input.executors import PARTITION_ROWS, divided, map_tables, read_tasks
from gateway.night.reconcile.input.inputs import Segments

_KEY: Final = ("key", "name", "identity")  # of the events that belong together
_READER_KEYS: Final = ("broker", "receiver", "receiver_route")
# Delivered messages are counted together, with their latest times; every other one has a row of
# its own.
HOP_MESSAGES: Final[Mapping[str, str]] = {
    "class": "string",
    **dict.fromkeys(HOP_KEYS, "string"),
    "id": "string",
    "sent_time": "timestamp",
    "received_time": "timestamp",
    "marked": "boolean",
    "name": "string",
    "copies": "int64",
}
_SCHEMA: Final = schema_of(HOP_MESSAGES)
HOP_EXCEPTIONS: Final = _SCHEMA.remove(_SCHEMA.get_field_index("copies"))
_NONE: Final = -1  # in place of a receipt
_SKEW: Final = 1_000_000  # microseconds between two clocks; for messages without an id


def judge(late: int, events: pa.Table) -> Iterator[pa.Table]:
    """Yield HOP_MESSAGES of all `events` of some keys; `late` is in microseconds.

    Most have one delivery and one equal receipt. The others are matched only by their times where
    they have no id, however many are equal, and are judged one by one where they have one.
    """
    code = codes_of(events, _KEY)
    flags = ("sent", "cut", "own", "sure", "exact")
    sent, cut, own, sure, exact = (pc.fill_null(events[name], False).to_numpy() for name in flags)
    time, at = (pc.fill_null(events[name], 0).to_numpy() for name in ("time", "at"))
    hashes = pc.fill_null(events["hash"], b"")
    order = np.lexsort((time, code))
    numbers = np.bincount(code)
    ends = np.cumsum(numbers)[numbers == 2]  # noqa: PLR2004  # a delivery and a receipt
    one, other = order[ends - 2], order[ends - 1]
    send, receipt = np.where(sent[one], (one, other), (other, one))
    same = pc.equal(*(hashes.take(pa.array(each)) for each in (send, receipt)))
    fits = sent[send] & ~sent[receipt] & ~cut[receipt] & same.to_numpy()
    send, receipt = send[fits], receipt[fits]
    others = np.bincount(code, sent) > 0
    others[code[send]] = False
    rest = order[others[code[order]]]
    by_time = _matched_by_time(events, rest[~exact[rest]], code, time)
    absent = by_time[by_time[:, 1] == _NONE, 0]
    found = by_time[by_time[:, 1] != _NONE]
    send, receipt = np.concatenate([np.stack([send, receipt], axis=1), found]).T
    on_time = time[receipt] - at[send] <= late
    prompt = own[send] & on_time
    delivered = events.select((*HOP_KEYS, "at")).take(pa.array(send[prompt]))
    yield _counted(delivered.append_column("time", pa.array(time[receipt[prompt]])))
    tardy = own[send] & ~on_time
    sends = events.take(pa.array(send[tardy])).to_pylist()
    received = time[receipt[tardy]].tolist()
    messages = [
        _message(event, CopyClass.LATE.value, arrival)
        for event, arrival in zip(sends, received, strict=True)
    ]
    unmatched = events.take(pa.array(absent[own[absent] & sure[absent]])).to_pylist()
    messages += (_message(event, event["unmatched"], None) for event in unmatched)
    rest = rest[exact[rest]]
    numbered = zip(code[rest].tolist(), events.take(pa.array(rest)).to_pylist(), strict=True)
    for _, group in groupby(numbered, key=itemgetter(0)):
        messages += _judged([event for _, event in group], late)
    yield pa.Table.from_pylist(messages, _SCHEMA)


def judged_hops(
    spark: SparkSession, scope: HopScope, segments: Segments, late: int, rows: int
) -> DataFrame:
    """Return HOP_MESSAGES of the date, judged on executors.

    `late` is in microseconds, and `rows` are those of the date.
    """
    tasks = divided(spark, segments, [each.size for each in segments])
    events = read_tasks(spark, EVENTS, tasks, partial(run_events, scope))
    number = max(len(tasks), rows // PARTITION_ROWS, 1)
    return map_tables(events.repartition(number, *_KEY), HOP_MESSAGES, partial(judge, late))


def with_waiting(messages: DataFrame, scope: HopScope) -> DataFrame:
    """Return HOP_MESSAGES in which those that still wait at the broker are in flight, not missing.

    A broker hands out messages in order. Where the latest one reached its reader an hour after its
    delivery, none that was delivered in the last hour of the reader's rows has reached it. One of
    an absence that ended waits until the reader has a later one.
    """
    awaited = F.col("class") == AWAITED
    absent = awaited | (F.col("class") == CopyClass.MISSING.value)
    own = F.col("class") != UNPROVEN
    sent, received = (F.unix_micros(name) for name in ("sent_time", "received_time"))
    received = F.when(own, received)
    facts = {"absent": absent, "sent": F.when(received.isNotNull(), sent), "received": received}
    latest = [F.max(value).alias(name) for name, value in facts.items()]
    readers = messages.groupBy(*_READER_KEYS).agg(*latest).where("absent AND sent IS NOT NULL")
    waiting = overtaken = F.lit(False)
    for row in readers.collect():
        of_reader = reduce(and_, (F.col(name) == row[name] for name in _READER_KEYS))
        overtaken |= of_reader & (sent < row["sent"] - _SKEW)
        ends = [scope.until[each] for each in row["receiver"].split(", ") if each in scope.until]
        if ends and row["received"] > row["sent"]:
            begin = max(min(ends) - (row["received"] - row["sent"]), scope.spooled_since)
            waiting |= of_reader & (sent >= begin)
    in_flight = (absent & waiting) | (awaited & ~overtaken)
    known = F.when(in_flight, CopyClass.IN_FLIGHT.value)
    known = known.when(awaited, CopyClass.MISSING.value).otherwise(F.col("class"))
    return messages.withColumn("class", known)


def hop_counts(messages: DataFrame) -> DataFrame:
    """Return the number of messages by hop, class and mark."""
    grouped = messages.groupBy(*HOP_KEYS, "class", "marked")
    return grouped.agg(F.sum("copies").alias("copies"))


def hop_exceptions(messages: DataFrame) -> DataFrame:
    """Return the rows of HOP_EXCEPTIONS."""
    return messages.where("id IS NOT NULL").select(*HOP_EXCEPTIONS.names)


def _counted(delivered: pa.Table) -> pa.Table:
    """Return messages that were delivered once, unchanged and in time, counted by their hop."""
    numbers = [([], "count_all"), ("at", "max"), ("time", "max")]
    groups = delivered.group_by(list(HOP_KEYS)).aggregate(numbers)
    columns = {name: groups[name] for name in HOP_KEYS}
    columns |= {"sent_time": groups["at_max"], "received_time": groups["time_max"]}
    counted = {"class": CopyClass.DELIVERED.value, "copies": groups["count_all"], "marked": False}
    return filled(_SCHEMA, groups.num_rows, columns | counted)


def _judged(events: Sequence[Event], late: int) -> Iterator[Event]:
    """Yield the messages of one reader, name and id, by the time of their events."""
    sends, receipts = [each for each in events if each["sent"]], _receipts(events)
    for send, receipt, name in _by_hash(sends, receipts):
        if not send["own"]:
            continue
        if receipt is None:
            if send["sure"]:
                yield _message(send, send["unmatched"], None)
            continue
        is_late = name == CopyClass.DELIVERED.value and receipt["time"] - send["at"] > late
        known = CopyClass.LATE.value if is_late else name
        yield _message(send, known, receipt["time"], marked=bool(receipt.get("allowed")))


def _receipts(events: Iterable[Event]) -> list[Event]:
    """Return one receipt of each message; only one that all targets cut is a cut."""
    found: dict[tuple[str, bytes], Event] = {}
    for each in events:
        key = each["gateway"], each["id"]
        if not each["sent"] and (key not in found or not each["cut"]):
            found[key] = each
    return list(found.values())


Pair: TypeAlias = tuple[Event, Event | None, str]


def _by_hash(sends: Sequence[Event], receipts: Sequence[Event]) -> Iterator[Pair]:
    """Match deliveries with receipts of one id and payload.

    A further receipt is a duplicate, and a recognised one where the reader knew and cut it. A
    receipt with another payload is an alteration only if its path is signed: each publisher can
    copy an id.
    """
    known = {each["hash"] for each in sends}
    free: dict[bytes, deque[Event]] = defaultdict(deque)
    for each in sorted(receipts, key=itemgetter("cut")):
        free[each["hash"]].append(each)
    others = [each for each in receipts if not each["cut"] and each["hash"] not in known]
    altered = deque(each for each in others if each["signed"])
    for send in sends:
        equal = free[send["hash"]]
        if equal:
            yield _with_repetition(send, equal, sends, receipts)
        elif altered:
            yield send, altered.popleft(), CopyClass.ALTERED.value
        else:
            yield send, None, CopyClass.MISSING.value
    told = next((each for each in sends if each["own"]), sends[0])
    unproven = [*altered, *(each for each in others if not each["signed"])]
    yield from ((told, each, UNPROVEN) for each in unproven)
    doubles = (each for name in known for each in free[name] if each["cut"] and each["known"])
    yield from ((told, each, RECOGNISED) for each in doubles)


def _with_repetition(
    send: Event, equal: deque[Event], sends: Sequence[Event], receipts: Sequence[Event]
) -> Pair:
    """Take the first of the `equal` receipts for a delivery; the last delivery has all others."""
    receipt = equal.popleft()
    fitting = [each for each in receipts if each["hash"] == send["hash"] and not each["cut"]]
    alike = [each for each in sends if each["hash"] == send["hash"]]
    if send is not alike[-1] or len(fitting) <= len(alike):
        return send, receipt, CopyClass.DELIVERED.value
    attempts = sum(max(each["attempt"] or 1, 1) for each in alike)
    unmarked = sum(not each["marked"] for each in fitting)
    return send, {**receipt, "allowed": unmarked <= attempts}, CopyClass.DUPLICATED.value


def _matched_by_time(events: pa.Table, places: Numbers, code: Numbers, time: Numbers) -> Numbers:
    """Return the places of each delivery without an id, and of its receipt or `_NONE`.

    `places` are those of the events, by `code` and `time`. A list of numbers has a tenth of the
    memory of the events themselves: some thousands a second may be equal all day.
    """
    own = events.select(["sent", "cut", "gateway", "id"]).take(pa.array(places))
    sent, cut = (pc.fill_null(own[name], False).to_pylist() for name in ("sent", "cut"))
    messages = codes_of(own, ("gateway", "id")).tolist()
    times = dict(zip(places.tolist(), time[places].tolist(), strict=True))
    found: list[tuple[int, int]] = []
    facts = zip(code[places].tolist(), places.tolist(), sent, cut, messages, strict=True)
    for _, group in groupby(facts, key=itemgetter(0)):
        sends: list[int] = []
        receipts: dict[int, int] = {}  # one of each message; only one that all targets cut is a cut
        for _, place, is_sent, is_cut, message in group:
            if is_sent:
                sends.append(place)
            elif message not in receipts or not is_cut:
                receipts[message] = place
        found += _by_time(sends, list(receipts.values()), times)
    return np.array(found, np.int64).reshape(-1, 2)


def _by_time(
    sends: Sequence[int], receipts: Sequence[int], times: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    """Match deliveries with equal receipts: all in order, or each receipt with the latest before.

    Receipts beyond them are messages of other publishers.
    """

    def may_follow(send: int, receipt: int) -> bool:
        return times[receipt] >= times[send] - _SKEW

    if len(receipts) == len(sends) and all(map(may_follow, sends, receipts)):
        yield from zip(sends, receipts, strict=True)
        return
    are_sent = set(sends)
    open_sends: list[int] = []
    early: deque[int] = deque()  # receipts before a delivery, by another clock
    for each in sorted([*sends, *receipts], key=times.__getitem__):
        while early and not may_follow(each, early[0]):
            early.popleft()
        if each in are_sent and early:
            yield each, early.popleft()
        elif each in are_sent:
            open_sends.append(each)
        elif open_sends:
            yield open_sends.pop(), each
        else:
            early.append(each)
    yield from zip(open_sends, repeat(_NONE))


def _message(send: Event, name: str, received: int | None, *, marked: bool = False) -> Event:
    counted = {
        **{key: send[key] for key in HOP_KEYS},
        "class": name,
        "marked": marked,
        "copies": 1,
        "sent_time": send["at"],
        "received_time": received,
    }
    if name == CopyClass.DELIVERED.value:
        return counted
    return {**counted, "id": send["id"].hex(), "name": send["name"]}


def hop_table(counts: pa.Table) -> pa.Table:
    """Return the table `hops`: the number of messages of each class by hop.

    `counts` has HOP_KEYS, `class`, `marked` and `copies`.
    """
    apart = pc.is_in(counts["class"], pa.array(HOP_RECEIPTS))
    expected = pc.if_else(apart, 0, counts["copies"])
    columns = {"expected": expected, **by_class(counts, HOP_CLASSES)}
    keys = {name: counts[name] for name in HOP_KEYS}
    return summed(pa.table({**keys, **columns}), HOP_KEYS, columns)
