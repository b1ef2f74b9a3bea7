"""The rows of an endpoint that has another name now: they stay under its first one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

from gateway.runtime.outbound.spool import _NEXT
from gateway.runtime.outbound.spool_db import FILE_NAME
from tests.runtime.outbound.spool_rig import SpoolRig, spool_rig
from tests.waiting import PATIENCE, until

RENAMED = ("new", "old")  # the present name, and the first one


def spool(rig: SpoolRig, *names: str) -> None:
    """Let messages wait on disk, each in a row of its own."""
    for name in names:
        settled = len(rig.settled)
        rig.deliver(name)
        until(partial(lambda before: len(rig.settled) > before, settled))


def stored(folder: Path) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(folder / FILE_NAME)) as database:
        return database.execute("SELECT number, endpoint FROM batches ORDER BY number").fetchall()


def test_rows_of_both_names_are_sent_in_order_and_no_row_is_rewritten(tmp_path: Path) -> None:
    with spool_rig(tmp_path, names=["old"]) as rig:
        spool(rig, "m/1", "m/2")
    with spool_rig(tmp_path, names=["new"]) as rig:  # without `was`
        spool(rig, "m/3")
        assert rig.spool.backlog.messages == 1
    with spool_rig(tmp_path, names=RENAMED) as rig:
        assert rig.spool.backlog.messages == 3
        spool(rig, "m/4")
    assert stored(tmp_path) == [(1, "old"), (2, "old"), (3, "new"), (4, "old")]
    with spool_rig(tmp_path, names=["newest", "old"]) as rig:  # a second rename, and no other row
        assert rig.spool.backlog.messages == 3
    with spool_rig(tmp_path, names=RENAMED) as rig:
        rig.sink.up = True
        until(lambda: len(rig.delivered()) == 4)
        until(lambda: rig.waiting() == 0)

    assert [message.address for message in rig.sink.received] == ["m/1", "m/2", "m/3", "m/4"]
    assert rig.attempts() == {1}


def test_what_a_killed_run_may_have_sent_by_the_first_name_is_marked(tmp_path: Path) -> None:
    with spool_rig(tmp_path, names=["old"]) as rig:
        spool(rig, "m/1")
        assert rig.spool.mark(1) == 1  # and the process ends before the answer
        spool(rig, "m/2")
    with spool_rig(tmp_path, names=RENAMED) as rig:
        rig.sink.up = True
        until(lambda: len(rig.delivered()) == 2)
        rows = [each for each in rig.rows if each.common["leg"] == "delivered"]

    attempts = {name: each.common["attempt"] for each in rows for name in each.columns["name"]}
    assert attempts == {"m/1": 2, "m/2": 1}


def test_a_damaged_row_of_the_first_name_becomes_a_dead_letter(tmp_path: Path) -> None:
    with spool_rig(tmp_path, names=["old"]) as rig:
        spool(rig, "m/1", "m/2", "m/3")
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as database, database:
        database.execute("UPDATE batches SET body = x'c1' WHERE number = 2")
    with spool_rig(tmp_path, names=RENAMED) as rig:
        rig.sink.up = True
        until(lambda: rig.delivered() == ["m/1", "m/3"])
        until(lambda: rig.waiting() == 0)
        assert rig.database.flush(PATIENCE)
        (letter,) = rig.database.rows("SELECT rule, route, endpoint FROM letters")

    assert letter == ("spool-damaged", "relay", "new")


def test_a_row_whose_name_changed_on_the_disk_is_sent_to_nobody(tmp_path: Path) -> None:
    """Only a configuration moves a row to another target."""
    with spool_rig(tmp_path, names=["other"]) as rig:
        spool(rig, "m/1")
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as database, database:
        database.execute("UPDATE batches SET endpoint = 'old'")
    with spool_rig(tmp_path, names=RENAMED) as rig:
        rig.sink.up = True
        until(lambda: rig.waiting() == 0)
        assert not rig.sink.received


def test_a_read_of_two_names_sorts_no_rows(tmp_path: Path) -> None:
    """A sort would read each body of a large spool, once for every read."""
    with spool_rig(tmp_path, names=RENAMED) as rig:
        plan = rig.database.rows(f"EXPLAIN QUERY PLAN {_NEXT}", ["old", "new", 0, 9])
    steps = [str(row[-1]) for row in plan]
    assert "MERGE (UNION ALL)" in steps
    assert not any("TEMP B-TREE" in each or each.startswith("SCAN") for each in steps), steps
