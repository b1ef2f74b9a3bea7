"""The books of the gateway: dead letters, archive rows and counters, written before anything ends.

What a target took or refused is recorded in one order: dead letters first, then rows, then the
caller's next step, so that a crash in between repeats a record and never misses one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gateway.archive.journal.records import Cell, Rows
from gateway.archive.schema import Leg, Step
from gateway.clock import now
from gateway.errors import ArchiveError, SpoolError
from gateway.model.message import Message
from gateway.model.outcome import Outcome, Settlement
from gateway.routing.route import Route
from gateway.runtime.monitor.counters import Refusal, RouteCounters
from gateway.runtime.outbound.dead_letters import DeadLetters, Letter
from gateway.runtime.outbound.spool_codec import End
from gateway.runtime.record.rows import kept_content

log = logging.getLogger(__name__)

Archive: TypeAlias = Callable[[Sequence[Rows], Callable[[], None]], None]
Counters: TypeAlias = Mapping[str, RouteCounters]


@dataclass(frozen=True, slots=True)
class Spooled:
    """A parcel from the disk. Of an inherited one the disk may be all that knows.

    An earlier run put it there, and may have died before it recorded the receipt. It is recorded
    again that the parcel was kept, so that the end has a beginning.
    """

    messages: Sequence[Message]
    ends: Sequence[End]
    inherited: bool


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where things are recorded; without an archive or a place for dead letters less is."""

    counters: Counters
    archive: Archive | None = None
    letters: DeadLetters | None = None
    find_route: Callable[[str], Route | None] = lambda _: None  # for what it lets the archive have

    def write(
        self, rows: Sequence[Rows], letters: Sequence[Letter], then: Callable[[], None]
    ) -> None:
        """Make letters and rows durable in this order, then call `then`, from some thread.

        When the books are closed meanwhile `then` is not called: what it would have ended is
        still somebody's, and comes again.
        """
        try:
            if letters and self.letters is not None:
                self.letters.put(letters, lambda: self._write_rows(rows, then))
            else:
                self._write_rows(rows, then)
        except SpoolError as error:
            log.warning("a batch stays unsettled: %s", error)

    def set_aside(self, letter: Letter) -> None:
        """Count a dead letter, and say aloud where the first of its rule is kept."""
        route, rule = letter.route, letter.rule
        if route not in self.counters:
            if self.archive is None and self.letters is None:
                log.warning("a message is lost: %s", rule)
            return
        refusal = Refusal(letter.time, letter.source_name, rule, letter.reason)
        if self.counters[route].set_aside(refusal):
            kept = "nowhere: there is no archive and no spool"
            if self.archive is not None:
                kept = "in the archive"
            if self.letters is not None:
                kept = "with the dead letters"
            log.warning("first dead letter, kept %s", kept, extra={"route": route, "rule": rule})

    def end_spooled(
        self,
        parcel: Spooled,
        settlements: Sequence[Settlement],
        attempts: int,
        then: Callable[[], None],
    ) -> None:
        """Record what became of a spooled parcel, then call `then`."""
        at = now()
        rows: list[Rows] = []
        letters: list[Letter] = []
        for end in parcel.ends:
            if parcel.inherited:
                rows.append(end.spooled(end.positions, at))
            taken = [p for p in end.positions if settlements[p].outcome is Outcome.ACCEPTED]
            route = str(end.rows.common["route"])
            tries = attempts + int(str(end.rows.common["attempt"]))  # before it came to disk
            if taken:
                rows.append(end.ended(taken, time=at, attempt=tries))
                if route in self.counters:
                    waited = at - int(str(end.rows.common.get("received") or at))
                    self.counters[route].delivers(len(taken), waited / 1_000_000)
            for position in sorted({*end.positions} - {*taken}):
                settled, message = settlements[position], parcel.messages[position]
                dead = end.ended([position], time=at, attempt=tries)
                rows.append(_dead(dead, settled, message, self.find_route(route)))
                letters.append(_letter(end, dead, settled, message))
                self.set_aside(letters[-1])
        self.write(rows, letters, then)

    def _write_rows(self, rows: Sequence[Rows], then: Callable[[], None]) -> None:
        if self.archive is None:
            then()
            return
        try:
            self.archive(rows, then)
        except ArchiveError as error:  # it is closed: whoever has the batch keeps it
            log.warning("a batch stays unsettled: %s", error)


def _dead(row: Rows, settled: Settlement, message: Message, route: Route | None) -> Rows:
    """The row of a dead letter, from what would have been its delivered row."""
    facts: dict[str, Cell] = {
        "leg": Leg.DEAD.value,
        "outcome": Step.REJECTED.value,
        "rule": settled.rule,
        "reason": settled.reason,
    }
    return Rows(
        row.count, {**row.common, **facts}, {**row.columns, **kept_content([message], route)}
    )


def _letter(end: End, row: Rows, settled: Settlement, message: Message) -> Letter:
    common, columns = row.common, row.columns
    names = columns.get("source_name", [common.get("source_name", "")])
    identity = columns["id"][0]
    return Letter(
        number=0,
        time=int(str(common["time"])),
        id=identity if isinstance(identity, bytes) else b"",
        route=str(common["route"]),
        source=end.source,
        source_name=str(names[0]),
        target=str(common["target"]),
        endpoint=str(common["endpoint"]),
        rule=settled.rule,
        reason=settled.reason,
        attempts=int(str(common["attempt"])),
        message=message,
    )
