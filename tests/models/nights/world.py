"""Writers with clocks, journals and spools, and what really happened to every copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Final

from tests.models.nights.store import DAY, Archive, Head, Place, Row, Seal

MAX_SKEW: Final = 25  # minutes
NO_HEAD: Final = Head(0, 0, None)


@dataclass(slots=True)
class Copy:
    """A message at one target, as the world knows it."""

    number: int
    writer: str
    received: int
    lost: bool = False
    unexpected: bool = False
    unmarked: int = 0  # deliveries without a mark


@dataclass(slots=True)
class Journal:
    place: Place
    opened: int  # by the clock of the writer
    opened_at: int  # by the clock of the world
    after: int  # the end of the journal before
    rows: list[Row] = field(default_factory=list)

    def time(self, now: int) -> int:
        return self.opened + now - self.opened_at


@dataclass(slots=True)
class Writer:
    """A gateway; `buffer` and `head` are on its own disk."""

    name: str
    skew: int = 0
    running: bool = False
    journal: Journal | None = None
    buffer: list[tuple[Seal, Journal]] = field(default_factory=list)
    head: Head = NO_HEAD
    spool: list[Copy] = field(default_factory=list)
    lags_until: int = 0
    last_number: int = 0
    last_time: int = 0
    killed: Journal | None = None


class World:
    """All writers, the archive they share, and the log of the truth."""

    def __init__(self, random: Random, writers: int) -> None:
        self.random = random
        self.now = 0
        self.archive = Archive()
        self.writers = [
            Writer(f"w{n}", random.randint(-MAX_SKEW, MAX_SKEW)) for n in range(writers)
        ]
        self.copies: dict[int, Copy] = {}
        self.log: list[tuple[Place, Row]] = []  # every acknowledged row
        self.stops: set[Place] = set()  # the last journals before clean stops
        self._numbers: Iterator[int] = count(1)
        self._digests: Iterator[int] = count(1)

    def start(self, writer: Writer) -> None:
        """Open the next journal; one that a killed process left is converted if it is there."""
        if writer.running:
            return
        if writer.killed:
            self._seal(writer, writer.killed, ended=False)
            writer.killed = None
        writer.running = True
        self._open(writer)

    def stop(self, writer: Writer) -> None:
        if writer.journal:
            self._seal(writer, writer.journal, ended=True)
            writer.head = Head(writer.last_number, writer.last_time, None)
            self.stops.add(writer.journal.place)
            writer.running, writer.journal = False, None

    def kill(self, writer: Writer) -> None:
        if writer.journal:
            writer.last_time = writer.journal.time(self.now)
            writer.running, writer.killed, writer.journal = False, writer.journal, None

    def roll(self, writer: Writer) -> None:
        """Close the journal and open the next one, whose head is durable before its rows."""
        if writer.journal:
            self._seal(writer, writer.journal, ended=False)
            self._open(writer)

    def upload(self, writer: Writer) -> None:
        """Convert what waits; the head goes last."""
        if self.now < writer.lags_until:
            return
        for seal, journal in writer.buffer:
            self.archive.seals[seal.place] = seal
            for date in seal.dates:
                rows = [row for row in journal.rows if row.time // DAY == date]
                self.archive.segments[seal.place, date] = rows
        writer.buffer.clear()
        if writer.last_number:
            self.archive.routes.add(writer.name)
            self.archive.heads[writer.name] = writer.head

    def receive(self, writer: Writer, fate: str) -> None:
        """Take a message; `fate` is what happens to its copy."""
        if not writer.journal:
            return
        received = writer.journal.time(self.now)
        copy = Copy(next(self._numbers), writer.name, received)
        self.copies[copy.number] = copy
        if fate == "unexpected":
            copy.unexpected = True
        else:
            self._row(writer, copy, "received")
        if fate in {"delivered", "doubled", "unexpected"}:
            self.deliver(writer, copy)
        if fate == "doubled":
            self.deliver(writer, copy)
        elif fate == "marked":
            self.deliver(writer, copy)
            self.deliver(writer, copy, marked=True)
        elif fate == "dead":
            self._row(writer, copy, "dead")
        elif fate == "lost":
            copy.lost = True
        elif fate == "spooled":
            self._row(writer, copy, "spooled")
            writer.spool.append(copy)
        elif fate == "split":  # its outcome is in the next journal
            self.roll(writer)
            self.deliver(writer, copy)

    def deliver(self, writer: Writer, copy: Copy, *, marked: bool = False) -> None:
        copy.unmarked += not marked
        self._row(writer, copy, "delivered", marked=marked)

    def drain(self, writer: Writer) -> None:
        """Deliver what is spooled."""
        if writer.journal:
            for copy in writer.spool:
                self.deliver(writer, copy)
            writer.spool.clear()

    def lose_spool(self, writer: Writer) -> None:
        for copy in writer.spool:
            copy.lost = True
        writer.spool.clear()

    def step_clock(self, writer: Writer) -> None:
        """Correct the clock, or set it wrong by hours until the next correction."""
        wrong = self.random.choice([0, 0, -600, 240])
        writer.skew = wrong + self.random.randint(-MAX_SKEW, MAX_SKEW)

    def _row(self, writer: Writer, copy: Copy, leg: str, *, marked: bool = False) -> None:
        journal = writer.journal
        assert journal
        row = Row(copy.number, leg, copy.received, journal.time(self.now), marked)
        journal.rows.append(row)
        self.log.append((journal.place, row))

    def _open(self, writer: Writer) -> None:
        opened = self.opening(writer)
        writer.last_number += 1
        place = writer.name, writer.last_number
        writer.journal = Journal(place, opened, self.now, writer.last_time)
        writer.head = Head(writer.last_number - 1, writer.last_time, writer.last_number)

    def opening(self, writer: Writer) -> int:
        """Return the time of a new journal: the wall clock, and never backwards."""
        return max(self.now + writer.skew, writer.last_time)

    def _seal(self, writer: Writer, journal: Journal, *, ended: bool) -> None:
        closed = journal.time(self.now) if writer.journal is journal else writer.last_time
        writer.last_time = closed
        concerns = frozenset(row.date for row in journal.rows)
        dates = frozenset(row.time // DAY for row in journal.rows)
        digest = next(self._digests)
        seal = Seal(journal.place, closed, ended, digest, concerns, dates, journal.after)
        writer.buffer.append((seal, journal))
