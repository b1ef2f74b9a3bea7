"""The spool of an unreachable target: order, restart, limits and dead letters."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import pytest

from gateway.archive.journal.records import MAGIC, Cell, Damage, Rows, pack, read_records
from gateway.archive.schema import REQUIRED
from gateway.errors import SpoolError
from gateway.model.message import Message, Value
from gateway.model.outcome import Outcome, Settlement, rejected
from gateway.routing.route import WhenFull
from gateway.runtime.delivery.backlog import MAX_JOINED, SpoolLimits
from gateway.runtime.delivery.dead_letter import DeadLetter
from gateway.runtime.delivery.lane import MAX_HELD_BYTES, LaneLimits
from gateway.runtime.delivery.outbound_batch import PendingRow
from gateway.runtime.delivery.rows import fingerprint
from gateway.runtime.outbound import spool_db
from gateway.runtime.outbound.dead_letters import COLUMNS, DeadLetters, from_row
from gateway.runtime.outbound.lane import Lane, SinkBinding
from gateway.runtime.outbound.spool import Spool
from gateway.runtime.outbound.spool_db import FILE_NAME, RETRY_INTERVAL, SpoolDatabase
from gateway.runtime.record.counters import EndpointState, RouteCounters
from gateway.runtime.record.ledger import Ledger
from tests.runtime.outbound_batches import batch_of
from tests.runtime.targets import ScriptedSink
from tests.small_disks import make_read_only, mounted, mounted_ext4
from tests.threads import on_a_thread
from tests.waiting import PATIENCE, until

BACKOFF = (0.01, 0.02)
LIMITS = SpoolLimits(1 << 30)


class SpoolRig:
    """A lane with a spool that records settlements and rows."""

    def __init__(self, folder: Path, limits: SpoolLimits, letters: int, capacity: int) -> None:
        self.sink = ScriptedSink()
        self.sink.up = False
        self.settled: dict[str, Outcome] = {}  # as the source sees it
        self.outcome = "accepted"  # of the pending rows
        self.rows: list[Rows] = []
        self.counters = RouteCounters()
        self.database = SpoolDatabase(folder)
        self.letters = DeadLetters(self.database, letters)
        ticks = count(1)
        self.ledger = Ledger(
            {"relay": self.counters}, self._archive, self.letters.put, clock=lambda: next(ticks)
        )
        self.spool = Spool("target", self.database, self.ledger, limits)
        binding = SinkBinding(self.sink, "mqtt", frozenset(), LaneLimits(BACKOFF, capacity))
        self.lane = Lane(binding, EndpointState("target", "sink"), self.spool)
        self.lane.start()

    def deliver(self, *names: str, payload: bytes = b"x", when: WhenFull = WhenFull.SLOW) -> None:
        messages = [Message(name, payload) for name in names]

        def done(settlements: Sequence[Settlement], _: int) -> None:
            for name, settled in zip(names, settlements, strict=True):
                assert name not in self.settled, "settled twice"
                self.settled[name] = settled.outcome

        size = sum(len(message.payload) for message in messages)
        pending = _pending(names, payload, self.outcome)
        self.lane.deliver(batch_of(messages, done, pending, size=size, when=when))

    def delivered(self) -> list[str]:
        """The names in delivered rows, in their order."""
        rows = [rows for rows in self.rows if rows.common["leg"] == "delivered"]
        return [str(name) for each in rows for name in each.columns["name"]]

    def spooled(self) -> list[str]:
        """The names in spooled rows."""
        rows = [rows for rows in self.rows if rows.common["leg"] == "spooled"]
        return [str(name) for each in rows for name in each.columns["name"]]

    def attempts(self) -> set[object]:
        return {rows.common["attempt"] for rows in self.rows if rows.common["leg"] == "delivered"}

    def kept_letters(self) -> list[DeadLetter]:
        self.database.flush(10)
        return [
            from_row(row) for row in self.database.rows("SELECT * FROM letters ORDER BY number")
        ]

    def waiting(self) -> int:
        """The rows on disk; their changes have been called back."""
        self.database.flush(10)
        rows = int(str(self.database.rows("SELECT COUNT(*) FROM batches")[0][0]))
        self.database.flush(10)
        return rows

    def close(self) -> None:
        self.lane.stop()
        self.database.close(PATIENCE)

    def _archive(self, rows: Sequence[Rows], durable: Callable[[], None]) -> None:
        self.rows += rows
        durable()


def _pending(
    names: Sequence[str], payload: bytes = b"x", outcome: str = "accepted"
) -> list[PendingRow]:
    common: dict[str, Cell] = {
        "gateway": "g", "route": "relay", "leg": "delivered", "outcome": outcome, "time": 0,
        "endpoint": "target", "system": "mqtt", "target": "target", "attempt": 0,
    }  # fmt: skip
    columns: dict[str, list[Cell]] = {
        "name": list(names),
        "id": [name.encode().ljust(16) for name in names],
    }
    columns["source_name"] = [f"src/{each}" for each in names]
    columns["hash"] = [fingerprint(payload)[1]] * len(names)
    rows = Rows(len(names), common, columns)
    return [PendingRow(tuple(range(len(names))), rows, "source")]


@contextmanager
def spool_rig(
    folder: Path,
    limits: SpoolLimits = LIMITS,
    letters: int = 1 << 20,
    capacity: int = MAX_HELD_BYTES,
) -> Iterator[SpoolRig]:
    rig = SpoolRig(folder, limits, letters, capacity)
    try:
        yield rig
    finally:
        rig.close()


def test_spooled_messages_are_settled_at_once_and_delivered_later_in_order(
    tmp_path: Path,
) -> None:
    names = [f"m/{number}" for number in range(500)]
    with spool_rig(tmp_path) as rig:
        for name in names:
            rig.deliver(name)
        until(lambda: len(rig.settled) == 500)
        assert set(rig.settled.values()) == {Outcome.SPOOLED}
        assert not rig.sink.received
        rig.sink.up = True
        until(lambda: len(rig.delivered()) == 500)
        until(lambda: rig.waiting() == 0)
        assert (rig.spool.backlog.messages, rig.spool.backlog.bytes) == (0, 0)

    assert [message.address for message in rig.sink.received] == names
    assert rig.delivered() == names
    assert rig.attempts() == {1}


def test_the_spooled_row_of_a_copy_is_earlier_than_its_outcome(tmp_path: Path) -> None:
    """The latest row of a copy says what became of it."""
    with spool_rig(tmp_path) as rig:
        rig.deliver("m/1", "m/2")
        until(lambda: len(rig.settled) == 2)
        rig.sink.up = True
        until(lambda: len(rig.delivered()) == 2)

    spooled, delivered = (int(str(rows.common["time"])) for rows in rig.rows)
    assert spooled < delivered


def test_new_messages_queue_behind_the_spool(tmp_path: Path) -> None:
    with spool_rig(tmp_path) as rig:
        for number in range(100):
            rig.deliver(f"old/{number}")
        rig.sink.up = True
        for number in range(100):
            rig.deliver(f"new/{number}")
        until(lambda: len(rig.sink.received) == 200)
        until(lambda: rig.lane.direct)
        rig.deliver("last")
        until(lambda: len(rig.sink.received) == 201)

    wanted = [f"old/{n}" for n in range(100)] + [f"new/{n}" for n in range(100)] + ["last"]
    assert [message.address for message in rig.sink.received] == wanted
    assert rig.settled["last"] is Outcome.ACCEPTED  # sent directly


def test_unanswered_batches_are_spooled_before_newer_ones(
    tmp_path: Path,
) -> None:
    with spool_rig(tmp_path) as rig:
        rig.sink.up = True
        until(lambda: rig.lane.direct)
        rig.sink.mute = True
        for number in range(20):
            rig.deliver(f"old/{number}")
        rig.sink.mute = False
        rig.sink.drop()
        for number in range(20):
            rig.deliver(f"new/{number}")
        until(lambda: len(rig.settled) == 40)
        assert set(rig.settled.values()) == {Outcome.SPOOLED}
        before = len(rig.sink.received)
        rig.sink.up = True
        until(lambda: len(rig.delivered()) == 40)

    wanted = [f"old/{n}" for n in range(20)] + [f"new/{n}" for n in range(20)]
    assert [message.address for message in rig.sink.received[before:]] == wanted
    assert rig.attempts() == {1, 2}  # 2: sent before the connection was lost


def test_a_restart_drains_the_spool_and_marks_batches_that_may_have_been_sent(
    tmp_path: Path,
) -> None:
    with spool_rig(tmp_path) as rig:
        for number in range(50):
            rig.deliver(f"m/{number}")
        until(lambda: len(rig.settled) == 50)
        rig.sink.mute = True  # the run ends before the answers
        rig.sink.up = True
        until(lambda: len(rig.sink.received) == 50)
    with spool_rig(tmp_path) as second:
        assert second.spool.backlog.messages == 50
        second.deliver("new")
        second.sink.up = True
        until(lambda: len(second.delivered()) == 51)
        until(lambda: second.waiting() == 0)

    assert [message.address for message in second.sink.received] == [
        f"m/{n}" for n in range(50)
    ] + ["new"]
    assert second.attempts() == {1, 2}
    # recorded again: their receipt may be lost, or wait for another target
    assert second.spooled() == [*(f"m/{n}" for n in range(50)), "new"]


@pytest.mark.parametrize(
    "change",
    [
        "body = CAST(replace(body, 'first', 'fir3t') AS BLOB)",
        "body = 'text'",
        "body = x''",
        "number = 3",
        "time = time + 64",
        "messages = 'two'",
        "checksum = x''",
    ],
)
def test_a_row_that_changed_on_disk_becomes_a_dead_letter_that_no_command_sends(
    tmp_path: Path, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    with spool_rig(tmp_path) as rig:
        rig.deliver("first", payload=b"first")
        until(lambda: "first" in rig.settled)
        rig.deliver("second")
        until(lambda: len(rig.settled) == 2)
    with sqlite3.connect(tmp_path / FILE_NAME) as database:
        database.execute(f"UPDATE batches SET {change} WHERE number = 1")  # noqa: S608  # a constant
    with spool_rig(tmp_path) as second:
        second.sink.up = True
        until(lambda: second.delivered() == ["second"])
        until(lambda: second.waiting() == 0)
        second.database.flush(PATIENCE)
        letters = second.database.rows(f"SELECT {', '.join(COLUMNS)} FROM letters")  # noqa: S608  # constants
        assert second.spool.backlog.messages in {0, 1}  # a changed count was counted at the start

    assert [message.address for message in second.sink.received] == ["second"]
    (letter,) = letters
    assert letter[COLUMNS.index("rule")] == "spool-damaged"
    assert letter[COLUMNS.index("route")] in {"relay", "unknown"}  # a changed number has no route
    with pytest.raises(SpoolError):
        from_row(letter)
    (dead,) = (rows for rows in second.rows if rows.common["leg"] == "dead")
    assert dead.common["rule"] == "spool-damaged"
    journal = MAGIC + pack([dead], {"gateway": "g"})
    assert not any(isinstance(each, Damage) for each in read_records(journal, required=REQUIRED))
    assert "is damaged and is not sent" in caplog.text
    with spool_rig(tmp_path) as third:  # it is recorded once
        third.sink.up = True
        until(lambda: third.lane.direct)
        assert not third.rows


def test_a_stop_waits_for_answers_and_leaves_the_rest_on_disk(tmp_path: Path) -> None:
    with spool_rig(tmp_path, capacity=1) as rig:  # one batch in flight, the next one taken
        for part in range(4):
            rig.deliver(*[f"{part}/{number}" for number in range(MAX_JOINED)])
        until(lambda: len(rig.settled) == 4 * MAX_JOINED)
        rig.sink.mute = rig.sink.up = True
        until(lambda: len(rig.sink.received) == MAX_JOINED)
        stopping = threading.Thread(target=rig.lane.stop, args=(30,))
        stopping.start()
        until(lambda: rig.lane.stopping)
        rig.sink.answer_all()
        stopping.join(PATIENCE)
        assert not stopping.is_alive()
        sent = [message.address for message in rig.sink.received]
        assert rig.delivered() == sent
        assert len(sent) in {MAX_JOINED, 2 * MAX_JOINED}
        assert rig.waiting() == 4 - len(sent) // MAX_JOINED


def test_one_poisoned_message_does_not_block_the_spool(tmp_path: Path) -> None:
    with spool_rig(tmp_path) as rig:
        rig.sink.kills = lambda message: message.address == "bad"
        for name in ("a", "b", "bad", "c", "d"):
            rig.deliver(name)
        until(lambda: len(rig.settled) == 5)
        rig.sink.up = True
        until(lambda: len(rig.delivered()) == 4)
        until(lambda: rig.waiting() == 0)
        (letter,) = rig.kept_letters()

    assert rig.delivered() == ["a", "b", "c", "d"]
    assert (letter.rule, letter.route, letter.source_name) == ("poisoned", "relay", "src/bad")
    assert letter.message == Message("bad", b"x")
    assert letter.attempts > 3


def test_a_full_spool_slows_the_source(tmp_path: Path) -> None:

    with spool_rig(tmp_path, SpoolLimits(1 << 30, messages=10)) as rig:

        def feed() -> None:
            for number in range(30):
                rig.deliver(f"m/{number}")

        feeder = threading.Thread(target=feed)
        feeder.start()
        until(lambda: len(rig.settled) == 10)
        assert feeder.is_alive()
        assert rig.spool.backlog.messages == 10
        rig.sink.up = True
        feeder.join(PATIENCE)
        until(lambda: len(rig.sink.received) == 30)

    assert [message.address for message in rig.sink.received] == [f"m/{n}" for n in range(30)]


@pytest.mark.parametrize(
    ("when", "dead"),
    [(WhenFull.NEWEST, range(10, 30)), (WhenFull.OLDEST, range(20))],
    ids=["newest", "oldest"],
)
def test_a_full_spool_rejects_the_messages_that_when_full_selects(
    tmp_path: Path, when: WhenFull, dead: range
) -> None:
    with spool_rig(tmp_path, SpoolLimits(1 << 30, messages=10)) as rig:
        for number in range(30):
            rig.deliver(f"m/{number}", when=when)
        until(lambda: len(rig.settled) == 30)
        letters = rig.kept_letters()
        rig.sink.up = True
        until(lambda: len(rig.delivered()) == 10)

    assert {letter.rule for letter in letters} == {"spool-full"} or when is WhenFull.NEWEST
    left = [f"m/{n}" for n in range(30) if n not in dead]
    assert [message.address for message in rig.sink.received] == left
    rejects = [name for name, end in rig.settled.items() if end is Outcome.REJECTED]
    if when is WhenFull.NEWEST:  # the batch in flight writes the letters
        assert rejects == [f"m/{n}" for n in dead]
    else:
        assert [letter.message.address for letter in letters] == [f"m/{n}" for n in dead]


def test_an_expired_message_becomes_a_dead_letter(tmp_path: Path) -> None:
    with spool_rig(tmp_path) as rig:
        rig.deliver("a")
        until(lambda: len(rig.settled) == 1)
    with spool_rig(tmp_path, SpoolLimits(1 << 30, seconds=0.0)) as rig:
        until(lambda: len(rig.kept_letters()) == 1)
        rig.sink.up = True
        until(lambda: rig.lane.direct)
        assert not rig.sink.received
        assert rig.kept_letters()[0].rule == "spool-age"


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


def limit_pages(rig: SpoolRig, pages: int) -> None:
    rig.database._writing.execute(f"PRAGMA max_page_count = {pages}").fetchall()  # noqa: SLF001  # the disk's room


def one(rig: SpoolRig, query: str) -> str:
    return str(rig.database.rows(query)[0][0])


def test_batches_keep_their_order_when_the_oldest_are_rejected_at_a_break(tmp_path: Path) -> None:
    """A batch that was sent and has no answer is older than one that waits on disk."""
    limits = SpoolLimits(1 << 30, messages=10)
    with spool_rig(tmp_path, limits) as rig:
        rig.sink.up = True
        until(lambda: rig.lane.direct)
        rig.sink.mute = True
        for number in range(30):
            rig.deliver(f"sent/{number}", when=WhenFull.OLDEST)
        rig.sink.mute = False
        rig.sink.drop()
        for number in range(30):
            rig.deliver(f"new/{number}", when=WhenFull.OLDEST)
        until(lambda: len(rig.settled) == 60)
        kept = [letter.message.address for letter in rig.kept_letters()]
        before = len(rig.sink.received)
        rig.sink.up = True
        until(lambda: rig.waiting() == 0)

    arrived = [message.address for message in rig.sink.received[before:]]
    names = [f"sent/{number}" for number in range(30)] + [f"new/{number}" for number in range(30)]
    assert sorted(kept + arrived, key=names.index) == names
    assert arrived == names[-len(arrived) :]


def test_dead_letters_of_the_spool_do_not_wait_for_its_own_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that makes a batch durable also records its dead letters."""
    monkeypatch.setattr(spool_db, "MAX_QUEUED_BYTES", 10_000)
    with spool_rig(tmp_path) as rig:
        rig.sink.answer = lambda _: rejected("no", "because")
        for number in range(200):
            rig.deliver(f"m/{number}", payload=b"x" * 1_000)
        rig.sink.up = True
        until(lambda: rig.counters.dead == 200)
        until(lambda: rig.waiting() == 0)


def test_a_disk_that_cannot_be_read_is_asked_again_after_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with spool_rig(tmp_path) as rig:
        rig.deliver("a")
        until(lambda: len(rig.settled) == 1)
        read, failed = rig.database.rows_up_to, list[object]()

        def fail_twice(*arguments: object) -> object:
            if len(failed) < 2:
                failed.append(arguments)
                raise SpoolError("disk I/O error")
            return read(*arguments)  # type: ignore[arg-type]  # as it got them

        monkeypatch.setattr(rig.database, "rows_up_to", fail_twice)
        before = rig.sink.opened
        rig.sink.up = True
        until(lambda: rig.delivered() == ["a"])

        assert rig.sink.opened - before == 3  # each failure takes a new connection, with its pause


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """SQLite puts the damaged name, which is no UTF-8, into the text of its error."""
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

    with pytest.raises(SpoolError, match="has version 0, and this gateway reads 1; send its"):
        SpoolDatabase(tmp_path)
    with spool_rig(tmp_path / "new"):
        pass
    with closing(sqlite3.connect(tmp_path / "new" / FILE_NAME, isolation_level=None)) as database:
        database.execute("PRAGMA user_version = 9")
    with pytest.raises(SpoolError, match="has version 9, and this gateway reads 1"):
        SpoolDatabase(tmp_path / "new")

    assert (tmp_path / FILE_NAME).stat().st_size == len(before)


def test_two_gateways_cannot_use_one_folder(tmp_path: Path) -> None:
    with spool_rig(tmp_path), pytest.raises(SpoolError, match="another gateway uses it"):
        SpoolDatabase(tmp_path)


def test_the_oldest_dead_letters_are_deleted_and_counted(tmp_path: Path) -> None:
    with spool_rig(tmp_path, letters=5_000) as rig:
        rig.sink.answer = lambda _: rejected("no", "because")
        for number in range(10):
            rig.deliver(f"m/{number}", payload=b"x" * 1_000)
        until(lambda: len(rig.settled) == 10)
        rig.sink.up = True
        until(lambda: rig.waiting() == 0)
        kept = [letter.message.address for letter in rig.kept_letters()]

    assert kept == [f"m/{n}" for n in range(10)][-len(kept) :]
    assert 0 < len(kept) < 5
    assert rig.letters.count == len(kept)
    assert rig.letters.dropped == 10 - len(kept)
    assert rig.counters.dead == 10


@on_a_thread
def test_a_message_without_a_form_on_disk_is_rejected_alone(tmp_path: Path) -> None:
    nested: list[Value] = []
    for _ in range(100_000):
        nested = [nested]
    answers: list[Sequence[Settlement]] = []
    messages = [Message("a", b"x"), Message("b", {"n": nested}), Message("c", b"x")]
    with spool_rig(tmp_path) as rig:
        batch = batch_of(messages, lambda found, _: answers.append(found), _pending("abc"))
        rig.lane.deliver(batch)
        until(lambda: bool(answers))
        rig.sink.up = True
        until(lambda: rig.delivered() == ["a", "c"])

    first, second, third = answers[0]
    assert [first.outcome, third.outcome] == [Outcome.SPOOLED] * 2
    assert (second.outcome, second.rule) == (Outcome.REJECTED, "unstorable")


def test_a_batch_without_any_form_on_disk_is_rejected(tmp_path: Path) -> None:
    answers: list[Sequence[Settlement]] = []
    with spool_rig(tmp_path) as rig:
        messages = [Message("a", {"n": object()})]  # type: ignore[dict-item]
        batch = batch_of(messages, lambda found, _: answers.append(found), _pending("a"))
        rig.lane.deliver(batch)
        until(lambda: bool(answers))
        assert rig.waiting() == 0
        rig.deliver("b")
        rig.sink.up = True
        until(lambda: rig.delivered() == ["b"])

    assert [each.rule for each in answers[0]] == ["unstorable"]
