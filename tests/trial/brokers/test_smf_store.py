"""A broker with a store: acknowledged messages survive every end of the broker."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.errors import EndpointError
from gateway.trial.brokers.smf import BrokerOptions, QueueOptions
from gateway.trial.brokers.smf.responses import UNKNOWN_FLOW
from gateway.trial.brokers.smf.store import DATABASE_NAME
from gateway.wire.smf.assured_control import (
    AckOutcome,
    AckRange,
    ControlField,
    ControlType,
    encode_field,
)
from gateway.wire.smf.responses import OK
from gateway.wire.smf.subscriptions import SubscriptionChange
from tests.brokers.controlled_smf import SmfBroker
from tests.brokers.smf_client import SmfClient

OPTIONS = BrokerOptions(queues=(QueueOptions("q", ("q/>",)),))


def start(folder: Path, options: BrokerOptions = OPTIONS) -> SmfBroker:
    return SmfBroker(options=options, store=folder)


def publish(client: SmfClient, flow: int, *payloads: bytes, topic: str = "q/x") -> None:
    """Publish, and wait for all acknowledgements."""
    for payload in payloads:
        client.publish(flow, topic, payload)
    last = 0
    while last < client.published:
        last = client.next_control().get_int(ControlField.LAST_ACKED)


def open_flow(client: SmfClient, name: bytes = b"") -> int:
    return client.open_publisher(name).get_int(ControlField.FLOW_ID)


def bound(client: SmfClient, queue: str = "q") -> int:
    answer = client.bind(queue)
    assert answer.response == OK
    return answer.get_int(ControlField.FLOW_ID)


def test_the_next_broker_delivers_stored_messages_in_order(tmp_path: Path) -> None:
    with start(tmp_path) as broker, SmfClient(broker.port, "a") as client:
        publish(client, open_flow(client), *(b"%d" % i for i in range(100)))
    with start(tmp_path) as broker, SmfClient(broker.port, "a") as client:
        bound(client)
        got = [client.delivery() for _ in range(100)]

    assert [message.body for message in got] == [b"%d" % i for i in range(100)]
    assert {message.topic for message in got} == {b"q/x"}


def test_settled_messages_are_gone_and_delivered_ones_marked_after_a_restart(
    tmp_path: Path,
) -> None:
    with start(tmp_path) as broker, SmfClient(broker.port, "a") as client:
        publish(client, open_flow(client), b"0", b"1", b"2", b"3")
        answer = client.control(
            ControlType.BIND,
            encode_field(ControlField.QUEUE, b"q"),
            encode_field(ControlField.WINDOW, 0),
            encode_field(ControlField.DURABILITY, 1),
        )
        flow = answer.get_int(ControlField.FLOW_ID)
        client.acknowledge(flow, 0, window=3)
        ids = [client.delivery().message_id for _ in range(3)]
        client.acknowledge(
            flow,
            ids[2],
            AckRange(ids[0], ids[0]),
            AckRange(ids[2], ids[2], AckOutcome.REJECTED),
            window=0,
        )
        assert client.is_alive()
    with start(tmp_path) as broker, SmfClient(broker.port, "a") as client:
        assert broker.depth("q") == 2
        bound(client)
        frames = [client.read() or b"", client.read() or b""]

    assert [frame[-1:] for frame in frames] == [b"1", b"3"]
    assert [b"\x13\x02" in frame for frame in frames] == [True, False]


def test_queues_and_their_subscriptions_survive_a_restart(tmp_path: Path) -> None:
    with start(tmp_path) as broker, SmfClient(broker.port, "a") as client:
        for name in (b"made", b"gone"):
            assert (
                client.control(ControlType.CREATE, encode_field(ControlField.QUEUE, name)).response
                == OK
            )
        for topic in ("m/>", "n/>"):
            assert client.subscribe(topic, SubscriptionChange.ADD_TO_QUEUE, "made") == OK
        assert client.subscribe("n/>", SubscriptionChange.REMOVE_FROM_QUEUE, "made") == OK
        assert (
            client.control(ControlType.DELETE, encode_field(ControlField.QUEUE, b"gone")).response
            == OK
        )
    with start(tmp_path) as broker, SmfClient(broker.port, "a") as client:
        publish(client, open_flow(client), b"x", topic="m/1")
        assert broker.depth("made") == 1
        client.publish(open_flow(client), "n/1", b"x", number=1)
        assert client.next_control().response == OK
        assert broker.depth("made") == 1
        assert client.bind("gone").response != OK


def test_a_publisher_flow_is_resumed_after_a_restart(tmp_path: Path) -> None:
    with start(tmp_path) as broker, SmfClient(broker.port, "a") as client:
        granted = client.open_publisher()
        publish(client, granted.get_int(ControlField.FLOW_ID), b"0", b"1")
    with start(tmp_path) as broker, SmfClient(broker.port, "a") as client:
        resumed = client.open_publisher(granted.get_text(ControlField.FLOW_NAME))
        flow = resumed.get_int(ControlField.FLOW_ID)
        client.publish(flow, "q/x", b"1", number=2)  # repeated, as its answer was lost
        assert client.next_control().get_int(ControlField.LAST_ACKED) == 2
        assert broker.depth("q") == 2

    assert resumed.get_int(ControlField.LAST_ACKED) == 2


PROGRAM = "from gateway.cli import main; raise SystemExit(main())"


def run(folder: Path) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-c", PROGRAM, "broker", "smf", "--queue", "q=q/>"]
    process = subprocess.Popen(  # noqa: S603  # our own command
        [*command, "--store", str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline().rpartition(":")[2])


def test_a_killed_process_loses_no_acknowledged_message(tmp_path: Path) -> None:
    process, port = run(tmp_path)
    with process, SmfClient(port, "a") as client:
        flow = open_flow(client)
        for number in range(5_000):
            client.publish(flow, "q/x", b"%d" % number)
        acknowledged = 0
        while acknowledged < 1_000:
            acknowledged = client.next_control().get_int(ControlField.LAST_ACKED)
        process.send_signal(signal.SIGKILL)
    with start(tmp_path) as broker, SmfClient(broker.port, "a") as client:
        depth = broker.depth("q")
        bound(client)
        got = [client.delivery().body for _ in range(min(depth, 255))]

    assert acknowledged <= depth <= 5_000
    assert got == [b"%d" % number for number in range(len(got))]


def test_a_store_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / DATABASE_NAME).write_bytes(b"no database" * 100)

    with pytest.raises(EndpointError, match=r"cannot use the store .*not a database"):
        start(tmp_path)


def test_two_brokers_do_not_share_a_store(tmp_path: Path) -> None:
    with start(tmp_path), pytest.raises(EndpointError, match="cannot use the store"):
        start(tmp_path)
    with start(tmp_path):
        pass


def test_without_a_writable_store_nothing_is_acknowledged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with start(tmp_path) as broker, SmfClient(broker.port, "a") as client:
        flow = open_flow(client)
        publish(client, flow, b"0")
        _fill(broker)
        client.publish(flow, "q/x", b"1" * 100_000)

        assert client.read() is None
    assert "stopping: the store cannot be written" in caplog.text
    with start(tmp_path) as broker:
        assert broker.depth("q") == 1


def _fill(broker: SmfBroker) -> None:
    """Let the database not grow any more, as on a full disk."""
    assert broker.store is not None
    broker.store._database.execute("PRAGMA max_page_count = 1")  # noqa: SLF001  # of its present size


def test_numbers_go_on_after_a_restart_of_an_empty_queue(tmp_path: Path) -> None:
    """Else a new message would be marked as one that was delivered before."""
    with start(tmp_path) as broker, SmfClient(broker.port, "a") as client:
        publish(client, open_flow(client), b"0")
        flow = bound(client)
        message = client.delivery()
        client.acknowledge(
            flow, message.message_id, AckRange(message.message_id, message.message_id)
        )
        assert client.is_alive()
    with start(tmp_path) as broker, SmfClient(broker.port, "a") as client:
        assert broker.depth("q") == 0
        publish(client, open_flow(client), b"1")
    with start(tmp_path) as broker, SmfClient(broker.port, "a") as client:
        bound(client)
        frame = client.read() or b""

    assert frame[-1:] == b"1"
    assert b"\x13\x02" not in frame  # the mark of a redelivery


def test_the_oldest_publisher_is_forgotten_in_the_store_too(tmp_path: Path) -> None:
    options = replace(OPTIONS, max_publishers=2)
    with start(tmp_path, options) as broker, SmfClient(broker.port, "a") as client:
        names = []
        for _ in range(3):
            granted = client.open_publisher()
            names.append(granted.get_text(ControlField.FLOW_NAME))
            flow = granted.get_int(ControlField.FLOW_ID)
            client.publish(flow, "q/x", b"x", number=1)
            assert client.next_control().response == OK
    with start(tmp_path) as broker, SmfClient(broker.port, "a") as client:
        known = [client.open_publisher(name).response for name in names]

    assert known == [UNKNOWN_FLOW, OK, OK]
