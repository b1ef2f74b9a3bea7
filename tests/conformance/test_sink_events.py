"""Events of a sink, at every kind of broker: a row for each, and one check for all of them.

Whatever happens: each message that was handed over has one outcome; what was accepted is at the
broker, in the order of its name, and comes twice only where it was handed over twice; a loss is
told by `send`, with or without messages; nothing stays, and nothing waits for a broker for ever. A
new event is a function and a line.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Final

import pytest

from gateway.endpoints.settings.nats import NatsSettings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import Outcome
from tests.endpoints.exchange import reopen
from tests.endpoints.sink_trial import SOME, HeldAnswer, SinkTrial
from tests.endpoints.systems import NIGHTLY, PLACES, SYSTEMS, System
from tests.waiting import PATIENCE, until

LONG: Final = 100_000  # bytes; one that no frame and no heap refuses before the limit
LATE: Final = 8.0  # seconds, for a loss that half a second without an answer tells
SOON: Final = {"answer_timeout": 0.5}
AT_ONCE: Final = {"close_timeout": 0.3, "drain_timeout": 0.3}
CREATES: Final = {"create_topics": True}  # a topic of a broker that was killed may be gone
OF_NATS: Final = 8_388_608  # bytes: its server has the limit


@dataclass(frozen=True)
class Event:
    """`happen` does it to an open sink with these `settings`. `needs` names ways of its system."""

    name: str
    happen: Callable[[SinkTrial], None]
    needs: tuple[str, ...] = ("broker",)
    settings: Mapping[str, object] = field(default_factory=dict)


def kill_in_silence(trial: SinkTrial) -> None:
    trial.hand_over()
    trial.settle()
    trial.kill()
    trial.hand_over()
    trial.start()


def kill_under_load(trial: SinkTrial) -> None:
    trial.hand_over()
    trial.settle()
    for _ in range(10):
        trial.hand_over()
    trial.kill()
    trial.hand_over()
    trial.start()


def stop_under_load(trial: SinkTrial) -> None:
    trial.hand_over()
    trial.settle()
    for _ in range(10):
        trial.hand_over()
    trial.stop()
    trial.hand_over()
    trial.start()


def wipe(trial: SinkTrial) -> None:
    """The first message afterwards finds nothing of what was there before."""
    trial.hand_over()
    trial.settle()
    trial.wipe()
    trial.hand_over()


def freeze_and_wake(trial: SinkTrial) -> None:
    """Nothing is accepted before the broker has answered, and nothing is sent again."""
    trial.hand_over()
    trial.settle()
    trial.freeze()
    trial.wait_unanswered(*(trial.hand_over() for _ in range(3)))
    trial.thaw()
    trial.settle()
    assert not trial.repeated


def freeze_for_good(trial: SinkTrial) -> None:
    trial.hand_over()
    trial.settle()
    trial.freeze()
    trial.hand_over()
    until(trial.is_lost, "the sink does not tell the loss", LATE)
    trial.hand_over()
    trial.thaw()


def cut_in_silence(trial: SinkTrial) -> None:
    trial.hand_over()
    trial.settle()
    trial.cut()
    trial.hand_over()


def cut_under_load(trial: SinkTrial) -> None:
    for _ in range(10):
        trial.hand_over()
    trial.cut()
    for _ in range(3):
        trial.hand_over()


def cut_while_frozen(trial: SinkTrial) -> None:
    """The broker has all of it, and the sink cannot know."""
    trial.hand_over()
    trial.settle()
    trial.freeze()
    for _ in range(3):
        trial.hand_over()
    trial.cut()
    trial.thaw()


def close_under_load(trial: SinkTrial) -> None:
    for _ in range(10):
        trial.hand_over()
    trial.close()


def close_before_answers(trial: SinkTrial) -> None:
    trial.hand_over()
    trial.settle()
    trial.freeze()
    calls = [trial.hand_over() for _ in range(3)]
    trial.close()
    for each in calls:
        assert {settlement.outcome for settlement in each.answer.wait()} == {Outcome.RETRY}


def close_before_room(trial: SinkTrial) -> None:
    """A thread waits for the window; `close` ends that."""
    trial.hand_over()
    trial.settle()
    trial.freeze()
    thread = trial.block()
    trial.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def open_in_vain(trial: SinkTrial) -> None:
    trial.hand_over()
    trial.settle()
    trial.freeze()
    trial.open_in_vain()


def open_beside_the_end(trial: SinkTrial) -> None:
    """A thread of the old connection is held where it passes an answer on."""
    trial.hand_over()
    trial.settle()
    trial.freeze()
    answer = HeldAnswer()
    trial.hand_over(1, answer=answer)
    trial.cut()
    try:
        until(lambda: trial.is_lost() and answer.begun.is_set(), "the loss has no answer")
        trial.thaw()
        reopen(trial.sink)
        call = trial.hand_over(1)  # of another name
        assert {each.outcome for each in call.answer.wait()} == {Outcome.ACCEPTED}
    finally:
        answer.goes_on.set()


def refused_name(trial: SinkTrial) -> None:
    """No other message is refused with it."""
    address = trial.system.refused
    trial.hand_over(wrong=Message(address, b"refused", Headers(mode=trial.system.mode)))
    trial.settle()
    assert trial.rules <= {"not-authorised", "publish-acl"}


def too_long(trial: SinkTrial) -> None:
    name, mode = trial.system.address("t", "0"), trial.system.mode
    size = OF_NATS if isinstance(trial.settings, NatsSettings) else LONG
    trial.hand_over(wrong=Message(name, b"x" * (size + 1), Headers(mode=mode)))
    trial.settle()
    assert trial.rules


EVENTS: Final = (
    Event("kill-in-silence", kill_in_silence, settings=CREATES),
    Event("kill-under-load", kill_under_load, settings=CREATES),
    Event("stop-under-load", stop_under_load),
    Event("wiped", wipe),
    Event("frozen-then-woken", freeze_and_wake),
    Event("frozen-for-good", freeze_for_good, settings=SOON | AT_ONCE),
    Event("cut-in-silence", cut_in_silence),
    Event("cut-under-load", cut_under_load),
    Event("cut-while-frozen", cut_while_frozen, settings=AT_ONCE),
    Event("close-under-load", close_under_load, needs=()),
    Event("close-before-answers", close_before_answers, settings=AT_ONCE),
    Event("close-before-room", close_before_room, settings=AT_ONCE | {"send_window": SOME}),
    Event("open-in-vain", open_in_vain, settings=AT_ONCE | {"connect_timeout": 1.0} | SOON),
    Event("open-beside-the-end", open_beside_the_end, ("broker", "loss"), AT_ONCE),
    Event("refused-name", refused_name, ("refusal",)),
    Event(
        "too-long", too_long, ("limit",), {"max_message": LONG, "max_packet": LONG},
    ),
)  # fmt: skip


def _in_mode(name: str, mode: DeliveryMode, **changes: Any) -> Callable[..., System]:  # noqa: ANN401  # settings
    """Return a system whose messages have another delivery mode."""

    def make(request: pytest.FixtureRequest) -> System:
        system = SYSTEMS[name](request)
        settings = replace(system.settings, **changes)
        return replace(system, settings=settings, mode=mode)

    return make


AT_MOST_ONCE: Final = DeliveryMode.AT_MOST_ONCE
COLUMNS: Final = {
    **SYSTEMS,
    "nats-core": PLACES["nats-core"],
    "mqtt-5-qos-0": _in_mode("mqtt-5", AT_MOST_ONCE),
    "mqtt-3.1.1-qos-2": _in_mode("mqtt-3.1.1", DeliveryMode.EXACTLY_ONCE, qos=2),
    "yami4-publish": _in_mode("yami4", AT_MOST_ONCE),
    "jms-non-persistent": _in_mode("jms", AT_MOST_ONCE),
    "solace-direct": _in_mode("solace", AT_MOST_ONCE),
}
WITHOUT_BROKER: Final = ("broker", "loss", "limit")  # such as a kind from outside with a file
ABSENT: Final[Mapping[str, tuple[str, ...]]] = {  # ways that a system does not have
    "memory": WITHOUT_BROKER,
    "kafka": ("loss",),  # the library connects again by itself
    "solace": ("loss",),  # as above
    "solace-direct": ("loss",),
}
REFUSING: Final = {"nats", "nats-core", "rabbitmq", "amqp", "solace"}  # names, and nothing else
SLOW: Final = {"jms", "jms-non-persistent", "rabbitmq", "amqp"}  # their brokers start slowly
ENDS: Final = {"kill-in-silence", "kill-under-load", "stop-under-load", "wiped"}


def rows() -> Iterator[pytest.ParameterSet]:
    for event, name in product(EVENTS, COLUMNS):
        absent = {*ABSENT.get(name, ())} | ({"refusal"} if name not in REFUSING else set())
        marks = []
        if lacks := [each for each in event.needs if each in absent]:
            marks.append(pytest.mark.skip(reason=f"no {lacks[0]}"))
        elif name in NIGHTLY or (name in SLOW and event.name in ENDS):
            marks.append(pytest.mark.nightly)
        yield pytest.param(event, name, id=f"{event.name}-{name}", marks=marks)


def as_text(record: logging.LogRecord) -> bool:
    """Keep no error in a record of the log: it leads to frames, which hold answers."""
    record.msg, record.args = record.getMessage(), ()
    return True


@pytest.mark.parametrize(("event", "name"), [*rows()])
def test_a_sink_keeps_its_promises(
    event: Event, name: str, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    system = COLUMNS[name](request)
    if system.broker is None and not {*WITHOUT_BROKER}.isdisjoint(event.needs):
        pytest.skip("no broker")
    trial = SinkTrial(system, event.settings)
    caplog.handler.addFilter(as_text)
    with trial.running():
        event.happen(trial)
        trial.finish()

    trial.check()
