"""Random small archives, written by the journals and the converter of the product.

The list of messages is the truth: no rule of the product computes it.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from gateway.archive.journal.ends import Head
from gateway.archive.journal.file import Journal
from gateway.archive.journal.local_head import LocalHead, last_link
from gateway.archive.journal.records import Cell, Rows, pack
from gateway.archive.layout import HOUR, JournalName, journal_folder, writer_name
from gateway.archive.signed_json import Previous
from gateway.night.archive.segments.convert import convert
from tests.archive.samples import NOON, digest

SECOND = 1_000_000
MINUTE = 60 * SECOND
MIDNIGHT = NOON - 12 * HOUR
NEXT_MIDNIGHT = MIDNIGHT + 24 * HOUR
BEFORE = (MIDNIGHT - HOUR, MIDNIGHT - HOUR // 2)  # the first seal is of the day before
LATE = 120  # seconds
TAPPED = "audit"
KINDS = (
    "missing", "duplicated", "retried", "altered", "no hash", "late", "spooled", "dead",
    "unexpected", "recovered", "converted", "after the hour", "refused", "dead and delivered",
    "dead and recovered", "spooled and delivered", "replayed too", "received again", "unrouted",
    "second attempt", *["overtaken"] * 6,
)  # fmt: skip

Copy: TypeAlias = tuple[str, str, bytes]  # gateway, target, id
Spoil: TypeAlias = Callable[[Path], None]  # damages a journal


@dataclass(frozen=True)
class Span:
    """The time of one journal, and how it ends; a killed one may have an unfinished write."""

    opened: int
    closed: int
    start: int  # of its process
    end: str  # "roll", "stop", "kill" or "torn"; "open" when a gateway still writes it


@dataclass
class Plan:
    """The messages of an archive: the rows of each, and the class of each copy of the day."""

    rows: dict[str, list[dict[str, Cell]]] = field(default_factory=dict)  # by writer
    classes: dict[Copy, str] = field(default_factory=dict)
    gaps: int = 0  # of the day, in which a source may have missed messages
    tapped: bool = False

    @property
    def faulty(self) -> dict[Copy, str]:
        return {copy: name for copy, name in self.classes.items() if name != "delivered"}


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A folder in memory where the machine has one: many archives wait for no disk."""
    memory = Path("/dev/shm")  # noqa: S108  # the tests have no other user
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as path:
        yield Path(path)


def spans_of(rng: random.Random) -> list[Span]:
    """Journals from the evening before the day to the next one, with restarts between some."""
    inside = [MIDNIGHT + rng.randrange(24 * 60) * MINUTE for _ in range(rng.randrange(4))]
    last = NEXT_MIDNIGHT + rng.randrange(1, 5) * 10 * MINUTE
    cuts = sorted({*BEFORE, MIDNIGHT, NEXT_MIDNIGHT, last, *inside})
    found: list[Span] = []
    opened = start = cuts[0]
    for _, cut in pairwise(cuts):
        if cut <= opened:
            continue
        rolls = cut in {*BEFORE, MIDNIGHT, NEXT_MIDNIGHT}
        end = "roll" if rolls else rng.choice(("roll", "stop", "kill", "torn"))
        end = "stop" if cut == last else end
        found.append(Span(opened, cut, start, end))
        opened = cut
        if end != "roll":
            opened = start = cut + rng.randrange(1, 50) * SECOND
    return found


def plan_of(
    rng: random.Random, gateways: dict[str, list[Span]], messages: int, faults: float
) -> Plan:
    plan = Plan()
    for gateway, spans in gateways.items():
        plan.rows[gateway], plan.rows[f"{gateway}~replay"] = [], []
        span, arrival, kind, name = spans[0], spans[0].opened, "", ""
        for counter in range(rng.randrange(messages)):
            overtaking = kind == "overtaken"
            span, arrival = _arrival(rng, spans, span, arrival, 1 if overtaking else 0.5)
            name = name if overtaking else f"n/{rng.randrange(3)}"
            low = arrival // 10 * 100 + counter  # ascends with the arrival
            identity = span.start.to_bytes(8, "big") + low.to_bytes(8, "big")
            kind = rng.choice(KINDS) if rng.random() < faults else "delivered"
            _add(plan, rng, gateway, identity, arrival, kind, name)
        if rng.random() < 0.3:
            _add_gap(plan, rng, gateway)
        if rng.random() < 0.4:
            _add_cuts(plan, rng, gateway)
    _mark_order(plan)
    if faults and rng.random() < 0.25:
        _add_tap(plan, rng, rng.choice([*gateways]))
    return plan


def _arrival(
    rng: random.Random, spans: list[Span], span: Span, last: int, share: float
) -> tuple[Span, int]:
    """Return the time of a message and its journal: a `share` soon after the `last` of `span`.

    Near the end of a journal, the outcome is in the next one.
    """
    near = last + rng.randrange(40 * SECOND)
    if rng.random() < share and near < span.closed:
        return span, near
    span = rng.choice(spans)
    length = span.closed - span.opened
    if rng.random() < 0.3:
        return span, span.closed - rng.randrange(1, min(length, 100 * SECOND))
    return span, span.opened + rng.randrange(max(length // 2, 1))


def with_open_end(rng: random.Random, spans: list[Span]) -> list[Span]:
    """Return the journals up to one that was opened on the day and is still written."""
    choices = [at for at, span in enumerate(spans) if MIDNIGHT <= span.opened < NEXT_MIDNIGHT]
    at = rng.choice(choices)
    return [*spans[:at], replace(spans[at], end="open")]


def _add_gap(plan: Plan, rng: random.Random, gateway: str) -> None:
    """Add a gap of a source on the day; an absence with a kept session loses nothing."""
    rule = rng.choice(("session-lost", "taken-over", "away"))
    begin = MIDNIGHT + rng.randrange(23 * 60) * MINUTE
    plan.rows[gateway].append(
        {
            "leg": "gap", "route": "orders", "endpoint": "plant", "system": "mqtt", "name": "n/#",
            "id": bytes(16), "begin": begin, "rule": rule,
            "time": begin + rng.randrange(1, 30) * MINUTE, "outcome": "gap", "gateway": gateway,
        }
    )  # fmt: skip
    plan.gaps += rule != "away"


def _add_cuts(plan: Plan, rng: random.Random, gateway: str) -> None:
    """Add messages that a route left out, new ones and some that it or another route received."""
    own = [row for row in plan.rows[gateway] if row["leg"] == "received"]
    for each in range(rng.randrange(1, 4)):
        at = MIDNIGHT + rng.randrange(24 * 60) * MINUTE
        identity: Cell = b"\xcc" * 8 + (at * 10 + each).to_bytes(8, "big")
        if own and rng.random() < 0.5:
            again = rng.choice(own)
            at, identity = number(again["received"]), again["id"]
        plan.rows[gateway].append(
            {
                "leg": "cut", "route": rng.choice(("orders", "other")), "endpoint": "plant",
                "system": "mqtt", "name": "n/0", "id": identity, "time": at, "received": at,
                "rule": rng.choice(("loop", "duplicate")), "outcome": "cut", "gateway": gateway,
                "attempt": 1, "mode": 1, "size": 9, "hash": digest("n/0"),
            }
        )  # fmt: skip


def _add(
    plan: Plan,
    rng: random.Random,
    gateway: str,
    identity: bytes,
    arrival: int,
    kind: str,
    name: str,
    targets: list[str] | None = None,
) -> None:
    targets = targets or rng.choice((["erp"], ["erp", TAPPED]))
    shared: dict[str, Cell] = {
        "route": "orders", "id": identity, "mode": rng.choice((1, 1, 2)), "attempt": 1, "size": 9,
        "received": arrival, "hash": digest(name), "gateway": gateway,
    }  # fmt: skip
    if kind == "unrouted":
        plan.rows[gateway].append(
            {
                **shared, "route": "", "leg": "dead", "endpoint": "plant", "system": "mqtt",
                "name": name, "time": arrival, "outcome": "rejected", "rule": "empty-name",
            }
        )  # fmt: skip
        if MIDNIGHT <= arrival < NEXT_MIDNIGHT:
            plan.classes[gateway, "", identity] = "refused"
        return
    receipt: dict[str, Cell] = {
        **shared, "leg": "received", "endpoint": "plant", "system": "mqtt", "name": name,
        "targets": targets, "time": arrival, "outcome": "received",
    }  # fmt: skip
    receipts = {"unexpected": 0, "received again": 2}
    plan.rows[gateway] += [{**receipt} for _ in range(receipts.get(kind, 1))]
    struck = rng.choice(targets)
    for target in targets:
        if kind == "unexpected" and target != struck:
            continue
        own = kind if target == struck else "delivered"
        for writer, row in _ends(gateway, shared, target, name, arrival, own):
            plan.rows[writer].append(row)
        if MIDNIGHT <= arrival < NEXT_MIDNIGHT:
            plan.classes[gateway, target, identity] = _CLASSES.get(own, own)


_CLASSES = {
    "retried": "duplicated", "no hash": "altered", "converted": "delivered",
    "after the hour": "delivered", "spooled": "in flight", "late": "delivered late",
    "dead": "dead-lettered", "dead and delivered": "duplicated", "dead and recovered": "recovered",
    "spooled and delivered": "delivered", "replayed too": "duplicated",
    "received again": "delivered", "overtaken": "delivered", "second attempt": "delivered",
}  # fmt: skip


def _ends(  # noqa: C901, PLR0912  # one case for each kind
    gateway: str, shared: dict[str, Cell], target: str, name: str, arrival: int, kind: str
) -> Iterator[tuple[str, dict[str, Cell]]]:
    end: dict[str, Cell] = {
        **shared, "leg": "delivered", "endpoint": target, "system": "ems", "target": target,
        "name": name.replace("/", "."), "source_name": name, "outcome": "accepted",
        "time": arrival + 5_000,
    }  # fmt: skip
    dead: dict[str, Cell] = {"leg": "dead", "outcome": "rejected", "rule": "spool-full"}
    spooled: dict[str, Cell] = {"leg": "spooled", "outcome": "spooled"}
    again = {**end, "replayed": True, "attempt": 2, "time": arrival + HOUR // 6}
    match kind:
        case "missing":
            return
        case "altered":
            end["hash"] = digest("forged")
        case "no hash":
            end["hash"] = None
        case "late":
            end["time"] = arrival + (LATE + 30) * SECOND
        case "overtaken":
            end["time"] = arrival + arrival // 1_000 % LATE * SECOND
        case "second attempt":
            end["attempt"] = 2
        case "after the hour":
            end["time"] = arrival + (LATE - 5) * SECOND
        case "converted":
            end |= {"outcome": "converted", "hash": digest("converted")}
        case "refused":
            end |= {**dead, "rule": "empty-element"}
        case "dead":
            end |= dead
        case "dead and delivered":
            yield gateway, {**end, **dead}
        case "dead and recovered":
            yield gateway, {**end, **dead}
            yield f"{gateway}~replay", again
            return
        case "spooled":
            end |= spooled
        case "spooled and delivered":
            yield gateway, {**end, **spooled}
            end["time"] = arrival + 60 * SECOND
        case "recovered":
            yield f"{gateway}~replay", again
            return
        case "replayed too":
            yield f"{gateway}~replay", again
        case _:
            pass
    yield gateway, end
    if kind == "duplicated":
        yield gateway, dict(end)
    if kind == "retried":
        yield gateway, {**end, "attempt": 2}


def _mark_order(plan: Plan) -> None:
    """Mark the copies that were delivered before one with a smaller id of their stream."""
    first: dict[Copy, tuple[int, str]] = {}
    receipts = {
        (row["gateway"], row["id"])
        for rows in plan.rows.values()
        for row in rows
        if row["leg"] == "received"
    }
    for rows in plan.rows.values():
        for row in (each for each in rows if each["leg"] == "delivered"):
            on_day = MIDNIGHT <= number(row["received"]) < NEXT_MIDNIGHT
            known = on_day or (row["gateway"], row["id"]) in receipts
            if known and not row.get("replayed"):
                identity = row["id"]
                assert isinstance(identity, bytes)
                copy = (str(row["gateway"]), str(row["target"]), identity)
                found = (number(row["time"]), str(row["source_name"]))
                first[copy] = min(first.get(copy, found), found)
    for copy, name in plan.classes.items():
        if name not in {"delivered", "delivered late"} or copy not in first:
            continue
        time, source = first[copy]
        overtaken = any(
            other[:2] == copy[:2] and stream == source and other[2] < copy[2] and at > time
            for other, (at, stream) in first.items()
        )
        if overtaken:
            plan.classes[copy] = "out of order"


def _add_tap(plan: Plan, rng: random.Random, gateway: str) -> None:
    """Let a gateway observe a target of all gateways, from before the day on.

    It misses some copies, sees some changed, and sees a message of nobody.
    """
    plan.tapped = True
    begin = BEFORE[0] + MINUTE
    identity = begin.to_bytes(8, "big") + bytes(8)
    _add(plan, rng, gateway, identity, begin, "delivered", "n/0", [TAPPED])
    seen = [row for rows in plan.rows.values() for row in rows if row.get("target") == TAPPED]
    for row in seen:
        assert isinstance(row["id"], bytes)
        copy = (str(row["gateway"]), TAPPED, row["id"])
        if row["leg"] != "delivered":
            continue
        chance = 1 if row["id"] == identity or row["gateway"] != gateway else rng.random()
        was = plan.classes.get(copy, "")
        sight = {**row, "leg": "observed", "gateway": gateway, "origin_id": row["id"].hex(),
                 "time": number(row["time"]) + 10_000, "replayed": None}  # fmt: skip
        if chance < 0.1 and was not in {"duplicated", ""}:  # another delivery may be seen
            if was not in {"altered", "unexpected"}:
                plan.classes[copy] = "lost in target"
            continue
        if chance < 0.2 and was not in {"unexpected", ""}:
            sight["hash"] = digest("spoilt")
            plan.classes[copy] = "altered"
        plan.rows[gateway].append(sight)
    if rng.random() < 0.5:
        _add_intruder(plan, rng, gateway)


def _add_intruder(plan: Plan, rng: random.Random, gateway: str) -> None:
    at = MIDNIGHT + rng.randrange(24 * 60) * MINUTE
    identity = b"\xee" * 8 + at.to_bytes(8, "big")
    plan.rows[gateway].append(
        {
            "route": "orders", "leg": "observed", "endpoint": TAPPED, "system": "ems",
            "target": TAPPED, "name": "n.9", "id": identity, "origin_id": identity.hex(),
            "time": at, "received": at, "hash": digest("strange"), "gateway": gateway,
            "outcome": "accepted", "attempt": 1, "mode": 1, "size": 9,
        }
    )  # fmt: skip
    plan.classes[gateway, TAPPED, identity] = "unexpected"


@dataclass
class Archive:
    """An archive on disk: its plan, and what was planted in it.

    Mutable: owned by one test.
    """

    root: Path
    key: bytes | None
    plan: Plan
    gateways: dict[str, list[Span]]
    compacted: bool = False
    opened: list[Journal] = field(default_factory=list)  # by running gateways

    def close(self) -> None:
        """End the running gateways."""
        for journal in self.opened:
            journal.close()


def write(archive: Archive, rng: random.Random, spoil: Spoil | None = None) -> None:
    """Write and convert the journals of all gateways; `spoil` damages one before its conversion."""
    paths: list[Path] = []
    for gateway, spans in archive.gateways.items():
        paths += write_chain(archive, gateway, spans, archive.plan.rows[gateway], rng)
        if replayed := archive.plan.rows[f"{gateway}~replay"]:
            times = [number(row["time"]) for row in replayed]
            span = Span(min(times), max(times) + 1, min(times), "stop")
            write_chain(archive, gateway, [span], replayed, rng, replay=True)
    if spoil is not None:
        spoil(rng.choice(paths))
    for path in sorted(journal_folder(archive.root).glob("*.open")):
        convert(archive.root, path, key=archive.key)


def write_chain(  # the parts of a writer
    archive: Archive,
    gateway: str,
    spans: list[Span],
    rows: list[dict[str, Cell]],
    rng: random.Random,
    *,
    replay: bool = False,
) -> list[Path]:
    """Write the journals of one writer; return those with rows of the day."""
    writer = writer_name(gateway, replay=replay)
    folder = journal_folder(archive.root)
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for sequence, span in enumerate(spans):
        previous = last_link(archive.root, writer)
        head = Head(gateway, writer, span.start, sequence, span.opened, previous).signed(
            archive.key
        )
        stem = str(JournalName(writer, span.start, sequence))
        path = folder / f"{stem}.open"
        journal = Journal(path, head, archive.key)
        state(archive, head, previous, stem, span.opened)
        begin = 0 if sequence == 0 else span.opened
        after = spans[sequence + 1].opened if sequence + 1 < len(spans) else 1 << 62
        own = sorted(
            (row for row in rows if begin <= number(row["time"]) < after),
            key=lambda row: number(row["time"]),
        )
        for row in own:
            journal.append(pack([Rows(1, row)]), 1, sync=False)
        if span.end == "open":
            archive.opened.append(journal)
            continue
        if span.end in {"roll", "stop"}:
            closed = max([span.closed, *(number(row["time"]) for row in own)])
            link = journal.finish(closed, stopped=span.end == "stop")
            if span.end == "stop":
                state(archive, head, link, None, closed)
        journal.close()
        if span.end == "torn":
            with path.open("ab") as file:
                file.write(pack([Rows(1, {"route": "cut"})])[: rng.randrange(1, 20)])
        if any(MIDNIGHT <= number(row["time"]) < NEXT_MIDNIGHT for row in own):
            paths.append(path)
    return paths


def state(archive: Archive, of: Head, closed: Previous | None, opened: str | None, at: int) -> None:
    """Write the head of a writer as its process does."""
    file = LocalHead(archive.root, of.gateway, of.writer, archive.key, lambda: at)
    file.change(lambda head: replace(head, closed=closed, open=opened))


def number(value: Cell) -> int:
    assert isinstance(value, int)
    return value
