"""Events of a source, at every kind of broker: a row for each, and one check for all of them.

Whatever happens: a broker that keeps messages loses none; what comes twice is marked; the order of
a name is kept; a gap reports each loss. A new event is a function and a line; a system
that cannot have it does not have the way (`tests/endpoints/systems.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from gateway.clock import now
from gateway.endpoints import source_memory
from gateway.model.dead_letter_rule import EXPIRED, NOT_AUTHORISED, PUBLISH_ACL
from gateway.model.outcome import Outcome
from gateway.runtime.delivery.expiry import without_expired
from tests.endpoints.pair_storage import STORAGES
from tests.endpoints.source_trial import SILENCE, SOME, Loss, Trial
from tests.endpoints.systems import NIGHTLY, PLACES, SYSTEMS, System

STOPS: Final = 6
SECOND: Final = 1_000_000  # microseconds
HOUR: Final = 3_600 * SECOND


@dataclass(frozen=True)
class Event:
    """`happen` does it to an open source. `possible` asks whether a system can have it.

    `exact`: at a broker that keeps messages, nothing comes again, and nothing new is in doubt.
    `in_pair`: the memory is beside a lease, which each storage of a pair has.
    """

    name: str
    happen: Callable[[Trial], None]
    possible: Callable[[System], bool] = lambda _system: True
    exact: bool = False
    loss: Loss = Loss.NONE
    in_pair: bool = False


def outlives(system: System) -> bool:
    return system.outlives


def has_a_broker(system: System) -> bool:
    return system.broker is not None


def keeps(system: System) -> bool:
    return system.keeps


def keeps_and_outlives(system: System) -> bool:
    return system.keeps and system.outlives


def remembers(system: System) -> bool:
    return system.remembers


def queues_readers(system: System) -> bool:
    return system.queues_readers


def has_spellings(system: System) -> bool:
    return system.respelled != system.settings


def kill_in_silence(trial: Trial) -> None:
    trial.publish()
    trial.settle()
    trial.fall_quiet()
    trial.kill()
    trial.publish()
    trial.start()


def kill_under_load(trial: Trial) -> None:
    """Some messages are settled, some held, some on their way, and some not sent yet."""
    trial.publish()
    trial.settle()
    trial.publish()
    trial.hold()
    trial.publish(10 * SOME)
    trial.kill()
    trial.publish()
    trial.start()


def kill_behind_settlements(trial: Trial) -> None:
    """No message is held, and the last acknowledgements may not have left."""
    trial.publish(10 * SOME)
    trial.settle()
    trial.kill()
    trial.publish()
    trial.start()


def kill_with_its_broker(trial: Trial) -> None:
    """A broker that restarts may have forgotten what it delivered."""
    broker = trial.system.broker
    assert broker is not None
    trial.publish()
    trial.settle()
    trial.publish()
    trial.hold()
    trial.kill()
    broker.stop()
    broker.start()
    trial.publish()
    trial.start()


def planned_stop(trial: Trial) -> None:
    trial.publish()
    trial.settle()
    trial.stop()
    trial.publish()
    trial.start()


def planned_stop_under_load(trial: Trial) -> None:
    trial.publish()
    trial.settle()
    trial.publish()
    trial.hold()
    trial.publish(10 * SOME)
    trial.stop()
    trial.publish()
    trial.start()


def stop_while_frozen(trial: Trial) -> None:
    trial.publish()
    trial.settle()
    trial.publish()
    trial.hold()
    trial.stop_while_frozen()
    trial.publish()
    trial.start()


def handover(trial: Trial) -> None:
    trial.publish()
    trial.settle()
    trial.stop()
    trial.give_lease()
    trial.publish()
    trial.take_lease()
    trial.start()


def takeover(trial: Trial) -> None:
    trial.publish()
    trial.settle()
    trial.publish()
    trial.hold()
    trial.publish(10 * SOME)
    trial.kill()
    trial.publish()
    trial.take_lease()
    trial.start()


def takeover_from_a_frozen_holder(trial: Trial) -> None:
    """It wakes when another instance has gone on and falls still: its memory is not read."""
    trial.publish()
    trial.settle()
    trial.publish()
    trial.hold()
    wake = trial.freeze()
    trial.publish()
    trial.take_lease()
    trial.start()
    trial.settle()
    trial.fall_quiet()
    wake()
    trial.kill()
    trial.take_lease()
    trial.start()


def stops_in_redelivery(trial: Trial) -> None:
    """Messages that are retried, or not settled, come again and again, in their order."""
    trial.publish(10 * SOME)
    for attempt in range(STOPS):
        if attempt % 3 != 2:
            trial.hold()
        if attempt % 3 == 1:
            trial.settle_part()
        trial.stop()
        trial.start()


def kills_in_redelivery(trial: Trial) -> None:
    trial.publish(10 * SOME)
    for attempt in range(STOPS):
        if attempt % 3 != 2:
            trial.hold()
        if attempt % 3 == 1:
            trial.settle_part()
        trial.kill()
        trial.start()


def close_while_another_reader_waits(trial: Trial) -> None:
    """The other reader gets what the first one held, before anything newer."""
    trial.publish()
    trial.settle()
    trial.publish(2 * SOME)
    trial.hold(2 * SOME)
    first = trial.source
    trial.start()
    first.close()
    trial.held.clear()
    trial.publish()
    trial.settle()


def rename(trial: Trial) -> None:
    """Twice, with the first name."""
    was = trial.system.settings.name
    for name in ("renamed", "renamed-again"):
        trial.publish()
        trial.settle()
        trial.stop()
        renamed = replace(trial.system.settings, name=name)  # type: ignore[call-arg]  # every kind has it
        trial.change(renamed.for_gateway("gateway", was), was)
        trial.publish()
        trial.start()


def rename_without_a_word(trial: Trial) -> None:
    trial.publish()
    trial.settle()
    trial.stop()
    trial.change(replace(trial.system.settings, name="renamed"))  # type: ignore[call-arg]  # every kind has it
    trial.publish()
    trial.start()
    if trial.keeps:  # else there is no memory to lose
        assert "write `was: " in trial.logged()


def name_told_late(trial: Trial) -> None:
    """The source of the earlier name has what the one of the later name received meanwhile."""
    was = trial.system.settings.name
    trial.publish()
    trial.settle()
    trial.stop()
    trial.change(replace(trial.system.settings, name="renamed"))  # type: ignore[call-arg]  # every kind has it
    trial.start()
    trial.publish()
    trial.settle()
    trial.stop()
    trial.change(trial.system.settings.for_gateway("gateway", was), was)
    trial.publish()
    trial.start()
    if trial.keeps:
        assert f"goes on as {was}, and was read under another name before" in trial.logged()


def damaged_memory(trial: Trial) -> None:
    trial.publish()
    trial.settle()
    trial.stop()
    trial.damage_memory()
    trial.publish()
    trial.start()


def another_spelling(trial: Trial) -> None:
    trial.publish()
    trial.settle()
    trial.stop()
    trial.change(trial.system.respelled)
    trial.publish()
    trial.start()


def removal_while_away(trial: Trial, what: str) -> None:
    """A queue takes its messages with it; a consumer's messages come again."""
    trial.publish()
    trial.settle()
    trial.stop()
    trial.publish()
    trial.system.removals[what]()
    trial.start()


def removal_before_traffic_while_away(trial: Trial, what: str) -> None:
    """Messages do not reach their queue; it is their sender that makes an exchange again."""
    trial.publish()
    trial.settle()
    trial.stop()
    trial.system.removals[what]()
    trial.publish()
    trial.start()


def removal_while_open(trial: Trial, what: str) -> None:
    trial.publish()
    trial.settle()
    trial.system.removals[what]()
    trial.lose()
    trial.publish()
    trial.settle()


def refused_name(trial: Trial) -> None:
    """The messages of the name are refused, and no other one waits for them or comes again."""
    answers = trial.publish_among(trial.system.refused)
    assert {each.outcome for each in answers} == {Outcome.REJECTED}
    assert {each.rule for each in answers} <= {NOT_AUTHORISED, PUBLISH_ACL}
    trial.settle()


def expiry_while_waiting(trial: Trial) -> None:
    """A message that waits for its target expires there; the source says when."""
    end = now() + HOUR
    trial.publish(expiry=end)
    trial.hold(SOME)
    messages = [each for batch in trial.held for each in batch.messages]
    waiting, _ = without_expired("target", messages, end - HOUR // 2)
    left, complete = without_expired("target", messages, end + SECOND)
    assert (len(waiting), len(left)) == (SOME, 0)
    assert complete is not None
    assert {each.rule for each in complete([])} == {EXPIRED}
    trial.settle_held()


def has_refusals(system: System) -> bool:
    return bool(system.refused)


def has_expiry(system: System) -> bool:
    return "expiry" in system.settings.carries


def removals(when: str, happen: Callable[..., None], *removed: str) -> Iterator[Event]:
    for what in removed:

        def possible(system: System, what: str = what) -> bool:
            return what in system.removals

        name = f"removed-{what}-while-{when}"
        yield Event(name, partial(happen, what=what), possible, loss=Loss.CERTAIN)


WAITING_PLACES: Final = ("queue", "stream", "consumer", "session")
EVENTS: Final = (
    Event("kill-in-silence", kill_in_silence, outlives, exact=True),
    Event("kill-under-load", kill_under_load, outlives),
    Event("kill-behind-settlements", kill_behind_settlements, outlives),
    Event("kill-with-its-broker", kill_with_its_broker, has_a_broker),
    Event("planned-stop", planned_stop, exact=True),
    Event("planned-stop-under-load", planned_stop_under_load),
    Event("stop-while-frozen", stop_while_frozen, has_a_broker),
    Event("handover", handover, exact=True, in_pair=True),
    Event("takeover", takeover, outlives, in_pair=True),
    Event("takeover-from-frozen", takeover_from_a_frozen_holder, outlives, in_pair=True),
    Event("stops-in-redelivery", stops_in_redelivery, keeps),
    Event("kills-in-redelivery", kills_in_redelivery, keeps_and_outlives),
    Event("close-before-a-waiting-reader", close_while_another_reader_waits, queues_readers),
    Event("rename", rename, remembers, exact=True),
    Event("rename-without-was", rename_without_a_word, remembers, loss=Loss.PERHAPS),
    Event("was-written-late", name_told_late, remembers, loss=Loss.PERHAPS),
    Event("damaged-memory", damaged_memory, remembers),
    Event("another-spelling", another_spelling, has_spellings, exact=True),
    Event("refused-name", refused_name, has_refusals, exact=True),
    Event("expiry-while-waiting", expiry_while_waiting, has_expiry, exact=True),
    *removals("away", removal_while_away, *WAITING_PLACES),
    *removals("away", removal_while_away, "subscription", "messages", "exchange", "topic"),
    *removals("away-and-traffic", removal_before_traffic_while_away, "binding", "exchange"),
    *removals("open", removal_while_open, *WAITING_PLACES, "exchange", "topic"),
)
UNBOUND: Final = "no server tells that a binding was gone before it was made again"
UNSUBSCRIBED: Final = "no server of JMS tells that a durable subscription was not there"
UNREAD: Final = "no server of queues tells that somebody emptied one"
FAULTS: Final = {  # that are known, by event and system
    ("removed-binding-while-away-and-traffic", "rabbitmq"): UNBOUND,
    ("removed-binding-while-away-and-traffic", "rabbitmq-stream"): UNBOUND,
    ("removed-subscription-while-away", "jms"): UNSUBSCRIBED,
    ("removed-messages-while-away", "jms-queue"): UNREAD,
    ("removed-messages-while-away", "rabbitmq"): UNREAD,
    ("removed-messages-while-away", "amqp"): UNREAD,
    ("removed-messages-while-away", "amqp-quorum"): UNREAD,
    ("removed-exchange-while-away-and-traffic", "rabbitmq"): UNBOUND,
    ("removed-exchange-while-away-and-traffic", "rabbitmq-stream"): UNBOUND,
}

ELSEWHERE: Final = {  # than in a folder, and not nightly: a position, a session and a consumer
    ("handover", "rabbitmq-stream"),
    ("handover", "mqtt-3.1.1-retained"),
    ("handover", "nats"),
}
SLOW: Final = {  # the broker starts slowly, or waits for its `ack_wait` at each stop
    *(("stop-while-frozen", each) for each in ("kafka", "kafka-partitions", "jms", "jms-queue")),
    *(("stop-while-frozen", each) for each in ("rabbitmq", "rabbitmq-stream", "amqp")),
    *(("stop-while-frozen", each) for each in ("amqp-quorum", "mqtt-3.1.1-retained")),
    ("kill-with-its-broker", "rabbitmq"),
    ("kill-with-its-broker", "rabbitmq-stream"),
    ("kill-with-its-broker", "amqp-quorum"),
    ("kills-in-redelivery", "mqtt-nats"),
    ("stops-in-redelivery", "mqtt-nats"),
}


def rows() -> Iterator[pytest.ParameterSet]:
    for event in EVENTS:
        for storage, system in product(STORAGES if event.in_pair else [""], SYSTEMS | PLACES):
            is_other = storage not in {"", "folder"} and (event.name, system) not in ELSEWHERE
            is_slow = is_other or system in NIGHTLY or (event.name, system) in SLOW
            marks = [pytest.mark.nightly] if is_slow else []
            if reason := FAULTS.get((event.name, system)):
                marks.append(pytest.mark.xfail(strict=True, reason=reason))
            name = "-".join(filter(None, (event.name, storage, system)))
            yield pytest.param(event, storage, system, id=name, marks=marks)


@pytest.mark.parametrize(("event", "storage", "name"), [*rows()])
def test_a_source_keeps_its_promises(
    event: Event,
    storage: str,
    name: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    system = (SYSTEMS | PLACES)[name](request)
    if not event.possible(system):
        pytest.skip("the system cannot have it")
    monkeypatch.setattr(source_memory, "WRITE_INTERVAL", SILENCE / 2)
    of_pair = STORAGES[storage](request, tmp_path) if storage else None
    trial = Trial(system, tmp_path, lambda: caplog.text, of_pair)
    with trial.running():
        event.happen(trial)
        trial.finish(event.loss)

    trial.check(event.loss, exact=event.exact)
