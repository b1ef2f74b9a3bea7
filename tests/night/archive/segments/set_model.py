"""The rules of id sets and of copies in plain Python, row by row; and rows to try them with."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from gateway.night.archive.segments.tables import SCHEMA
from tests.archive.samples import NOON

Row = dict[str, Any]
MINUTE = 60_000_000
HASHES = [bytes([number]) * 16 for number in range(2)]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Key(NamedTuple):
    """The key of a copy."""

    gateway: str
    route: str
    target: str
    run: int
    counter: int


class Element(NamedTuple):
    """A row of one copy, with its receipt in microseconds."""

    key: Key
    row: Row
    receipt: int


def message_id(run: int, counter: int) -> bytes:
    return run.to_bytes(8, "big", signed=True) + counter.to_bytes(8, "big", signed=True)


def to_table(rows: Iterable[Row]) -> pa.Table:
    """Return rows as a table; times are integers."""
    timestamps = [field.name for field in SCHEMA if pa.types.is_timestamp(field.type)]
    values = [dict(row) for row in rows]
    for row in values:
        row |= {name: _moment(row[name]) for name in timestamps if row.get(name) is not None}
    return pa.Table.from_pylist(values, SCHEMA)


def _moment(time: int) -> datetime:
    return EPOCH + timedelta(microseconds=time)


def a_row(leg: str, counter: int, **more: Any) -> Row:  # noqa: ANN401  # values of any column
    """Return a row with usual values, changed by `more`; `run` is that of its id."""
    run = more.pop("run", 1)
    row = {
        "gateway": "edge", "route": "orders", "leg": leg, "endpoint": "e", "system": "mqtt",
        "name": "a", "id": message_id(run, counter), "time": NOON, "received": NOON,
        "attempt": 1, "hash": HASHES[0], "outcome": "accepted",
    }  # fmt: skip
    row["targets" if leg == "received" else "target"] = ["erp"] if leg == "received" else "erp"
    return {**row, **more}


def elements(rows: Iterable[Row]) -> Iterator[Element]:
    """Yield each row once for every target that it names, without gaps and cuts."""
    for row in rows:
        if row["leg"] in {"gap", "cut"}:
            continue
        words = row["id"][:16].ljust(16, b"\0")
        origin = row.get("origin_id") or ""
        if row["leg"] == "observed" and re.fullmatch("[0-9a-fA-F]{32}", origin):
            words = bytes.fromhex(origin)
        numbers = [int.from_bytes(words[at : at + 8], "big", signed=True) for at in (0, 8)]
        receipt = row["time"] if row.get("received") is None else row["received"]
        own = row.get("target") or ""
        for target in [own] if own else row.get("targets") or [""]:
            key = Key(row["gateway"], row["route"], target or "", *numbers)
            yield Element(key, row, receipt)


def by_copy(found: Iterable[Element]) -> Mapping[Key, list[Element]]:
    copies: dict[Key, list[Element]] = defaultdict(list)
    for each in found:
        copies[each.key].append(each)
    return copies


def stream_of(each: Element) -> tuple[str, ...]:
    name = each.row.get("source_name")
    return (*each.key[:3], each.row["name"] if name is None else name)


def is_ordered_delivery(each: Element) -> bool:
    return each.row["leg"] == "delivered" and not each.row.get("replayed")


def disordered_streams(found: Iterable[Element]) -> set[tuple[str, ...]]:
    ends = [each for each in found if is_ordered_delivery(each)]
    return {
        stream_of(each)
        for each in ends
        for before in ends
        if stream_of(before) == stream_of(each)
        and before.key < each.key
        and before.row["time"] > each.row["time"]
    }


def is_settled(copy: list[Element], disordered: set[tuple[str, ...]]) -> bool:
    by_leg = {each.row["leg"]: each for each in copy}
    if len(copy) != 2 or by_leg.keys() != {"received", "delivered"}:
        return False
    received, delivered = by_leg["received"], by_leg["delivered"]
    hashes = [each.row["hash"] for each in (received, delivered)]
    outcome = delivered.row.get("outcome")
    return (
        all(value is not None and len(value) == 16 for value in hashes)
        and all(len(each.row["id"]) == 16 for each in copy)
        and (outcome == "converted" or (outcome == "accepted" and len({*hashes}) == 1))
        and received.receipt == delivered.receipt
        and delivered.row.get("attempt") in (None, 1)
        and not delivered.row.get("replayed")
        and stream_of(delivered) not in disordered
    )


def model_blocks(rows: Iterable[Row], part: int = 0) -> list[Row]:
    """Return the blocks of one part, with ids as sets, without their latencies."""
    found = list(elements(rows))
    disordered = disordered_streams(found)
    blocks: dict[tuple[Any, ...], Row] = {}
    for key, copy in by_copy(found).items():
        settled = is_settled(copy, disordered)
        for each in copy:
            minute = each.receipt // MINUTE * MINUTE
            block = blocks.setdefault((*key[:4], minute), _new_block(key, minute, part))
            _count(block, each, settled=settled)
    return [blocks[key] for key in sorted(blocks)]


def _new_block(key: Key, minute: int, part: int) -> Row:
    counts = (
        "received", "delivered", "dead", "spooled", "observed",
        "settled", "converted", "redelivered", "slowest",
    )  # fmt: skip
    return {
        **key._asdict(), "minute": minute, "part": part, "settled_ids": set(), "open_ids": set(),
        **dict.fromkeys(counts, 0), "times": [], "counters": [],
    }  # fmt: skip


def _count(block: Row, each: Element, *, settled: bool) -> None:
    row, leg = each.row, each.row["leg"]
    block["settled_ids" if settled else "open_ids"].add(each.key.counter)
    if leg in block:
        block[leg] += 1
    if is_ordered_delivery(each):
        block["times"].append(row["time"])
        block["counters"].append(each.key.counter)
    if settled and leg == "delivered":
        block["settled"] += 1
        block["converted"] += row["outcome"] == "converted"
        block["slowest"] = max(block["slowest"], row["time"] - each.receipt)
    if settled and leg == "received":
        block["redelivered"] += bool(row.get("redelivered"))


# Rows of few messages, with usual values most of the time.

COUNTERS = st.integers(0, 5)
TIMES = st.integers(NOON, NOON + 4)
RECEIPTS = st.sampled_from([NOON, NOON, NOON, NOON + MINUTE, NOON - 1])


def usually(value: object, *others: object) -> st.SearchStrategy[Any]:
    return st.sampled_from([value] * (3 * len(others)) + [*others])


@st.composite
def message_rows(draw: st.DrawFn) -> list[Row]:
    """Return rows of one message: often received and delivered, and sometimes anything else."""
    counter = draw(COUNTERS | st.sampled_from([-(2**63), 2**63 - 1]))
    shared = {
        "run": draw(usually(1, 2, -3)),
        "gateway": draw(usually("edge", "west")),
        "route": draw(usually("orders", "", "trades")),
        "received": draw(RECEIPTS),
        "name": draw(st.sampled_from("ab")),
    }
    targets = draw(usually(["erp"], ["erp", "audit"], ["erp", "erp"], [], None))
    legs = draw(
        usually(
            ["received", "delivered"],
            ["received"],
            ["delivered"],
            ["received", "delivered", "delivered"],
            ["received", "dead"],
            ["received", "spooled", "delivered"],
            ["received", "delivered", "observed"],
            ["gap", "later"],
            ["cut"],
            ["received", "delivered", "cut"],
        )
    )
    return [_message_row(draw, leg, counter, shared, targets) for leg in legs]


def _message_row(
    draw: st.DrawFn, leg: str, counter: int, shared: Row, targets: list[str] | None
) -> Row:
    row = a_row(leg, counter, **shared)
    row["time"] = draw(TIMES)
    if leg == "received":
        row["targets"] = targets
        row["redelivered"] = draw(usually(None, True, False))
    if leg == "dead":
        row |= draw(usually({}, {"target": "", "targets": targets}))
    if leg == "observed":
        own = {"origin_id": row["id"].hex().upper(), "id": message_id(9, counter)}
        row |= draw(usually(own, {}, {"origin_id": "no id"}))
    row |= draw(
        usually(
            {},
            {"hash": draw(st.sampled_from([None, HASHES[1], bytes(15), bytes(17)]))},
            {"outcome": draw(st.sampled_from([None, "converted"]))},
            {"attempt": draw(st.sampled_from([None, 2]))},
            {"received": draw(st.none() | RECEIPTS)},
            {"replayed": True},
            {"source_name": draw(st.sampled_from("ab"))},
            {"target": draw(st.sampled_from([None, "", "audit"]))},
            {"id": row["id"] + b"\0"},
        )
    )
    return row
