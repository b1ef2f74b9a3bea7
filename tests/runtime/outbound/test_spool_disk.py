"""A spool on a full, read-only or damaged disk."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from gateway.errors import SpoolError
from gateway.model.outcome import Outcome
from gateway.routing.route import WhenFull
from gateway.runtime.delivery.actions import Action
from gateway.runtime.delivery.backlog import SpoolLimits
from gateway.runtime.delivery.outbound_batch import OutboundBatch
from gateway.runtime.outbound.lane import ROOM_INTERVAL
from gateway.runtime.outbound.spool_db import FILE_NAME, RETRY_INTERVAL, SpoolDatabase
from tests.runtime.outbound.spool_rig import SpoolRig, spool_rig
from tests.runtime.outbound.test_spool import one
from tests.small_disks import make_read_only, mounted, mounted_ext4
from tests.waiting import PATIENCE, until


def test_a_full_disk_delays_settlement_until_it_is_writable(tmp_path: Path) -> None:
    with spool_rig(tmp_path) as rig:
        blocker = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
        blocker.execute("BEGIN EXCLUSIVE")  # every write fails, as on a full disk
        rig.database._writing.execute("PRAGMA busy_timeout = 1")  # noqa: SLF001  # not to wait 10 s
        rig.deliver("a")
        until(lambda: bool(rig.database.failure))
        assert not rig.settled
        blocker.execute("ROLLBACK")
        blocker.close()
        until(lambda: rig.settled == {"a": Outcome.SPOOLED})
        until(lambda: not rig.database.failure)  # after the last call-back


def test_a_full_disk_is_freed_by_what_the_target_takes(tmp_path: Path) -> None:
    """New copies find no room, but those that are delivered are marked and deleted."""
    with spool_rig(tmp_path) as rig:
        rig.deliver("old", payload=b"x" * 200_000)
        until(lambda: rig.settled == {"old": Outcome.SPOOLED})
        limit_pages(rig, int(one(rig, "PRAGMA page_count")))
        rig.deliver("new", payload=b"y" * 400_000)
        until(lambda: bool(rig.database.failure))
        rig.sink.up = True
        until(lambda: rig.delivered() == ["old"])
        assert int(one(rig, "SELECT number FROM marks")) > 0
        assert "new" not in rig.settled
        limit_pages(rig, 1 << 20)
        until(lambda: rig.delivered() == ["old", "new"])
        until(lambda: not rig.database.failure)
        assert rig.waiting() == 0

    assert [message.address for message in rig.sink.received] == ["old", "new"]


def test_a_full_disk_takes_new_copies_again_when_the_target_is_back(tmp_path: Path) -> None:
    """More waits than fits into one transaction on the disk, which was full before."""
    with mounted(tmp_path, megabytes=24) as disk, spool_rig(disk / "spool") as rig:
        names = [f"n{number}" for number in range(700)]

        def feed() -> None:
            for name in names:
                rig.spool.wait_for_disk()
                rig.deliver(name, payload=b"x" * 60_000)

        feeding = threading.Thread(target=feed)
        feeding.start()
        until(lambda: bool(rig.database.failure))
        rig.sink.up = True
        until(lambda: len(rig.settled) == len(names))
        feeding.join(PATIENCE)
        until(lambda: rig.delivered() == names)
        until(lambda: not rig.database.failure)
        assert rig.waiting() == 0


def test_a_disk_that_becomes_read_only_leaves_the_writer_alive(tmp_path: Path) -> None:
    with mounted_ext4(tmp_path, megabytes=24) as disk, spool_rig(disk / "spool") as rig:
        rig.deliver("old")
        until(lambda: rig.settled == {"old": Outcome.SPOOLED})
        make_read_only(disk)
        rig.deliver("new")
        rig.sink.up = True  # a mark needs no room
        until(lambda: bool(rig.database.failure))
        assert rig.database.flush(3 * RETRY_INTERVAL) is False
        assert rig.database._thread.is_alive()  # noqa: SLF001  # every target depends on it
        assert "new" not in rig.settled


def fail_to_read(rig: SpoolRig, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    read, failed = rig.database.rows, list[str]()

    def fail(query: str, values: Sequence[object] = (), *, size: int | None = None) -> object:
        if size is not None and len(failed) < times:
            failed.append(query)
            raise SpoolError("disk I/O error")
        return read(query, values, size=size)

    monkeypatch.setattr(rig.database, "rows", fail)


def limit_pages(rig: SpoolRig, pages: int) -> None:
    rig.database._writing.execute(f"PRAGMA max_page_count = {pages}").fetchall()  # noqa: SLF001  # the disk's room


def test_a_disk_that_cannot_be_read_is_asked_again_after_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with spool_rig(tmp_path) as rig:
        rig.deliver("a")
        until(lambda: len(rig.settled) == 1)
        fail_to_read(rig, 2, monkeypatch)
        before = rig.sink.opened
        rig.sink.up = True
        until(lambda: rig.delivered() == ["a"])

        assert rig.sink.opened - before == 3  # each failure takes a new connection, with its pause


def test_a_source_that_waits_for_the_disk_looks_for_room_at_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest copy can be given up when it is on the disk, which answers nothing now."""
    with spool_rig(tmp_path, SpoolLimits(1 << 30, messages=1)) as rig:
        blocker = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
        blocker.execute("BEGIN EXCLUSIVE")
        rig.database._writing.execute("PRAGMA busy_timeout = 1")  # noqa: SLF001  # not to wait 10 s
        rig.deliver("a")
        rig.sink.up = True
        until(lambda: rig.lane.sending)
        state, looks = rig.lane._lane, list[float]()  # noqa: SLF001  # to count its calls
        accept = state.accept

        def counted(batch: OutboundBatch, now: float) -> Action | None:
            looks.append(now)
            return accept(batch, now)

        monkeypatch.setattr(state, "accept", counted)
        source = threading.Thread(target=partial(rig.deliver, "b", when=WhenFull.OLDEST))
        source.start()
        until(lambda: len(looks) > 10)
        blocker.execute("ROLLBACK")
        blocker.close()
        source.join(PATIENCE)
        until(lambda: len(rig.settled) == 2)

    assert looks[10] - looks[0] > 5 * ROOM_INTERVAL


def test_a_source_waits_while_the_oldest_copy_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error would leave its batch without a lane and without an outcome, for ever."""
    with spool_rig(tmp_path, SpoolLimits(1 << 30, messages=1)) as rig:
        rig.deliver("a")
        until(lambda: len(rig.settled) == 1)
        fail_to_read(rig, 2, monkeypatch)
        rig.deliver("b", when=WhenFull.OLDEST)
        until(lambda: len(rig.settled) == 2)
        (letter,) = rig.kept_letters()
        rig.sink.up = True
        until(lambda: rig.delivered() == ["b"])

    assert (letter.rule, letter.message.address) == ("spool-full", "a")


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """SQLite puts the damaged name, which is not UTF-8, into the text of its error."""
    with spool_rig(tmp_path) as rig:
        rig.deliver("a")
        until(lambda: len(rig.settled) == 1)
    content = (tmp_path / FILE_NAME).read_bytes()
    assert content.count(b"CREATE TABLE letters") == 1
    damaged = content.replace(b"CREATE TABLE letters", b"CRE\xc1TE TABLE letters")
    (tmp_path / FILE_NAME).write_bytes(damaged)

    with pytest.raises(SpoolError, match="spool"):
        SpoolDatabase(tmp_path)


def test_a_spool_of_another_version_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)) as database:
        database.execute("CREATE TABLE parcels (number INTEGER PRIMARY KEY)")
    before = (tmp_path / FILE_NAME).read_bytes()

    with pytest.raises(SpoolError, match="has version 0, and this gateway reads 2; send its"):
        SpoolDatabase(tmp_path)
    with spool_rig(tmp_path / "new"):
        pass
    with closing(sqlite3.connect(tmp_path / "new" / FILE_NAME, isolation_level=None)) as database:
        database.execute("PRAGMA user_version = 9")
    with pytest.raises(SpoolError, match="has version 9, and this gateway reads 2"):
        SpoolDatabase(tmp_path / "new")

    assert (tmp_path / FILE_NAME).stat().st_size == len(before)


def test_two_gateways_cannot_use_one_folder(tmp_path: Path) -> None:
    with spool_rig(tmp_path), pytest.raises(SpoolError, match="another gateway uses it"):
        SpoolDatabase(tmp_path)
