"""Processes of gateways on machines, which write the archive at the clock of a world.

The journals, heads, conversions and uploads are those of the gateway. Only threads, the child
process of the converter and the wall clock are the model's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from gateway.archive.journal import rolling
from gateway.archive.journal.ends import Head
from gateway.archive.journal.file import Journal
from gateway.archive.journal.local_head import LocalHead, last_end
from gateway.archive.journal.records import Cell, Rows, pack
from gateway.archive.journal.rolling import ArchiveOptions, RollingJournal
from gateway.archive.layout import SECOND, day_of, journals, writer_name
from gateway.archive.location import ArchiveLocation
from gateway.archive.seal_key import KEY_VARIABLE
from gateway.archive.signed_json import NO_TERM, Term
from gateway.clock import RowClock
from gateway.night.archive.segments.convert import main
from tests.archive.no_converter import NoConverter
from tests.archive.samples import delivered, received

LEASE_SECONDS: Final = 10
ANSWER: Final = SECOND // 100  # microseconds from a receipt to its delivery


@dataclass(eq=False)
class Disk:
    """The disk of a machine: the buffer of a remote archive, or the archive itself.

    It is *away* while its machine is off, and may come back; a *lost* one never does.
    `named` is by writer the number of the first journal that the archive knew to be open at the
    last upload, and None where it knew of a stop.
    """

    root: Path
    away: bool = False
    lost: bool = False
    named: dict[str, int | None] = field(default_factory=dict)


@dataclass(eq=False)
class WrittenJournal:
    """A journal as its process wrote it, whatever became of it.

    `index` is its place among the journals of its writer; `rows` are the times of its messages,
    whose rows its sources were told are durable. `reached` are the times at which the messages came
    that an earlier journal spooled, and this one delivered. `end` is `open`, `closed`, `stopped` or
    `killed`.
    """

    stem: str
    writer: str
    index: int
    disk: Disk
    opened: int
    run: int
    lease: int = 0
    rows: list[int] = field(default_factory=list)
    reached: list[int] = field(default_factory=list)
    end: str = "open"
    closed: int = 0
    archived: bool = False

    @property
    def dates(self) -> set[str]:
        """The dates of its messages."""
        return {date_text(at) for at in (*self.rows, *self.reached)}

    @property
    def last(self) -> int:
        return max([self.opened, self.closed, *self.rows])

    @property
    def last_row(self) -> int:
        return max([self.opened, *self.rows])


class Fate(Enum):
    """The outcome of messages at their target."""

    DELIVERED = "delivered"
    MISSING = "missing"
    DOUBLED = "duplicated"
    ALTERED = "altered"
    DEAD = "refused"
    SPOOLED = "in flight"
    UNSEEN = "lost in target"


CopyId: TypeAlias = tuple[int, int]  # the start of a process, and a number
_SPOOLED: Final[Mapping[str, Cell]] = {"leg": "spooled", "outcome": "spooled"}
_DEAD: Final[Mapping[str, Cell]] = {
    "leg": "dead", "outcome": "rejected", "rule": "too-long", "reason": "a long name",
}  # fmt: skip


@dataclass(eq=False)
class Fated:
    """Messages that came at one time and have one fate; `delivered` is where a spool ended."""

    fate: Fate
    at: int
    copies: list[CopyId]
    journal: WrittenJournal
    delivered: WrittenJournal | None = None


class ProcessKilledError(BaseException):
    """The end of a process at some step."""


class GatewayProcess:
    """One run of a writer: its open journal, its clock, and the books of what it wrote."""

    def __init__(
        self,
        world_clock: WorldClock,
        disk: Disk,
        url: str,
        gateway: str,
        instance: str,
        key: bytes | None,
        books: list[WrittenJournal],
        fates: list[Fated],
        lease: int = 0,
        behind: int = 0,
    ) -> None:
        self.disk, self.writer = disk, writer_name(gateway, instance)
        self.fates = fates
        self._gateway, self._books, self._lease = gateway, books, lease
        self.clock = RowClock(lambda: world_clock.now - behind, lambda: 1_000 * world_clock.now)
        self.clock.continue_from(last_end(disk.root, gateway))
        self.start = self.clock()
        term = Term(lease, self.start, LEASE_SECONDS) if lease else NO_TERM
        head = LocalHead(disk.root, gateway, self.writer, key, self.clock, instance, term)
        self._counter = 0
        self.frozen_since: int | None = None
        location = ArchiveLocation(disk.root, url)
        with _no_converter():
            self._journal = RollingJournal(location, head, self.start, ArchiveOptions(seal_key=key))
        self._run = books[-1].run + 1 if books else 0
        self._note()

    @property
    def journal(self) -> WrittenJournal:
        return self._books[-1]

    def write(self, messages: int, fate: Fate = Fate.DELIVERED) -> None:
        """Record messages that have this fate, each with a name of its own."""
        at, begin = self.clock(), self._counter
        self._counter += messages
        copies = [(self.start, number) for number in range(begin, self._counter)]
        fated = Fated(fate, at, copies, self.journal)
        rows = [self._rows(copies, received, at, received=at)]
        if fate is Fate.SPOOLED:
            rows.append(self._rows(copies, delivered, at, received=at, **_SPOOLED))
        elif fate is Fate.DEAD:
            rows.append(self._rows(copies, delivered, at + ANSWER, received=at, **_DEAD))
        elif fate is not Fate.MISSING:
            more: dict[str, Cell] = {"hash": bytes(16)} if fate is Fate.ALTERED else {}
            answer = self._rows(copies, delivered, at + ANSWER, received=at, **more)
            rows += [answer, answer] if fate is Fate.DOUBLED else [answer]
            if fate is not Fate.UNSEEN:
                rows.append(self._seen(copies, at + ANSWER, at, **more))
        self._append(at + ANSWER, *rows)
        fated.journal = self.journal
        self.fates.append(fated)

    def deliver(self, fated: Fated) -> None:
        """Deliver what this process, or one before it, had in its spool."""
        at = self.clock()
        rows = self._rows(fated.copies, delivered, at, received=fated.at)
        self._append(at, rows, self._seen(fated.copies, at, fated.at))
        fated.delivered = self.journal
        self.journal.reached.append(fated.at)

    def answer_late(self, messages: int) -> None:
        """Record the answers to what was handed over before the process was frozen."""
        assert self.frozen_since is not None
        at, since, begin = self.clock(), self.frozen_since, self._counter
        self._counter += messages
        copies = [(self.start, number) for number in range(begin, self._counter)]
        self._append(
            since,
            self._rows(copies, received, since, received=since),
            self._rows(copies, delivered, at, received=since),
            self._seen(copies, at, since),
        )
        self.fates.append(Fated(Fate.DELIVERED, since, copies, self.journal))

    def _rows(
        self, copies: Sequence[CopyId], make: Callable[..., Rows], at: int, **more: Cell
    ) -> Rows:
        ids = [start.to_bytes(8, "big") + number.to_bytes(8, "big") for start, number in copies]
        separator = "/" if make is received else "."
        names = [f"a{separator}{start}-{number}" for start, number in copies]
        sources = [f"a/{start}-{number}" for start, number in copies]
        found = make([number for _, number in copies], time=at, **more)
        own = {**found.columns, "id": ids, "name": names}
        return replace(found, columns=own if make is received else own | {"source_name": sources})

    def _seen(self, copies: Sequence[CopyId], at: int, since: int, **more: Cell) -> Rows:
        found = self._rows(copies, delivered, at, received=since, leg="observed", **more)
        ids = [identity for identity in found.columns["id"] if isinstance(identity, bytes)]
        return replace(found, columns={**found.columns, "origin_id": [each.hex() for each in ids]})

    def _append(self, at: int, *rows: Rows) -> None:
        count = sum(each.count for each in rows)
        self._journal.write(pack(rows, {"gateway": self._gateway}), count)
        self._note()
        self.journal.rows.append(at)

    def tick(self) -> None:
        """Close the journal when its date is over."""
        self._journal.maintain()
        self._note()

    def roll(self) -> None:
        opened = self._opened()
        self._journal._roll(opened)  # noqa: SLF001
        self._note()

    def stop(self) -> None:
        self._journal.close(0)
        self.journal.end, self.journal.closed = "stopped", self.clock()

    def kill(self) -> None:
        """End the process: its locks are released, and nothing else happens."""
        opened = self._opened()
        os.close(opened._file)  # noqa: SLF001
        os.close(opened._acknowledged)  # noqa: SLF001
        self._journal._lock.close()  # noqa: SLF001
        self.journal.end = "killed"

    def kill_after_the_trailer(self) -> None:
        """The process ends when the journal is closed, and the next one not opened."""
        self._opened().finish(self.clock(), stopped=False)
        self.kill()

    def kill_before_the_head(self) -> None:
        """The process ends when the next journal is open, and no head names it."""
        made: list[Journal] = []

        def recorded(path: Path, head: Head, key: bytes | None) -> Journal:
            made.append(Journal(path, head, key))
            return made[-1]

        def ended(*_: object) -> None:
            raise ProcessKilledError

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rolling, "Journal", recorded)
            patch.setattr(RollingJournal, "_state", ended)
            with pytest.raises(ProcessKilledError):
                self._journal._roll(self._opened())  # noqa: SLF001
        self.journal.closed, self.journal.end = self.clock(), "closed"
        self._journal._journal = made[0]  # noqa: SLF001
        self._note()
        self.kill()

    def _opened(self) -> Journal:
        opened = self._journal._journal  # noqa: SLF001
        assert opened is not None
        return opened

    def _note(self) -> None:
        """Write the open journal into the books, and the end of the one before."""
        opened = self._opened()
        stem = opened.path.stem
        books = self._books
        if books and books[-1].stem == stem:
            return
        if books and books[-1].run == self._run:
            books[-1].end, books[-1].closed = "closed", self.clock()
        made = WrittenJournal(
            stem, self.writer, len(books), self.disk, opened.head.opened, self._run, self._lease
        )
        books.append(made)


@dataclass
class WorldClock:
    """The true time of a world, in microseconds."""

    now: int


def convert(disk: Disk, url: str, key: bytes | None, paths: Sequence[Path]) -> bool:
    """Run the converter of `disk`; return whether all went well."""
    remote = ["--to", url] if url else []
    with _key_in_environment(key):
        # Without a journal it uploads the heads only; a path is needed, as none means all.
        return not main([str(disk.root), *remote, *map(str, paths or [Path("none")])])


def fetch(disk: Disk, url: str, key: bytes | None, writer: str) -> bool:
    """Copy what the archive has of the gateway, as a start does."""
    with _key_in_environment(key):
        return not main([str(disk.root), "--to", url, "--fetch", writer])


def waiting(disk: Disk, writer: str | None = None) -> list[Path]:
    return journals(disk.root, writer)


@contextmanager
def _key_in_environment(key: bytes | None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(KEY_VARIABLE, raising=False)
        if key is not None:
            patch.setenv(KEY_VARIABLE, key.decode())
        yield


@contextmanager
def _no_converter() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rolling, "Converter", NoConverter)
        yield


def date_text(time: int) -> str:
    return day_of(time).isoformat()
