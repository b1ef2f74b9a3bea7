"""The class of every copy of a date, row by row, from the definitions in docs/reconciliation.md.

Nothing of the product is imported: the rows come from the Parquet files as any reader sees them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

Row: TypeAlias = dict[str, Any]
Copy: TypeAlias = tuple[str, str, str, bytes]  # gateway, route, target, id

HOUR = 3_600_000_000  # microseconds
DAY = 24 * HOUR
BREAKING = {"unexpected", "altered", "duplicated", "lost in target", "out of order", "missing"}
MESSAGE_FAULTS = {"empty-element", "empty-name", "too-long"}  # rules that blame the message
MARKED = "duplicated, marked"
COLUMNS = (
    "gateway", "route", "leg", "target", "targets", "name", "source_name", "id", "origin_id",
    "attempt", "time", "received", "mode", "replayed", "hash", "outcome", "rule",
)  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """The date by its midnight, and the options of the night; times in microseconds."""

    midnight: int
    late: int
    spooled_since: int
    open_since: Mapping[str, int] = field(default_factory=dict)  # gateway -> first recent receipt


def read_rows(paths: Iterable[Path]) -> list[Row]:
    """Return the rows of segments; times are numbers."""
    found: list[Row] = []
    for path in paths:
        table = pq.read_table(path, columns=list(COLUMNS), partitioning=None)
        for name in ("time", "received"):
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, table[name].cast(pa.int64()))
        found += table.to_pylist()
    return [row for row in found if row["leg"] not in {"gap", "cut"}]


def classify(rows: Iterable[Row], limits: Limits) -> dict[Copy, str]:
    """Return the class of every copy of the date; of allowed duplicates, MARKED."""
    copies: dict[Copy, list[Row]] = defaultdict(list)
    for copy, row in by_target(rows):
        copies[copy].append(row)
    taps = _taps(copies, limits)
    overtaken = _overtaken(copies, limits)
    arrived = {copy[1:]: copy for copy, own in copies.items() if _of(own, "delivered")}
    return {
        copy: _class(copy, own, limits, taps, overtaken=copy in overtaken)
        for copy, own in copies.items()
        if _is_on(_receipt(copy, own), limits)
        and not (_legs(own) == {"observed"} and copy[1:] in arrived)  # a tap sees all gateways
    }


def by_target(rows: Iterable[Row]) -> Iterator[tuple[Copy, Row]]:
    """Yield each row once for every target that it names, with the copy that it is about."""
    for row in rows:
        identity = row["id"]
        if row["leg"] == "observed" and row["origin_id"]:
            identity = bytes.fromhex(row["origin_id"])
        for target in [row["target"]] if row["target"] else row["targets"] or [""]:
            yield (row["gateway"], row["route"], target, identity), row


def verdict(classes: Iterable[str], errors: int, gaps: int) -> int:
    """Return the exit status."""
    if errors or BREAKING & {*classes}:
        return 1
    return 3 if gaps else 0


def counts(classes: Mapping[Copy, str], names: Iterable[str]) -> dict[str, int]:
    """Count the copies of some classes; "marked" ones are also "duplicated"."""
    found = Counter(classes.values())
    found["marked"] = found[MARKED]
    found["duplicated"] += found[MARKED]
    return {name: found[name] for name in names}


def _of(rows: Iterable[Row], leg: str) -> list[Row]:
    return [row for row in rows if row["leg"] == leg]


def _legs(rows: Iterable[Row]) -> set[str]:
    return {row["leg"] for row in rows}


def _receipts(copy: Copy, rows: Iterable[Row]) -> list[Row]:
    """The rows that prove a receipt: a spooled copy or an unrouted dead letter was received."""
    proofs = {"received", "spooled"} | ({"dead"} if copy[1] == "" else set())
    return [row for row in rows if row["leg"] in proofs]


def _received(row: Row) -> int:
    time: int = row["time"] if row["received"] is None else row["received"]
    return time


def _receipt(copy: Copy, rows: list[Row]) -> int:
    return min(_received(row) for row in _receipts(copy, rows) or rows)


def _is_on(time: int, limits: Limits) -> bool:
    return limits.midnight <= time < limits.midnight + DAY


def _first_delivery(rows: Iterable[Row]) -> Row | None:
    own = [row for row in _of(rows, "delivered") if not row["replayed"]]
    return min(own, key=lambda row: row["time"], default=None)


def _taps(copies: Mapping[Copy, list[Row]], limits: Limits) -> dict[tuple[str, str, str], int]:
    """The first minute of each tap's target, within six hours of the date."""
    found: dict[tuple[str, str, str], int] = {}
    for copy, own in copies.items():
        for row in _of(own, "observed"):
            minute = _received(row) // 60_000_000 * 60_000_000
            if limits.midnight - 6 * HOUR <= minute < limits.midnight + DAY + 6 * HOUR:
                found[copy[:3]] = min(found.get(copy[:3], minute), minute)
    return found


def _overtaken(copies: Mapping[Copy, list[Row]], limits: Limits) -> set[Copy]:
    """The copies delivered before one with a smaller id of their target and source name."""
    streams: dict[tuple[str, ...], list[tuple[bytes, int, Copy]]] = defaultdict(list)
    for copy, own in copies.items():
        first = _first_delivery(own)
        if first is None:
            continue
        if not (_is_on(_receipt(copy, own), limits) or _receipts(copy, own)):
            continue
        name = first["name"] if first["source_name"] is None else first["source_name"]
        streams[*copy[:3], name].append((copy[3], first["time"], copy))
    return {
        copy
        for stream in streams.values()
        for identity, time, copy in stream
        if any(other < identity and then > time for other, then, _ in stream)
    }


def _class(
    copy: Copy,
    rows: list[Row],
    limits: Limits,
    taps: Mapping[tuple[str, str, str], int],
    *,
    overtaken: bool,
) -> str:
    if not _receipts(copy, rows):
        return "unexpected"
    if _of(rows, "delivered"):
        return _class_of_delivered(copy, rows, limits, taps, overtaken=overtaken)
    if dead := _of(rows, "dead"):
        is_blamed = any(row["rule"] in MESSAGE_FAULTS for row in dead)
        return "refused" if is_blamed else "dead-lettered"
    receipt = _receipt(copy, rows)
    spooled = bool(_of(rows, "spooled")) and receipt >= limits.spooled_since
    # A row counts by its own receipt: all rows of a copy have the same.
    recent = copy[0] in limits.open_since and receipt >= limits.open_since[copy[0]]
    return "in flight" if spooled or recent else "missing"


def _class_of_delivered(
    copy: Copy,
    rows: list[Row],
    limits: Limits,
    taps: Mapping[tuple[str, str, str], int],
    *,
    overtaken: bool,
) -> str:
    deliveries = _of(rows, "delivered")
    first = _first_delivery(rows)
    replays = [row for row in deliveries if row["replayed"]]
    own = [row for row in deliveries if not row["replayed"]]
    if _is_altered(copy, rows):
        return "altered"
    if len(deliveries) > 1 or (own and _of(rows, "dead")):
        return MARKED if _is_marked(rows) else "duplicated"
    tapped = copy[:3] in taps and all(row["time"] >= taps[copy[:3]] for row in deliveries)
    if tapped and not _of(rows, "observed"):
        return "lost in target"
    if replays:
        return "recovered"
    if overtaken:
        return "out of order"
    assert first is not None
    late = first["time"] - _receipt(copy, rows) > limits.late
    return "delivered late" if late else "delivered"


def _is_altered(copy: Copy, rows: list[Row]) -> bool:
    deliveries, seen = _of(rows, "delivered"), _of(rows, "observed")
    receipts = _receipts(copy, rows)
    if any(row["hash"] is None for row in [*receipts, *deliveries, *seen]):
        return True
    accepted = {row["hash"] for row in deliveries if row["outcome"] != "converted"}
    arrived = {row["hash"] for row in deliveries}
    changed = len(accepted | {row["hash"] for row in receipts}) > 1 if accepted else False
    return changed or (bool(seen) and len(arrived | {row["hash"] for row in seen}) > 1)


def _is_marked(rows: list[Row]) -> bool:
    """At most one first attempt of several; a replay is marked, a dead letter is not a retry."""
    own = [row for row in _of(rows, "delivered") if not row["replayed"]]
    if not own:
        return True
    if _of(rows, "dead"):
        return False
    first_attempts = [row for row in own if (row["attempt"] or 1) == 1]
    exactly_once = any(row["mode"] == 2 for row in _of(rows, "delivered"))
    return len(first_attempts) <= 1 and not (exactly_once and len(own) > 1)


def segments(root: Path) -> list[Path]:
    """Return all segments, as a reader with Hive partitions lists them."""
    return sorted(root.glob("date=*/**/*.parquet"))
