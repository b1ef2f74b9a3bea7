"""MQTT packets: any slicing gives the same messages, and bad bytes give one kind of error."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.endpoints.mqtt import publish_encoder
from gateway.endpoints.mqtt.publish_encoder import PublishEncoder
from gateway.endpoints.mqtt.session import BrokerLimits
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import TranslationError, WireError
from gateway.model.closing_characters import closing_character
from gateway.model.copy_proof import PROOF_SIZE
from gateway.model.message import (
    GATEWAY_ID,
    NO_HEADERS,
    DeliveryMode,
    DroppedPayload,
    Headers,
    Message,
    Value,
)
from gateway.wire.mqtt import packets
from gateway.wire.mqtt.packet_fields import encode_length
from gateway.wire.mqtt.packets import (
    LARGE,
    PUBREC,
    PUBREL,
    DecodedPackets,
    PacketDecoder,
    encode_acks,
)
from gateway.wire.mqtt.publish_properties import (
    MAX_USER_PROPERTIES,
    PROOF_MARKS,
    PROOF_NAME,
    decode_headers,
    encode_properties,
)
from gateway.wire.mqtt.user_properties import join_pairs, parse_whole_number, split_pairs
from tests.copy_proofs import OTHER_PROOF, PROOF, PROOFS, WHOLE_PROOFS

VERSIONS = ["3.1.1", "5"]
PERSISTENT = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), max_size=12)
TOPICS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn"], exclude_characters="+#"),
    min_size=1,
    max_size=12,
)
NAMES = TEXT.filter(lambda name: not name.startswith("gateway-"))
SCALARS: st.SearchStrategy[Value] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    VALUES,
    st.binary(max_size=6),
)
TREES: st.SearchStrategy[Value] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), VALUES),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(VALUES, inner, max_size=3)
    ),
    max_leaves=5,
)
PROPERTIES = st.dictionaries(NAMES, st.one_of(SCALARS, TREES), max_size=4)
U63 = st.integers(0, 2**63 - 1)
HEADERS = st.builds(
    Headers,
    mode=st.sampled_from(DeliveryMode),
    retained=st.booleans(),
    priority=st.none() | st.integers(0, 9),
    time=st.none() | U63,
    content_type=st.none() | TEXT,
    correlation_id=st.none() | st.binary(max_size=8),
    reply_to=st.none() | TOPICS,
    source_id=st.none() | TEXT,
    origin=st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1), max_size=3).map(
        tuple
    ),
    properties=PROPERTIES,
)
MESSAGES = st.lists(
    st.builds(Message, TOPICS, st.binary(max_size=300) | VALUES, HEADERS, PROOFS), max_size=6
)
LONGEST = 400


def encode(version: str, messages: list[Message], now: int = 0) -> bytes:
    encoder = PublishEncoder(MqttSettings(version=version, qos=2), BrokerLimits())
    encoder.now = now
    for number, message in enumerate(messages, 1):
        encoder.add(message, number)
    return b"".join(encoder.take())


def decode(version: str, *parts: bytes, now: int = 0, large: int = LARGE) -> DecodedPackets:
    decoder = PacketDecoder(version, lambda: now)
    decoder._large = large  # noqa: SLF001  # so that short packets are large ones
    whole = DecodedPackets()
    for part in parts:
        packets = decoder.feed(part)
        whole.messages += packets.messages
        whole.acks += packets.acks
        whole.acked_ids += packets.acked_ids
        whole.responses += packets.responses
        whole.session += packets.session
        whole.has_special |= packets.has_special
    return whole


@given(
    messages=MESSAGES,
    cuts=st.lists(st.integers(0, 3_000), max_size=8),
    large=st.integers(1, 300) | st.just(LARGE),
)
def test_encoded_messages_are_decoded_from_any_slices(
    messages: list[Message], cuts: list[int], large: int
) -> None:
    data = encode("5", messages)
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]

    packets = decode("5", *(data[a:b] for a, b in pairwise(bounds)), large=large)

    assert packets.messages == messages
    assert [m.proof for m in packets.messages] == [m.proof for m in messages]
    expected = [
        (0, 0x4002_0000, 0x5002_0000)[m.headers.mode] + (number if m.headers.mode else 0)
        for number, m in enumerate(messages, 1)
    ]
    assert packets.acks == expected


@given(messages=MESSAGES)
def test_version_3_keeps_address_payload_and_flags(messages: list[Message]) -> None:
    got = decode("3.1.1", encode("3.1.1", messages)).messages

    assert [m.address for m in got] == [m.address for m in messages]
    assert [m.headers for m in got] == [
        Headers(mode=m.headers.mode, retained=m.headers.retained) for m in messages
    ]
    assert [m.payload for m in got] == [
        m.payload.encode() if isinstance(m.payload, str) else m.payload for m in messages
    ]


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.binary(max_size=60), cut=st.integers(0, 60))
def test_no_bytes_raise_another_error_than_a_wire_error(
    version: str, data: bytes, cut: int
) -> None:
    packet = b"\x32" + bytes([len(data)]) + data
    for parts in ([data], [packet], [packet[:cut], packet[cut:]]):
        with suppress(WireError):
            decode(version, *parts, large=1)


def outcome(version: str, *parts: bytes) -> DecodedPackets | str:
    try:
        return decode(version, *parts)
    except WireError as error:
        return str(error)


@pytest.mark.parametrize("version", VERSIONS)
@given(
    data=st.binary(max_size=12) | st.binary(min_size=120, max_size=140),
    first=st.sampled_from([0x30, 0x31, 0x32, 0x34, 0x36, 0x3A, 0x40]),
)
def test_a_packet_is_decoded_alike_in_the_block_of_a_message_and_in_the_next(
    version: str, data: bytes, first: int
) -> None:
    good = encode(version, [Message("t", b"x", Headers(mode=DeliveryMode.AT_LEAST_ONCE))])
    packet = bytes([first]) + encode_length(len(data)) + data

    for more in (b"", good, good[:2]):
        assert outcome(version, good + packet + more) == outcome(version, good, packet, more)


@pytest.mark.parametrize(
    ("payload", "properties"),
    [
        pytest.param(bytes(8_388_608), {}, id="bytes"),
        pytest.param(bytes(8_388_608), {"a": "x" * LARGE}, id="large-properties"),
        pytest.param("x" * 8_388_608, {}, id="text"),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_large_packet_takes_its_size_twice(
    version: str, payload: bytes | str, properties: dict[str, Value]
) -> None:
    size = len(payload)
    headers = Headers(mode=DeliveryMode.AT_LEAST_ONCE, properties=properties)
    data = encode(version, [Message("t", payload, headers)])
    decoder = PacketDecoder(version, lambda: 0)
    messages: list[Message] = []
    tracemalloc.start()
    for start in range(0, len(data), 65_536):
        messages += decoder.feed(data[start : start + 65_536]).messages
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert [len(m.payload) for m in messages] == [size]
    assert peak < 2.1 * size


@pytest.mark.parametrize("version", VERSIONS)
def test_a_packet_over_the_limit_is_refused_by_its_length(version: str) -> None:
    decoder = PacketDecoder(version, lambda: 0, max_packet=1_000_000)
    assert decoder.feed(b"\x90" + encode_length(999_996)) == DecodedPackets()
    decoder = PacketDecoder(version, lambda: 0, max_packet=1_000_000)
    length = encode_length(999_997)
    decoder.feed(b"\x90" + length[:2])

    with pytest.raises(WireError, match="1000001 bytes, limit 1000000"):
        decoder.feed(length[2:])


@pytest.mark.parametrize("version", VERSIONS)
@given(
    topic=st.text("a/", min_size=1, max_size=200),
    headers=st.sampled_from([PERSISTENT, Headers(mode=DeliveryMode.EXACTLY_ONCE, retained=True)]),
    pairs=st.integers(0, 20),
    cuts=st.lists(st.integers(0, 3_000), max_size=8),
    data=st.data(),
)
def test_a_message_over_the_limit_comes_without_its_payload_in_any_slices(
    version: str, topic: str, headers: Headers, pairs: int, cuts: list[int], data: st.DataObject
) -> None:
    properties = {f"k{number}": "v" for number in range(pairs)} if version == "5" else {}
    long = Message(topic, b"x" * 2_000, replace(headers, properties=properties))
    small = Message("s", b"1", PERSISTENT)
    one = encode(version, [small, long, small])
    (wanted,) = decode(version, encode(version, [long])).messages
    # The limit is for a packet that is not whole in one block.
    bounds = sorted({0, len(one), 9, 1_500, *(min(each, len(one)) for each in cuts)})
    if data.draw(st.booleans(), "bytes"):
        bounds = [*range(len(one) + 1)]
    decoder = PacketDecoder(version, lambda: 0, max_packet=1_000)
    got = DecodedPackets()
    for begin, end in pairwise(bounds):
        part = decoder.feed(one[begin:end])
        got.messages += part.messages
        got.acks += part.acks
        got.has_special |= part.has_special

    first, dropped, last = got.messages
    assert (first.payload, last.payload) == (b"1", b"1")
    assert (dropped.address, dropped.headers) == (topic, wanted.headers)
    assert isinstance(dropped.payload, DroppedPayload)
    assert dropped.payload.full == 2_000
    assert got.has_special == headers.retained
    assert got.acks == decode(version, one).acks


def test_a_message_over_the_limit_takes_no_memory() -> None:
    decoder = PacketDecoder("3.1.1", lambda: 0, max_packet=1_000_000)
    head = b"\x30" + encode_length(200_000_000) + b"\0\1t"
    tracemalloc.start()
    messages = decoder.feed(head).messages
    block = bytes(100_000)
    for _ in range(2_000):
        messages += decoder.feed(block).messages
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 1_000_000
    assert [each.payload.full for each in messages if isinstance(each.payload, DroppedPayload)] == [
        199_999_997
    ]


def publish_with(pairs: int, properties: bytes = b"") -> bytes:
    """Return a PUBLISH of 5.0 with so many equal user properties."""
    properties += b"\x26\x00\x01k\x00\x00" * pairs
    body = b"\x00\x01t" + encode_length(len(properties)) + properties + b"payload"
    return b"\x30" + encode_length(len(body)) + body


def test_the_most_user_properties_are_kept() -> None:
    (message,) = decode("5", publish_with(MAX_USER_PROPERTIES)).messages

    assert message.headers.properties == {"k": [""] * MAX_USER_PROPERTIES}


def test_too_many_user_properties_are_left_out() -> None:
    origin = b"\x26\x00\x0egateway-origin\x00\x01a"
    (message,) = decode("5", publish_with(170_000, origin + b"\x03\x00\x01c")).messages

    assert message.payload == b"payload"
    assert (message.headers.content_type, message.headers.origin) == ("c", ("a",))
    assert message.headers.properties == {
        "mqtt.error": "170001 user properties, limit 10000; they are left out"
    }


def test_a_name_repeated_many_times_takes_linear_time() -> None:
    started = process_time()

    _, properties = split_pairs([("k", "")] * 200_000)

    assert properties == {"k": [""] * 200_000}
    assert process_time() - started < 2


@pytest.mark.parametrize("version", VERSIONS)
def test_a_megabyte_in_small_slices_is_decoded(version: str) -> None:
    message = Message("t", b"x" * 1_048_576, Headers(mode=DeliveryMode.AT_LEAST_ONCE))
    data = encode(version, [message, message])

    got = decode(version, *(data[i : i + 1_000] for i in range(0, len(data), 1_000)))

    assert got.messages == [message, message]


def test_messages_with_equal_properties_share_their_headers() -> None:
    headers = Headers(properties={"a": "b"})
    one, two = decode(
        "5", encode("5", [Message("t", b"", headers), Message("u", b"", headers)])
    ).messages

    assert one.headers is two.headers


def test_headers_of_thousands_of_names_are_encoded_and_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoded: list[Headers] = []

    def counted(headers: Headers, *, text: bool, now: int) -> bytes:
        encoded.append(headers)
        return encode_properties(headers, text=text, now=now)

    monkeypatch.setattr(publish_encoder, "encode_properties", counted)
    named = [
        Message(f"t/{n}", b"", Headers(origin=(f"@{n:012}:4be1f02c", "one~9c41d2aa/r")), PROOF)
        for n in range(3_000)
    ]

    got = decode("5", encode("5", named * 2)).messages

    assert len(encoded) == len(named)
    assert all(got[n].headers is got[n + len(named)].headers for n in range(len(named)))


def test_headers_of_one_message_push_no_shared_ones_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, limit in ((publish_encoder, "PROPERTIES"), (packets, "HEADERS")):
        monkeypatch.setattr(module, f"MAX_CACHED_{limit}", 2_000)
    encoded: list[Headers] = []

    def counted(headers: Headers, *, text: bool, now: int) -> bytes:
        encoded.append(headers)
        return encode_properties(headers, text=text, now=now)

    monkeypatch.setattr(publish_encoder, "encode_properties", counted)
    shared = Headers(properties={"a": "b"})
    with_ids = [Headers(properties={GATEWAY_ID: f"{n:032x}"}) for n in range(50)]
    sent = [Message("t", b"", headers) for headers in (shared, *with_ids, shared)]

    got = decode("5", encode("5", sent)).messages

    assert [m.headers for m in got] == [m.headers for m in sent]
    assert encoded.count(shared) == 1
    assert got[0].headers is got[-1].headers


def user_property(name: bytes, value: bytes) -> bytes:
    return b"\x26" + b"".join(len(each).to_bytes(2, "big") + each for each in (name, value))


def publish(properties: bytes, first: int = 0x30) -> bytes:
    """Return a PUBLISH of 5.0 with encoded properties."""
    body = b"\x00\x01t" + encode_length(len(properties)) + properties
    return bytes([first]) + encode_length(len(body)) + body


def test_messages_with_other_proofs_share_their_headers() -> None:
    headers = Headers(content_type="c", properties={"a": "b"})
    sent = [Message("t", b"", headers, PROOF.replace("a", digit)) for digit in "abc"]

    got = decode("5", encode("5", sent)).messages

    assert [m.proof for m in got] == [m.proof for m in sent]
    assert len({id(m.headers) for m in got}) == 1
    assert got[0].headers == headers


def test_a_proof_needs_no_other_property() -> None:
    sent = Message("t", b"x", NO_HEADERS, PROOF)

    (got,) = decode("5", encode("5", [sent])).messages

    assert (got.headers, got.payload, got.proof) == (NO_HEADERS, b"x", PROOF)


def test_a_proof_counts_for_the_size_of_a_packet() -> None:
    encoder = PublishEncoder(MqttSettings(version="5", max_packet=200), BrokerLimits())
    encoder.add(Message("t", bytes(150)), 0)

    with pytest.raises(TranslationError, match="packet of 278 bytes, limit 200"):
        encoder.add(Message("t", bytes(150), NO_HEADERS, PROOF), 0)


def hidden_property(proof: str) -> bytes:
    """Return a property of an application, whose value is what a gateway writes for a proof."""
    return user_property(b"k", PROOF_MARKS[len(proof) > PROOF_SIZE] + proof.encode())


# A value of an application may hold what begins a proof, and a proof may be cut short.
PIECES = st.lists(
    st.one_of(
        WHOLE_PROOFS.map(lambda proof: PROOF_MARKS[len(proof) > PROOF_SIZE] + proof.encode()),
        st.text("0af.Gg\0&").map(lambda text: user_property(b"gateway-proof", text.encode())),
        st.binary(max_size=140).map(lambda value: user_property(b"gateway-proof", value)),
        WHOLE_PROOFS.map(hidden_property),
        WHOLE_PROOFS.map(lambda proof: user_property(b"&\0\x0dgateway-proof", proof.encode())),
        st.sampled_from(
            [PROOF_NAME, *PROOF_MARKS, b"\x26\0", b"\x03\x00\x01c", b"\x01\x01", b"\x0b\x80\x01",
             b"\x02\0\0\0\x09", user_property(b"k", b"v"), user_property(b"gateway-origin", b"a")]
        ),
    ),
    max_size=4,
).map(b"".join)  # fmt: skip


PROPERTY = PROOF_MARKS[0] + PROOF.encode()
AS_LONG_AS_A_PROOF = user_property(b"k", bytes(PROOF_SIZE - 6))


@example([hidden_property(each) + PROPERTY for each in (PROOF, OTHER_PROOF)], 0x30)
@example([PROPERTY + AS_LONG_AS_A_PROOF, PROOF_MARKS[0] + AS_LONG_AS_A_PROOF], 0x30)
@given(pieces=st.lists(PIECES, min_size=1, max_size=4), first=st.sampled_from([0x30, 0x39]))
def test_properties_are_read_alike_with_and_without_kept_ones(
    pieces: list[bytes], first: int
) -> None:
    decoder = PacketDecoder("5", lambda: 0)
    for properties in (*pieces, *pieces):
        try:
            headers, _, proof = decode_headers(first, properties, lambda: 0)
        except WireError as error:
            with pytest.raises(WireError, match=re.escape(str(error))):
                decoder.feed(publish(properties, first))
        else:
            (got,) = decoder.feed(publish(properties, first)).messages
            assert (got.headers, got.proof) == (headers, proof)


ORDINARY = user_property(b"k", b"v")
HIDDEN = hidden_property(PROOF)


@pytest.mark.parametrize(
    ("properties", "proof", "others"),
    [
        pytest.param(PROPERTY, PROOF, {}, id="alone"),
        pytest.param(ORDINARY + PROPERTY, PROOF, {"k": "v"}, id="last"),
        pytest.param(PROPERTY + ORDINARY, PROOF, {"k": "v"}, id="first"),
        pytest.param(HIDDEN, "", {"k": PROPERTY.decode()}, id="in-a-value"),
        pytest.param(HIDDEN + PROPERTY, PROOF, {"k": PROPERTY.decode()}, id="in-a-value-and-one"),
        pytest.param(PROPERTY + PROOF_MARKS[0] + OTHER_PROOF.encode(), OTHER_PROOF, {}, id="two"),
        pytest.param(PROPERTY + user_property(b"gateway-proof", b"a."), "a.", {}, id="two-lengths"),
        pytest.param(PROPERTY + user_property(b"gateway-proof", b"!"), "", {}, id="a-bad-one-last"),
        pytest.param(user_property(b"gateway-proof", b"a" * 128), "a" * 128, {}, id="longest"),
        pytest.param(user_property(b"gateway-proof", b"a" * 129), "", {}, id="too-long"),
        pytest.param(user_property(b"gateway-proof", b"A" * 101), "", {}, id="capital-letters"),
        pytest.param(user_property(b"gateway-proof", b"\0" * 101), "", {}, id="nul"),
        pytest.param(user_property(b"gateway-proof", b"\xff" * 101), "", {}, id="no-utf-8"),
        pytest.param(user_property(b"gateway-proof", b""), "", {}, id="empty"),
        pytest.param(
            user_property(b"Gateway-proof", b"a"), "", {"Gateway-proof": "a"}, id="another-name"
        ),
    ],
)
def test_any_property_is_read_as_a_proof_or_none(
    properties: bytes, proof: str, others: Mapping[str, Value]
) -> None:
    decoder = PacketDecoder("5", lambda: 0)
    for _ in range(2):
        (got,) = decoder.feed(publish(properties)).messages
        assert (got.proof, got.headers.properties) == (proof, others)


def test_the_dup_flag_marks_a_redelivery() -> None:
    (message,) = decode("3.1.1", b"\x3a\x05\x00\x01t\x00\x07").messages

    assert message.headers.redelivered
    assert message.headers.mode is DeliveryMode.AT_LEAST_ONCE


def test_acknowledgements_and_session_packets_are_distinguished() -> None:
    data = b"\x40\x02\x00\x05\x50\x03\x00\x06\x87\x62\x02\x00\x07\xd0\x00\x20\x02\x00\x00"

    packets = decode("5", data)

    assert packets.acked_ids == [5]
    assert packets.responses == [(PUBREC, 6, 0x87), (PUBREL, 7, 0)]
    assert packets.session == [b"\x20\x02\x00\x00"]


MALFORMED = [
    pytest.param("5", b"\x30\x00", "shorter than its fields", id="publish-of-nothing"),
    pytest.param("5", b"\x30\x01\x00", "shorter than its fields", id="publish-of-one-byte"),
    pytest.param("5", b"\x30\x00\x30\x00", "shorter than its fields", id="publishes-of-nothing"),
    pytest.param("5", b"\x36\x05\x00\x01t\x00\x01", "QoS 3", id="3.3.1.2-qos-3"),
    pytest.param("5", b"\x30\x03\x00\x09t", "shorter than its fields", id="topic-too-long"),
    pytest.param("5", b"\x30\x04\x00\x01t\x05", "longer than the packet", id="properties-cut"),
    pytest.param("5", b"\x30\x05\x00\x01t\x01\x77", "property 0x77", id="unknown-property"),
    pytest.param("5", b"\x30\x07\x00\x01t\x03\x23\x00\x01", "0x23", id="3.3.2.3.4-topic-alias"),
    pytest.param("5", b"\x30\xff\xff\xff\xff\x01", "four bytes", id="1.5.5-length"),
    pytest.param("5", b"\x40\x01\x00", "without a packet id", id="short-puback"),
]


@pytest.mark.parametrize(("version", "data", "text"), MALFORMED)
def test_the_error_of_a_malformed_packet_names_the_fault(
    version: str, data: bytes, text: str
) -> None:
    with pytest.raises(WireError, match=text):
        decode(version, data)


@pytest.mark.parametrize(
    ("version", "data", "text"),
    [
        pytest.param("3.1.1", b"\x30\x03\x00\x01\xff", "\udcff", id="topic-3"),
        pytest.param("5", b"\x30\x04\x00\x01\xff\x00", "\udcff", id="topic-5"),
        pytest.param(
            "5", b"\x30\x0b\x00\x01t\x07\x26\x00\x01k\x00\x01\xfe", "\udcfe", id="property"
        ),
        pytest.param("5", b"\x30\x08\x00\x01t\x04\x08\x00\x01\xff", "\udcff", id="reply-to"),
    ],
)
def test_text_outside_utf_8_of_a_publisher_does_not_end_the_stream(
    version: str, data: bytes, text: str
) -> None:
    """MQTT 5.0, 1.5.4, has it end the connection; then the broker sends the message again."""
    (got,) = decode(version, data).messages

    assert text in {got.address, got.headers.properties.get("k"), got.headers.reply_to}


def test_many_acknowledgements_are_one_write() -> None:
    assert encode_acks([0x4002_0001, 0, 0x5002_0002]) == b"\x40\x02\x00\x01\x50\x02\x00\x02"


SECOND = 1_000_000


def test_expiry_is_a_time_in_headers_and_an_interval_in_packets() -> None:
    message = Message("t", b"", Headers(expiry=100 * SECOND))

    (got,) = decode("5", encode("5", [message], now=40 * SECOND), now=1_000 * SECOND).messages

    assert got.headers.expiry == 1_060 * SECOND


UNSENDABLE = [
    pytest.param("5", Message("", b""), "empty-name", id="4.7.3-empty"),
    pytest.param("5", Message("a/+", b""), "wildcard-in-name", id="4.7.1-plus"),
    pytest.param("3.1.1", Message("a/#", b""), "wildcard-in-name", id="4.7.1-hash"),
    pytest.param("5", Message("a\0", b""), "nul", id="4.7.3-nul"),
    pytest.param("5", Message("\ud800", b""), "surrogate", id="1.5.4-surrogate"),
    pytest.param("5", Message("a\x01", b""), "control-character", id="1.5.4-control"),
    pytest.param("3.1.1", Message("a\x9f", b""), "control-character", id="1.5.4-control-of-c1"),
    pytest.param("5", Message("a\ufdd0", b""), "control-character", id="1.5.4-noncharacter"),
    pytest.param(
        "5", Message("t", b"", Headers(properties={"a\n": ""})), "control-character", id="name"
    ),
    pytest.param(
        "5", Message("t", b"", Headers(content_type="\x7f")), "control-character", id="content-type"
    ),
    pytest.param("5", Message("x" * 65_536, b""), "too-long", id="4.7.3-length"),
    pytest.param("5", Message("t", {"a": 1}), "payload-kind", id="map"),
    pytest.param("3.1.1", Message("t", "\ud800"), "surrogate", id="text"),
    pytest.param("5", Message("t", b"", Headers(expiry=5)), "expired", id="expired"),
    pytest.param("3.1.1", Message("t", b"", Headers(expiry=5)), "expired", id="expired-3"),
    pytest.param("5", Message("t", b"", Headers(reply_to="a/+")), "reply-to", id="3.3.2.3.5"),
    pytest.param(
        "5",
        Message("t", b"", Headers(properties={"gateway-types": "x"})),
        "property-name",
        id="ours",
    ),
    pytest.param("5", Message("t", b"", Headers(properties={"a": "\0"})), "nul", id="property-nul"),
    pytest.param(
        "5", Message("t", b"", Headers(properties={"a": [b""]})), "property-value", id="tree-bytes"
    ),
    pytest.param(
        "5",
        Message("t", b"", Headers(correlation_id=b"x" * 65_536)),
        "property-size",
        id="correlation-size",
    ),
]


@pytest.mark.parametrize(("version", "message", "rule"), UNSENDABLE)
def test_a_message_that_mqtt_cannot_carry_is_refused_by_rule(
    version: str, message: Message, rule: str
) -> None:
    with pytest.raises(TranslationError) as caught:
        encode(version, [message], now=10)

    assert caught.value.rule == rule
    assert caught.value.reason


@pytest.mark.parametrize(
    "value",
    ["two\nlines", "\x7f", "\x80\ufdd0", ["a\t", "b"], {"a": "\x85\U0010ffff"}],
    ids=repr,
)
def test_a_value_for_which_a_broker_hangs_up_is_escaped_and_restored(value: Value) -> None:
    message = Message("t", b"", Headers(properties={"a": value}))
    data = encode("5", [message])
    (got,) = decode("5", data).messages

    assert not any(closing_character(text) for _, text in join_pairs(message.headers))
    assert got.headers.properties == {"a": value}


HOSTILE = [
    pytest.param("int", "x", id="no-number"),
    pytest.param("int", "9" * 5_000, id="too-many-digits"),
    pytest.param("bytes", "???", id="no-base64"),
    pytest.param("json", "{", id="no-json"),
    pytest.param("json", "[" * 20_000, id="too-deep"),
    pytest.param("json", '"\\ud800"', id="lone-surrogate"),
    pytest.param("nonsense", "x", id="unknown-type"),
]


@pytest.mark.parametrize(("kind", "text"), HOSTILE)
def test_a_property_of_another_program_that_looks_typed_stays_text(kind: str, text: str) -> None:
    pairs = [("a", text), ("gateway-types", f'{{"a":"{kind}","b":7}}'), ("gateway-time", "9" * 99)]

    own, properties = split_pairs(pairs)

    assert properties == {"a": text}
    assert parse_whole_number(own["gateway-time"]) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), (str(2**63 - 1), 2**63 - 1), (str(2**63), None), ("²", None), ("٣", None),
     ("", None), (None, None), ("-1", None), (" 1", None), ("1_0", None)],
)  # fmt: skip
def test_a_number_of_another_program_is_ascii_digits_of_63_bits(
    text: str | None, number: int | None
) -> None:
    assert parse_whole_number(text) == number
