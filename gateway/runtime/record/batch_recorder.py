"""The recorder of batches: dead letters, archive rows and counters before a batch is settled.

The order is fixed: dead letters, then rows, then the caller's next step. A crash in between
repeats a record and never omits one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from gateway.archive.journal.records import Cell, Rows
from gateway.archive.schema import Leg, RowOutcome
from gateway.clock import Clock, now
from gateway.errors import ArchiveError, SpoolError
from gateway.model.message import Message
from gateway.model.outcome import Outcome, Settlement
from gateway.routing.route import Route
from gateway.runtime.delivery.dead_letter import DeadLetter
from gateway.runtime.delivery.outbound_batch import OutboundBatch, PendingRow
from gateway.runtime.delivery.received_batch import Count, Counted
from gateway.runtime.delivery.rows import (
    archived_content,
    fingerprint,
    fingerprints,
    with_proven_name,
)
from gateway.runtime.record.counters import Refusal, RouteCounters

log = logging.getLogger(__name__)

ArchiveAppend: TypeAlias = Callable[[Sequence[Rows], Callable[[], None]], None]
KeepLetters: TypeAlias = Callable[[Sequence[DeadLetter], Callable[[], None]], None]
Counters: TypeAlias = Mapping[str, RouteCounters]


@dataclass(frozen=True, slots=True)
class BatchRecorder:
    """The counters, the archive and the dead letters of a gateway; the last two are optional.

    With `keeps_letters` the dead letters are stored, and not only published. `archive_later` takes
    the rows that no broker awaits; without it `archive` does.
    """

    counters: Counters
    archive: ArchiveAppend | None = None
    dead_letters: KeepLetters = lambda _, then: then()
    find_route: Callable[[str], Route | None] = lambda _: None  # by name, for its archive settings
    clock: Clock = now  # of the rows
    keeps_letters: bool = False
    archive_later: ArchiveAppend | None = None

    def write(
        self,
        rows: Sequence[Rows],
        letters: Sequence[DeadLetter],
        then: Callable[[], None],
        *,
        awaited: bool = True,
    ) -> None:
        """Make letters and rows durable, in this order, then call `then` on some thread.

        If the spool or the archive is closed, `then` is not called: the batch stays unsettled and
        its source delivers it again.
        """
        append = (None if awaited else self.archive_later) or self.archive
        try:
            if letters:
                self.dead_letters(letters, lambda: _write_rows(append, rows, then))
            else:
                _write_rows(append, rows, then)
        except SpoolError as error:
            log.warning("a batch stays unsettled: %s", error)

    def count(self, found: Iterable[Counted]) -> None:
        """Add to the counters of routes."""
        for each in found:
            if isinstance(each, DeadLetter):
                self.count_dead_letter(each)
            else:
                self.counters[each.route].add(each)

    def count_dead_letter(self, letter: DeadLetter) -> None:
        """Count a dead letter; log the first of each route and rule, and the place it is kept."""
        route, rule = letter.route, letter.rule
        if route not in self.counters:
            if self.archive is None and not self.keeps_letters:
                log.warning("a message is lost: %s", rule)
            return
        refusal = Refusal(letter.time, letter.source_name, rule, letter.reason, letter.target)
        if self.counters[route].count_refusal(refusal):
            kept = "nowhere: there is no archive and no spool"
            if self.archive is not None:
                kept = "in the archive, with its payload only where the route has archive_payload"
            if self.keeps_letters:
                kept = "with the dead letters"
            log.warning("first dead letter, kept %s", kept, extra={"route": route, "rule": rule})

    def record_spooled(
        self, batch: OutboundBatch, then: Callable[[], None], cuts: Sequence[Rows] = ()
    ) -> None:
        """Record the final settlements of a batch that was on disk, and `cuts`, then call `then`.

        The rows have the hashes of the payloads that the spool returned. The copies are recorded as
        spooled again, at the time at which the spool returned them: the receipt may wait for
        another target, or have died with an earlier run, and an outcome must have a row before it.
        """
        at, start = self.clock(), 0
        rows: list[Rows] = [*cuts]
        letters: list[DeadLetter] = []
        for stored in batch.rows:
            first = start
            settlements = batch.settlements[first : (start := start + len(stored.messages))]
            for pending in stored.pending:
                common, positions = pending.rows.common, pending.positions
                marks = [stored.messages[each].headers.redelivered for each in positions]
                rows.append(_marked(pending.spooled(positions, stored.read), marks))
                accepted = [i for i in positions if settlements[i].outcome is Outcome.ACCEPTED]
                route = str(common["route"])
                attempt = batch.attempts + int(str(common["attempt"]))  # with those before
                for rule in sorted({settlements[each].rule for each in accepted}):
                    some = [each for each in accepted if settlements[each].rule == rule]
                    facts: dict[str, Cell] = {"time": at, "attempt": attempt}
                    facts |= {"rule": rule} if rule else {}
                    sent = [stored.messages[each] for each in some]
                    made = _sent_rows(pending.completed(some, **facts), sent)
                    rows.append(_timed(made, batch.answered_at([first + i for i in some], at)))
                if accepted and route in self.counters:
                    latency = (at - int(str(common.get("received") or at))) / 1_000_000
                    self.count([Count(route, delivered=len(accepted), latency=latency)])
                for position in sorted({*positions} - {*accepted}):
                    settlement, message = settlements[position], stored.messages[position]
                    if settlement.outcome is Outcome.SPOOLED:  # held back before; still on disk
                        continue
                    row = pending.completed([position], time=at, attempt=attempt)
                    fields = str(row.values("fields")[0] or "")
                    reason = with_proven_name(settlement.reason, fields)
                    settlement = replace(settlement, reason=reason)
                    rows.append(_dead_row(row, settlement, message, self.find_route(route)))
                    letters.append(_dead_letter(pending, row, settlement, message))
                    self.count_dead_letter(letters[-1])
        self.write(rows, letters, then)

    def record_damaged(self, letter: DeadLetter, then: Callable[[], None]) -> None:
        """Record a damaged row of the spool, then call `then`.

        Its archive row has no receipt: a copy that the reconciliation calls unexpected.
        """
        self.count_dead_letter(letter)
        size, digest = fingerprint(letter.message.payload)
        row: dict[str, Cell] = {
            "leg": Leg.DEAD.value,
            "outcome": RowOutcome.REJECTED.value,
            "rule": letter.rule,
            "reason": letter.reason,
            "route": letter.route,
            "endpoint": letter.endpoint,
            "system": "",
            "target": letter.target,
            "id": letter.id,
            "time": letter.time,
            "received": letter.time,
            "attempt": 1,
            "name": "",
            "size": size,
            "hash": digest,
        }
        self.write([Rows(1, row)], [letter], then)


def _write_rows(
    append: ArchiveAppend | None, rows: Sequence[Rows], then: Callable[[], None]
) -> None:
    if append is None:
        then()
        return
    try:
        append(rows, then)
    except ArchiveError as error:  # closed: the source or the spool keeps the batch
        log.warning("a batch stays unsettled: %s", error)


def _timed(rows: Rows, times: Sequence[int]) -> Rows:
    """Delivered rows with the times of their answers; one time for all is stored once."""
    if len(set(times)) == 1:
        return Rows(rows.count, {**rows.common, "time": times[0]}, rows.columns)
    common = {name: value for name, value in rows.common.items() if name != "time"}
    return Rows(rows.count, common, {**rows.columns, "time": times})


def _marked(rows: Rows, redelivered: Sequence[bool]) -> Rows:
    """Spooled rows with the mark of their receipt, which may be their only one after a crash."""
    if not any(redelivered):
        return rows
    return Rows(rows.count, rows.common, {**rows.columns, "redelivered": [*redelivered]})


def _sent_rows(rows: Rows, sent: Sequence[Message]) -> Rows:
    """Delivered rows with the hashes of the payloads as the spool returned them."""
    sizes, hashes = fingerprints([message.payload for message in sent])
    return Rows(rows.count, rows.common, {**rows.columns, "size": sizes, "hash": hashes})


def _dead_row(row: Rows, settlement: Settlement, message: Message, route: Route | None) -> Rows:
    """The dead row made of a delivered row."""
    common = {**row.common, "leg": Leg.DEAD.value, "outcome": RowOutcome.REJECTED.value}
    common |= {"rule": settlement.rule, "reason": settlement.reason, "encoding": None}
    return Rows(row.count, common, {**row.columns, **archived_content([message], route)})


def _dead_letter(
    pending: PendingRow, row: Rows, settlement: Settlement, message: Message
) -> DeadLetter:
    common, identity = row.common, row.columns["id"][0]
    return DeadLetter(
        number=0,
        time=int(str(common["time"])),
        id=identity if isinstance(identity, bytes) else b"",
        route=str(common["route"]),
        source=pending.source,
        source_name=str(row.values("source_name")[0] or ""),
        target=str(common["target"]),
        endpoint=str(common["endpoint"]),
        rule=settlement.rule,
        reason=settlement.reason,
        attempts=int(str(common["attempt"])),
        message=message,
        fields=str(row.values("fields")[0] or ""),
    )
