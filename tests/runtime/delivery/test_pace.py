"""The rate of a lane, with a clock of the test: a backlog, live messages, and a lost connection."""

from __future__ import annotations

import pytest

from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED
from gateway.runtime.delivery.actions import Finish, Mark, Read, Send, Store, Wait
from gateway.runtime.delivery.backoff import BURSTS
from gateway.runtime.delivery.lane_limits import LaneLimits
from tests.runtime.delivery.test_lane_state import Driver
from tests.runtime.outbound_batches import batch_of

RATE = 40.0  # two messages in each of twenty bursts


class PacedDriver(Driver):
    """Answers each send at once; time passes only while the lane waits. Mutable."""

    def __init__(self, *, spool: bool) -> None:
        super().__init__(spool=spool)
        self.lane.limits = LaneLimits((0.0, 0.0), rate=RATE)
        self.now = 0.0
        self.sent: list[tuple[float, str]] = []

    def deliver(self, names: list[str]) -> None:
        action = self.lane.accept(batch_of([Message(each, b"") for each in names]), self.now)
        if isinstance(action, Send):
            self.answer(action)
        elif isinstance(action, Store):
            self.store(action)

    def store(self, action: Store) -> None:
        self.write(action)
        self.spool.stored(action.batch)

    def answer(self, send: Send) -> None:
        names = [each.address for each in send.batch.messages_at(send.positions)]
        self.sent += [(self.now, name) for name in names]
        done = self.lane.answered(send.number, [ACCEPTED] * len(names), self.now)
        self.finish(done)

    def finish(self, action: object) -> None:
        if isinstance(action, Finish) and action.batch.rows:
            self.spool.freed(action.batch)

    def run(self, until: float, sends: int = 10_000) -> None:
        """Take the steps of the lane's thread up to a time, or up to a number of sends."""
        while self.now < until and len(self.sent) < sends:
            action = self.lane.next(self.now, 0)
            match action:
                case Send():
                    self.answer(action)
                case Wait(seconds):
                    self.now = until if seconds is None else min(until, self.now + seconds)
                case Store():
                    self.store(action)
                case Read():
                    self.read(action)
                case Mark(number):
                    self.spool.marked(number)
                case _:
                    self.finish(action)
                    self.perform(action)


NAMES = [f"{number:03}" for number in range(100)]


@pytest.mark.parametrize("spool", [True, False], ids=["spool", "memory"])
def test_a_backlog_is_sent_at_the_rate_and_in_order(*, spool: bool) -> None:
    driver = PacedDriver(spool=spool)
    for first in range(0, len(NAMES), 25):
        driver.deliver(NAMES[first : first + 25])

    driver.run(1.0)
    in_a_second = len(driver.sent)
    driver.run(10.0)

    assert RATE <= in_a_second <= RATE + RATE / BURSTS
    assert [name for _, name in driver.sent] == NAMES
    assert driver.sent[-1][0] == pytest.approx(len(NAMES) / RATE, abs=0.1)
    assert driver.lane.held == 0
    assert driver.lane.idle()


@pytest.mark.parametrize("spool", [True, False], ids=["spool", "memory"])
def test_live_messages_beyond_the_rate_wait_their_turn(*, spool: bool) -> None:
    driver = PacedDriver(spool=spool)
    driver.run(0.5)
    assert driver.sent == []
    for name in NAMES:
        driver.deliver([name])

    assert [name for _, name in driver.sent] == NAMES[:1]
    driver.run(10.0)
    assert [name for _, name in driver.sent] == NAMES


@pytest.mark.parametrize("spool", [True, False], ids=["spool", "memory"])
def test_a_connection_that_is_lost_between_two_bursts_loses_and_repeats_nothing(
    *, spool: bool
) -> None:
    driver = PacedDriver(spool=spool)
    driver.deliver(NAMES[:10])
    driver.run(10.0, sends=4)
    driver.lane.broken()
    driver.run(20.0)

    assert [name for _, name in driver.sent] == NAMES[:10]
    assert driver.lane.held == 0
    assert driver.lane.idle()


def test_a_stop_sends_the_rest_of_a_batch_that_has_begun() -> None:
    driver = PacedDriver(spool=True)
    driver.deliver(NAMES[:10])
    driver.deliver(NAMES[10:20])
    driver.run(10.0, sends=4)
    driver.lane.prepare_stop()
    assert not driver.lane.idle()
    driver.run(20.0)

    names = [name for _, name in driver.sent]
    assert names == NAMES[: len(names)]
    assert len(names) in {10, 20}  # the spool gives both batches as one, or the first
    assert driver.lane.idle()
