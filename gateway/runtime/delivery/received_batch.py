"""A received batch until it is settled: its messages, and the rows of all their outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter, is_
from typing import Final, TypeAlias, TypeVar

from gateway.archive.journal.records import Cell, Rows
from gateway.archive.schema import Leg, RowOutcome
from gateway.model.message import GATEWAY_ID, Message, identity_of
from gateway.model.outcome import ACCEPTED, Outcome, Settlement, rejected
from gateway.routing.router import Delivery, RouteMatch
from gateway.runtime.delivery.dead_letter import DeadLetter
from gateway.runtime.delivery.earlier_batch import EarlierBatch
from gateway.runtime.delivery.outbound_batch import OutboundBatch, PendingRow
from gateway.runtime.delivery.rows import (
    BatchOrigin,
    Columns,
    Cut,
    archived_content,
    fingerprints,
    header_columns,
    payload_sizes,
    traces_of,
    with_proven_name,
)

_IMMUTABLE: Final = frozenset({bytes, str})
_ACCEPTED: Final = RowOutcome.ACCEPTED.value
_CONVERTED: Final = RowOutcome.CONVERTED.value
_FIELDS: Final = attrgetter("fields")  # of a delivery
_FORGOTTEN: Final = Message("", b"")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Count:
    """Messages of a route for its counters; `size` is the bytes of received payloads.

    Units: `latency` in seconds since the receipt.
    """

    route: str
    received: int = 0
    size: int = 0
    delivered: int = 0
    latency: float = 0.0
    spooled: int = 0


Counted: TypeAlias = Count | DeadLetter


class ReceivedBatch:
    """The messages of one source, with the marks of their admission, and their rows.

    `ids` are the 16-byte ids of the messages.
    Admission sets the messages that it marks, their `matches` and what became of the others:
    `earlier` has the batch that had a duplicate before, by its position. Columns say what gateways
    proved of the messages that they sent: `firsts` has the ids of the originals, empty where a
    message equals no digest, `hops` the gateways so far, and `signed` the positions of paths with a
    known key. `cuts` are the copies that routes leave out: loops, dropped
    duplicates, unwanted messages, and equal ones beyond a limit; each has its row. `left_out` are
    pairs of a route and the reason why it has no copy, `untaken` the positions of messages that no
    route takes and that get no row. `failures` are faults of the gateway, each
    on one message.

    A delivered row has the hash of the payload as it was sent. The hash of the receipt stands for
    it only when both payloads are the same immutable object. Maps are mutable, so they are hashed
    at receipt, before a sink can change them, and again when they are sent.

    Mutable: its owner calls one method at a time; a race for the shared columns only computes them
    twice. Times are microseconds since 1970-01-01 UTC.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        origin: BatchOrigin,
        ids: Sequence[bytes],
        identities: Sequence[str] = (),
        *,
        archived: bool = True,
    ) -> None:
        """Without `archived` nobody keeps the rows, and none are made."""
        self.messages = messages
        self.identities = identities  # those that the broker gave, or none
        self.origin = origin
        self.earlier: dict[int, EarlierBatch] = {}
        self.ids = ids
        self.firsts, self.hops = [""] * len(messages), [0] * len(messages)
        self.signed: set[int] = set()
        self.matches: list[tuple[RouteMatch, ...]] = []
        self.cuts: list[Cut] = []
        self.left_out: list[tuple[str, str]] = []
        self.untaken: list[int] = []
        self.failures: list[Exception] = []
        self.rows: list[Rows] = []
        self.letters: list[DeadLetter] = []
        self._archived = archived
        self._payloads = [message.payload for message in messages]
        self._immutable = _IMMUTABLE.issuperset(map(type, self._payloads))
        self._hashed = None if self._immutable else fingerprints(self._payloads)
        self._shared_columns: Columns | None = None

    def received(self, positions: Sequence[int], matches: Sequence[RouteMatch]) -> list[Counted]:
        """The routes of `matches` received the messages at `positions`."""
        if self._archived:
            self.rows.append(self.received_rows(positions, matches))
        sizes = self._hashed[0] if self._hashed else payload_sizes(self._payloads)
        routes = [match.route.name if match.route else "" for match in matches]
        messages = Counter(routes)
        size = dict.fromkeys(messages, 0)
        for route, position in zip(routes, positions, strict=True):
            size[route] += sizes[position]
        return [Count(each, received=messages[each], size=size[each]) for each in messages if each]

    def record_cuts(self) -> None:
        """Routes left these messages out: their rows say so. No dropped duplicate is kept."""
        groups: dict[tuple[str, bool], list[Cut]] = {}
        for each in self.cuts if self._archived else ():
            groups.setdefault((each.rule, each.signed), []).append(each)
        self.rows += [self._cut_rows(chosen) for chosen in groups.values()]
        dropped = {at for at in self.earlier if not self.matches[at]}
        self.messages = [
            _FORGOTTEN if at in dropped else each for at, each in enumerate(self.messages)
        ]
        self._payloads = [message.payload for message in self.messages]

    def refused(self, position: int, delivery: Delivery, at: int) -> DeadLetter:
        """The mapping refused a delivery: a dead letter."""
        settlement = rejected(delivery.rule, delivery.reason)
        return self._add_dead_letter(delivery, position, settlement, at)

    def answered(self, batch: OutboundBatch, at: int) -> list[Counted]:
        """Take the final settlements of one target."""
        settlements = batch.settlements
        whole = settlements.count(ACCEPTED) == len(settlements)
        every = range(len(settlements))
        accepted = every if whole else _with_outcome(Outcome.ACCEPTED, settlements)
        latency = (at - self.origin.time) / 1_000_000
        counts: list[Counted] = []
        for rule in ("",) if whole else sorted({settlements[i].rule for i in accepted}):
            some = every if whole else [i for i in accepted if settlements[i].rule == rule]
            if self._archived:
                self.rows.append(self.delivered_rows(batch, some, batch.attempts, at, rule))
            deliveries = batch.deliveries if whole else [batch.deliveries[i] for i in some]
            routes = Counter([each.route.name for each in deliveries if each.route is not None])
            for name, count in routes.items():
                counts.append(Count(name, delivered=count, latency=latency))
        if not whole:
            counts += self._spooled_and_rejected(batch, at)
        return counts

    def pending_rows(self, batch: OutboundBatch, at: int) -> list[PendingRow]:
        """The delivered rows to write later, for a batch that the spool takes at `at`."""
        batch.spooled_at = at
        groups = _by_target(batch, range(len(batch.deliveries)))
        return [self._pending_row(batch, group) for group in groups]

    def received_rows(self, positions: Sequence[int], matches: Sequence[RouteMatch]) -> Rows:
        """Received rows: one per message and route, with its expected targets.

        Matches of a route that archives payloads are passed alone. `positions` ascend.
        """
        positions = self._as_range(positions)
        messages = _at(positions, self.messages)
        columns = self._columns(positions)
        common = self._common(Leg.RECEIVED, RowOutcome.RECEIVED, self.origin.time)
        common["attempt"] = 1
        headers = [message.headers for message in messages]
        columns |= header_columns(headers)
        if self.identities:
            numbers = _at(positions, self.identities)
            columns["identity"] = [
                None if (found := identity_of(*each)) == identity_of(each[0]) else found
                for each in zip(headers, numbers, strict=True)
            ]
        route = matches[0].route
        if route is not None and route.archive_payload:
            columns |= archived_content(messages, route)
        routes = [match.route.name if match.route else "" for match in matches]
        return _rows(common, columns, route=routes, targets=[match.labels for match in matches])

    def observed_rows(self, route: str, target: str | None) -> Rows:
        """The rows of messages that a tap observed at a target.

        `origin_id` is the id that the gateway gave the message, if the message carries it.
        """
        common = self._common(Leg.OBSERVED, RowOutcome.ACCEPTED, self.origin.time)
        common |= {"route": route, "target": target, "attempt": 1}
        columns = self._columns(range(len(self.messages)))
        given = [message.headers.properties.get(GATEWAY_ID) for message in self.messages]
        columns["origin_id"] = [each if isinstance(each, str) else None for each in given]
        columns["redelivered"] = [message.headers.redelivered for message in self.messages]
        return Rows(len(self.messages), common, columns)

    def delivered_rows(
        self, batch: OutboundBatch, chosen: Sequence[int], attempts: int, at: int, rule: str = ""
    ) -> Rows:
        """Delivered rows of the `chosen` messages of a batch; a range is all of them.

        Each has the time of its own answer: the order of the answers is that of the deliveries.
        """
        deliveries, sent = _at(chosen, batch.deliveries), _at(chosen, batch.messages)
        positions = self._as_range(_at(chosen, batch.positions))
        target = deliveries[0].target
        common = self._common(Leg.DELIVERED, RowOutcome.ACCEPTED, at)
        if target is not None:
            common |= {"endpoint": target.endpoint, "system": target.system}
            if target.payload_encoding:
                common["encoding"] = target.payload_encoding
        common["attempt"] = attempts
        if rule:
            common["rule"] = rule
        columns = self._columns(positions)
        columns["source_name"] = columns["name"]  # the same list, which a record has once
        columns["name"] = [message.address for message in sent]
        payloads = [message.payload for message in sent]
        if not self._immutable or not all(map(is_, payloads, _at(positions, self._payloads))):
            columns["size"], columns["hash"] = fingerprints(payloads)
        given: Columns = {"time": batch.answered_at(chosen, at)} if batch.times else {}
        if any(map(_FIELDS, deliveries)):
            given["fields"] = [each.fields or None for each in deliveries]
        return _rows(
            common,
            columns,
            **given,
            route=[each.route.name if each.route else "" for each in deliveries],
            target=[each.label for each in deliveries],
            outcome=[
                _CONVERTED if each.target is not None and each.target.conversion else _ACCEPTED
                for each in deliveries
            ],
        )

    @property
    def hashes(self) -> Sequence[bytes]:
        """The hash of each payload as it was received; computed once."""
        if self._hashed is None:
            self._hashed = fingerprints(self._payloads)
        return self._hashed[1]

    def _pending_row(self, batch: OutboundBatch, group: Sequence[int]) -> PendingRow:
        rows = self.delivered_rows(batch, group, 0, 0)
        return PendingRow(tuple(group), rows, self.origin.endpoint)

    def _spooled_and_rejected(self, batch: OutboundBatch, at: int) -> list[Counted]:
        """Rows of the spooled messages; rejected ones become dead letters."""
        counts: list[Counted] = []
        for group in _by_target(batch, _with_outcome(Outcome.SPOOLED, batch.settlements)):
            if self._archived:
                pending = self._pending_row(batch, group)
                self.rows.append(pending.spooled(group, batch.spooled_at))
            route = batch.deliveries[group[0]].route
            if route is not None:
                counts.append(Count(route.name, spooled=len(group)))
        for i in _with_outcome(Outcome.REJECTED, batch.settlements):
            delivery, settlement = batch.deliveries[i], batch.settlements[i]
            letter = self._add_dead_letter(
                delivery, batch.positions[i], settlement, at, batch.messages[i], batch.attempts
            )
            counts.append(letter)
        return counts

    def _add_dead_letter(  # the facts of one dead letter
        self,
        delivery: Delivery,
        position: int,
        settlement: Settlement,
        at: int,
        sent: Message | None = None,
        attempts: int = 0,
    ) -> DeadLetter:
        """Add the copy that was `sent`, or the message that the mapping refused."""
        received, target = self.messages[position], delivery.target
        letter = DeadLetter(
            number=0,
            time=at,
            id=self.ids[position],
            route=delivery.route.name if delivery.route else "",
            source=self.origin.endpoint,
            source_name=received.address,
            target=delivery.label,
            endpoint=target.endpoint if sent and target else "",
            rule=settlement.rule,
            reason=with_proven_name(settlement.reason, delivery.fields),
            attempts=attempts,
            message=sent or received,
            fields=delivery.fields,
        )
        self.letters.append(letter)
        if self._archived:
            self.rows.append(self._dead_row(delivery, position, letter))
        return letter

    def _dead_row(self, delivery: Delivery, position: int, letter: DeadLetter) -> Rows:
        """The row of a dead letter, with its content; it has no target's name if none was found."""
        message = self.messages[position]
        name = letter.message.address if letter.endpoint else delivery.address
        columns = self._columns([position])
        columns["name"] = [name or message.address]
        columns |= archived_content([message], delivery.route)
        common = self._common(Leg.DEAD, RowOutcome.REJECTED, letter.time)
        common |= {"route": letter.route, "rule": letter.rule, "reason": letter.reason}
        common |= {"source_name": message.address, "attempt": 1}
        if letter.fields:
            common["fields"] = letter.fields
        if delivery.target is not None:
            common["target"] = delivery.label
            if name:
                common |= {"endpoint": delivery.target.endpoint, "system": delivery.target.system}
        return Rows(1, common, columns)

    def later_cut(self, cut: Cut) -> Rows | None:
        """The row of a copy that is held now, for the case that it is cut; None without archive."""
        return self._cut_rows([cut]) if self._archived else None

    def _cut_rows(self, cuts: Sequence[Cut]) -> Rows:
        """The rows of cuts of one rule."""
        positions, first = [each.position for each in cuts], cuts[0]
        messages = _at(positions, self.messages)
        columns = self._columns(positions) | header_columns([each.headers for each in messages])
        outcome = RowOutcome.SIGNED if first.signed else RowOutcome.CUT
        common = self._common(Leg.CUT, outcome, self.origin.time)
        common |= {"rule": first.rule, "attempt": 1}
        if any(each.reason for each in cuts):
            columns["reason"] = [each.reason or None for each in cuts]
        if any(each.name for each in cuts):
            columns["target_name"] = [each.name or None for each in cuts]
        targets = [each.target for each in cuts]
        return _rows(common, columns, route=[each.route for each in cuts], target=targets)

    def _as_range(self, positions: Sequence[int]) -> Sequence[int]:
        """`positions`, as a range if they cover the batch; `_at` then selects without a copy."""
        every = range(len(self.messages))
        return every if len(positions) == len(every) and [*positions] == [*every] else positions

    def _common(self, leg: Leg, outcome: RowOutcome, at: int) -> dict[str, Cell]:
        origin = self.origin
        return {
            "leg": leg.value,
            "outcome": outcome.value,
            "time": at,
            "received": origin.time,
            "endpoint": origin.endpoint,
            "system": origin.system,
        }

    def _columns(self, positions: Sequence[int]) -> Columns:
        """The columns that all legs share, of the messages at `positions`; computed once."""
        if self._shared_columns is None:
            messages, hashes = self.messages, self.hashes
            sizes = self._hashed[0] if self._hashed else ()
            self._shared_columns = {
                "id": self.ids,
                "name": [message.address for message in messages],
                "size": sizes,
                "hash": hashes,
                "mode": [message.headers.mode for message in messages],
            }
            traces = traces_of(messages)
            if any(traces):
                self._shared_columns["trace"] = traces
        return {name: _at(positions, values) for name, values in self._shared_columns.items()}


def _at(positions: Sequence[int], values: Sequence[_T]) -> Sequence[_T]:
    """The values at `positions`; a range has all of them, in their order."""
    if positions.__class__ is range:
        return values
    return [values[position] for position in positions]


def _rows(common: dict[str, Cell], columns: Columns, **given: Sequence[Cell]) -> Rows:
    """Rows of `columns` and `given`; a given column with one value for all is stored once."""
    count = 0
    for name, values in given.items():
        count = len(values)
        if values.count(values[0]) == count:
            common[name] = values[0]
        else:
            columns[name] = values
            common.pop(name, None)
    return Rows(count, common, columns)


def _with_outcome(outcome: Outcome, settlements: Sequence[Settlement]) -> list[int]:
    """The indices of the settlements with `outcome`."""
    return [i for i, settlement in enumerate(settlements) if settlement.outcome is outcome]


def _by_target(batch: OutboundBatch, indices: Sequence[int]) -> Iterable[Sequence[int]]:
    """Group the messages of a batch at `indices` by route and label."""
    groups: dict[tuple[int, str], list[int]] = {}
    for at in indices:
        delivery = batch.deliveries[at]
        groups.setdefault((id(delivery.route), delivery.label), []).append(at)
    return groups.values()
