"""A lane between a caller and a sink that breaks: order, isolation, memory, silence."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, Outcome, Settlement, rejected
from gateway.runtime.monitor.counters import EndpointState
from gateway.runtime.outbound.backlog import Parcel
from gateway.runtime.outbound.lane import Lane, Outlet
from tests.runtime.targets import ScriptedSink
from tests.waiting import PATIENCE, until

BACKOFF = (0.01, 0.02)


class Answers:
    """What parcels ended with, by name of the message; mutable."""

    def __init__(self) -> None:
        self.ends: dict[str, Outcome] = {}
        self.rules: dict[str, str] = {}
        self.tries: dict[str, int] = {}

    def parcel(self, *names: str, size: int = 1) -> Parcel:
        messages = [Message(name, name.encode()) for name in names]

        def done(settlements: Sequence[Settlement], attempts: int) -> None:
            assert len(settlements) == len(messages)
            for name, settled in zip(names, settlements, strict=True):
                assert name not in self.ends, "answered twice"
                self.ends[name] = settled.outcome
                self.rules[name] = settled.rule
                self.tries[name] = attempts

        return Parcel(messages, size, done, list)


@contextmanager
def open_lane(sink: ScriptedSink, **facts: float) -> Iterator[Lane]:
    outlet = Outlet(sink, "mqtt", frozenset(), BACKOFF, **facts)  # type: ignore[arg-type]  # numbers
    lane = Lane(outlet, EndpointState("target", "sink"))
    lane.start()
    try:
        yield lane
    finally:
        lane.stop()


def test_what_has_no_answer_is_sent_again_before_anything_newer() -> None:
    sink, answers = ScriptedSink(), Answers()
    with open_lane(sink) as lane:
        until(lambda: lane.direct)
        sink.mute = True
        for number in range(5):
            lane.deliver(answers.parcel(f"old/{number}"))
        sink.mute = False
        sink.drop()
        for number in range(5):
            lane.deliver(answers.parcel(f"new/{number}"))
        assert not answers.ends
        before = len(sink.got)
        sink.up = True
        until(lambda: len(answers.ends) == 10)

    again = [message.address for message in sink.got[before:]]
    assert again == [f"old/{n}" for n in range(5)] + [f"new/{n}" for n in range(5)]
    assert answers.tries == {f"old/{n}": 2 for n in range(5)} | {f"new/{n}": 1 for n in range(5)}


def test_a_message_that_breaks_the_connection_is_set_aside_and_its_neighbours_go_on() -> None:
    sink, answers = ScriptedSink(), Answers()
    sink.kills = lambda message: message.address == "bad"
    with open_lane(sink) as lane:
        lane.deliver(answers.parcel("a", "b", "bad", "c"))
        lane.deliver(answers.parcel("d", "e"))
        until(lambda: len(answers.ends) == 6)

    assert answers.rules["bad"] == "poisoned"
    good = {name: end for name, end in answers.ends.items() if name != "bad"}
    assert set(good.values()) == {Outcome.ACCEPTED}
    firsts = list(dict.fromkeys(message.address for message in sink.got))
    assert firsts == ["a", "b", "c", "d", "e"]


def test_a_message_that_makes_the_driver_raise_is_set_aside_too() -> None:
    sink, answers = ScriptedSink(), Answers()

    def raises(message: Message) -> bool:
        if message.address == "bad":
            raise ZeroDivisionError
        return False

    sink.kills = raises
    with open_lane(sink) as lane:
        lane.deliver(answers.parcel("a"))
        lane.deliver(answers.parcel("bad"))
        lane.deliver(answers.parcel("b"))
        until(lambda: len(answers.ends) == 3)

    assert answers.rules == {"a": "", "bad": "poisoned", "b": ""}


def test_a_target_that_is_away_for_long_makes_no_message_guilty() -> None:
    sink, answers = ScriptedSink(), Answers()
    with open_lane(sink) as lane:
        until(lambda: lane.direct)
        for _ in range(8):
            sink.mute = True
            lane.deliver(answers.parcel(f"m/{len(sink.got)}", "x")) if not sink.got else None
            opened = sink.opened
            lane.rebuild("a trial")
            until(lambda opened=opened: sink.opened > opened)  # type: ignore[misc]  # a default binds it now
        sink.mute = False
        lane.rebuild("the last time")
        until(lambda: len(answers.ends) == 2)

    assert set(answers.ends.values()) == {Outcome.ACCEPTED}


def test_a_target_that_accepts_and_never_answers_is_found_and_built_anew() -> None:
    sink, answers = ScriptedSink(), Answers()
    with open_lane(sink, answer_seconds=0.05) as lane:
        until(lambda: lane.direct)
        sink.mute = True
        lane.deliver(answers.parcel("a"))
        until(lambda: looked(lane) and sink.opened > 1)
        sink.mute = False
        until(lambda: looked(lane) and bool(answers.ends))

    assert answers.ends == {"a": Outcome.ACCEPTED}


def looked(lane: Lane) -> bool:
    """What the watch does now and then."""
    lane.look()
    return True


def test_a_rejection_is_final_and_alone() -> None:
    sink, answers = ScriptedSink(), Answers()
    no = rejected("too-large", "it is")
    sink.answer = lambda message: no if message.address == "big" else ACCEPTED
    with open_lane(sink) as lane:
        lane.deliver(answers.parcel("a", "big", "b"))
        until(lambda: len(answers.ends) == 3)

    assert answers.rules == {"a": "", "big": "too-large", "b": ""}
    assert len(sink.got) == 3


def test_a_full_lane_makes_its_caller_wait_and_never_holds_more() -> None:
    sink, answers = ScriptedSink(), Answers()
    sink.up = False
    held: list[int] = []
    with open_lane(sink, capacity=1_000) as lane:

        def feed() -> None:
            for number in range(50):
                lane.deliver(answers.parcel(f"m/{number}", size=100))
                held.append(lane.held)

        feeder = threading.Thread(target=feed)
        feeder.start()
        until(lambda: len(held) == 10)
        assert feeder.is_alive()
        sink.up = True
        feeder.join(PATIENCE)
        assert not feeder.is_alive()
        until(lambda: len(answers.ends) == 50)
        assert lane.held == 0

    assert max(held) <= 1_000
    assert [message.address for message in sink.got] == [f"m/{n}" for n in range(50)]


def test_another_sink_takes_over_what_has_no_answer() -> None:
    old, new, answers = ScriptedSink(), ScriptedSink(), Answers()
    with open_lane(old) as lane:
        until(lambda: lane.direct)
        old.mute = True
        lane.deliver(answers.parcel("a", "b"))
        lane.exchange(Outlet(new, "mqtt", frozenset(), BACKOFF))
        lane.deliver(answers.parcel("c"))
        until(lambda: len(answers.ends) == 3)

    assert [message.address for message in new.got] == ["a", "b", "c"]


@pytest.mark.parametrize("up", [True, False], ids=["up", "away"])
def test_an_offer_is_sent_now_or_never(up: bool) -> None:  # a parameter of the test
    sink, answers = ScriptedSink(), Answers()
    sink.up = up
    with open_lane(sink) as lane:
        until(lambda: lane.direct or not up)
        assert lane.offer(answers.parcel("beat")) is up
        sink.mute = True
        if up:
            lane.offer(answers.parcel("lost"))
            lane.rebuild("a trial")
            until(lambda: sink.opened > 1 and lane.direct)
        assert lane.held == 0

    assert [message.address for message in sink.got].count("lost") == int(up)
