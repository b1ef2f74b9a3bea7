"""The spool of an unreachable target: order, restart, limits and dead letters."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.archive.journal.records import MAGIC, Damage, pack, read_records
from gateway.archive.schema import REQUIRED
from gateway.errors import SpoolError
from gateway.model.dead_letter_rule import REFUSED
from gateway.model.message import Message, Value
from gateway.model.outcome import Outcome, Settlement, rejected
from gateway.routing.route import WhenFull
from gateway.runtime.delivery.backlog import MAX_JOINED, SpoolLimits
from gateway.runtime.outbound import spool_db
from gateway.runtime.outbound.dead_letters import COLUMNS, from_row
from gateway.runtime.outbound.spool_db import FILE_NAME
from tests.runtime.outbound.spool_rig import SpoolRig, _pending, spool_rig
from tests.runtime.outbound_batches import batch_of
from tests.threads import on_a_thread
from tests.waiting import PATIENCE, until


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
        "time = 'late'",
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


def test_a_time_that_is_no_number_does_not_keep_the_status_from_being_shown(
    tmp_path: Path,
) -> None:
    with spool_rig(tmp_path) as rig:
        rig.deliver("first")
        until(lambda: "first" in rig.settled)
        assert (rig.spool.waited() > 0.0, rig.spool.waited("relay") > 0.0) == (True, True)
    with sqlite3.connect(tmp_path / FILE_NAME) as database:
        database.execute("UPDATE batches SET time = 'late'")
        database.execute("UPDATE batch_routes SET time = 'late'")
    with spool_rig(tmp_path) as second:
        assert (second.spool.waited(), second.spool.waited("relay")) == (0.0, 0.0)


def test_a_stop_waits_for_answers_and_leaves_the_rest_on_disk(tmp_path: Path) -> None:
    with spool_rig(tmp_path, capacity=1) as rig:  # one batch in flight, the next one taken
        for part in range(4):
            rig.deliver(*[f"{part}/{number}" for number in range(MAX_JOINED)])
        until(lambda: len(rig.settled) == 4 * MAX_JOINED)
        rig.sink.mute = rig.sink.up = True
        until(lambda: len(rig.sink.received) == MAX_JOINED)
        stopping = threading.Thread(target=rig.lane.stop, args=(30,))
        stopping.start()
        until(lambda: rig.lane._lane.stopping)  # noqa: SLF001  # it sends nothing more from the disk
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
        rig.sink.answer = lambda _: rejected(REFUSED, "because")
        for number in range(200):
            rig.deliver(f"m/{number}", payload=b"x" * 1_000)
        rig.sink.up = True
        until(lambda: rig.counters.dead == 200)
        until(lambda: rig.waiting() == 0)


def test_the_oldest_dead_letters_are_deleted_and_counted(tmp_path: Path) -> None:
    with spool_rig(tmp_path, letters=5_000) as rig:
        rig.sink.answer = lambda _: rejected(REFUSED, "because")
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
