"""The behaviour that the runtime relies on, for every kind of endpoint."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from time import monotonic

import pytest

from gateway.endpoints.base import Batch, Sink, Source, Subscription
from gateway.endpoints.registry import ENDPOINT_KINDS, removal
from gateway.errors import NotConnectedError
from gateway.model.dead_letter_rule import PAYLOAD
from gateway.model.message import DroppedPayload, Headers, Message
from gateway.model.outcome import ACCEPTED, RETRY, Outcome, rejected
from tests.copy_proofs import OTHER_PROOF, PROOF
from tests.endpoints.exchange import (
    QUIET,
    Answer,
    collect,
    hold,
    opened,
    receive,
    reopen,
    send,
    wait_for_loss,
)
from tests.endpoints.systems import NIGHTLY, SYSTEMS, System
from tests.waiting import PATIENCE

MEGABYTE = 1_048_576
PROOFS_OF_COPIES = (PROOF, "", OTHER_PROOF, PROOF)
SPARE = 5  # threads and files that come and go, for example those of a Java machine


def systems(nightly: AbstractSet[str] = NIGHTLY) -> list[pytest.ParameterSet]:
    """Return the names of all systems, as parameters of a test."""
    return [
        pytest.param(name, id=name, marks=[pytest.mark.nightly] if name in nightly else [])
        for name in SYSTEMS
    ]


@pytest.fixture(params=systems())
def system(request: pytest.FixtureRequest) -> System:
    return SYSTEMS[request.param](request)


@pytest.fixture
def breakable(system: System) -> System:
    return _with_a_broker(system)


@pytest.fixture(params=systems(NIGHTLY | {"rabbitmq"}))
def breakable_for_long(request: pytest.FixtureRequest) -> System:
    """A system of a test that takes seconds where the broker starts slowly."""
    return _with_a_broker(SYSTEMS[request.param](request))


def _with_a_broker(system: System) -> System:
    if system.broker is None:
        pytest.skip("the system has no broker to stop")
    return system


def say(system: System, number: int, *levels: str) -> Message:
    address = system.address(*(levels or ("t", "x")))
    return Message(address, str(number).encode(), Headers(mode=system.mode))


def payloads(messages: list[Message]) -> list[object]:
    return [message.payload for message in messages]


def test_every_kind_of_endpoint_has_a_system() -> None:
    assert {name.partition("-")[0] for name in SYSTEMS} == {*ENDPOINT_KINDS}


def test_open_and_close_can_be_repeated(system: System) -> None:
    for endpoint in (system.source("t"), system.sink()):
        endpoint.close()
        endpoint.open()
        endpoint.open()
        endpoint.close()
        endpoint.close()
        endpoint.open()
        endpoint.close()


def test_a_closed_endpoint_raises(system: System) -> None:
    source, sink = system.source("t"), system.sink()

    with pytest.raises(NotConnectedError):
        source.receive(0)
    with pytest.raises(NotConnectedError):
        sink.send([say(system, 1)], Answer())


def test_receive_without_a_message_is_none(system: System) -> None:
    source = system.source("t")
    with opened(source):
        assert source.receive(0.05) is None
        assert source.receive(0) is None


@pytest.mark.parametrize(
    ("levels", "payload"),
    [
        pytest.param(("t", "plain"), b"hello", id="plain"),
        pytest.param(("t", "empty"), b"", id="empty-payload"),
        pytest.param(("t", "binary"), bytes(range(256)), id="every-byte"),
        pytest.param(("t", "large"), b"\0\1\2\3" * (MEGABYTE // 4), id="one-megabyte"),
        pytest.param(("t", "Ünïcödé", "名前", "🜚"), b"x", id="unicode-name"),
        pytest.param(("t", "with blank"), b"x", id="blank-in-name"),
    ],
)
def test_a_message_arrives_unchanged(
    system: System, levels: tuple[str, ...], payload: bytes
) -> None:
    source, sink = system.source("t"), system.sink()
    message = Message(system.address(*levels), payload, Headers(mode=system.mode))
    with opened(source, sink):
        assert send(sink, message) == [ACCEPTED]
        (got,) = collect(source, 1)

    assert (got.address, got.payload) == (message.address, payload)
    assert not got.headers.redelivered


def test_a_message_longer_than_the_source_takes_comes_once_without_its_payload(
    system: System,
) -> None:
    if isinstance(system.longest, str):
        pytest.skip(system.longest)
    setting, most = system.longest
    limited = replace(system.settings, **{setting: most})
    source, sink = replace(system, settings=limited).source("t"), system.sink()
    long = replace(say(system, 2), payload=bytes(most + 2 * MEGABYTE // 16))
    with opened(source, sink):
        assert send(sink, say(system, 1), long, say(system, 3)) == [ACCEPTED] * 3
        got = collect(source, 3)
        assert source.receive(QUIET) is None

    assert payloads(got) == [b"1", b"", b"3"]
    assert got[1].address == long.address
    assert isinstance(got[1].payload, DroppedPayload)
    assert got[1].payload.full >= len(long.payload)


def test_the_proof_of_a_copy_crosses_where_the_origin_does(system: System) -> None:
    source, sink = system.source("t"), system.sink()
    own = Headers(mode=system.mode)
    shared = Headers(mode=system.mode, origin=("plant/out", "x/y"), properties={"a": "b"})
    sent = [
        replace(say(system, number), headers=headers, proof=proof)
        for number, (headers, proof) in enumerate(product((own, shared), PROOFS_OF_COPIES))
    ]
    with opened(source, sink):
        assert send(sink, *sent) == [ACCEPTED] * len(sent)
        got = collect(source, len(sent))

    assert payloads(got) == payloads(sent)
    carried = "origin" in system.settings.carries
    assert [m.proof for m in got] == [m.proof if carried else "" for m in sent]
    assert [m.headers.origin for m in got] == [m.headers.origin if carried else () for m in sent]
    assert not any("proof" in name.lower() for m in got for name in m.headers.properties)


def test_a_message_that_comes_again_keeps_its_proof(system: System) -> None:
    source, sink = system.source("t"), system.sink()
    with opened(source, sink):
        send(sink, replace(say(system, 1), proof=PROOF))
        (first,) = collect(source, 1, RETRY)
        (again,) = collect(source, 1)

    assert again.payload == b"1"
    assert again.proof == first.proof


def test_the_order_of_a_subject_is_kept(system: System) -> None:
    source, sink = system.source("t"), system.sink()
    with opened(source, sink):
        answers = [Answer() for _ in range(20)]
        for part, answer in enumerate(answers):
            sink.send(
                [say(system, part * 100 + i, "t", str(i % 3)) for i in range(100)],
                answer,
            )
        got = collect(source, 2_000)
        assert all(answer.wait() == [ACCEPTED] * 100 for answer in answers)

    assert len(got) == 2_000
    for topic in "012":
        numbers = [int(bytes(m.payload)) for m in got if m.address == system.address("t", topic)]  # type: ignore[arg-type]  # bytes were sent
        assert numbers == sorted(numbers)


def test_threads_may_share_a_sink(system: System) -> None:
    source, sink = system.source("t"), system.sink()
    with opened(source, sink), ThreadPoolExecutor(4) as pool:
        parts = [
            [say(system, part * 100 + i, "t", str(part)) for i in range(100)] for part in range(20)
        ]
        answers = list(pool.map(lambda part: send(sink, *part), parts))
        got = collect(source, 2_000)

    assert answers == [[ACCEPTED] * 100] * 20
    assert len(got) == 2_000
    for part in parts:
        assert [m.payload for m in got if m.address == part[0].address] == payloads(part)


def test_settled_messages_are_not_redelivered(system: System) -> None:
    source, sink = system.source("t"), system.sink()
    with opened(source, sink):
        send(sink, *(say(system, i) for i in range(10)))
        collect(source, 10, ACCEPTED)
        send(sink, *(say(system, i) for i in range(10, 12)))
        collect(source, 2, rejected(PAYLOAD, "reason"))
    source = system.source("t")
    with opened(source):
        left = source.receive(QUIET)

    assert left is None


def test_a_batch_is_awaited_where_a_broker_keeps_what_is_not_settled(system: System) -> None:
    source, sink = system.source("t"), system.sink()
    with opened(source, sink):
        assert send(sink, say(system, 1)) == [ACCEPTED]
        batch = source.receive(PATIENCE)
        assert batch is not None
        batch.settle([ACCEPTED])

    assert batch.awaited is system.keeps


def test_the_broker_sets_no_copy_of_a_dead_letter_aside(system: System) -> None:
    """The gateway keeps it: where a broker kept it, too, somebody would send it twice."""
    if system.set_aside is None:
        pytest.skip("its brokers show no place for dead letters")
    aside = system.set_aside()
    source, sink = system.source("t"), system.sink()
    with opened(aside, source, sink):
        send(sink, say(system, 1), say(system, 2), say(system, 3))
        collect(source, 3, rejected(PAYLOAD, "reason"))

        assert aside.receive(2 * QUIET) is None


def test_a_second_settlement_of_a_batch_has_no_effect(system: System) -> None:
    source, sink = system.source("t"), system.sink()
    with opened(source, sink):
        send(sink, say(system, 1))
        batch = receive(source)
        batch.settle([ACCEPTED])
        batch.settle([RETRY])

        assert source.receive(QUIET) is None


def test_unsettled_messages_are_redelivered_after_a_new_open(system: System) -> None:
    source, sink = system.source("t"), system.sink()
    with opened(sink):
        with opened(source):
            send(sink, *(say(system, i) for i in range(4)))
            settle_all(hold(source, 4))
            send(sink, say(system, 4), say(system, 5))
            late = hold(source, 2)
        with opened(source):
            again = collect(source, 2)
            settle_all(late)

            assert source.receive(QUIET) is None

    assert payloads(again) == [b"4", b"5"]
    assert all(message.headers.redelivered for message in again)


def test_a_retried_message_is_redelivered_in_its_order(system: System) -> None:
    source, sink = system.source("t"), system.sink()
    with opened(source, sink):
        send(sink, *(say(system, i) for i in range(3)))
        batches = hold(source, 3)
        for batch in batches:
            batch.settle([RETRY if m.payload in {b"0", b"2"} else ACCEPTED for m in batch.messages])
        send(sink, say(system, 3))
        again = collect(source, 3)

        assert source.receive(QUIET) is None

    assert payloads(again) == [b"0", b"2", b"3"]
    assert [message.headers.redelivered for message in again] == [True, True, False]


def test_retries_keep_their_order_whichever_batch_is_settled_first(system: System) -> None:
    source, sink = system.source("t"), system.sink()
    with opened(source, sink):
        send(sink, say(system, 1))
        first = receive(source)
        send(sink, say(system, 2))
        second = receive(source)
        second.settle([RETRY])
        first.settle([RETRY])

        assert payloads(collect(source, 2)) == [b"1", b"2"]


def test_an_illegal_address_is_rejected_and_the_others_are_sent(system: System) -> None:
    source, sink = system.source("t"), system.sink()
    with opened(source, sink):
        before, wrong, after = send(
            sink,
            say(system, 1),
            Message(system.illegal, b"x", Headers(mode=system.mode)),
            say(system, 2),
        )
        got = collect(source, 2)

    assert payloads(got) == [b"1", b"2"]
    assert (before, after) == (ACCEPTED, ACCEPTED)
    assert wrong.outcome is Outcome.REJECTED
    assert wrong.rule
    assert wrong.reason


def test_an_empty_batch_is_settled(system: System) -> None:
    sink = system.sink()
    with opened(sink):
        assert send(sink) == []


def test_two_sources_of_one_pattern_both_get_every_message(system: System) -> None:
    first, second = system.source("t", instance="one"), system.source("t", instance="two")
    sink = system.sink()
    with opened(first, second, sink):
        send(sink, say(system, 1), say(system, 2))

        assert payloads(collect(first, 2)) == [b"1", b"2"]
        assert payloads(collect(second, 2)) == [b"1", b"2"]
        removes = removal(first, system.settings, [Subscription(system.rest(("t",)))])
        assert not removes(system.address("t", "x"))


@pytest.mark.parametrize("exclude", [True, False])
def test_retained_messages_arrive_unless_excluded(system: System, exclude: bool) -> None:
    if not system.retained:
        pytest.skip("the system keeps no messages for later subscribers")
    sink = system.sink()
    source = system.source("t", exclude_retained=exclude)
    old = Message(system.address("t", "x"), b"old", Headers(mode=system.mode, retained=True))
    with opened(sink):
        assert send(sink, old) == [ACCEPTED]
        with opened(source):
            send(sink, say(system, 1, "t", "y"))
            got = collect(source, 1 if exclude else 2)

    assert payloads(got) == ([b"1"] if exclude else [b"old", b"1"])
    assert got[0].headers.retained is not exclude


def test_endpoints_work_again_after_the_broker_came_back(breakable: System) -> None:
    """The settlement of a message from before has no effect: it comes again."""
    source, sink = breakable.source("t"), breakable.sink()
    with opened(source, sink):
        send(sink, say(breakable, 1))
        batch = receive(source)
        restart(breakable, source, sink)
        batch.settle([ACCEPTED])

        again = collect(source, 1)
        assert send(sink, say(breakable, 2)) == [ACCEPTED]
        assert payloads(collect(source, 1)) == [b"2"]

    assert payloads(again) == [b"1"]
    assert again[0].headers.redelivered


def test_the_loss_of_the_broker_is_noticed_and_attempts_leave_nothing(
    breakable_for_long: System,
) -> None:
    """An idle sink notices it, too, and a broker may be away for a week of attempts.

    One test, because a broker takes seconds of processor time to start again.
    """
    breakable = breakable_for_long
    sending, idle = breakable.sink(), breakable.sink("two")
    with opened(sending, idle):
        assert send(sending, say(breakable, 1)) == [ACCEPTED]
        idle.send([], Answer())
        assert breakable.broker is not None
        breakable.broker.stop()
        unsent = send_until_refused(breakable, sending)
        assert is_known_lost(idle)
    assert not unsent.has_come

    source, sink = breakable.source("t"), breakable.sink()
    kept = [failed_attempts(source, sink) for _ in range(3 * SPARE)]
    threads, files = zip(*kept, strict=True)

    assert threads[-1] - threads[SPARE] < SPARE, threads
    assert files[-1] - files[SPARE] < SPARE, files


def settle_all(batches: Sequence[Batch]) -> None:
    for batch in batches:
        batch.settle([ACCEPTED] * len(batch.messages))


def failed_attempts(*endpoints: Source | Sink) -> tuple[int, int]:
    """Try to open each; return the threads and open files of this process afterwards."""
    for endpoint in endpoints:
        with pytest.raises(NotConnectedError):
            endpoint.open()
        endpoint.close()
    own = Path("/proc/self")
    return len([*(own / "task").iterdir()]), len([*(own / "fd").iterdir()])


def is_known_lost(sink: Sink) -> bool:
    pause, until = threading.Event(), monotonic() + PATIENCE
    while monotonic() < until:
        try:
            sink.send([], Answer())
        except NotConnectedError:
            return True
        pause.wait(0.01)
    return False


def send_until_refused(system: System, sink: Sink) -> Answer:
    """Send until `send` raises; return the answer of that call, which never comes."""
    while True:
        answer = Answer()
        try:
            sink.send([say(system, 2)], answer)
        except NotConnectedError:
            return answer
        assert answer.wait() == [RETRY]


def restart(system: System, source: Source, sink: Sink) -> None:
    assert system.broker is not None
    system.broker.stop()
    wait_for_loss(source)
    system.broker.start()
    reopen(source)
    reopen(sink)
