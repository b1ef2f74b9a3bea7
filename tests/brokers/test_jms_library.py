"""JMS only: acknowledgements and memories through a break, two libraries, the end of the process.

`tests/conformance` has the events that every kind can have.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from uuid import uuid4

import pytest

from deploy.jms_jars import rewrite_jar
from gateway.endpoints.base import Subscription
from gateway.endpoints.jms import JmsSource, open_sink, open_source
from gateway.endpoints.jms.connection_factory import READ_TIMEOUT_MS
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED
from tests.brokers.controlled_activemq import ActiveMq
from tests.endpoints.exchange import (
    QUIET,
    collect,
    hold,
    opened,
    reopen,
    send,
    wait_for_loss,
)
from tests.memories import ROLE, remember, remembered
from tests.waiting import PATIENCE

pytestmark = pytest.mark.broker

PERSISTENT = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def queue() -> str:
    return f"queue:{uuid4().hex}"


def numbered(queue: str, first: int, count: int, headers: Headers = PERSISTENT) -> list[Message]:
    return [Message(queue, str(n).encode(), headers) for n in range(first, first + count)]


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
