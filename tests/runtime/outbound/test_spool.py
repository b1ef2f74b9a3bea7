"""The spool: what a target that is away still gets, in order, over a crash, and within bounds."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.archive.journal.records import Cell, Rows
from gateway.errors import SpoolError
from gateway.model.message import Message
from gateway.model.outcome import Outcome, Settlement, rejected
from gateway.routing.route import WhenFull
from gateway.runtime.monitor.counters import EndpointState, RouteCounters
from gateway.runtime.outbound.backlog import Parcel
from gateway.runtime.outbound.dead_letters import DeadLetters, Letter, to_letter
from gateway.runtime.outbound.lane import CAPACITY, Lane, Outlet
from gateway.runtime.outbound.spool import JOINED, Bounds, Spool
from gateway.runtime.outbound.spool_codec import End
from gateway.runtime.outbound.spool_db import FILE, Store
from gateway.runtime.record.ledger import Ledger
from tests.runtime.targets import ScriptedSink
from tests.waiting import PATIENCE, until

BACKOFF = (0.01, 0.02)
ROOM = Bounds(1 << 30)


class Bench:
    """A lane with a spool, and what became of everything; mutable."""

    def __init__(self, folder: Path, bounds: Bounds, letters: int, capacity: int) -> None:
        self.sink = ScriptedSink()
        self.sink.up = False
        self.settled: dict[str, Outcome] = {}  # as the source sees it
        self.rows: list[Rows] = []
        self.counters = RouteCounters()
        self.store = Store(folder)
        self.letters = DeadLetters(self.store, letters)
        self.ledger = Ledger({"relay": self.counters}, self._archive, self.letters)
        self.spool = Spool("target", self.store, self.ledger, bounds)
        outlet = Outlet(self.sink, "mqtt", frozenset(), BACKOFF, capacity)
        self.lane = Lane(outlet, EndpointState("target", "sink"), self.spool)
        self.lane.start()

    def deliver(self, *names: str, payload: bytes = b"x", when: WhenFull = WhenFull.SLOW) -> None:
        messages = [Message(name, payload) for name in names]

        def done(settlements: Sequence[Settlement], _: int) -> None:
            for name, settled in zip(names, settlements, strict=True):
                assert name not in self.settled, "settled twice"
                self.settled[name] = settled.outcome

        size = sum(len(message.payload) for message in messages)
        self.lane.deliver(Parcel(messages, size, done, lambda: _ends(names), when))

    def delivered(self) -> list[str]:
        """Names by delivered row, in the order of the rows."""
        rows = [rows for rows in self.rows if rows.common["leg"] == "delivered"]
        return [str(name) for each in rows for name in each.columns["name"]]

    def spooled(self) -> list[str]:
        """Names by spooled row; of a parcel that an earlier run put."""
        rows = [rows for rows in self.rows if rows.common["leg"] == "spooled"]
        return [str(name) for each in rows for name in each.columns["name"]]

    def attempts(self) -> set[object]:
        return {rows.common["attempt"] for rows in self.rows if rows.common["leg"] == "delivered"}

    def kept_letters(self) -> list[Letter]:
        self.store.flush(10)
        return [to_letter(row) for row in self.store.rows("SELECT * FROM letters ORDER BY number")]

    def waiting(self) -> int:
        self.store.flush(10)
        return int(str(self.store.rows("SELECT COUNT(*) FROM parcels")[0][0]))

    def close(self) -> None:
        self.lane.stop()
        self.store.close(PATIENCE)

    def _archive(self, rows: Sequence[Rows], durable: Callable[[], None]) -> None:
        self.rows += rows
        durable()


def _ends(names: Sequence[str]) -> list[End]:
    common: dict[str, Cell] = {
        "gateway": "g", "route": "relay", "leg": "delivered", "outcome": "accepted", "time": 0,
        "endpoint": "target", "system": "mqtt", "target": "target", "attempt": 0,
    }  # fmt: skip
    columns: dict[str, list[Cell]] = {
        "name": list(names),
        "id": [name.encode().ljust(16) for name in names],
    }
    columns["source_name"] = [f"src/{each}" for each in names]
    rows = Rows(len(names), common, columns)
    return [End(tuple(range(len(names))), rows, "source")]


@contextmanager
def bench(
    folder: Path, bounds: Bounds = ROOM, letters: int = 1 << 20, capacity: int = CAPACITY
) -> Iterator[Bench]:
    made = Bench(folder, bounds, letters, capacity)
    try:
        yield made
    finally:
        made.close()


def test_the_source_is_settled_while_the_target_is_away_and_the_target_gets_all_in_order(
    tmp_path: Path,
) -> None:
    names = [f"m/{number}" for number in range(500)]
    with bench(tmp_path) as at:
        for name in names:
            at.deliver(name)
        until(lambda: len(at.settled) == 500)
        assert set(at.settled.values()) == {Outcome.SPOOLED}
        assert not at.sink.got
        at.sink.up = True
        until(lambda: len(at.delivered()) == 500)
        until(lambda: at.waiting() == 0)
        assert (at.spool.messages, at.spool.bytes) == (0, 0)

    assert [message.address for message in at.sink.got] == names
    assert at.delivered() == names
    assert at.attempts() == {1}


def test_new_traffic_queues_behind_what_waits(tmp_path: Path) -> None:
    with bench(tmp_path) as at:
        for number in range(100):
            at.deliver(f"old/{number}")
        at.sink.up = True
        for number in range(100):
            at.deliver(f"new/{number}")
        until(lambda: len(at.sink.got) == 200)
        until(lambda: at.lane.direct)
        at.deliver("last")
        until(lambda: len(at.sink.got) == 201)

    wanted = [f"old/{n}" for n in range(100)] + [f"new/{n}" for n in range(100)] + ["last"]
    assert [message.address for message in at.sink.got] == wanted
    assert at.settled["last"] is Outcome.ACCEPTED  # it went straight


def test_what_was_under_way_at_a_break_goes_to_disk_before_what_came_later(
    tmp_path: Path,
) -> None:
    with bench(tmp_path) as at:
        at.sink.up = True
        until(lambda: at.lane.direct)
        at.sink.mute = True
        for number in range(20):
            at.deliver(f"old/{number}")
        at.sink.mute = False
        at.sink.drop()
        for number in range(20):
            at.deliver(f"new/{number}")
        until(lambda: len(at.settled) == 40)
        assert set(at.settled.values()) == {Outcome.SPOOLED}
        before = len(at.sink.got)
        at.sink.up = True
        until(lambda: len(at.delivered()) == 40)

    wanted = [f"old/{n}" for n in range(20)] + [f"new/{n}" for n in range(20)]
    assert [message.address for message in at.sink.got[before:]] == wanted
    assert at.attempts() == {1, 2}  # those of before are marked as sent again


def test_a_restart_finds_everything_and_marks_what_may_have_been_sent(tmp_path: Path) -> None:
    with bench(tmp_path) as at:
        for number in range(50):
            at.deliver(f"m/{number}")
        until(lambda: len(at.settled) == 50)
        at.sink.mute = True  # it takes them, and dies before it answers
        at.sink.up = True
        until(lambda: len(at.sink.got) == 50)
    with bench(tmp_path) as again:
        assert again.spool.messages == 50
        again.deliver("new")
        again.sink.up = True
        until(lambda: len(again.delivered()) == 51)
        until(lambda: again.waiting() == 0)

    assert [message.address for message in again.sink.got] == [f"m/{n}" for n in range(50)] + [
        "new"
    ]
    assert again.attempts() == {1, 2}
    assert again.spooled() == [f"m/{n}" for n in range(50)]  # its receipt may never have come


def test_a_stop_waits_for_answers_and_takes_nothing_more_from_the_disk(tmp_path: Path) -> None:
    with bench(tmp_path, capacity=1) as at:  # one parcel under way, the next is taken
        for part in range(4):
            at.deliver(*[f"{part}/{number}" for number in range(JOINED)])
        until(lambda: len(at.settled) == 4 * JOINED)
        at.sink.mute = at.sink.up = True
        until(lambda: len(at.sink.got) == JOINED)
        stopping = threading.Thread(target=at.lane.stop, args=(30,))
        stopping.start()
        until(lambda: at.lane.finishing)
        at.sink.speak()
        stopping.join(PATIENCE)
        assert not stopping.is_alive()
        sent = [message.address for message in at.sink.got]
        assert at.delivered() == sent
        assert len(sent) in {JOINED, 2 * JOINED}
        assert at.waiting() == 4 - len(sent) // JOINED


def test_one_poisoned_message_does_not_hold_up_the_spool(tmp_path: Path) -> None:
    with bench(tmp_path) as at:
        at.sink.kills = lambda message: message.address == "bad"
        for name in ("a", "b", "bad", "c", "d"):
            at.deliver(name)
        until(lambda: len(at.settled) == 5)
        at.sink.up = True
        until(lambda: len(at.delivered()) == 4)
        until(lambda: at.waiting() == 0)
        (letter,) = at.kept_letters()

    assert at.delivered() == ["a", "b", "c", "d"]
    assert (letter.rule, letter.route, letter.source_name) == ("poisoned", "relay", "src/bad")
    assert letter.message == Message("bad", b"x")
    assert letter.attempts > 3


def test_a_full_spool_slows_the_source(tmp_path: Path) -> None:

    with bench(tmp_path, Bounds(1 << 30, messages=10)) as at:

        def feed() -> None:
            for number in range(30):
                at.deliver(f"m/{number}")

        feeder = threading.Thread(target=feed)
        feeder.start()
        until(lambda: len(at.settled) == 10)
        assert feeder.is_alive()
        assert at.spool.messages == 10
        at.sink.up = True
        feeder.join(PATIENCE)
        until(lambda: len(at.sink.got) == 30)

    assert [message.address for message in at.sink.got] == [f"m/{n}" for n in range(30)]


@pytest.mark.parametrize(
    ("when", "dead"),
    [(WhenFull.NEWEST, range(10, 30)), (WhenFull.OLDEST, range(20))],
    ids=["newest", "oldest"],
)
def test_a_full_spool_sets_aside_what_the_route_says(
    tmp_path: Path, when: WhenFull, dead: range
) -> None:
    with bench(tmp_path, Bounds(1 << 30, messages=10)) as at:
        for number in range(30):
            at.deliver(f"m/{number}", when=when)
        until(lambda: len(at.settled) == 30)
        letters = at.kept_letters()
        at.sink.up = True
        until(lambda: len(at.delivered()) == 10)

    assert {letter.rule for letter in letters} == {"spool-full"} or when is WhenFull.NEWEST
    left = [f"m/{n}" for n in range(30) if n not in dead]
    assert [message.address for message in at.sink.got] == left
    rejects = [name for name, end in at.settled.items() if end is Outcome.REJECTED]
    if when is WhenFull.NEWEST:  # its flight writes the letters
        assert rejects == [f"m/{n}" for n in dead]
    else:
        assert [letter.message.address for letter in letters] == [f"m/{n}" for n in dead]


def test_what_is_too_old_is_set_aside(tmp_path: Path) -> None:
    with bench(tmp_path) as at:
        at.deliver("a")
        until(lambda: len(at.settled) == 1)
    with bench(tmp_path, Bounds(1 << 30, seconds=0.0)) as at:
        until(lambda: len(at.kept_letters()) == 1)
        at.sink.up = True
        until(lambda: at.lane.direct)
        assert not at.sink.got
        assert at.kept_letters()[0].rule == "spool-age"


def test_a_disk_that_takes_nothing_settles_nothing_and_goes_on_later(tmp_path: Path) -> None:
    with bench(tmp_path) as at:
        blocker = sqlite3.connect(tmp_path / FILE, isolation_level=None)
        blocker.execute("BEGIN EXCLUSIVE")  # as a full disk does: every write fails
        at.store._writing.execute("PRAGMA busy_timeout = 1")  # noqa: SLF001  # not to wait 10 s
        at.deliver("a")
        until(lambda: bool(at.store.failure))
        assert not at.settled
        blocker.execute("ROLLBACK")
        blocker.close()
        until(lambda: at.settled == {"a": Outcome.SPOOLED})
        assert not at.store.failure


def test_two_gateways_cannot_have_one_folder(tmp_path: Path) -> None:
    with bench(tmp_path), pytest.raises(SpoolError, match="another gateway uses it"):
        Store(tmp_path)


def test_the_oldest_dead_letters_make_room_and_are_counted(tmp_path: Path) -> None:
    with bench(tmp_path, letters=5_000) as at:
        at.sink.answer = lambda _: rejected("no", "because")
        for number in range(10):
            at.deliver(f"m/{number}", payload=b"x" * 1_000)
        until(lambda: len(at.settled) == 10)
        at.sink.up = True
        until(lambda: at.waiting() == 0)
        kept = [letter.message.address for letter in at.kept_letters()]

    assert kept == [f"m/{n}" for n in range(10)][-len(kept) :]
    assert 0 < len(kept) < 5
    assert at.letters.count == len(kept)
    assert at.letters.dropped == 10 - len(kept)
    assert at.counters.dead == 10
