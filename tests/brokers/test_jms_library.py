"""The JMS endpoint with a killed or stopped broker, two libraries, and the end of the process."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest

from deploy.jms_jars import rewrite_jar
from gateway.endpoints.base import Subscription
from gateway.endpoints.jms import JmsSink, JmsSource, open_sink, open_source
from gateway.endpoints.jms.connection_factory import READ_TIMEOUT_MS
from gateway.errors import NotConnectedError
from gateway.model.message import NO_HEADERS, DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, Outcome, Settlement
from tests.brokers.controlled_activemq import ActiveMq
from tests.endpoints.exchange import (
    QUIET,
    Answer,
    collect,
    hold,
    opened,
    reopen,
    send,
    wait_for_loss,
)
from tests.memories import ROLE, remember, remembered
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.broker

PERSISTENT = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def queue() -> str:
    return f"queue:{uuid4().hex}"


def numbered(queue: str, first: int, count: int, headers: Headers = PERSISTENT) -> list[Message]:
    return [Message(queue, str(n).encode(), headers) for n in range(first, first + count)]


class Tally:
    """Counts of accepted and received messages.

    Mutable: owned by the test.
    """

    def __init__(self) -> None:
        self.answered: set[int] = set()
        self.came: dict[int, set[str | None]] = {}
        self.number = 0
        self.unmarked = 0  # received twice with one id and not marked as redelivered

    def answer(self, first: int, settlements: Sequence[Settlement]) -> None:
        self.answered.update(first + i for i, s in enumerate(settlements) if s == ACCEPTED)

    def receive(self, source: JmsSource) -> bool:
        """Receive one batch; return whether one came in half a second."""
        if (batch := source.receive(0.5)) is None:
            return False
        for message in batch.messages:
            assert isinstance(message.payload, bytes)
            ids = self.came.setdefault(int(message.payload), set())
            self.unmarked += message.headers.source_id in ids and not message.headers.redelivered
            ids.add(message.headers.source_id)
        batch.settle([ACCEPTED] * len(batch.messages))
        self.number += len(batch.messages)
        return True

    def receive_more(self, source: JmsSource, messages: int) -> None:
        wanted = self.number + messages
        until(lambda: self.receive(source) and self.number >= wanted)


def send_thousand(sink: JmsSink, queue: str, first: int, tally: Tally) -> None:
    """Send a thousand messages, or fewer if the connection breaks."""
    for start in range(first, first + 1_000, 100):
        with suppress(NotConnectedError):
            sink.send(numbered(queue, start, 100), partial(tally.answer, start))


def test_a_message_without_an_answer_of_its_own_is_accepted_when_the_server_answers_after_it(
    activemq: ActiveMq, queue: str
) -> None:
    sink = open_sink(activemq.settings(delivery="non_persistent"))
    answer = Answer()
    with opened(sink):
        activemq.freeze()
        try:
            sink.send(numbered(queue, 0, 10), answer)
            until(lambda: sink.counts["calls"] == 1)
            assert not answer.has_come
        finally:
            activemq.thaw()
        assert answer.wait() == [ACCEPTED] * 10


@pytest.mark.nightly
def test_a_killed_broker_loses_no_accepted_message(activemq: ActiveMq, queue: str) -> None:
    """It is killed twice under traffic; repeated messages have the same id and are marked."""
    settings = activemq.settings()
    source, sink = open_source(settings, [Subscription(queue)]), open_sink(settings)
    tally = Tally()
    with opened(source, sink):
        for first in (0, 1_000):
            sender = threading.Thread(target=send_thousand, args=(sink, queue, first, tally))
            sender.start()
            tally.receive_more(source, 200)
            activemq.kill()
            sender.join()
            wait_for_loss(source)
            activemq.start()
            reopen(source)
            reopen(sink)
        send_thousand(sink, queue, 2_000, tally)
        until(lambda: set(range(2_000, 3_000)) <= tally.answered, "answers")
        until(lambda: tally.receive(source) and tally.answered <= tally.came.keys(), "messages")
        until(lambda: not tally.receive(source))

    assert tally.unmarked == 0


@pytest.mark.parametrize(
    ("acknowledge", "frozen"),
    [
        pytest.param("explicit", False, id="explicit-killed", marks=pytest.mark.nightly),
        pytest.param("client", True, id="client-frozen-then-killed"),
        pytest.param("explicit", True, id="explicit-frozen", marks=pytest.mark.nightly),
        pytest.param("client", False, id="client-killed", marks=pytest.mark.nightly),
    ],
)
def test_unacknowledged_messages_are_redelivered_and_marked(
    activemq: ActiveMq, queue: str, acknowledge: str, frozen: bool
) -> None:
    settings = activemq.settings(acknowledge=acknowledge, close_timeout=0.5)
    source, sink = open_source(settings, [Subscription(queue)]), open_sink(settings)
    with opened(source, sink):
        send(sink, *numbered(queue, 0, 20))
        batches = hold(source, 20)
        activemq.freeze() if frozen else activemq.kill()
        for batch in batches:  # an acknowledgement during the break is lost
            batch.settle([ACCEPTED] * len(batch.messages))
        activemq.kill()
        wait_for_loss(source)
        activemq.start()
        reopen(source)
        again = collect(source, 20)

    assert [m.payload for m in again] == [str(n).encode() for n in range(20)]
    assert all(m.headers.redelivered for m in again)
    assert source.counts["seen_before"] == 20
    before = [m.headers.source_id for batch in batches for m in batch.messages]
    assert [m.headers.source_id for m in again] == before


@pytest.mark.nightly
def test_a_new_process_marks_what_a_killed_broker_forgot(
    activemq: ActiveMq, queue: str, tmp_path: Path
) -> None:
    settings = activemq.settings()
    sink = open_sink(settings)

    def of_new_process() -> JmsSource:
        source = open_source(settings, [Subscription(queue)])
        remember(source, tmp_path / "memory")
        return source

    with opened(sink):
        killed = of_new_process()
        killed.open()
        send(sink, *numbered(queue, 0, 20))
        hold(killed, 20)
        activemq.kill()
    activemq.start()
    with opened(of_new_process()):
        pass  # it stops before it has received anything
    with opened(sink, after := of_new_process()):
        again = collect(after, 20)
        window = settings.receive_window + settings.batch
        send(sink, *numbered(queue, 20, window))
        collect(after, window)
    with opened(sink, clean := of_new_process()):
        send(sink, *numbered(queue, 0, 1))
        (last,) = collect(clean, 1)
    killed.close()

    assert [m.payload for m in again] == [str(n).encode() for n in range(20)]
    assert all(m.headers.redelivered for m in again)
    assert not last.headers.redelivered


def test_an_outage_begins_with_the_last_sign_of_the_server(activemq: ActiveMq, queue: str) -> None:
    """The library notices a server that hangs after 30 seconds; what was sent since is missed."""
    source = open_source(activemq.settings(), [Subscription(queue)])
    with opened(source):
        activemq.freeze()
        assert source.receive(QUIET) is None  # what was on its way has arrived
        heard = source.continuity.heard
        assert source.receive(QUIET) is None
        activemq.thaw()

        assert 0 < heard == source.continuity.heard


def test_a_server_that_hangs_holds_up_neither_settling_nor_closing(
    activemq: ActiveMq, queue: str, tmp_path: Path
) -> None:
    """The thread that settles writes the archive of all routes; a commit waits for its answer."""
    settings = activemq.settings(acknowledge="transacted", close_timeout=0.5)
    source, sink = open_source(settings, [Subscription(queue)]), open_sink(settings)
    remember(source, tmp_path / "memory")
    with opened(sink, source):
        send(sink, *numbered(queue, 0, 10))
        batches = hold(source, 10)
        activemq.freeze()

        def settle_and_close() -> None:
            for batch in batches:
                batch.settle([ACCEPTED] * len(batch.messages))
            source.close()

        settling = threading.Thread(target=settle_and_close)
        settling.start()
        settling.join(READ_TIMEOUT_MS / 2_000)  # the library gives the server up after all of it
        held_up = settling.is_alive()
        activemq.thaw()

    assert not held_up
    assert remembered(tmp_path / "memory")["unsettled"]


def test_a_process_with_a_damaged_session_file_marks_what_may_come_twice(
    activemq: ActiveMq, queue: str, tmp_path: Path
) -> None:
    settings, file = activemq.settings(), tmp_path / "memory"
    file.write_text(f'{{"memories": {{"{ROLE}": {{"unsettled": 35}}}}}}')
    source, sink = open_source(settings, [Subscription(queue)]), open_sink(settings)
    remember(source, file)
    with opened(source, sink):
        send(sink, *numbered(queue, 0, 1))
        (got,) = collect(source, 1)

    assert got.headers.redelivered


def test_a_sink_retries_messages_without_an_answer(activemq: ActiveMq, queue: str) -> None:
    sink = open_sink(activemq.settings())
    with opened(sink):
        assert send(sink, *numbered(queue, 0, 10)) == [ACCEPTED] * 10
        activemq.kill()
        outcomes = set()
        gone = False
        while not gone:
            answer = Answer()
            try:
                sink.send(numbered(queue, 0, 10), answer)
            except NotConnectedError:
                gone = True
            else:
                outcomes |= {settlement.outcome for settlement in answer.wait()}

    assert outcomes <= {Outcome.RETRY}


@pytest.mark.nightly
def test_a_sink_that_opens_while_its_old_connection_ends_keeps_answers_and_window(
    activemq: ActiveMq, queue: str
) -> None:
    """The thread of the old connection is held where it settles what it has not sent."""
    sink = open_sink(activemq.settings(send_window=20))
    sending, after = Answer(), Answer()
    settling, reopened = threading.Event(), threading.Event()

    def waiting(_: Sequence[Settlement]) -> None:
        settling.set()
        reopened.wait(PATIENCE)

    with opened(sink):
        activemq.freeze()
        sink.send(numbered(queue, 0, 10), sending)
        until(lambda: sink.counts["calls"] == 1)
        sink.send(numbered(queue, 10, 10), waiting)
        activemq.kill()
        assert settling.wait(PATIENCE)
        activemq.start()
        reopen(sink)
        sink.send(numbered(queue, 20, 10), after)
        assert after.wait() == [ACCEPTED] * 10
        reopened.set()

        assert {s.outcome for s in sending.wait()} == {Outcome.RETRY}
        assert send(sink, *numbered(queue, 30, 20)) == [ACCEPTED] * 20


def test_a_broker_that_hangs_ends_the_connection(activemq: ActiveMq, queue: str) -> None:
    sink = open_sink(activemq.settings(answer_timeout=0.3, close_timeout=0.3, send_window=10))
    sink.open()
    assert send(sink, *numbered(queue, 0, 1)) == [ACCEPTED]
    activemq.freeze()
    first, second = Answer(), Answer()
    try:
        sink.send(numbered(queue, 1, 10), first)
        with pytest.raises(NotConnectedError, match="no answer"):
            sink.send(numbered(queue, 11, 10), second)

        assert {s.outcome for s in first.wait()} == {Outcome.RETRY}
        assert not second.has_come
    finally:
        activemq.thaw()
        sink.close()


@pytest.mark.parametrize("headers", [PERSISTENT, NO_HEADERS], ids=["persistent", "np"])
def test_closing_retries_messages_that_are_being_sent(
    activemq: ActiveMq, queue: str, headers: Headers
) -> None:
    """The socket takes those that get no answer of their own, and a frozen server reads none."""
    sink = open_sink(activemq.settings(close_timeout=0.3))
    sink.open()
    activemq.freeze()
    answers = [Answer() for _ in range(3)]
    try:
        for answer in answers:
            sink.send(numbered(queue, 0, 10, headers), answer)
        sink.close()

        assert {s.outcome for answer in answers for s in answer.wait()} == {Outcome.RETRY}
    finally:
        activemq.thaw()


def test_two_libraries_work_in_one_process(activemq: ActiveMq, queue: str, tmp_path: Path) -> None:
    """The same client for javax.jms and rewritten for jakarta.jms, each with its own loader."""
    settings = activemq.settings()
    folder = tmp_path / "jakarta"
    folder.mkdir()
    for jar in settings.classpath:
        (folder / Path(jar).name).write_bytes(rewrite_jar(Path(jar).read_bytes()))
    moved = activemq.settings(name="moved", classpath=(f"{folder}/*.jar",))
    source, sink = open_source(moved, [Subscription(queue)]), open_sink(settings)
    back, forth = open_source(settings, [Subscription(f"{queue}-back")]), open_sink(moved)
    with opened(source, sink, back, forth):
        send(sink, Message(queue, {"a": {"b": [1, 2]}}, PERSISTENT))
        (got,) = collect(source, 1)
        send(forth, Message(f"{queue}-back", got.payload, got.headers))
        (again,) = collect(back, 1)

    assert got.payload == again.payload == {"a": {"b": [1, 2]}}


PROGRAM = """
    import signal, sys
    for number in (signal.SIGINT, signal.SIGTERM):  # Java must not replace them
        signal.signal(number, lambda *_: sys.exit(9))
    from gateway.endpoints.base import Subscription
    from gateway.endpoints.jms import open_source, open_sink
    from gateway.endpoints.settings.jms import JmsSettings
    settings = JmsSettings(classpath={jars!r}, factory={factory!r}, urls=({url!r},))
    source, sink = open_source(settings, [Subscription("a")]), open_sink(settings)
    source.open()
    sink.open()
    print("open", flush=True)
    {last}
"""


def run(broker: ActiveMq, last: str) -> subprocess.Popen[str]:
    settings = broker.settings()
    program = textwrap.dedent(PROGRAM).format(
        jars=settings.classpath, factory=settings.factory, url=broker.url, last=last
    )
    return subprocess.Popen(  # noqa: S603  # this interpreter
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )


@pytest.mark.nightly
def test_a_process_with_open_connections_ends(activemq: ActiveMq) -> None:
    with run(activemq, "sys.exit(7)") as process:
        assert process.wait(PATIENCE) == 7


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly)]
)
def test_signals_reach_python_while_java_waits(activemq: ActiveMq, number: signal.Signals) -> None:
    last = "[source.receive(0.2) for _ in range(500)]"
    with run(activemq, last) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        process.send_signal(number)

        assert process.wait(PATIENCE) == 9
