"""The packets of a session against paho, the independent implementation, and malformed ones."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.client import Client, topic_matches_sub
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from gateway.endpoints.base import Subscription
from gateway.endpoints.mqtt.session import BrokerLimits, MqttSession
from gateway.endpoints.mqtt.wanted import subscription_options
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import EndpointError, NotConnectedError, WireError
from gateway.wire.mqtt.packet_fields import encode_length, encode_text
from gateway.wire.mqtt.session_packets import (
    Connect,
    decode_connack,
    decode_disconnect,
    decode_suback,
    decode_unsuback,
    encode_connect,
    encode_subscribe,
)
from gateway.wire.mqtt.topic_filters import inner_filter, is_legal_filter, selects

VERSIONS = ["3.1.1", "5"]
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), max_size=12)
FILTERS = st.text("ab/+#$", min_size=1, max_size=8)
TOPICS = st.text("ab/$", min_size=1, max_size=8)
WELCOME = b"\x20\x03\x00\x00\x00"


class Recorder:
    """The socket of a paho client, which records what is written. Mutable."""

    def __init__(self) -> None:
        self.written = b""

    def send(self, data: bytes) -> int:
        self.written += data
        return len(data)

    def recv(self, size: int) -> bytes:
        del size
        raise BlockingIOError

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        pass

    def setblocking(self, flag: bool) -> None:
        pass


def paho_connect(connect: Connect, *, five: bool) -> bytes:
    """Return the CONNECT of a paho client with the same fields."""
    recorder = Recorder()
    client = Client(
        CallbackAPIVersion.VERSION2,
        client_id=connect.client_id,
        clean_session=None if five else connect.clean,
        protocol=MQTTProtocolVersion.MQTTv5 if five else MQTTProtocolVersion.MQTTv311,
    )
    client._create_socket = lambda: recorder  # type: ignore[method-assign,assignment,return-value]  # noqa: SLF001
    client.on_socket_register_write = lambda _client, _userdata, _sock: None
    if connect.username is not None:
        client.username_pw_set(connect.username, connect.password)
    if five:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        if connect.session_expiry is not None:
            properties.SessionExpiryInterval = connect.session_expiry
        if connect.receive_maximum is not None:
            properties.ReceiveMaximum = connect.receive_maximum
        if connect.max_packet is not None:
            properties.MaximumPacketSize = connect.max_packet
        client.connect("h", 1, connect.keepalive, clean_start=connect.clean, properties=properties)
    else:
        client.connect("h", 1, connect.keepalive)
    while client.want_write():
        client.loop_write()
    return recorder.written


@pytest.mark.parametrize("five", [False, True])
@given(
    connect=st.builds(
        Connect,
        client_id=TEXT.filter(bool),
        clean=st.booleans(),
        keepalive=st.integers(1, 65_535),
        username=st.none() | TEXT,
        password=st.none() | TEXT,
        session_expiry=st.none() | st.integers(0, 2**32 - 1),
        receive_maximum=st.none() | st.integers(1, 65_535),
        max_packet=st.none() | st.integers(1, 2**28 - 1),
    )
)
def test_a_connect_is_that_of_paho(five: bool, connect: Connect) -> None:
    assert encode_connect(connect, five=five) == paho_connect(connect, five=five)


@pytest.mark.parametrize("exclude_retained", [False, True])
@pytest.mark.parametrize("no_local", [False, True])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_subscription_options_are_those_of_paho(
    qos: int, no_local: bool, exclude_retained: bool
) -> None:
    settings = MqttSettings(qos=qos, no_local=no_local)
    subscription = Subscription("a", exclude_retained=exclude_retained)
    expected = SubscribeOptions(
        qos=qos, noLocal=no_local, retainAsPublished=True, retainHandling=2 * exclude_retained or 1
    )

    options = subscription_options(settings, subscription)

    assert bytes([options]) == expected.pack()  # type: ignore[no-untyped-call]
    assert subscription_options(replace(settings, version="3.1.1"), subscription) == qos


def test_a_flag_that_marks_retained_messages_is_none_of_a_publisher() -> None:
    """MQTT 5.0, 3.3.1.3: without Retain As Published a broker clears it in live messages."""
    options = subscription_options(MqttSettings(qos=0), Subscription("a", marks_retained=True))

    assert bytes([options]) == SubscribeOptions(retainHandling=1).pack()  # type: ignore[no-untyped-call]


def test_a_shared_subscription_asks_for_its_own_messages() -> None:
    settings = MqttSettings(no_local=True)

    assert not subscription_options(settings, Subscription("$share/g/a")) & 0x04


@given(topic_filter=FILTERS.filter(is_legal_filter), topic=TOPICS)
def test_a_filter_selects_the_topics_that_it_selects_in_paho(topic_filter: str, topic: str) -> None:
    assert selects(topic_filter, topic) == topic_matches_sub(topic_filter, topic)


ILLEGAL = [
    pytest.param("", id="4.7.3-empty"),
    pytest.param("a#", id="4.7.1.2-in-a-level"),
    pytest.param("a/#/b", id="4.7.1.2-not-last"),
    pytest.param("+a", id="4.7.1.3-in-a-level"),
    pytest.param("a\0", id="4.7.3-nul"),
    pytest.param("\ud800", id="1.5.4-surrogate"),
    pytest.param("é" * 32_768, id="4.7.3-length"),
]


@pytest.mark.parametrize("topic_filter", ILLEGAL)
def test_an_illegal_filter_is_refused(topic_filter: str) -> None:
    assert not is_legal_filter(topic_filter)
    with pytest.raises(EndpointError, match="not a legal filter"):
        session().subscriptions.subscribe([("a", 0), (topic_filter, 0)])


def test_the_filter_of_a_shared_subscription_is_behind_its_group() -> None:
    assert inner_filter("$share/g/a/+") == "a/+"
    assert inner_filter("a/+") == "a/+"


def session(version: str = "5") -> MqttSession:
    return MqttSession(MqttSettings(version=version), "me", clean=True, label="p: h:1")


def connected(version: str = "5") -> MqttSession:
    one = session(version)
    assert one.receive(WELCOME if version == "5" else b"\x20\x02\x00\x00") is None
    return one


def test_the_limits_of_the_broker_are_read() -> None:
    properties = Properties(PacketTypes.CONNACK)  # type: ignore[no-untyped-call]
    properties.ReceiveMaximum = 7
    properties.MaximumQoS = 1
    properties.RetainAvailable = 0
    properties.MaximumPacketSize = 1_000
    properties.ServerKeepAlive = 5
    properties.AssignedClientIdentifier = "you"
    properties.TopicAliasMaximum = 3
    properties.SessionExpiryInterval = 60
    properties.UserProperty = [("a", "b"), ("a", "c")]
    properties.ReasonString = "hello"
    properties.WildcardSubscriptionAvailable = 1
    packed = properties.pack()  # type: ignore[no-untyped-call]
    one = session()

    assert one.receive(b"\x20" + encode_length(len(packed) + 2) + b"\x01\x00" + packed) is None

    assert one.limits == BrokerLimits(qos=1, receive_maximum=7, max_packet=1_000, retain=False)
    assert (one.connected, one.present, one.keepalive) == (True, True, 5)


def test_version_5_announces_the_longest_packet() -> None:
    assert b"\x27\x01\x00\x00\x00" in session("5").log_in()  # 16 MiB
    assert b"\x27" not in session("3.1.1").log_in()


@pytest.mark.parametrize("version", VERSIONS)
def test_filters_that_the_broker_removes_are_noted(version: str) -> None:
    one = connected(version)
    (packet,) = one.subscriptions.unsubscribe(["a", "b"])
    assert packet[0] == 0xA2
    assert packet.endswith(b"\x00\x01a\x00\x01b")
    answer = b"\xb0\x05\x00\x01\x00\x11\x87" if version == "5" else b"\xb0\x02\x00\x01"

    assert one.receive(answer) is None

    assert one.subscriptions.unsubscribed == ({"a"} if version == "5" else {"a", "b"})


def test_the_reason_string_of_a_refusal_is_shown() -> None:
    text = encode_text("come back on Monday", "reason")
    body = b"\x00\x88" + bytes([len(text) + 1, 0x1F]) + text

    error = session().receive(b"\x20" + bytes([len(body)]) + body)

    assert isinstance(error, NotConnectedError)
    assert "come back on Monday" in str(error)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_subscription_is_complete_with_the_last_suback(version: str) -> None:
    one = connected(version)
    packets = one.subscriptions.subscribe([(f"t/{number}", 1) for number in range(9)])
    assert len(packets) == 2
    properties = b"\x00" if version == "5" else b""
    for packet_id, granted in ((1, b"\x01" * 8), (2, b"\x00")):
        assert not one.subscriptions.answered
        body = bytes([0, packet_id]) + properties + granted
        assert one.receive(b"\x90" + bytes([len(body)]) + body) is None

    assert one.subscriptions.answered
    assert one.subscriptions.granted == 0


def test_a_subscribe_has_the_options_of_each_filter() -> None:
    filters = [("a", 1), ("b/#", 0x2A)]
    encoded = b"\x00\x01a\x01\x00\x03b/#\x2a"

    assert encode_subscribe(7, filters, five=False) == b"\x82\x0c\x00\x07" + encoded
    assert encode_subscribe(7, filters, five=True) == b"\x82\x0d\x00\x07\x00" + encoded


@given(packet=st.binary(min_size=1, max_size=40))
def test_no_bytes_raise_another_error_than_a_wire_error(packet: bytes) -> None:
    for five in (False, True):
        for decode in (decode_connack, decode_suback, decode_unsuback):
            with suppress(WireError):
                decode(packet, five=five)
    with suppress(WireError):
        decode_disconnect(packet)
