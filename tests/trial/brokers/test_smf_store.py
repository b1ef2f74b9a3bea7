"""A broker with a store: acknowledged messages survive every end of the broker."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from gateway.errors import EndpointError
from gateway.trial.brokers.smf import BrokerOptions, QueueOptions, store
from gateway.trial.brokers.smf.journal import JOURNAL_NAME, BrokerJournal, RecordType
from gateway.trial.brokers.smf.store import restore, snapshot
from gateway.trial.brokers.smf.vpn import BrokerState, Vpn
from gateway.wire.smf.assured_control import (
    AckOutcome,
    AckRange,
    ControlField,
    ControlType,
    encode_field,
)
from gateway.wire.smf.parameters import OK
from gateway.wire.smf.relayed_message import PublishedMessage
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


CUTS: list[Callable[[bytes], bytes]] = [
    lambda data: data[:-1],
    lambda data: data[:-40],
    lambda data: data + b"\0\0",
    lambda data: data + b"\0" * 100,
    lambda data: data[:-1] + bytes((data[-1] ^ 1,)),
]


@pytest.mark.parametrize("cut", CUTS)
def test_a_truncated_record_affects_no_other(
    tmp_path: Path, cut: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    journal = BrokerJournal(tmp_path)
    journal.append(RecordType.QUEUE, "default", b"q", True)  # as in the record
    for number in range(1, 4):
        journal.append(
            RecordType.MESSAGE, "default", b"q", number, b"q/x", 0x10, b"", b"%d" % number * 50
        )
    journal.close()
    file = tmp_path / JOURNAL_NAME
    file.write_bytes(cut(file.read_bytes()))
    with start(tmp_path) as broker:
        assert broker.depth("q") >= 2

    assert "are no record" in caplog.text


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
        client.publish(flow, "q/x", b"1")

        assert client.read() is None
    assert "stopping: the store cannot be written" in caplog.text
    with start(tmp_path) as broker:
        assert broker.depth("q") == 1


def _fill(broker: SmfBroker) -> None:
    """Replace the journal's file by a full device."""
    journal = broker.journal
    assert journal is not None
    journal._file.close()  # noqa: SLF001
    journal._file = Path("/dev/full").open("ab", buffering=0)  # noqa: SLF001, SIM115


def test_a_snapshot_restores_the_same_state() -> None:
    state, again = BrokerState(OPTIONS), BrokerState(BrokerOptions())
    vpn = state.vpns["default"]
    for number in range(5):
        vpn.publish(_published(b"q/%d" % number))
    vpn.queues[b"q"].remove([2, 4])
    vpn.open_publisher(b"")
    restore(again.vpns, snapshot(state.vpns))

    assert list(snapshot(again.vpns)) == list(snapshot(state.vpns))
    assert again.vpns["default"].queues[b"q"].size == vpn.queues[b"q"].size
    assert _numbers(again.vpns["default"]) == [1, 3, 5]
    again.vpns["default"].publish(_published(b"q/new"))
    assert _numbers(again.vpns["default"])[-1] == 6


_ids = count(1)


def _published(topic: bytes) -> PublishedMessage:
    return PublishedMessage(topic, 1, next(_ids), 0, 0x10, b"", b"body")


def _numbers(vpn: Vpn) -> list[int]:
    return [number for number, _ in vpn.queues[b"q"].contents()]


def test_the_journal_is_compacted_when_most_of_it_is_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MAX_JOURNAL_BYTES", 10_000)
    state = BrokerState(OPTIONS)
    journal = store.open_store(tmp_path, state.vpns)
    vpn = state.vpns["default"]
    queue = vpn.queues[b"q"]
    for number in range(1, 101):
        vpn.publish(PublishedMessage(b"q/x", 1, number, 0, 0x10, b"", b"x" * 1_000))
    journal.commit()
    store.compact(journal, state.vpns)
    assert journal.size > 100_000  # no message is settled
    queue.remove(range(1, 100))
    journal.commit()
    store.compact(journal, state.vpns)

    assert journal.size < 2_000
    again = BrokerState(BrokerOptions())
    restore(again.vpns, journal.records())
    assert _numbers(again.vpns["default"]) == [100]
    journal.close()
