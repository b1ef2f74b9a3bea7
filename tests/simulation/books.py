"""The simulation's own books: what was published, what arrived where, and what must be true.

They see only the brokers, the disk and the archive's rows, never the state of the gateway.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from xxhash import xxh3_128_digest

from gateway.archive.journal.records import Rows
from gateway.model.cut_class import THINNED
from gateway.model.message import Message, Payload
from gateway.model.outcome import REPEAT

_COLUMNS: Final = (
    "leg", "id", "route", "endpoint", "target", "targets", "hash", "attempt", "redelivered",
    "outcome", "rule", "received", "time", "name", "source_name", "lost", "reason",
)  # fmt: skip


REMOVED: Final = "removed unread"  # the reason of a gap
DAMAGED: Final = "a bit on the disk changed"  # an excuse


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken invariant: its rule, and what the books say."""

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


@dataclass(slots=True)
class Books:
    """Everything that happened outside of the gateways.

    `reach` gives, by broker, the brokers that its messages must arrive at.
    Mutable: written by the brokers.
    """

    reach: Mapping[str, Sequence[str]]
    published: dict[tuple[str, bytes], list[float]] = field(default_factory=dict)
    keys: dict[bytes, tuple[str, int]] = field(default_factory=dict)
    arrivals: dict[tuple[bytes, str], list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )
    senders: dict[tuple[bytes, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    names: dict[bytes, set[str]] = field(default_factory=lambda: defaultdict(set))  # without levels
    settled: Counter[tuple[str, str, bytes]] = field(default_factory=Counter)  # gateway, broker
    forged: set[bytes] = field(default_factory=set)  # with a path that a publisher invented
    tapped: Counter[tuple[bytes, str]] = field(default_factory=Counter)  # that a tap must see
    excused: dict[bytes, str] = field(default_factory=dict)
    latest: dict[tuple[str, str, str], int] = field(default_factory=dict)
    overtaken: list[tuple[bytes, str]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    thins: bool = False  # the newest message of a name may stand for the others
    on_change: bool = False  # an equal message may stand for it
    final: dict[str, int] = field(default_factory=dict)  # published last: number by key
    last: dict[tuple[str, str], int] = field(default_factory=dict)  # arrived last: key, target

    def report(self, rule: str, text: str) -> None:
        self.findings.append(Finding(rule, text))

    def publish(self, broker: str, key: str, payload: bytes, now: float) -> None:
        """Note a message of an application."""
        self.published.setdefault((broker, payload), []).append(now)
        self.keys.setdefault(payload, (key, len(self.keys)))
        self.names[payload].add(key)
        self.final[key] = self.keys[payload][1]

    def origins(self, payload: bytes) -> list[str]:
        return [broker for broker in self.reach if (broker, payload) in self.published]

    def required(self, payload: bytes, target: str) -> int:
        """The copies of `payload` that must arrive at `target`."""
        return sum(
            len(self.published[origin, payload])
            for origin in self.origins(payload)
            if target in self.reach[origin]
        )

    def copies_at(self, payload: bytes, broker: str) -> int:
        """The copies of `payload` that `broker` had: of applications and of gateways."""
        published = len(self.published.get((broker, payload), ()))
        return published + len(self.arrivals.get((payload, broker), ()))

    def has_double(self, payload: Payload, broker: str) -> bool:
        """Whether more than one copy of the payload arrived."""
        return isinstance(payload, bytes) and len(self.arrivals.get((payload, broker), ())) > 1

    def echoes(self) -> list[tuple[bytes, str]]:
        """The payloads that came back to the only broker where they were published."""
        return [
            (payload, broker)
            for (payload, broker), times in self.arrivals.items()
            if times and self.origins(payload) == [broker]
        ]

    def arrive(self, broker: str, message: Message, now: float, gateway: str) -> None:
        """Note a message that a gateway sent and the broker accepted."""
        payload = message.payload
        if not isinstance(payload, bytes) or payload not in self.keys:
            return  # a heartbeat or a notice of a dead letter
        found = self.arrivals[payload, broker]
        found.append(now)
        key, number = self.keys[payload]
        self.last[key, broker] = number
        self.senders[payload, broker].add(gateway)
        origins = self.origins(payload)
        if len(found) > 1 or len(origins) > 1 or broker in origins:
            return
        place = (origins[0], key, broker)
        if self.latest.get(place, -1) > number:
            self.overtaken.append((payload, broker))
        self.latest[place] = max(number, self.latest.get(place, -1))

    def known(self, payload: Payload) -> bytes | None:
        """Return the payload of an application's message; None for a heartbeat."""
        return payload if isinstance(payload, bytes) and payload in self.keys else None

    def newer(self, payload: bytes) -> list[bytes]:
        """The messages of the same name that may stand for it where a target is thinned."""
        if self.on_change:
            return [payload]
        key, number = self.keys[payload]
        newer = [each for each, (name, at) in self.keys.items() if name == key and at > number]
        return newer if self.thins else []

    def stale(self) -> list[tuple[bytes, str]]:
        """The newest arrived messages of each name and target after which an older one came.

        Where values come again, the value that was published last must be there.
        """
        if self.on_change:
            payloads = {number: payload for payload, (_, number) in self.keys.items()}
            return [
                (payloads[self.final[key]], target)
                for (key, target), number in self.last.items()
                if number != self.final[key] and payloads[self.final[key]] not in self.excused
            ]
        newest: dict[tuple[str, str], tuple[int, bytes]] = {}
        for payload, target in [place for place, times in self.arrivals.items() if times]:
            key, number = self.keys[payload]
            newest[key, target] = max(newest.get((key, target), (-1, b"")), (number, payload))
        return [
            (payload, place[1])
            for place, (number, payload) in newest.items()
            if self.thins and self.last[place] != number
        ]

    def is_damaged(self, payload: bytes) -> bool:
        """Whether a changed bit on a disk may cost the message."""
        return self.excused.get(payload) == DAMAGED

    def excuse(self, payload: Payload, reason: str) -> None:
        """Note that a broker lost the message; nothing more is expected of it."""
        if isinstance(payload, bytes):
            self.excused.setdefault(payload, reason)

    def missing(self) -> list[tuple[bytes, str, int]]:
        """The required copies that have not arrived, with their number."""
        found = []
        for payload in self.keys:
            if payload in self.excused:
                continue
            for target in sorted({t for o in self.origins(payload) for t in self.reach[o]}):
                arrived = len(self.arrivals.get((payload, target), ()))
                count = self.required(payload, target) - arrived
                if count > 0 and not any(
                    self.arrivals.get((each, target)) for each in self.newer(payload)
                ):
                    found.append((payload, target, count))
        return found


def short(payload: object) -> str:
    """A payload without its padding."""
    return payload.decode(errors="replace").rstrip(".") if isinstance(payload, bytes) else "?"


def each_row(rows: Rows) -> Iterator[dict[str, Any]]:
    """The rows as dictionaries of the columns that the books compare."""
    columns = [rows.values(name) for name in _COLUMNS]
    for values in zip(*columns, strict=True):
        yield dict(zip(_COLUMNS, values, strict=True))


@dataclass(frozen=True, slots=True)
class ArchiveView:
    """The rows of one gateway's runs, and the payloads behind their hashes."""

    gateway: str
    rows: Sequence[dict[str, Any]]
    spooled: Sequence[tuple[str, bytes]]  # endpoint and body of the rows left in the spool
    hops: Mapping[str, Sequence[str]]  # targets by source
    removed: frozenset[str]  # targets that a reload removed
    changed: bool = False  # a bit of its spool: a send may be forgotten
    repeats: bool = False  # a broker gave a message twice; a kill ends the second without a row

    @property
    def owner(self) -> str:
        """The gateway without its instance."""
        return self.gateway.partition(".")[0]

    def of(self, leg: str) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["leg"] == leg]


def compare_archive(books: Books, view: ArchiveView, *, gentle: bool) -> None:
    """Report every row of the archive that contradicts the books, and every absent one.

    The classes are those of docs/reconciliation.md: a received copy without an outcome is missing,
    an outcome without a receipt unexpected. `gentle` says that no fault allows a double.
    """
    payloads = {xxh3_128_digest(payload): payload for payload in books.keys}
    received: dict[bytes, dict[str, Any]] = {}
    outcomes: dict[tuple[bytes, str], list[dict[str, Any]]] = defaultdict(list)
    thinned: set[tuple[bytes, str]] = set()
    for row in view.rows:
        if row["hash"] not in payloads:
            continue
        match row["leg"]:
            case "received":  # one row for each route
                known = received.get(row["id"], row)
                targets = {*(known["targets"] or ()), *(row["targets"] or ())}
                received[row["id"]] = row | {"targets": sorted(targets)}
            case "delivered" | "dead" | "spooled":
                outcomes[row["id"], row["target"]].append(row)
            case "cut" if row["rule"] == THINNED:
                thinned.add((row["id"], row["target"]))
            case _:
                pass
    _find_missing(books, view, payloads, received, outcomes, thinned)
    _find_unexpected(books, view, payloads, received, outcomes)
    _compare_deliveries(books, view, payloads, received, outcomes, gentle=gentle)
    _compare_cuts(books, view, payloads)


def _compare_cuts(books: Books, view: ArchiveView, payloads: Mapping[bytes, bytes]) -> None:
    """Report each settled copy without a row, and each one that two rows have as received and cut.

    Each receipt of a message has, for each target of the routes of its source, a received row that
    lists the target, or the row of a cut.
    """
    receipts, places = Counter[tuple[str, str, bytes]](), Counter[tuple[object, ...]]()
    for row in view.rows:
        thinned = row["rule"] == THINNED  # it was received as well
        if row["leg"] not in {"received", "cut"} or thinned or row["hash"] not in payloads:
            continue
        if row["outcome"] == "signed" and payloads[row["hash"]] in books.forged:
            books.report("forgery-believed", f"{view.gateway}: {short(payloads[row['hash']])}")
        for target in row["targets"] or () if row["leg"] == "received" else (row["target"],):
            receipts[row["endpoint"], target, payloads[row["hash"]]] += 1
            places[row["id"], row["route"], target] += 1
    for place, count in places.items():
        if count > 1:
            books.report("two-outcomes", f"{view.gateway}: {place[1:]}: {count} rows of a message")
    for (gateway, broker, payload), count in books.settled.items():
        for target in view.hops.get(broker, ()) if gateway == view.owner else ():
            if target in view.removed or receipts[broker, target, payload] >= count:
                continue
            text = f"{view.gateway}: {short(payload)} of {broker} for {target}: {count} settled,"
            text += f" {receipts[broker, target, payload]} rows"
            books.report("copy-without-row", text)


def compare_taps(books: Books, view: ArchiveView) -> None:
    """Report every message that a tap must have seen, and no row says so."""
    observed = Counter((row["hash"], row["target"]) for row in view.of("observed"))
    for (payload, target), count in books.tapped.items():
        found = observed[xxh3_128_digest(payload), target]
        if target not in view.removed and found < count:
            text = f"{view.gateway}: {short(payload)} at {target}: {found} of {count}"
            books.report("tap-absent", text)


def compare_gaps(books: Books, view: ArchiveView) -> None:
    """Report a lost session that no row says."""
    if not any(row["rule"] != "away" for row in view.of("gap")):
        books.report("gap-absent", f"{view.gateway}: a broker lost its session, and no row says so")


def compare_holes(books: Books, view: ArchiveView, holes: int, *, exact: bool) -> None:
    """Report a number of messages removed unread that the rows do not say."""
    found = sum(row["lost"] for row in view.of("gap") if row["reason"] == REMOVED)
    if found > holes or (exact and found < holes):
        books.report("holes", f"{view.gateway}: rows say {found} of {holes} removed messages")


def _find_missing(
    books: Books,
    view: ArchiveView,
    payloads: Mapping[bytes, bytes],
    received: Mapping[bytes, dict[str, Any]],
    outcomes: Mapping[tuple[bytes, str], list[dict[str, Any]]],
    thinned: Container[tuple[bytes, str]],
) -> None:
    for identity, row in received.items():
        payload = payloads[row["hash"]]
        for target in () if books.is_damaged(payload) else row["targets"] or ():
            legs = {each["leg"] for each in outcomes.get((identity, target), ())}
            if (identity, target) in thinned:
                continue
            if legs & {"delivered", "dead"} or (identity, "") in outcomes:
                continue
            if any(payload in body for endpoint, body in view.spooled if endpoint == target):
                continue
            books.report(
                "archive-missing", f"{view.gateway}: {short(payload)} for {target}: {legs}"
            )


def _find_unexpected(
    books: Books,
    view: ArchiveView,
    payloads: Mapping[bytes, bytes],
    received: Mapping[bytes, dict[str, Any]],
    outcomes: Mapping[tuple[bytes, str], list[dict[str, Any]]],
) -> None:
    for (identity, target), rows in outcomes.items():
        if identity not in received and not any(row["leg"] == "spooled" for row in rows):
            name = short(payloads[rows[0]["hash"]])
            text = f"{view.gateway}: {name} for {target} was never received"
            books.report("archive-unexpected", text)


@dataclass(slots=True)
class _Tally:
    """The deliveries and dead letters in the rows, by payload and target."""

    delivered: Counter[tuple[bytes, str]] = field(default_factory=Counter)
    unmarked: Counter[tuple[bytes, str]] = field(default_factory=Counter)
    rows: Counter[tuple[bytes, str]] = field(default_factory=Counter)  # of deliveries, and repeats
    dead: set[tuple[bytes, str]] = field(default_factory=set)


def _tally(
    payloads: Mapping[bytes, bytes],
    received: Mapping[bytes, dict[str, Any]],
    outcomes: Mapping[tuple[bytes, str], list[dict[str, Any]]],
) -> _Tally:
    found, repeats = _Tally(), Counter[tuple[bytes, str]]()
    for (identity, target), rows in outcomes.items():
        receipts = [row for row in rows if row["leg"] == "spooled"]
        receipts += [received[identity]] if identity in received else []
        marked = any(row["redelivered"] for row in receipts)
        for row in rows:
            copy = payloads[row["hash"]], target
            if row["leg"] == "dead":
                found.dead.add(copy)
            elif row["leg"] == "delivered":
                is_new = row["rule"] != REPEAT  # the target kept no second one
                repeats[copy] += not is_new
                found.delivered[copy] += is_new
                found.rows[copy] += 1
                found.unmarked[copy] += is_new and row["attempt"] == 1 and not marked
    for copy in repeats:  # a night counts them in this way, too
        found.delivered[copy] = max(found.delivered[copy], 1)
    return found


def _compare_deliveries(
    books: Books,
    view: ArchiveView,
    payloads: Mapping[bytes, bytes],
    received: Mapping[bytes, dict[str, Any]],
    outcomes: Mapping[tuple[bytes, str], list[dict[str, Any]]],
    *,
    gentle: bool,
) -> None:
    tally = _tally(payloads, received, outcomes)
    for (payload, target), count in tally.delivered.items():
        arrived = len(books.arrivals.get((payload, target), ()))
        if count > arrived:
            text = f"{view.gateway}: {short(payload)} to {target}: {count} rows, {arrived} arrivals"
            books.report("archive-invented", text)
    for (payload, target), count in tally.unmarked.items():
        sources = [name for name, targets in view.hops.items() if target in targets]
        allowed = max(1, sum(books.copies_at(payload, source) for source in sources))
        arrived = len(books.arrivals.get((payload, target), ()))
        is_alone = books.senders[payload, target] <= {view.owner} and not view.repeats
        needs_mark = is_alone and arrived > allowed and payload not in books.excused
        is_double = needs_mark and tally.rows[payload, target] == count
        if (count > allowed or is_double) and not view.changed:
            text = f"{view.gateway}: {short(payload)} to {target}: {count} unmarked deliveries"
            books.report("unmarked-double", f"{text}, {arrived} arrivals")
    targets = {target for _, target in outcomes}
    for (payload, target), times in books.arrivals.items():
        if target not in targets or payload in books.excused:
            continue
        if view.owner not in books.senders[payload, target]:
            continue
        if gentle and len(times) > books.required(payload, target):
            books.report("double", f"{short(payload)} arrived {len(times)} times at {target}")
        recorded = (payload, target) in tally.dead or tally.delivered[payload, target]
        if not recorded and not _may_lack_rows(books, view, payload, target):
            text = f"{view.gateway}: {short(payload)} arrived at {target}, and no row says so"
            books.report("archive-absent", text)


def _may_lack_rows(books: Books, view: ArchiveView, payload: bytes, target: str) -> bool:
    """Whether the copy waits in the spool, or nobody knows which of equal messages it is.

    A run that is killed may have sent an echo back, which the next run recognises and cuts; or a
    copy that comes again, for which a newer one stands in the next run.
    """
    digest = xxh3_128_digest(payload)
    if any(row["rule"] == THINNED and row["hash"] == digest and row["target"] == target
           for row in view.rows):  # fmt: skip
        return True
    waits = any(payload in body for endpoint, body in view.spooled if endpoint == target)
    origins = books.origins(payload)
    return waits or len(origins) > 1 or target in (*origins, *view.removed)
