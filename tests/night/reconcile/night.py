"""A night of random traffic with random faults, and a simple model of its classes."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gateway.archive.journal.local_head import number_of
from gateway.archive.journal.records import Cell, Rows
from gateway.archive.layout import JournalName
from gateway.archive.signed_json import Previous
from gateway.archive.storage import LocalStorage
from gateway.night.archive.seals.seal import End
from gateway.night.archive.segments.tables import sort_rows, to_table
from gateway.trial.synthetic.sealed_rows import write_sealed
from tests.archive.samples import NOON, START, digest

SECOND = 1_000_000
HOUR = 3600 * SECOND
MIDNIGHT = NOON - 12 * HOUR
LATE = 120
HOURS = range(-1, 25)  # of the date, with one on either side
EDGE_HOURS = (-1, 0, 12, 23, 24)
FEW_HOURS = (-1, 0, 1, 11, 12, 15, 16, 22, 23, 24)  # fewer files, at the same edges
GATEWAYS = ("east", "west")
ROUTES: Mapping[str, tuple[str, ...]] = {"orders": ("erp", "audit"), "ticks": ("hub",)}
TAPPED = {"audit": True, "hub": False}  # target -> whether its system carries an identity
FAULTS = (
    "loss", "duplicate", "retry", "alter", "refuse", "dead", "late", "hurry", "spool", "invent",
    "unseen", "seen-wrong", "intrude", "convert", "after-midnight",
)  # fmt: skip

Copy = tuple[str, str, str, str]  # gateway, route, target, id as hex


@dataclass
class Night:
    """Rows by gateway and journal, filled by `night`."""

    rows: dict[tuple[str, int], list[Rows]] = field(default_factory=lambda: defaultdict(list))
    archived: list[dict[str, Cell]] = field(default_factory=list)
    links: dict[str, Previous] = field(default_factory=dict)  # of the chains that are written

    def add(self, gateway: str, part: int, row: Mapping[str, Cell]) -> None:
        own = {"gateway": gateway, **row}
        self.rows[gateway, part].append(Rows(1, own))
        self.archived.append(own)

    def write(self, root: Path) -> None:
        """Write the segments of each gateway as one chain of sealed journals, and stop it."""
        last_parts = dict(sorted(self.rows))
        for (gateway, part), rows in sorted(self.rows.items()):
            table, lost = to_table(rows)
            assert not lost
            link = self.links.get(gateway)
            last = max(time.value for time in table["time"])
            seal = write_sealed(
                LocalStorage(root),
                str(JournalName(gateway, START, number_of(link) + 1)),
                sort_rows(table),
                gateway=gateway,
                previous=link,
                opened=link.closed if link else None,
                closed=max(last, link.closed + 1) if link else last,
                end=End.STOPPED if part == last_parts[gateway] else End.CLOSED,
            )
            self.links[gateway] = seal.link


def night(
    seed: int, messages: int = 400, faults: float = 0.08, hours: Sequence[int] = HOURS
) -> Night:
    """Generate a night; the same seed gives the same night."""
    rng = random.Random(seed)  # noqa: S311  # a test's traffic
    made = Night()
    for number in range(messages):
        gateway = rng.choice(GATEWAYS)
        route = rng.choice(tuple(ROUTES))
        arrival = (
            MIDNIGHT + hours[rng.randrange(len(hours))] * HOUR + rng.randrange(600) * SECOND // 10
        )
        fault = rng.choice(FAULTS) if rng.random() < faults else ""
        _message(made, rng, gateway, route, number, arrival, fault)
    return made


def _message(  # what one message is
    made: Night,
    rng: random.Random,
    gateway: str,
    route: str,
    number: int,
    arrival: int,
    fault: str,
) -> None:
    identity = arrival.to_bytes(8, "big") + number.to_bytes(8, "big")
    name = f"{route}/n{rng.randrange(4)}"
    shared: dict[str, Cell] = {
        "route": route, "id": identity, "mode": 1, "attempt": 1, "size": 9, "received": arrival,
        "hash": digest(f"{name}{rng.randrange(3)}"), "redelivered": rng.random() < 0.1,
    }  # fmt: skip
    part = (arrival - MIDNIGHT + HOUR) // (9 * HOUR)
    targets = ROUTES[route]
    received_row: dict[str, Cell] = {
        "leg": "received",
        "endpoint": "plant",
        "system": "mqtt",
        "time": arrival,
    }
    if fault != "invent":
        made.add(gateway, part, {**shared, **received_row, "name": name, "targets": list(targets)})
    struck = rng.choice(targets)
    for target in targets:
        own = fault if target == struck else ""
        for row in _ends(shared, target, name, arrival, own):
            made.add(gateway, part + (rng.random() < 0.1), row)


def _ends(  # noqa: C901, PLR0912  # one case for each fault
    shared: Mapping[str, Cell], target: str, name: str, arrival: int, fault: str
) -> Iterator[dict[str, Cell]]:
    at = arrival + SECOND // 2
    end: dict[str, Cell] = {
        **shared, "leg": "delivered", "endpoint": target, "system": "ems", "target": target,
        "name": name.replace("/", "."), "source_name": name, "outcome": "accepted", "time": at,
    }  # fmt: skip
    match fault:
        case "loss":
            return
        case "refuse":
            yield {**end, "leg": "dead", "outcome": "rejected", "rule": "too-long"}
            return
        case "dead":
            yield {**end, "leg": "dead", "outcome": "rejected", "rule": "spool-full"}
            return
        case "spool":
            yield {**end, "leg": "spooled", "outcome": "spooled"}
            return
        case "alter":
            end["hash"] = digest("forged")
        case "late":
            end["time"] = arrival + (LATE + 30) * SECOND
        case "hurry":
            end["time"] = arrival
        case "after-midnight":
            end["time"] = arrival + 2 * HOUR
        case "convert":
            end |= {"hash": digest("converted"), "outcome": "converted"}
        case _:
            pass
    yield end
    if fault in ("duplicate", "retry"):
        yield {**end, "attempt": 2 if fault == "retry" else 1}
    if target in TAPPED and fault != "unseen":
        yield _sighting(end, fault, identified=TAPPED[target])
    if target in TAPPED and fault == "intrude":
        strange: dict[str, Cell] = {
            "origin_id": "f" * 32,
            "hash": digest("strange"),
            "id": b"\xee" * 16,
        }
        yield {**_sighting(end, "", identified=TAPPED[target]), **strange}


def _sighting(end: Mapping[str, Cell], fault: str, *, identified: bool) -> dict[str, Cell]:
    raw = end["id"]
    assert isinstance(raw, bytes)
    seen = {**end, "leg": "observed", "outcome": "accepted", "attempt": 1}
    if identified:
        seen["origin_id"] = raw.hex()
        seen["hash"] = digest("spoilt") if fault == "seen-wrong" else end["hash"]
    else:
        seen |= {"id": raw[8:] + raw[:8], "received": None, "source_name": None}
    return seen


def model(made: Night, late: int = LATE) -> dict[Copy, str]:
    """Return the class of every copy of DAY that is an exception, one rule after the other."""
    rows: dict[Copy, list[dict[str, Cell]]] = defaultdict(list)
    for row in _identified(made.archived):
        raw = row["id"]
        assert isinstance(raw, bytes)
        listed = row.get("targets") or [str(row["target"])]
        assert isinstance(listed, list)
        for target in listed:
            rows[str(row["gateway"]), str(row["route"]), str(target), raw.hex()].append(row)
    today = {
        copy: own
        for copy, own in rows.items()
        if MIDNIGHT
        <= min(_number(row["received"] or row["time"]) for row in own)
        < MIDNIGHT + 24 * HOUR
    }
    # A copy of the day before counts in the order, when its receipt is known.
    ordered = {copy: own for copy, own in rows.items() if copy in today or "received" in _legs(own)}
    firsts = {copy: _first(own) for copy, own in ordered.items()}
    known = {copy[1:] for copy in today if firsts[copy] is not None}
    classes = {
        copy: _class(copy, own, firsts, ordered, late)
        for copy, own in today.items()
        if not (_legs(own) == {"observed"} and copy[1:] in known)
    }
    return {copy: name for copy, name in classes.items() if name != "delivered"}


def _identified(archived: list[dict[str, Cell]]) -> Iterator[dict[str, Cell]]:
    """Yield the rows; observed ones with the id of their message, or of the n-th equal delivery."""
    alike: dict[tuple[Cell, ...], list[dict[str, Cell]]] = defaultdict(list)
    keys = ("gateway", "route", "target", "name", "hash")
    for row in sorted(archived, key=lambda row: (_number(row["time"]), row["id"])):
        if row["leg"] == "delivered":
            alike[tuple(row[key] for key in keys)].append(row)
    for row in sorted(archived, key=lambda row: (_number(row["time"]), row["id"])):
        if row["leg"] == "observed" and row.get("origin_id"):
            yield {**row, "id": bytes.fromhex(str(row["origin_id"]))}
        elif row["leg"] == "observed":
            own = alike[tuple(row[key] for key in keys)]
            its = own.pop(0) if own else row
            yield {**row, "id": its["id"], "received": its["received"]}
        else:
            yield row


def _class(
    copy: Copy,
    own: list[dict[str, Cell]],
    firsts: Mapping[Copy, int | None],
    today: Mapping[Copy, list[dict[str, Cell]]],
    late: int,
) -> str:
    receipts = [row for row in own if row["leg"] == "received"]
    deliveries = [row for row in own if row["leg"] == "delivered"]
    dead = [row for row in own if row["leg"] == "dead"]
    seen = [row for row in own if row["leg"] == "observed"]
    if not receipts:
        return "unexpected"
    if deliveries:
        wrong = [
            row
            for row in deliveries
            if row["outcome"] == "accepted" and row["hash"] != receipts[0]["hash"]
        ]
        spoilt = [row for row in seen if row["hash"] not in {each["hash"] for each in deliveries}]
        return _delivered(copy, own, firsts, today, late, bool(wrong or spoilt))
    if dead:
        return "refused" if dead[0]["rule"] == "too-long" else "dead-lettered"
    return "in flight" if "spooled" in _legs(own) else "missing"


def _delivered(  # what decides it
    copy: Copy,
    own: list[dict[str, Cell]],
    firsts: Mapping[Copy, int | None],
    today: Mapping[Copy, list[dict[str, Cell]]],
    late: int,
    altered: bool,
) -> str:
    first = firsts[copy]
    assert first is not None
    ends = [row for row in own if row["leg"] in ("delivered", "dead")]
    arrival = _number(own[0]["received"])
    if altered:
        return "altered"
    if len(ends) > 1:
        return "duplicated"
    if copy[2] in TAPPED and "observed" not in _legs(own):
        return "lost in target"
    for other, at in firsts.items():
        stream = other[:3] == copy[:3] and _source(today[other]) == _source(own)
        if stream and other[3] < copy[3] and at is not None and at > first:
            return "out of order"
    return "delivered late" if first - arrival > late * SECOND else "delivered"


def _source(own: list[dict[str, Cell]]) -> Cell:
    return next((row["source_name"] for row in own if row["leg"] == "delivered"), None)


def _first(own: list[dict[str, Cell]]) -> int | None:
    return min((_number(row["time"]) for row in own if row["leg"] == "delivered"), default=None)


def _legs(own: list[dict[str, Cell]]) -> set[str]:
    return {str(row["leg"]) for row in own}


def _number(value: Cell) -> int:
    assert isinstance(value, int)
    return value
