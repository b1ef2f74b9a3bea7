"""Large messages in a JMS queue whose target is away: the heap holds, and other traffic flows."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from gateway.endpoints.base import Sink, Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.errors import NotConnectedError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.trial.brokers.activemq import FACTORY, client_jars
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.jms_pairs import plain_session
from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.running import Client, started
from tests.endpoints.exchange import QUIET, hold, opened, reopen, send, wait_for_loss
from tests.waiting import until

pytestmark = pytest.mark.broker

KEPT = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
MEBIBYTE = 1 << 20
HEAP = 256  # MiB; the default of `jvm_options`
HONEST = 500  # small messages
STALLED_CHECKS = 100  # equal lengths of a socket's queue in a row, a few milliseconds apart
CONFIG = """\
gateway: {{name: test}}
endpoints:
  bulk: {{client_id: "{name}", acknowledge: {acknowledge}, {jms}}}
  source: {{{jms}}}
  away: {{kind: mqtt, host: 127.0.0.1, port: {away}, backoff_min: 0.05, backoff_max: 0.2}}
  target: {{kind: mqtt, host: 127.0.0.1, port: {target}}}
routes:
  large:
    from: {{endpoint: bulk, pattern: "queue:{name}.large"}}
    to: {{endpoint: away, template: "dst/large"}}
  honest:
    from: {{endpoint: source, pattern: "queue:{name}.honest"}}
    to: {{endpoint: target, template: "dst/honest"}}
archive: {{path: {archive}}}
"""


class UnreadBytes:
    """Watches the bytes that the kernel holds for connections to one port. Mutable."""

    def __init__(self, port: int) -> None:
        self._port, self._last, self._same = f":{port:04X}", "", 0

    def have_stalled(self) -> bool:
        """Return whether bytes wait of which none was read during the last checks."""
        tables = [Path(f"/proc/net/{name}").read_text("ascii") for name in ("tcp", "tcp6")]
        rows = [line.split() for table in tables for line in table.splitlines()[1:]]
        queues = ",".join(row[4][9:] for row in rows if row[2].endswith(self._port))
        self._same = self._same + 1 if queues == self._last and queues.strip("0,") else 0
        self._last = queues
        return self._same >= STALLED_CHECKS


@pytest.mark.parametrize(
    ("acknowledge", "count"),
    [
        pytest.param("client", 300, id="client", marks=pytest.mark.nightly),
        pytest.param("explicit", 300, id="explicit", marks=pytest.mark.nightly),
        pytest.param("client", 1_000, id="client-1000", marks=pytest.mark.nightly),
    ],
)
def test_large_messages_fill_no_heap_and_stop_no_others(
    tmp_path: Path,
    activemq: ActiveMq,
    start_mosquitto: StartMosquitto,
    acknowledge: str,
    count: int,
) -> None:
    name = f"big{uuid4().hex}"
    away, target = start_mosquitto(), start_mosquitto()
    config = tmp_path / "gateway.yaml"
    jars = ", ".join(client_jars())
    jms = f"kind: jms, classpath: [{jars}], factory: {FACTORY}, urls: ['{activemq.url}']"
    config.write_text(
        CONFIG.format(
            jms=jms, name=name, acknowledge=acknowledge, target=target.port, away=away.port,
            archive=tmp_path / "archive",
        )
    )  # fmt: skip
    assert count > HEAP  # more than fits
    feed = make_sink(activemq.settings(name="feed"))
    witness, large_witness = Client(target.port, "dst/#"), Client(away.port, "dst/#")
    away.stop()
    with opened(feed):
        put_large(feed, name, count)
        with started(config) as gateway:
            until(UnreadBytes(activemq.port).have_stalled)
            small = [Message(f"queue:{name}.honest", b"%d" % n, KEPT) for n in range(HONEST)]
            assert send(feed, *small) == [ACCEPTED] * HONEST
            witness.wait_for(lambda arrived: len(set(arrived)) == HONEST)
            away.start()
            large_witness.wait_for(lambda arrived: len(arrived) >= count)
            assert gateway.end() == 0
    for each in (witness, large_witness):
        each.close()

    numbers = [int(body) for _, body in witness.arrived]
    assert list(dict.fromkeys(numbers)) == list(range(HONEST))


@pytest.mark.nightly
def test_large_messages_pass_a_transacted_session(
    activemq: ActiveMq,
) -> None:
    name, count = f"big{uuid4().hex}", 300
    source = make_source(
        activemq.settings(acknowledge="transacted"), [Subscription(f"queue:{name}.large")]
    )
    feed = make_sink(activemq.settings(name="feed"))
    with opened(feed):
        put_large(feed, name, count)
    got: set[str | None] = set()
    with opened(source):
        while len(got) < count:
            try:
                batch = source.receive(1.0)
            except NotConnectedError:
                reopen(source)
                continue
            if batch is not None:
                batch.settle([ACCEPTED] * len(batch.messages))
                got |= {each.headers.source_id for each in batch.messages}


def test_a_message_larger_than_the_window_passes_a_transacted_session(activemq: ActiveMq) -> None:
    name, count = f"big{uuid4().hex}", 20
    settings = activemq.settings(acknowledge="transacted", prefetch=1, receive_window_bytes=65_536)
    source = make_source(settings, [Subscription(f"queue:{name}.large")])
    feed = make_sink(activemq.settings(name="feed"))
    with opened(feed):
        put_large(feed, name, count)
    received = 0
    with opened(source):
        while received < count:
            batch = source.receive(1.0)  # a broken connection is an error
            if batch is not None:
                batch.settle([ACCEPTED] * len(batch.messages))
                received += len(batch.messages)


@pytest.mark.nightly
@pytest.mark.parametrize("acknowledge", ["client", "transacted"])
def test_temporary_queues_of_others_take_nothing_of_the_receive_window(
    activemq: ActiveMq, acknowledge: str
) -> None:
    """ActiveMQ tells every connection of each of them, in messages of a kilobyte."""
    queue = f"queue:{uuid4().hex}"
    settings = activemq.settings(
        acknowledge=acknowledge, receive_window=1, receive_window_bytes=65_536
    )
    source, sink = make_source(settings, [Subscription(queue)]), make_sink(settings)
    with opened(sink, source), plain_session(activemq) as (session, _):
        send(sink, Message(queue, b"x", KEPT))
        hold(source, 1)
        for _ in range(100):
            session.createTemporaryQueue().delete()

        assert source.receive(QUIET) is None  # the connection lasts
        activemq.kill()
        wait_for_loss(source)  # it is still read


def put_large(feed: Sink, name: str, count: int) -> None:
    body = b"x" * MEBIBYTE
    for _ in range(0, count, 10):
        large = [Message(f"queue:{name}.large", body, KEPT)] * 10
        assert send(feed, *large) == [ACCEPTED] * 10
