"""A full disk delays heads and trailers, and loses nothing."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from gateway.archive.journal import local_head, rolling
from gateway.archive.journal.ends import Head
from gateway.archive.journal.file import Journal
from gateway.archive.journal.rolling import RollingJournal
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import journals
from gateway.archive.location import ArchiveLocation
from gateway.errors import ArchiveError
from tests.archive.journal import processes
from tests.archive.journal.processes import (
    MIDNIGHT,
    Process,
    convert_all,
    head_of,
    no_converter,
    numbers,
    sequences,
    verified,
)
from tests.archive.no_converter import NoConverter
from tests.archive.samples import NOON, QUICK, START, put, received
from tests.night.archive.verification.chained import errors
from tests.waiting import PATIENCE

__all__ = ["no_converter"]  # a fixture


def no_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_head_that_cannot_be_written_opens_no_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process(tmp_path, options=replace(QUICK, segment_bytes=1))
    process.write(1)
    with monkeypatch.context() as patch:
        patch.setattr(local_head, "write_head", no_space)
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                process.journal.maintain()
            with pytest.raises(OSError, match="No space left"):
                process.write(2)
    assert len(journals(tmp_path)) == 1

    process.write(2)
    process.stop()
    convert_all(tmp_path)

    assert verified(tmp_path).findings == ()
    assert numbers(tmp_path) == [1, 2]


def test_a_full_disk_delays_the_trailer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(tmp_path, options=replace(QUICK, segment_bytes=1))
    process.write(1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", no_space)
        with pytest.raises(OSError, match="No space left"):
            process.journal.maintain()
    process.write(2)
    process.journal.maintain()
    process.stop()
    convert_all(tmp_path)

    assert verified(tmp_path).findings == ()
    assert numbers(tmp_path) == [1, 2]


def test_a_disk_that_is_full_at_the_stop_ends_as_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    process = Process(tmp_path)
    process.write(1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", no_space)
        process.stop()
    Process(tmp_path, START + 1).stop()
    convert_all(tmp_path)

    assert "the last journal has no trailer" in caplog.text
    assert (errors(verified(tmp_path)), numbers(tmp_path)) == ([], [1])


def test_a_disk_that_is_full_at_a_roll_opens_the_next_journal_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process(tmp_path, options=replace(QUICK, segment_bytes=1))
    process.write(1)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "__init__", no_space)
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                process.journal.maintain()
    process.write(2)
    process.stop()
    convert_all(tmp_path)

    assert verified(tmp_path).findings == ()
    assert sequences(tmp_path) == [(0, "closed"), (1, "stopped")]
    assert numbers(tmp_path) == [1, 2]


def test_a_full_disk_at_the_start_leaves_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", no_space)
        with pytest.raises(ArchiveError, match=r"cannot be written: .*No space left"):
            Process(tmp_path)
    assert [path.name for path in (tmp_path / ".journal").iterdir()] == ["edge.lock"]
    assert head_of(tmp_path).head is None

    Process(tmp_path).stop()


class Freeing(NoConverter):
    """Converts what waits before a start goes on."""

    def __init__(self, location: ArchiveLocation, *_: object) -> None:
        self._root = location.local

    def finish(self, _: float) -> list[Path]:
        convert_all(self._root)
        return []


@pytest.mark.parametrize("away", [False, True])
def test_a_start_on_a_disk_that_is_full_of_its_journals_converts_them_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, away: bool
) -> None:
    killed = Process(tmp_path)
    killed.write(1)
    killed.kill()
    create = Journal.__init__

    def crowded(journal: Journal, path: Path, head: Head, key: bytes | None) -> None:
        if journals(tmp_path):
            no_space()
        create(journal, path, head, key)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "__init__", crowded)
        patch.setattr(rolling, "Converter", NoConverter if away else Freeing)
        if away:
            with pytest.raises(ArchiveError, match="No space left"):
                Process(tmp_path, START + 1)
        else:
            Process(tmp_path, START + 1).stop()
    Process(tmp_path, START + 2).stop()
    convert_all(tmp_path)

    assert errors(verified(tmp_path)) == []
    assert numbers(tmp_path) == [1]


@dataclass
class NextJournals:
    """A disk without room for a further journal while `full` is set."""

    full: threading.Event = field(default_factory=threading.Event)
    refused: threading.Event = field(default_factory=threading.Event)
    refused_again: threading.Event = field(default_factory=threading.Event)

    def open(self, path: Path, head: Head, key: bytes | None) -> Journal:
        if self.full.is_set():
            (self.refused_again if self.refused.is_set() else self.refused).set()
            no_space()
        return Journal(path, head, key)


def test_a_disk_that_is_full_at_midnight_is_not_asked_without_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, time = NextJournals(), NOON
    monkeypatch.setattr(rolling, "Journal", disk.open)
    options = replace(QUICK, retry_seconds=10 * PATIENCE)
    writer = ArchiveWriter(tmp_path, "edge", START, options, clock=lambda: time)
    put(writer, received([1]))
    disk.full.set()
    time = MIDNIGHT

    assert disk.refused.wait(PATIENCE)
    assert not disk.refused_again.wait(0.05)
    disk.full.clear()
    writer.close()
    convert_all(tmp_path)
    assert numbers(tmp_path) == [1]


class Polled(NoConverter):
    """Counts how often it could have started again."""

    polls = 0

    def poll(self) -> None:
        self.polls += 1


@pytest.mark.parametrize(
    ("owner", "name", "step"),
    [
        pytest.param(os, "fdatasync", lambda each: each.write(2), id="a-write"),
        pytest.param(Journal, "__init__", lambda each: each.write(2), id="a-write-without-journal"),
        pytest.param(Journal, "__init__", lambda each: each.journal.maintain(), id="a-roll"),
    ],
)
def test_a_full_disk_does_not_stop_the_converter_that_would_free_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: object,
    name: str,
    step: Callable[[Process], None],
) -> None:
    monkeypatch.setattr(rolling, "Converter", Polled)
    process = Process(tmp_path, options=replace(QUICK, segment_bytes=1))
    process.write(1)
    converter = process.journal._converter  # noqa: SLF001  # as it failed before: a bucket was away
    assert isinstance(converter, Polled)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, no_space)
        with pytest.raises(OSError, match="No space left"):
            process.journal.maintain()
        converter.polls = 0
        with pytest.raises(OSError, match="No space left"):
            step(process)

        assert converter.polls == 1
    process.stop()


class Rolled(RollingJournal):
    """Another thread closes the journal between two looks at it, as a full buffer makes it do."""

    looks = 10**9
    current: Journal | None

    @property
    def _journal(self) -> Journal | None:
        self.looks -= 1
        return self.current if self.looks >= 0 else None

    @_journal.setter
    def _journal(self, journal: Journal | None) -> None:
        self.current = journal


@pytest.mark.parametrize("looks", range(3))
def test_a_journal_that_a_caller_closes_meanwhile_ends_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    monkeypatch.setattr(processes, "RollingJournal", Rolled)
    process = Process(tmp_path)
    process.write(1)
    journal = process.journal
    assert isinstance(journal, Rolled)

    journal.looks = looks
    assert journal.next_maintenance() > 0

    journal.looks = Rolled.looks
    process.stop()
