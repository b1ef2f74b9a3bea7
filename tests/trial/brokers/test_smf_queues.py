"""Guaranteed messages and queues of the small Solace broker."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from gateway.trial.brokers.smf import BrokerOptions, QueueOptions
from gateway.trial.brokers.smf.responses import OVER_QUOTA, PUBLISH_DENIED
from gateway.wire.smf.assured_control import (
    AckOutcome,
    AckRange,
    ControlField,
    ControlType,
    encode_field,
)
from gateway.wire.smf.frames import Protocol, encode_frame
from gateway.wire.smf.relayed_message import read_topic
from gateway.wire.smf.responses import OK, SmfResponse
from tests.brokers.controlled_smf import SmfBroker
from tests.brokers.smf_client import SmfClient, direct, login
from tests.trial.brokers.smf_clients import OPTIONS, bound, broker, client, flow_of
from tests.waiting import until

__all__ = ["broker", "client"]  # fixtures


def test_a_guaranteed_message_is_acknowledged_with_200(client: SmfClient) -> None:
    flow = flow_of(client)
    client.publish(flow, "q/x")
    ack = client.next_control()

    assert (ack.kind, ack.response, ack.get_int(ControlField.LAST_ACKED)) == (
        ControlType.ACK,
        OK,
        1,
    )


def test_a_repeated_message_is_spooled_once(broker: SmfBroker, client: SmfClient) -> None:
    flow = flow_of(client)
    for _ in range(2):
        client.publish(flow, "q/x", number=1)
        assert client.next_control().get_int(ControlField.LAST_ACKED) == 1

    assert broker.depth("q") == 1


def test_a_message_behind_a_gap_is_ignored(broker: SmfBroker, client: SmfClient) -> None:
    flow = flow_of(client)
    client.publish(flow, "q/x", number=5)

    assert client.is_alive()
    assert broker.depth("q") == 0


def test_a_publisher_flow_is_resumed_by_its_name(broker: SmfBroker, client: SmfClient) -> None:
    granted = client.open_publisher()
    client.publish(granted.get_int(ControlField.FLOW_ID), "q/x")
    client.next_control()
    with SmfClient(broker.port, "c2") as again:
        resumed = again.open_publisher(granted.get_text(ControlField.FLOW_NAME))
        unknown = again.open_publisher(b"nobody")

    assert resumed.get_int(ControlField.LAST_ACKED) == 1
    assert unknown.response == SmfResponse(400, "Unknown Flow Name")


def test_injected_refusals_and_quotas(broker: SmfBroker, client: SmfClient) -> None:
    broker.faults.publish["q/denied/>"] = PUBLISH_DENIED
    flow = flow_of(client)
    client.publish(flow, "q/denied/x")
    client.publish(flow, "q/x", b"x" * 60_000)
    client.publish(flow, "x" * 251)
    client.publish(flow, "q/x", b"x" * 100_001)
    client.publish(flow, "#P2P/QUE/none")
    client.publish(flow, "#P2P/QUE/q")
    answers = [client.next_control().response for _ in range(6)]

    assert answers == [
        PUBLISH_DENIED,
        OVER_QUOTA,
        SmfResponse(400, "Topic Parse Error"),
        SmfResponse(400, "Message Too Long"),
        SmfResponse(400, "Queue Not Found"),
        OK,
    ]
    assert broker.depth("q") == 1


def publish_some(broker: SmfBroker, count: int, topic: str = "q/x") -> None:
    with SmfClient(broker.port, "publisher") as client:
        flow = flow_of(client)
        for number in range(count):
            client.publish(flow, topic, b"%d" % number)
        while client.next_control().get_int(ControlField.LAST_ACKED) < count:
            pass


def test_no_message_is_delivered_before_the_window_opens(
    broker: SmfBroker, client: SmfClient
) -> None:
    publish_some(broker, 5)
    flow = client.bind("q", window=0).get_int(ControlField.FLOW_ID)
    assert client.is_alive()

    client.acknowledge(flow, 0, window=2)
    first, second = client.delivery(), client.delivery()
    client.send(encode_frame(Protocol.KEEPALIVE, b""))
    assert client.read() == encode_frame(Protocol.KEEPALIVE, b"")
    client.acknowledge(flow, second.message_id, window=2)
    third = client.delivery()

    assert [m.body for m in (first, second, third)] == [b"0", b"1", b"2"]
    assert first.previous_id == 0
    assert third.previous_id == second.message_id


def test_small_messages_do_not_wait_for_tcp(broker: SmfBroker, client: SmfClient) -> None:
    """With Nagle's algorithm each waits for the TCP acknowledgement of the one before."""
    assert client.is_alive()
    (session,) = broker._dispatcher.sessions  # noqa: SLF001
    connection = session.transport.get_extra_info("socket")

    assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_large_messages_flow_as_long_as_the_window_is_open() -> None:
    """The messages exceed one write, and the socket accepts all: no event would resume writing."""
    options = replace(OPTIONS, queue_bytes=10_000_000)
    with SmfBroker(options=options) as broker, SmfClient(broker.port, "c1") as client:
        flow = flow_of(client)
        for number in range(40):
            client.publish(flow, "q/x", b"%02d" % number + bytes(65_000))
        while client.next_control().get_int(ControlField.LAST_ACKED) < 40:
            pass
        bound(client)
        arrived = [client.delivery().body[:2] for _ in range(40)]

    assert arrived == [b"%02d" % number for number in range(40)]


def test_settled_messages_are_removed_and_failed_ones_redelivered(
    broker: SmfBroker, client: SmfClient
) -> None:
    publish_some(broker, 3)
    flow = bound(client)
    ids = [client.delivery().message_id for _ in range(3)]
    client.acknowledge(
        flow,
        ids[2],
        AckRange(ids[0], ids[0], AckOutcome.FAILED),
        AckRange(0, ids[1]),
        AckRange(ids[2], ids[2], AckOutcome.REJECTED),
    )
    again = client.delivery()
    client.acknowledge(flow, again.message_id, AckRange(0, again.message_id))

    assert again.body == b"0"
    assert again.message_id > ids[2]
    assert client.is_alive()
    assert broker.depth("q") == 0
    assert broker.depth("#DEAD_MSG_QUEUE") == 1


def test_unsettled_messages_go_to_the_next_consumer_in_order(
    broker: SmfBroker, client: SmfClient
) -> None:
    publish_some(broker, 3)
    flow = bound(client)
    got = [client.delivery() for _ in range(3)]
    client.acknowledge(flow, got[2].message_id, AckRange(got[1].message_id, got[1].message_id))
    assert (
        client.control(ControlType.UNBIND, encode_field(ControlField.FLOW_ID, flow)).response == OK
    )
    bound(client)

    assert [client.delivery().body for _ in range(2)] == [b"0", b"2"]


def test_the_second_consumer_of_an_exclusive_queue_becomes_active(broker: SmfBroker) -> None:
    publish_some(broker, 1)
    with SmfClient(broker.port, "second") as second:
        with SmfClient(broker.port, "first") as first:
            bound(first)
            standby = second.bind("q")
            assert standby.get_int(ControlField.ACTIVE) == 0
            first.delivery()
        change = second.next_control()
        flow = standby.get_int(ControlField.FLOW_ID)
        second.acknowledge(flow, 0)

        assert (change.kind, change.get_int(ControlField.ACTIVE)) == (ControlType.FLOW_CHANGE, 1)
        assert second.delivery().body == b"0"


def test_a_frozen_consumer_leaves_its_queue_to_the_next_one() -> None:
    """It reads nothing, so what the broker has for it cannot be written."""
    options = BrokerOptions(queues=(QueueOptions("q", ("q/>",)),))
    with (
        SmfBroker(options=options) as broker,
        SmfClient(broker.port, "publisher") as publisher,
        SmfClient(broker.port) as frozen,
        SmfClient(broker.port) as second,
    ):
        for client, keepalive in ((frozen, 1), (second, 60)):
            client.send(login(f"c{keepalive}", "u", "p", keepalive=keepalive))
            assert client.response() == OK
            client.bind("q")
        flow = publisher.open_publisher().get_int(ControlField.FLOW_ID)
        for _ in range(20):
            publisher.publish(flow, "q/a", b"x" * 1_000_000)

        assert second.next_control().get_int(ControlField.ACTIVE) == 1


def test_consumers_of_a_shared_queue_receive_in_turn(broker: SmfBroker, client: SmfClient) -> None:
    with SmfClient(broker.port, "other") as other:
        bound(client, "shared")
        bound(other, "shared")
        assert client.is_alive()
        assert other.is_alive()
        publish_some(broker, 4, "s/x")

        assert len({reader.delivery().body for reader in (client, other, client, other)}) == 4


def test_a_reconnected_client_keeps_its_unsettled_messages(broker: SmfBroker) -> None:
    publish_some(broker, 3)
    with SmfClient(broker.port, "back") as client:
        bound(client)
        ids = [client.delivery().message_id for _ in range(3)]
    with SmfClient(broker.port, "back") as client:
        answer = client.control(
            ControlType.BIND,
            encode_field(ControlField.QUEUE, b"q"),
            encode_field(ControlField.WINDOW, 255),
            encode_field(ControlField.DURABILITY, 1),
            encode_field(ControlField.LAST_RECEIVED, ids[1]),
        )
        again = client.delivery()
        client.acknowledge(answer.get_int(ControlField.FLOW_ID), ids[1], AckRange(ids[0], ids[1]))
        assert client.is_alive()

        assert again.body == b"2"
        assert broker.depth("q") == 1


def test_a_new_broker_continues_with_the_state_of_the_old_one() -> None:
    with SmfBroker(options=OPTIONS) as first:
        publish_some(first, 2)
    with SmfBroker(state=first.state) as second, SmfClient(second.port, "c") as client:
        bound(client)

        assert [client.delivery().body for _ in range(2)] == [b"0", b"1"]


def test_queues_are_created_refused_and_shut(broker: SmfBroker, client: SmfClient) -> None:
    made = encode_field(ControlField.QUEUE, b"made")
    assert client.control(ControlType.CREATE, made).response == OK
    assert client.control(ControlType.CREATE, made).response == SmfResponse(400, "Already Exists")
    assert client.bind("none").response == SmfResponse(503, "Unknown Queue")
    bound(client, "made")
    broker.shut_queue("made")
    ended = client.next_control()

    assert (ended.kind, ended.response) == (ControlType.UNBIND, SmfResponse(503, "Queue Shutdown"))
    assert client.bind("made").response == SmfResponse(503, "Queue Shutdown")


def bound_to_temporary(client: SmfClient, queue: bytes) -> tuple[int, bytes]:
    """Bind to a temporary queue, which exists from now on; return the field of the flow."""
    answer = client.control(
        ControlType.BIND,
        encode_field(ControlField.QUEUE, queue),
        encode_field(ControlField.WINDOW, 255),
        encode_field(ControlField.DURABILITY, 2),
    )
    assert answer.response == OK
    return encode_field(ControlField.FLOW_ID, answer.get_int(ControlField.FLOW_ID))


def test_a_temporary_queue_outlives_the_end_of_one_of_its_name() -> None:
    with SmfBroker(options=replace(OPTIONS, temporary_seconds=0.5)) as broker:
        queues = broker.state.vpns["default"].queues
        with SmfClient(broker.port, "lost") as client:
            for name in (b"t", b"later"):
                bound_to_temporary(client, name)
        until(lambda: not broker.clients(), "the client is lost")
        with SmfClient(broker.port, "back") as client:
            flow = bound_to_temporary(client, b"t")
            assert client.control(ControlType.UNBIND, flow).response == OK
            bound_to_temporary(client, b"t")
            until(lambda: b"later" not in queues, "the queues of the lost client end")

            assert b"t" in queues


def test_a_guaranteed_message_reaches_direct_subscribers(
    broker: SmfBroker, client: SmfClient
) -> None:
    client.subscribe("q/>")
    publish_some(broker, 1)
    frame = client.read() or b""

    assert read_topic(frame) == b"q/x"
    assert not frame[0] & 0x10


@pytest.mark.usefixtures("broker")
def test_a_subscribed_queue_spools_a_direct_message(client: SmfClient) -> None:
    client.send(direct("q/direct"))
    bound(client)

    assert client.delivery().topic == b"q/direct"
