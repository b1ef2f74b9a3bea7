"""The state of a lane, event by event: order, put-back, room and removal."""

from __future__ import annotations

import pytest

from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, NO_ROOM, RETRY, Outcome, Settlement
from gateway.routing.route import WhenFull
from gateway.runtime.delivery.actions import (
    Action,
    Finish,
    Lost,
    Mark,
    Read,
    Send,
    Step,
    Store,
    Wait,
)
from gateway.runtime.delivery.backlog import (
    MemoryBacklog,
    SpoolBacklog,
    SpoolLimits,
    SpoolTotals,
)
from gateway.runtime.delivery.lane_limits import LaneLimits
from gateway.runtime.delivery.lane_state import LaneState
from gateway.runtime.delivery.outbound_batch import OutboundBatch, SpoolRow
from tests.runtime.outbound_batches import Asker, batch_of

LIMITS = LaneLimits((0.0, 0.0))


class Driver:
    """Performs the actions of a lane with a spool, when the test says so.

    Mutable: owned by the test.
    """

    def __init__(self, limits: SpoolLimits | None = None, *, spool: bool = True) -> None:
        self.number = 0
        self.rows: dict[int, SpoolRow] = {}
        self.spool = SpoolBacklog(
            "target",
            limits or SpoolLimits(1 << 30),
            SpoolTotals(),
            self.next_number,
            Asker(),
        )
        backlog = self.spool if spool else MemoryBacklog()
        self.lane = LaneState("target", LIMITS, backlog, 0.0)

    def next_number(self) -> int:
        self.number += 1
        return self.number

    def step(self, wall: int = 0) -> Action:
        return self.lane.next(0.0, wall)

    def connect(self) -> None:
        assert self.step() is Step.OPEN
        self.lane.opened(0.0)

    def perform(self, action: Action) -> None:
        """Perform what the connection needs."""
        if action is Step.OPEN:
            self.lane.opened(0.0)
        elif action is Step.RECOVER:
            self.lane.recover(0.0, 0.0)

    def accept(self, name: str, when: WhenFull = WhenFull.SLOW) -> Action | None:
        return self.lane.accept(batch(name, when), 0.0)

    def next_send(self) -> Send:
        """Do what comes before the next send, also on the disk; return that."""
        for _ in range(100):
            action = self.step()
            match action:
                case Send():
                    return action
                case Store(batch):
                    self.write(action)
                    self.spool.stored(batch)
                case Read():
                    self.read(action)
                case Mark(number):
                    self.spool.marked(number)
                case _:
                    self.perform(action)
        raise AssertionError("nothing is sent")

    def write(self, store: Store) -> None:
        """Begin to write a batch: it is on its way to the disk."""
        number, messages = store.batch.number, store.batch.messages_at(store.batch.unsettled)
        self.spool.written(store.batch, 1)
        self.rows[number] = SpoolRow(number, number, 1, len(messages), messages)
        self.spool.queued_for_disk(store.batch)

    def read(self, request: Read) -> None:
        end = min(request.before, self.number + 1)
        wanted = sorted(each for each in self.rows if request.after < each < end)
        self.spool.read([self.rows[each] for each in wanted], request)


def batch(name: str, when: WhenFull = WhenFull.SLOW) -> OutboundBatch:
    return batch_of([Message(name, b"")], when=when)


def addresses(send: Send) -> list[str]:
    return [each.address for each in send.batch.messages_at(send.positions)]


def sent(action: Action | None) -> Send:
    assert isinstance(action, Send)
    return action


def stored(action: Action | None) -> Store:
    assert isinstance(action, Store)
    return action


def test_a_direct_lane_sends_at_once_and_finishes_with_the_answer() -> None:
    driver = Driver()
    driver.connect()
    driver.step()  # nothing waits: it is direct
    send = sent(driver.accept("a"))

    assert driver.lane.held == send.batch.size
    assert driver.lane.answered(send.number, [ACCEPTED], 0.0) == Finish(send.batch)
    assert driver.lane.held == 0
    assert driver.lane.answered(send.number, [ACCEPTED], 0.0) is None


def test_no_newer_batch_is_on_its_way_to_the_disk_before_an_unanswered_one() -> None:
    """Else a crash between both leaves only the newer one, which is then sent first."""
    driver = Driver()
    driver.connect()
    driver.step()
    sent(driver.accept("old"))
    driver.lane.broken()

    assert driver.accept("new") is None
    assert driver.step() is Step.RECOVER
    driver.lane.recover(0.0, 0.0)
    assert driver.accept("new") is None
    driver.write(stored(driver.step()))
    assert stored(driver.accept("new")).batch.number == 2


def test_a_batch_is_not_taken_before_an_earlier_one_is_durable() -> None:
    driver = Driver()
    first, second = (stored(driver.accept(name)) for name in ("a", "b"))
    for store in (first, second):
        driver.write(store)
    driver.spool.stored(second.batch)
    driver.connect()
    held_back = driver.step()
    driver.spool.stored(first.batch)
    request = driver.step()

    assert not isinstance(held_back, Read)
    assert isinstance(request, Read)
    driver.read(request)
    mark = driver.step()
    assert mark == Mark(2)
    driver.spool.marked(2)
    assert addresses(sent(driver.step())) == ["a", "b"]


def test_nothing_is_sent_from_the_disk_before_its_mark_is_durable() -> None:
    driver = Driver()
    store = stored(driver.accept("a"))
    driver.write(store)
    driver.spool.stored(store.batch)
    driver.connect()
    request = driver.step()
    assert isinstance(request, Read)
    driver.read(request)

    assert [driver.step(), driver.step()] == [Mark(1), Mark(1)]
    driver.spool.marked(1)
    assert isinstance(driver.step(), Send)


@pytest.mark.parametrize("spool", [True, False], ids=["spool", "memory"])
def test_an_answer_that_is_not_final_breaks_the_connection(spool: bool) -> None:
    driver = Driver(spool=spool)
    driver.connect()
    driver.step()
    send = sent(driver.accept("a"))

    assert driver.lane.answered(send.number, [RETRY], 0.0) == Lost("messages were not answered")
    assert driver.step() is Step.RECOVER
    driver.lane.recover(0.0, 0.0)
    assert driver.lane.held == (0 if spool else send.batch.size)
    assert driver.step() == (Store(send.batch) if spool else Step.OPEN)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(RETRY, Outcome.REJECTED), (NO_ROOM, Outcome.RETRY)],
    ids=["lost", "no-room"],
)
def test_a_message_is_poisoned_by_lost_connections_and_not_by_a_full_broker(
    answer: Settlement, outcome: Outcome
) -> None:
    driver = Driver(spool=False)
    driver.accept("a")
    queued = None
    for _ in range(8):
        while not isinstance(action := driver.step(), Send | Finish):
            driver.perform(action)
        queued = action.batch
        if isinstance(action, Finish):
            break
        driver.lane.answered(action.number, [answer], 0.0)

    assert queued is not None
    assert [each.outcome for each in queued.settlements] == [outcome]


def test_a_full_spool_rejects_what_the_target_wants_rejected() -> None:
    driver = Driver(SpoolLimits(1 << 30, messages=1))
    driver.write(stored(driver.accept("a")))
    newest, oldest = WhenFull.NEWEST, WhenFull.OLDEST
    refused = driver.accept("b", newest)

    assert isinstance(refused, Finish)
    assert [each.rule for each in refused.batch.settlements] == ["spool-full"]
    assert not driver.lane.has_room(batch("c"))
    assert driver.accept("c", oldest) == Wait(None)  # the oldest is on its way to the disk
    assert driver.accept("c") is None


def sent_and_lost() -> Driver:
    """A lane whose target went away while it had two copies of the spool, of 1 and 2 us.

    A copy is too old after a second.
    """
    driver = Driver(SpoolLimits(1 << 30, seconds=1.0))
    for name in ("a", "b"):
        store = stored(driver.accept(name))
        driver.write(store)
        driver.spool.stored(store.batch)
    request = driver.step()
    assert isinstance(request, Read)
    driver.read(request)
    driver.connect()
    driver.spool.marked(2)
    assert addresses(sent(driver.step())) == ["a", "b"]
    driver.lane.broken()
    driver.perform(driver.step())
    return driver


def test_copies_that_were_sent_without_an_answer_become_too_old_as_well() -> None:
    """Their target may stay away for long, and later copies wait behind them."""
    driver = sent_and_lost()

    expired = driver.step(wall=1_000_003)

    assert isinstance(expired, Finish)
    assert [each.rule for each in expired.batch.settlements] == ["spool-age"] * 2
    driver.connect()
    driver.step(wall=1_000_003)
    assert driver.spool.empty()


def test_a_copy_that_is_too_old_is_not_sent_again() -> None:
    driver = sent_and_lost()
    driver.connect()

    assert addresses(sent(driver.step(wall=1_000_002))) == ["b"]


def test_a_removed_target_leaves_no_batch_in_memory() -> None:
    driver = Driver(spool=False)
    for name in ("a", "b"):
        driver.accept(name)
    actions = driver.lane.remove()
    late = driver.accept("c")

    finished = [each.batch for each in [*actions, late] if isinstance(each, Finish)]
    assert [each.messages[0].address for each in finished] == ["a", "b", "c"]
    outcomes = [(s.outcome, s.rule) for each in finished for s in each.settlements]
    assert outcomes == [(Outcome.REJECTED, "target-removed")] * 3


def test_a_hundred_messages_that_break_connections_are_found_by_halves_without_a_pause() -> None:
    """The target answers what comes before such a message, and closes the connection at it."""
    names = [f"bad-{n}" if n % 10 == 3 else f"good-{n}" for n in range(1_000)]
    backlog = MemoryBacklog()
    lane = LaneState("target", LaneLimits((0.5, 30.0)), backlog, 0.0)
    lane.accept(batch_of([Message(each, b"") for each in names]), 0.0)
    now, losses, delivered = 0.0, 0, list[str]()
    while not isinstance(action := lane.next(now, 0), Finish):
        if isinstance(action, Wait):
            assert action.seconds is not None
            now += action.seconds
        elif action is Step.OPEN:
            lane.opened(now)
        elif action is Step.RECOVER:
            lane.recover(now, 0.0)
        elif isinstance(action, Send):
            taken = addresses(action)
            bad = next((at for at, name in enumerate(taken) if "bad" in name), len(taken))
            delivered += taken[:bad]
            losses += bad < len(taken)
            answers = [ACCEPTED] * bad + [RETRY] * (len(taken) - bad)
            done = lane.answered(action.number, answers, now)
            if isinstance(done, Finish):
                action = done
                break

    assert isinstance(action, Finish)
    rules = [each.rule for each in action.batch.settlements]
    assert rules == ["poisoned" if "bad" in name else "" for name in names]
    assert delivered == [name for name in names if "good" in name]
    assert now < 4.0  # the pauses before the search
    assert losses < 800


def test_a_target_that_answers_nothing_gets_pauses_during_a_search_too() -> None:
    lane = LaneState("target", LaneLimits((0.5, 30.0)), MemoryBacklog(), 0.0)
    lane.accept(batch_of([Message("a", b"")] * 1_000), 0.0)
    now, losses = 0.0, 0
    while losses < 200:
        action = lane.next(now, 0)
        if isinstance(action, Wait):
            assert action.seconds is not None
            now += action.seconds
        elif action is Step.OPEN:
            lane.opened(now)
        elif action is Step.RECOVER:
            lane.recover(now, 0.0)
        elif isinstance(action, Send):
            losses += 1
            lane.answered(action.number, [RETRY] * len(action.positions), now)

    assert now > 100 * 10


@pytest.mark.parametrize("during", ["opening", "broken"])
def test_a_pause_that_was_hastened_before_it_began_is_left_out(during: str) -> None:
    lane = LaneState("target", LaneLimits((8.0, 8.0)), MemoryBacklog(), 0.0)
    assert lane.next(0.0, 0) is Step.OPEN
    if during == "broken":
        lane.opened(1.0)
        lane.broken()
    lane.hasten(2.0)
    if during == "broken":
        lane.recover(3.0, 0.0)
    else:
        lane.failed(3.0, 0.0, refused=True)
    assert lane.next(3.0, 0) is Step.OPEN

    lane.failed(4.0, 0.0, refused=True)
    assert lane.next(4.0, 0) == Wait(8.0)  # once


def test_a_connection_forgets_that_its_attempt_was_hastened() -> None:
    lane = LaneState("target", LaneLimits((8.0, 8.0)), MemoryBacklog(), 0.0)
    lane.next(0.0, 0)
    lane.hasten(0.5)
    lane.opened(1.0)
    lane.hasten(2.0)
    lane.broken()
    lane.recover(3.0, 0.0)

    assert lane.next(3.0, 0) == Wait(8.0)


@pytest.mark.parametrize("spool", [True, False], ids=["spool", "memory"])
def test_a_target_without_room_gets_one_message_at_a_time_until_it_takes_one(
    *, spool: bool
) -> None:
    """Other queues of its broker may have room, and get each message again at each attempt."""
    driver = Driver(spool=spool)
    driver.connect()
    driver.step()
    sends = [
        sent(driver.lane.accept(batch_of([Message(f"{each}{n}", b"") for n in range(3)]), 0.0))
        for each in "ab"
    ]
    assert driver.lane.answered(sends[0].number, [ACCEPTED, NO_ROOM, NO_ROOM], 0.0)

    for _ in range(LIMITS.isolate_after + 2):
        probe = driver.next_send()
        assert addresses(probe) == ["a1"]
        assert driver.step() == Wait(None)
        assert driver.lane.answered(probe.number, [NO_ROOM], 0.0)

    probe = driver.next_send()
    assert driver.lane.answered(probe.number, [ACCEPTED], 0.0) is None
    left = addresses(driver.next_send())
    if not spool:
        left += addresses(driver.next_send())
    assert left == ["a2", "b0", "b1", "b2"]


def test_an_answer_under_way_when_the_room_ended_does_not_end_the_sending_one_by_one() -> None:
    driver = Driver(spool=False)
    driver.connect()
    driver.step()
    first, second = [
        sent(driver.lane.accept(batch_of([Message(f"{each}{n}", b"") for n in range(3)]), 0.0))
        for each in "ab"
    ]
    assert driver.lane.answered(first.number, [NO_ROOM] * 3, 0.0)
    assert isinstance(driver.lane.answered(second.number, [ACCEPTED] * 3, 0.0), Finish)

    assert addresses(driver.next_send()) == ["a0"]
