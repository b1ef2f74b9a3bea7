from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from gateway.archive.journal import rolling
from gateway.archive.journal import writer as writer_module
from gateway.archive.journal.ends import Head
from gateway.archive.journal.file import Journal
from gateway.archive.journal.records import Rows
from gateway.archive.journal.rolling import ArchiveOptions
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import journals
from gateway.errors import ArchiveError
from tests.archive.samples import (
    DAY,
    QUICK,
    START,
    archive,
    delivered,
    identity,
    put,
    received,
)
from tests.archived import read_rows, segments
from tests.waiting import PATIENCE

INTERVAL = replace(QUICK, sync="interval", sync_seconds=0.05)


class Disk:
    """A disk that is full while `full` is set; its `open` opens the journals of a writer."""

    def __init__(self) -> None:
        self.full = threading.Event()
        self.refused = threading.Event()

    def open(self, path: Path, head: Head, key: bytes | None) -> Journal:
        return FullJournal(path, head, key, self)


class FullJournal(Journal):
    """Writes half of the records, then fails with a full disk."""

    def __init__(self, path: Path, head: Head, key: bytes | None, disk: Disk) -> None:
        super().__init__(path, head, key)
        self._disk = disk

    def _write(self, records: bytes, *, sync: bool) -> None:
        if not self._disk.full.is_set():
            super()._write(records, sync=sync)
            return
        os.ftruncate(self._file, self.size)
        os.write(self._file, records[: len(records) // 2])
        self._has_torn_tail = True
        self._disk.refused.set()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk()
    monkeypatch.setattr(rolling, "Journal", made.open)
    return made


class SyncedJournal(Journal):
    """Sets `synced` when its content is made durable."""

    synced: threading.Event

    def sync(self) -> None:
        super().sync()
        self.synced.set()


class CountingJournal(Journal):
    """Adds the rows of each write to a list."""

    def __init__(self, path: Path, head: Head, key: bytes | None, written: list[int]) -> None:
        super().__init__(path, head, key)
        self._written = written

    def append(self, records: bytes, rows: int, *, sync: bool) -> None:
        super().append(records, rows, sync=sync)
        self._written.append(rows)


def changes(log: pytest.LogCaptureFixture) -> list[str]:
    """The log levels of the failures and recoveries of a writer."""
    return [record.levelname for record in log.records if record.name.endswith("journal.writer")]


def names(root: Path) -> list[str]:
    return sorted(row["name"] for row in read_rows(root, DAY))


def test_rows_are_durable_when_the_callback_is_called(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "edge", START, QUICK)

    put(writer, received([1]), delivered([1]))

    (journal,) = journals(tmp_path)
    assert b"a.b1" in journal.read_bytes()
    writer.close()
    assert names(tmp_path) == ["a.b1", "a/b1"]
    assert journals(tmp_path) == []


def test_a_writer_without_rows_leaves_no_file(tmp_path: Path) -> None:
    archive(tmp_path)

    assert journals(tmp_path) == []
    assert segments(tmp_path, DAY) == []


def test_every_callback_is_called_once_and_in_order(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "edge", START, QUICK)
    called: list[int] = []
    threads = 50

    for number in range(threads):
        writer.append([received([number])], lambda number=number: called.append(number))  # type: ignore[misc]  # a bound default
    writer.close()

    assert called == list(range(threads))


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that nobody awaits are joined for longer than any test."""
    monkeypatch.setattr(writer_module, "JOIN_SECONDS", 10 * PATIENCE)


@pytest.mark.usefixtures("patient")
def test_rows_that_nobody_awaits_are_written_with_those_that_somebody_awaits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    monkeypatch.setattr(rolling, "Journal", partial(CountingJournal, written=written))
    writer = ArchiveWriter(tmp_path, "edge", START, QUICK)
    called: list[int] = []
    for number in range(3):
        writer.append([received([number])], partial(called.append, number), awaited=False)
    assert (called, written) == ([], [])

    put(writer, received([3]))

    assert (called, written) == ([0, 1, 2], [4])
    writer.close()


@pytest.mark.usefixtures("patient")
def test_a_close_writes_rows_that_nobody_awaits(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "edge", START, QUICK)
    called: list[int] = []
    writer.append([received([1])], partial(called.append, 1), awaited=False)

    writer.close()

    assert called == [1]
    assert names(tmp_path) == ["a/b1"]


@pytest.mark.usefixtures("patient")
def test_a_full_queue_of_rows_that_nobody_awaits_is_written(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "edge", START, replace(QUICK, queue_bytes=100))
    called: list[int] = []
    for number in range(3):  # each is larger than the queue
        rows = [received([number] * 10)]
        writer.append(rows, partial(called.append, number), awaited=False)

    assert called[:1] == [0]
    writer.close()
    assert called == [0, 1, 2]


def test_rows_that_nobody_awaits_are_durable_soon(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "edge", START, QUICK)
    durable = threading.Event()

    writer.append([received([1])], durable.set, awaited=False)

    assert durable.wait(PATIENCE)
    writer.close()


def test_a_closed_writer_refuses_rows(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "edge", START, QUICK)
    writer.close()
    writer.close()

    with pytest.raises(ArchiveError, match="is closed; nothing was written"):
        put(writer, received([1]))


def test_a_folder_that_cannot_be_written_fails_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ArchiveError, match=r"file: cannot be written: .*Not a directory"):
        ArchiveWriter(tmp_path / "file", "edge", START)


def test_a_full_disk_keeps_the_rows_until_there_is_room(
    tmp_path: Path, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    writer = ArchiveWriter(tmp_path, "edge", START, QUICK)
    put(writer, received([1]))
    disk.full.set()
    durable = threading.Event()

    writer.append([received([2])], durable.set)
    assert disk.refused.wait(PATIENCE)
    assert not durable.is_set()
    assert writer.queued_bytes > 0
    disk.full.clear()
    assert durable.wait(PATIENCE)
    writer.close()

    assert names(tmp_path) == ["a/b1", "a/b2"]  # once each: the half record was cut
    assert changes(caplog) == ["ERROR", "WARNING"]
    assert "No space left on device" in caplog.messages[0]
    assert writer.failure is None


def test_closing_while_the_disk_is_full_reports_the_lost_rows(tmp_path: Path, disk: Disk) -> None:
    options = replace(QUICK, close_seconds=0.2)
    writer = ArchiveWriter(tmp_path, "edge", START, options)
    put(writer, received([1]))
    disk.full.set()
    durable = threading.Event()
    writer.append([received([2])], durable.set)

    with pytest.raises(ArchiveError, match=r"bytes of rows were not made durable .*No space left"):
        writer.close()

    assert not durable.is_set()
    disk.full.clear()
    archive(tmp_path, start=START + 1)  # the next start converts what was left
    assert names(tmp_path) == ["a/b1"]


def test_a_full_queue_slows_the_caller(tmp_path: Path, disk: Disk) -> None:
    options = replace(QUICK, queue_bytes=1)
    writer = ArchiveWriter(tmp_path, "edge", START, options)
    disk.full.set()
    first, second = threading.Event(), threading.Event()
    writer.append([received([1])], first.set)
    assert disk.refused.wait(PATIENCE)

    caller = threading.Thread(target=writer.append, args=([received([2])], second.set))
    caller.start()
    caller.join(0.05)
    assert caller.is_alive()
    disk.full.clear()
    caller.join(PATIENCE)
    assert not caller.is_alive()
    writer.close()

    assert first.is_set()
    assert second.is_set()


def test_a_caller_writes_rows_that_need_no_sync_itself(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "edge", START, INTERVAL)
    put(writer, received([0]))
    writers: list[str] = []
    number = 0

    while threading.current_thread().name not in writers:  # the archive thread may use the journal
        number += 1
        assert number < 1_000
        called = threading.Event()

        def durable(called: threading.Event = called) -> None:
            writers.append(threading.current_thread().name)
            called.set()

        writer.append([received([number])], durable)
        assert called.wait(PATIENCE)
    writer.close()

    assert names(tmp_path) == sorted(f"a/b{each}" for each in range(number + 1))


def test_rows_that_a_caller_wrote_are_synced_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = threading.Event()

    def opened(path: Path, head: Head, key: bytes | None) -> Journal:
        journal = SyncedJournal(path, head, key)
        journal.synced = synced
        return journal

    monkeypatch.setattr(rolling, "Journal", opened)
    writer = ArchiveWriter(tmp_path, "edge", START, INTERVAL)
    put(writer, received([1]))
    assert synced.wait(PATIENCE)
    synced.clear()

    put(writer, received([2]))

    assert synced.wait(PATIENCE)
    writer.close()


def test_a_disk_that_is_full_for_a_caller_is_left_to_the_thread(
    tmp_path: Path, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    writer = ArchiveWriter(tmp_path, "edge", START, INTERVAL)
    put(writer, received([1]))
    disk.full.set()
    durable, later = threading.Event(), threading.Event()

    writer.append([received([2])], durable.set)
    writer.append([received([3])], later.set)
    assert disk.refused.wait(PATIENCE)
    assert not durable.is_set()
    disk.full.clear()
    assert durable.wait(PATIENCE)
    assert later.wait(PATIENCE)
    writer.close()

    assert names(tmp_path) == ["a/b1", "a/b2", "a/b3"]
    assert changes(caplog) == ["ERROR", "WARNING"]


def test_a_closed_writer_refuses_rows_without_a_sync(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "edge", START, INTERVAL)
    put(writer, received([1]))
    writer.close()

    with pytest.raises(ArchiveError, match="is closed; nothing was written"):
        put(writer, received([2]))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(replace(QUICK, segment_bytes=1), id="size"),
        pytest.param(replace(QUICK, segment_seconds=0), id="age"),
        pytest.param(replace(QUICK, segment_bytes=1, sync="interval", sync_seconds=0), id="sync"),
    ],
)
def test_a_journal_is_rolled(tmp_path: Path, options: ArchiveOptions) -> None:
    writer = ArchiveWriter(tmp_path, "edge", START, options)

    for number in range(3):
        put(writer, received([number]))
    writer.close()

    assert len(segments(tmp_path, DAY)) == 3
    assert names(tmp_path) == ["a/b0", "a/b1", "a/b2"]


@pytest.mark.parametrize(
    ("options", "size", "rows", "age", "full"),
    [
        pytest.param(ArchiveOptions(), 1, 2, 899, False, id="few-rows-wait"),
        pytest.param(ArchiveOptions(), 1, 2, 900, True, id="few-rows-after-a-quarter-of-an-hour"),
        pytest.param(ArchiveOptions(), 1, 90_000, 60, True, id="a-whole-segment"),
        pytest.param(ArchiveOptions(), 1, 90_000, 59, False, id="a-fast-gateway"),
        pytest.param(ArchiveOptions(), 64 << 20, 1, 0, True, id="size"),
        pytest.param(ArchiveOptions(segment_seconds=5), 1, 2, 5, True, id="its-own-age"),
        pytest.param(ArchiveOptions(segment_seconds=5), 1, 90_000, 4, False, id="no-rows"),
    ],
)
def test_the_age_of_a_journal_follows_its_rows(
    options: ArchiveOptions, size: int, rows: int, age: float, *, full: bool
) -> None:
    assert options.is_full(size, rows, age) == full


def test_the_file_size_limit_of_a_process_is_survived(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    writer = ArchiveWriter(tmp_path, "edge", START, QUICK)
    big = Rows(1, {**received([1]).common, "payload": bytes(4096)}, received([1]).columns)
    durable = threading.Event()
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        writer.append([big], durable.set)
        while writer.failure is None:
            assert not durable.wait(0.01)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert durable.wait(PATIENCE)
    writer.close()

    assert [row["id"] for row in read_rows(tmp_path, DAY)] == [identity(1)]
    assert "File too large" in caplog.messages[0]


def test_the_gateway_loads_no_parquet() -> None:
    program = (
        "import sys, gateway.archive.journal.writer, gateway.runtime.gateway, gateway.cli;"
        "gateway.cli.make_parser();"
        "sys.exit(bool({'pyarrow', 'pyspark', 'numpy'} & sys.modules.keys()))"
    )

    done = subprocess.run([sys.executable, "-c", program], check=False)  # noqa: S603  # our own

    assert done.returncode == 0
