"""The class of every copy by brute force: all rows of all parts, in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.night.archive.segments.set_model import (
    MINUTE,
    Element,
    Key,
    by_copy,
    is_ordered_delivery,
    stream_of,
)

LATE = 2_000_000  # microseconds
DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Judged:
    """A copy: its class, the minute of its receipt, and the facts that a tally counts."""

    name: str
    minute: int
    converted: bool = False
    redelivered: bool = False
    latency: int = -1


def judge(found: Iterable[Element], tapped: Iterable[tuple[str, str]]) -> Mapping[Key, Judged]:
    """Return every copy of the rows."""
    copies = by_copy(found)
    disordered = _disordered(copies)
    taps = {*tapped}
    return {
        key: _judged(copy, disordered=key in disordered, tapped=key[1:3] in taps)
        for key, copy in copies.items()
    }


def _first_delivery(copy: list[Element]) -> Element | None:
    own = [each for each in copy if is_ordered_delivery(each)]
    return min(own, key=lambda each: each.row["time"], default=None)


def _disordered(copies: Mapping[Key, list[Element]]) -> set[Key]:
    streams: dict[tuple[str, ...], list[tuple[Key, int]]] = defaultdict(list)
    for key, copy in copies.items():
        if (first := _first_delivery(copy)) is not None:
            streams[stream_of(first)].append((key, first.row["time"]))
    return {
        key
        for stream in streams.values()
        for key, time in stream
        if any(before < key and then > time for before, then in stream)
    }


def _judged(copy: list[Element], *, disordered: bool, tapped: bool) -> Judged:
    rows: dict[str, list[Element]] = defaultdict(list)
    for each in copy:
        rows[each.row["leg"]].append(each)
    receipts = rows["received"] + [each for each in rows["dead"] if each.key.route == ""]
    receipt = min(each.receipt for each in receipts or copy)
    deliveries, dead = rows["delivered"], rows["dead"]
    first = _first_delivery(copy)
    latency = max(first.row["time"] - receipt, 0) if first else -1
    altered = any(
        each.row["outcome"] != "converted"
        and any(_differ(each, other) for other in rows["received"])
        for each in deliveries
    ) or any(each.row["hash"] is None for each in deliveries)
    if not receipts and not rows["spooled"]:
        name = "unexpected"
    elif altered:
        name = "altered"
    elif deliveries and first is None:
        name = "recovered"
    elif deliveries and len(deliveries) + len(dead) + len(rows["received"]) > 2:
        name = "duplicated"
    elif deliveries and tapped and not rows["observed"]:
        name = "lost"
    elif disordered:
        name = "disordered"
    elif latency > LATE:
        name = "late"
    elif deliveries:
        name = "delivered"
    else:
        name = "dead" if dead else "spooled" if rows["spooled"] else "missing"
    return Judged(
        name,
        receipt // MINUTE * MINUTE,
        any(each.row["outcome"] == "converted" for each in deliveries),
        any(bool(each.row.get("redelivered")) for each in receipts),
        latency,
    )


def _differ(one: Element, other: Element) -> bool:
    return one.row["hash"] is None or one.row["hash"] != other.row["hash"]


def tallied(copies: Iterable[tuple[Key, Judged]], start: int) -> Counter[tuple[object, ...]]:
    """Count the copies of the day that begins at `start`, by target, minute and all facts."""
    return Counter(
        (*key[:3], each.minute, each.name, each.converted, each.redelivered)
        for key, each in copies
        if start <= each.minute < start + DAY
    )
