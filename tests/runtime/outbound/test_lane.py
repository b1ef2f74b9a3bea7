"""A lane with a failing sink: order, isolation of poisoned messages, memory limit, stuck target."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from gateway.clock import now
from gateway.model.dead_letter_rule import EXPIRED, PACKET_SIZE, PUBLISH_ACL
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED, Outcome, Settlement, rejected
from gateway.runtime.delivery import lane_state as lane_states
from gateway.runtime.delivery.lane_limits import LaneLimits
from gateway.runtime.delivery.outbound_batch import OutboundBatch
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.outbound.sink_binding import AfterSend, SinkBinding
from gateway.runtime.record.counters import EndpointState
from tests.runtime.outbound_batches import batch_of
from tests.runtime.targets import ScriptedSink
from tests.waiting import PATIENCE, until

BACKOFF = (0.01, 0.02)


class RecordedAnswers:
    """Outcome, rule and attempts of each message, by its name."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self.rules: dict[str, str] = {}
        self.attempts: dict[str, int] = {}

    def batch(self, *names: str, size: int = 1) -> OutboundBatch:
        messages = [Message(name, name.encode()) for name in names]

        def done(settlements: Sequence[Settlement], attempts: int) -> None:
            assert len(settlements) == len(messages)
            for name, settled in zip(names, settlements, strict=True):
                assert name not in self.outcomes, "answered twice"
                self.outcomes[name] = settled.outcome
                self.rules[name] = settled.rule
                self.attempts[name] = attempts

        return batch_of(messages, done, size=size)


@contextmanager
def open_lane(
    sink: ScriptedSink, sources_ready: Callable[[float], bool] = lambda _since: True, **facts: float
) -> Iterator[Lane]:
    binding = SinkBinding(
        sink,
        "mqtt",
        frozenset(),
        LaneLimits(BACKOFF, **facts),  # type: ignore[arg-type]  # numbers
    )
    lane = Lane(binding, EndpointState("target", "sink"), sources_ready=sources_ready)
    lane.start()
    try:
        yield lane
    finally:
        lane.stop()


def expiring(answers: RecordedAnswers, *ends: tuple[str, int | None]) -> OutboundBatch:
    """Return a batch of messages with these names and expiries."""
    batch = answers.batch(*(name for name, _ in ends))
    messages = [Message(name, name.encode(), Headers(expiry=end)) for name, end in ends]
    return OutboundBatch(batch.origin, batch.when_full, messages)


def test_a_message_that_expired_while_it_waited_is_a_dead_letter_and_not_sent() -> None:
    sink, answers, hour = ScriptedSink(), RecordedAnswers(), 3_600_000_000
    with open_lane(sink) as lane:
        lane.deliver(
            expiring(answers, ("old/1", 1), ("a", None), ("old/2", now()), ("b", now() + hour))
        )
        lane.deliver(expiring(answers, ("old/3", 1), ("old/4", 2)))
        lane.deliver(answers.batch("c"))
        until(lambda: len(answers.outcomes) == 7)

    assert [each.address for each in sink.received] == ["a", "b", "c"]
    assert {name for name, rule in answers.rules.items() if rule == EXPIRED} == {
        "old/1",
        "old/2",
        "old/3",
        "old/4",
    }
    assert [answers.outcomes[name] for name in "abc"] == [Outcome.ACCEPTED] * 3


def test_unanswered_batches_are_sent_again_before_newer_ones() -> None:
    sink, answers = ScriptedSink(), RecordedAnswers()
    with open_lane(sink) as lane:
        until(lambda: lane.direct)
        sink.mute = True
        for number in range(5):
            lane.deliver(answers.batch(f"old/{number}"))
        sink.mute = False
        sink.drop()
        for number in range(5):
            lane.deliver(answers.batch(f"new/{number}"))
        assert not answers.outcomes
        before = len(sink.received)
        sink.up = True
        until(lambda: len(answers.outcomes) == 10)

    again = [message.address for message in sink.received[before:]]
    assert again == [f"old/{n}" for n in range(5)] + [f"new/{n}" for n in range(5)]
    assert answers.attempts == {f"old/{n}": 2 for n in range(5)} | {f"new/{n}": 1 for n in range(5)}


def test_a_message_that_breaks_the_connection_is_rejected_and_the_others_are_sent() -> None:
    sink, answers = ScriptedSink(), RecordedAnswers()
    sink.kills = lambda message: message.address == "bad"
    with open_lane(sink) as lane:
        lane.deliver(answers.batch("a", "b", "bad", "c"))
        lane.deliver(answers.batch("d", "e"))
        until(lambda: len(answers.outcomes) == 6)

    assert answers.rules["bad"] == "poisoned"
    good = {name: end for name, end in answers.outcomes.items() if name != "bad"}
    assert set(good.values()) == {Outcome.ACCEPTED}
    firsts = list(dict.fromkeys(message.address for message in sink.received))
    assert firsts == ["a", "b", "c", "d", "e"]


def test_a_message_that_makes_the_driver_raise_is_rejected() -> None:
    sink, answers = ScriptedSink(), RecordedAnswers()

    def raises(message: Message) -> bool:
        if message.address == "bad":
            raise ZeroDivisionError
        return False

    sink.kills = raises
    with open_lane(sink) as lane:
        lane.deliver(answers.batch("a"))
        lane.deliver(answers.batch("bad"))
        lane.deliver(answers.batch("b"))
        until(lambda: len(answers.outcomes) == 3)

    assert answers.rules == {"a": "", "bad": "poisoned", "b": ""}


def test_reconnects_of_our_own_make_no_message_suspected() -> None:
    sink, answers = ScriptedSink(), RecordedAnswers()
    with open_lane(sink) as lane:
        until(lambda: lane.direct)
        for _ in range(8):
            sink.mute = True
            lane.deliver(
                answers.batch(f"m/{len(sink.received)}", "x")
            ) if not sink.received else None
            opened = sink.opened
            lane.reconnect("a test")
            until(lambda opened=opened: sink.opened > opened)  # type: ignore[misc]  # a default binds it now
        sink.mute = False
        lane.reconnect("the last test")
        until(lambda: len(answers.outcomes) == 2)

    assert set(answers.outcomes.values()) == {Outcome.ACCEPTED}


def test_a_target_that_never_answers_is_reconnected() -> None:
    sink, answers = ScriptedSink(), RecordedAnswers()
    with open_lane(sink, stuck_after_seconds=0.05) as lane:
        until(lambda: lane.direct)
        sink.mute = True
        lane.deliver(answers.batch("a"))
        until(lambda: checked(lane) and sink.opened > 1)
        sink.mute = False
        until(lambda: checked(lane) and bool(answers.outcomes))

    assert answers.outcomes == {"a": Outcome.ACCEPTED}


def checked(lane: Lane) -> bool:
    """Check the lane as the watchdog does."""
    lane.check_answers()
    return True


def test_a_rejection_is_final_and_concerns_one_message() -> None:
    sink, answers = ScriptedSink(), RecordedAnswers()
    no = rejected(PACKET_SIZE, "it is")
    sink.answer = lambda message: no if message.address == "big" else ACCEPTED
    with open_lane(sink) as lane:
        lane.deliver(answers.batch("a", "big", "b"))
        until(lambda: len(answers.outcomes) == 3)

    assert answers.rules == {"a": "", "big": "packet-size", "b": ""}
    assert len(sink.received) == 3


def test_a_full_lane_blocks_its_caller() -> None:
    sink, answers = ScriptedSink(), RecordedAnswers()
    sink.up = False
    held: list[int] = []
    with open_lane(sink, capacity=1_000) as lane:

        def feed() -> None:
            for number in range(50):
                lane.deliver(answers.batch(f"m/{number}", size=100))
                held.append(lane.held)

        feeder = threading.Thread(target=feed)
        feeder.start()
        until(lambda: len(held) == 10)
        assert feeder.is_alive()
        sink.up = True
        feeder.join(PATIENCE)
        assert not feeder.is_alive()
        until(lambda: len(answers.outcomes) == 50)
        assert lane.held == 0

    assert max(held) <= 1_000
    assert [message.address for message in sink.received] == [f"m/{n}" for n in range(50)]


def test_a_new_sink_gets_the_unanswered_batches() -> None:
    old, new, answers = ScriptedSink(), ScriptedSink(), RecordedAnswers()
    with open_lane(old) as lane:
        until(lambda: lane.direct)
        old.mute = True
        lane.deliver(answers.batch("a", "b"))
        lane.rebind(SinkBinding(new, "mqtt", frozenset(), LaneLimits(BACKOFF)), 0.0)
        lane.deliver(answers.batch("c"))
        until(lambda: len(answers.outcomes) == 3)

    assert [message.address for message in new.received] == ["a", "b", "c"]


def test_a_replaced_sink_answers_what_it_got_and_gets_no_more() -> None:
    old, new, answers = ScriptedSink(), ScriptedSink(), RecordedAnswers()
    binding = SinkBinding(new, "mqtt", frozenset(), LaneLimits(BACKOFF))
    with open_lane(old) as lane, ThreadPoolExecutor(1) as pool:
        until(lambda: lane.direct)
        old.mute = True
        lane.deliver(answers.batch("a"))
        rebound = pool.submit(lane.rebind, binding, PATIENCE)
        until(lambda: not lane.direct)
        lane.deliver(answers.batch("b"))
        assert not answers.outcomes
        old.answer_all()
        rebound.result(PATIENCE)
        until(lambda: len(answers.outcomes) == 2)

    assert [message.address for message in old.received] == ["a"]
    assert [message.address for message in new.received] == ["b"]


@pytest.mark.parametrize("up", [True, False], ids=["up", "away"])
def test_an_offer_is_sent_at_once_or_never(up: bool) -> None:  # a parameter of the test
    sink, answers = ScriptedSink(), RecordedAnswers()
    sink.up = up
    with open_lane(sink) as lane:
        until(lambda: lane.direct or not up)
        assert lane.offer(answers.batch("beat")) is up
        sink.mute = True
        if up:
            lane.offer(answers.batch("lost"))
            lane.reconnect("a test")
            until(lambda: sink.opened > 1 and lane.direct)
        assert lane.held == 0

    assert [message.address for message in sink.received].count("lost") == int(up)


def test_the_answers_of_every_send_are_reported_once() -> None:
    """A message that equals a copy is an echo of it, or not, as this answer says."""
    sink, answers, reported = ScriptedSink(), RecordedAnswers(), list[tuple[str, Outcome]]()
    sent: list[str] = []
    no = rejected(PUBLISH_ACL, "not allowed")
    sink.answer = lambda message: no if message.address == "denied" else ACCEPTED

    def note(messages: Sequence[Message]) -> AfterSend:
        sent.extend(message.address for message in messages)

        def report(settlements: Sequence[Settlement]) -> None:
            pairs = zip(messages, settlements, strict=True)
            reported.extend((message.address, each.outcome) for message, each in pairs)

        return report

    binding = SinkBinding(sink, "mqtt", frozenset(), LaneLimits(BACKOFF), note)
    lane = Lane(binding, EndpointState("target", "sink"))
    lane.start()
    try:
        until(lambda: lane.direct)
        lane.deliver(answers.batch("a", "denied"))
        sink.mute = True
        lane.deliver(answers.batch("lost"))
        sink.mute = False
        sink.drop()
        sink.up = True
        until(lambda: "lost" in answers.outcomes)
        sink.mute = True
        lane.deliver(answers.batch("last"))
    finally:
        lane.stop()

    accepted, retry, denied = Outcome.ACCEPTED, Outcome.RETRY, Outcome.REJECTED
    assert sent == ["a", "denied", "lost", "lost", "last"]
    assert reported == [("a", accepted), ("denied", denied), ("lost", retry), ("lost", accepted),
                        ("last", retry)]  # fmt: skip


def test_a_new_connection_gets_nothing_before_the_sources_at_its_broker_are_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lane_states, "IDLE_CHECK_INTERVAL", 0.02)
    sink, answers, ready = ScriptedSink(), RecordedAnswers(), threading.Event()
    with open_lane(sink, lambda _since: ready.is_set()) as lane:
        lane.deliver(answers.batch("a"))
        until(lambda: sink.opened == 1)
        sink.drop()  # it is noticed in the meantime
        sink.up = True
        until(lambda: sink.opened == 2)
        lane.deliver(answers.batch("b"))
        assert not sink.received
        assert not lane.direct
        ready.set()
        until(lambda: len(answers.outcomes) == 2)

    assert [message.address for message in sink.received] == ["a", "b"]
    assert answers.attempts == {"a": 1, "b": 1}


def test_a_source_that_never_is_ready_does_not_stop_a_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lane_states, "SOURCES_SECONDS", 0.05)
    sink, answers = ScriptedSink(), RecordedAnswers()
    with open_lane(sink, lambda _since: False) as lane:
        lane.deliver(answers.batch("a"))
        until(lambda: len(answers.outcomes) == 1)
