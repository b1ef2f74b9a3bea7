from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.smf.assured_control import (
    AckOutcome,
    AckRange,
    AssuredControl,
    ControlField,
    ControlType,
    decode_control,
    encode_control,
    encode_control_reply,
    encode_field,
)
from gateway.wire.smf.client_control import (
    CLIENT_CERTIFICATE,
    OAUTH,
    Capability,
    LoginReply,
    decode_login,
    encode_login_refusal,
    encode_login_reply,
)
from gateway.wire.smf.frames import Protocol, encode_frame, split_frame
from gateway.wire.smf.parameters import EXTENDED, encode_parameter
from gateway.wire.smf.responses import OK, SmfResponse
from gateway.wire.smf.subscriptions import (
    SubscriptionChange,
    SubscriptionRequest,
    decode_subscription,
    encode_subscription_reply,
)
from tests.brokers.smf_client import encode_ack_range
from tests.wire.smf_dumps import dump, survives
from tests.wire.smf_requests import encode_subscription

ORDERS = b"orders/>"


def test_a_login_is_decoded() -> None:
    login = decode_login(dump(1))

    assert (login.user, login.password, login.vpn) == ("alice", "pw", "default")
    assert (login.client_name, login.keepalive, login.scheme) == ("tx-client", 3, 0)
    assert "pw" not in repr(login)


def test_a_login_with_a_certificate_has_no_password() -> None:
    login = decode_login(dump(55))

    assert (login.user, login.password) == ("alice", None)
    assert (login.scheme, login.client_name) == (CLIENT_CERTIFICATE, "tls-client")


def test_a_token_is_decoded_from_its_extended_parameter() -> None:
    login = decode_login(dump(56))

    assert (login.scheme, login.token) == (OAUTH, "tok-access")
    assert "tok" not in repr(login).replace("tls-client", "")


def test_a_token_is_kept_when_another_extended_parameter_follows() -> None:
    parameters, body = split_frame(dump(56))
    parameters += encode_parameter(EXTENDED, b"\x10\x07\x01")  # one element of one byte
    login = decode_login(encode_frame(Protocol.CLIENT_CONTROL, parameters, body))

    assert login.token == "tok-access"  # noqa: S105  # of the recorded login


def test_a_refusal_is_encoded_as_recorded() -> None:
    assert encode_login_refusal(0, SmfResponse(401, "Unauthorized")) == dump(9)


def test_a_login_reply_contains_inbox_and_capabilities() -> None:
    frame = encode_login_reply(0, LoginReply("c", "default", "r", 1000), OK)
    _, body = split_frame(frame)

    assert b"#P2P/v:r/c\0" in body
    capabilities = body[body.index(b"\x09\0\0\0\x2b") + 5 :]
    bits = int.from_bytes(capabilities[1:5], "big")
    assert capabilities[0] == 27
    assert {number for number in range(27) if bits >> (31 - number) & 1} == {*Capability}


SUBSCRIPTIONS = [
    pytest.param(10, SubscriptionChange.ADD, b"a/b/>", b"", True, id="D10"),
    pytest.param(12, SubscriptionChange.REMOVE, b"later/added", b"", True, id="D12"),
    pytest.param(24, SubscriptionChange.ADD_TO_QUEUE, ORDERS, b"q1", True, id="D24"),
    pytest.param(57, SubscriptionChange.ADD, b"d/>", b"", False, id="D57-no-answer-wanted"),
    pytest.param(58, SubscriptionChange.ADD, b"#share/grp1/sh/>", b"", True, id="D58-shared"),
]


@pytest.mark.parametrize(("number", "change", "topic", "queue", "answered"), SUBSCRIPTIONS)
def test_subscriptions_are_decoded_and_encoded_as_recorded(
    number: int, change: SubscriptionChange, topic: bytes, queue: bytes, answered: bool
) -> None:
    request = decode_subscription(dump(number))

    assert (request.change, request.topic, request.queue) == (change, topic, queue)
    assert request.answered is answered
    rewritten = SubscriptionRequest(change, topic, queue, answered, request.tag)
    assert encode_subscription(rewritten) == dump(number)


def test_a_subscription_is_answered_as_recorded() -> None:
    request = decode_subscription(dump(10))

    denied = encode_subscription_reply(
        decode_subscription(
            encode_subscription(
                SubscriptionRequest(SubscriptionChange.ADD, b"denied/x", tag=request.tag)
            )
        ),
        SmfResponse(403, "Subscription ACL Denied"),
    )

    assert denied == dump(14)


RECORDED = [
    pytest.param(3, ControlType.OPEN_PUBLISHER, 2, id="D3-open-publisher"),
    pytest.param(4, ControlType.OPEN_PUBLISHER, 2, id="D4-granted"),
    pytest.param(21, ControlType.ACK, 2, id="D21-publisher-ack"),
    pytest.param(23, ControlType.ACK, 2, id="D23-publisher-nack"),
    pytest.param(26, ControlType.BIND, 2, id="D26-bind"),
    pytest.param(27, ControlType.BIND, 2, id="D27-bound"),
    pytest.param(34, ControlType.ACK, 2, id="D34-settled"),
    pytest.param(35, ControlType.UNBIND, 2, id="D35-unbind"),
    pytest.param(38, ControlType.BIND, 2, id="D38-refused"),
    pytest.param(39, ControlType.CREATE, 2, id="D39-create"),
    pytest.param(42, ControlType.BIND, 2, id="D42-temporary"),
    pytest.param(46, ControlType.FLOW_CHANGE, 2, id="D46-active"),
    pytest.param(52, ControlType.OPEN_PUBLISHER, 3, id="D52-version-3"),
    pytest.param(53, ControlType.OPEN_PUBLISHER, 3, id="D53-version-3"),
    pytest.param(54, ControlType.ACK, 3, id="D54-version-3"),
]


@pytest.mark.parametrize(("number", "kind", "version"), RECORDED)
def test_control_messages_are_decoded_and_encoded_as_recorded(
    number: int, kind: ControlType, version: int
) -> None:
    control = decode_control(dump(number))

    assert (control.kind, control.version) == (kind, version)
    again = decode_control(encode_control(control))
    assert again == control
    assert len(encode_control(control)) == len(dump(number))


def test_an_unbind_is_answered_as_recorded() -> None:
    request = decode_control(dump(35))

    assert encode_control_reply(request, OK, [encode_field(ControlField.FLOW_ID, 3)]) == dump(36)


def test_an_acknowledgement_is_encoded_as_recorded() -> None:
    fields = (
        encode_field(ControlField.FLOW_ID, 2),
        encode_field(ControlField.LAST_ACKED, 1),
        encode_field(ControlField.WINDOW, 255),
    )

    assert encode_control(AssuredControl(ControlType.ACK, 2, fields, response=OK)) == dump(21)


def test_settlements_are_decoded_with_their_outcome() -> None:
    assert decode_control(dump(31)).ack_ranges() == [AckRange(3, 3, AckOutcome.FAILED)]
    assert decode_control(dump(34)).ack_ranges() == [AckRange(1, 2), AckRange(5, 7)]
    assert decode_control(dump(54)).ack_ranges() == [AckRange(0, 1)]


@pytest.mark.parametrize("outcome", AckOutcome)
def test_an_encoded_settlement_decodes_to_the_original(outcome: AckOutcome) -> None:
    sent = AckRange(1, 2**63, outcome)
    control = decode_control(
        encode_control(AssuredControl(ControlType.ACK, 2, (encode_ack_range(sent),)))
    )

    assert control.ack_ranges() == [sent]


def test_a_bind_contains_queue_type_and_last_received() -> None:
    bind, again = decode_control(dump(26)), decode_control(dump(50))

    assert (bind.get_text(ControlField.QUEUE), bind.get_int(ControlField.FLOW_TYPE)) == (b"q1", 3)
    assert bind.get_int(ControlField.LAST_RECEIVED) == 0
    assert (again.get_int(ControlField.LAST_RECEIVED), again.get_int(ControlField.WINDOW)) == (
        5,
        255,
    )


@given(st.sampled_from([0x0C, 0x0F, 0x09]), st.binary(max_size=120))
def test_arbitrary_bodies_raise_only_wire_errors(protocol: int, body: bytes) -> None:
    frame = encode_frame(protocol, b"", body)
    readers: dict[Protocol, Callable[[bytes], object]] = {
        Protocol.CLIENT_CONTROL: decode_login,
        Protocol.SUBSCRIPTION: decode_subscription,
        Protocol.ASSURED_CONTROL: lambda data: decode_control(data).ack_ranges(),
    }
    assert survives(lambda: readers[Protocol(protocol)](frame))
