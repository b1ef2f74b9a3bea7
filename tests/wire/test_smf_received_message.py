from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import WireError
from gateway.model.message import Value
from gateway.wire.smf.frames import Protocol, encode_frame
from gateway.wire.smf.received_message import (
    MessageMetadata,
    SmfPayloadForm,
    decode_header,
    decode_metadata,
    decode_payload,
    has_discard_flag,
    header_parameters,
    split_body,
)
from gateway.wire.smf.relayed_message import (
    decode_direct,
    decode_published,
    encode_delivery,
    encode_direct,
    read_topic,
)
from gateway.wire.smf.sdt import decode_value
from tests.wire.smf_dumps import DUMPS, dump, survives
from tests.wire.smf_requests import encode_value

VALUES: st.SearchStrategy[Value] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False),
        st.text(st.characters(exclude_categories=["Cs"])),
        st.binary(max_size=300),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    ),
    max_leaves=12,
)


def read(number: int) -> tuple[object, MessageMetadata]:
    return whole(dump(number))


def whole(frame: bytes) -> tuple[object, MessageMetadata]:
    heading = decode_header(header_parameters(frame))
    payload, metadata = split_body(frame, heading)
    described = decode_metadata(metadata)
    return decode_payload(payload, described.form), described


def test_a_message_with_every_property_is_read() -> None:
    payload, described = read(15)

    assert payload == "hello world"
    assert described.properties == {"color": "red", "n": 7}
    assert dict(described.headers) == {
        "mi": "app-1", "mt": "tick", "ct": "text/plain", "ce": "utf-8", "sn": 42,
        "si": "me", "ci": "corr-1", "ts": 1795217318762, "ex": 1795217378759,
    }  # fmt: skip


PAYLOADS = [
    pytest.param(16, b"raw-bytes", SmfPayloadForm.BYTES, id="D16-bytes"),
    pytest.param(17, "ping", SmfPayloadForm.TEXT, id="D17-request"),
    pytest.param(18, "re:ping", SmfPayloadForm.TEXT, id="D18-reply"),
    pytest.param(19, "plain", SmfPayloadForm.TEXT, id="D19-minimal"),
    pytest.param(30, "order 0", SmfPayloadForm.TEXT, id="D30-guaranteed"),
]


@pytest.mark.parametrize(("number", "payload", "form"), PAYLOADS)
def test_payloads_keep_their_form(number: int, payload: object, form: SmfPayloadForm) -> None:
    got, described = read(number)

    assert got == payload
    assert described.form is form


def test_a_reply_to_is_a_topic() -> None:
    _, described = read(17)

    assert described.headers["rt"] == "#P2P/v:testbroker/tx-client/_"


def test_the_header_contains_the_fields_that_the_broker_adds() -> None:
    first, again = (decode_header(header_parameters(dump(n))) for n in (30, 32))

    assert (first.topic, first.persistent, first.redelivered) == ("orders/new", True, False)
    assert again.redelivered
    assert decode_header(header_parameters(dump(22))).time_to_live == 5000
    assert not decode_header(header_parameters(dump(16))).persistent


@given(VALUES)
def test_encoded_structured_data_decodes_to_the_original(value: Value) -> None:
    assert decode_value(encode_value(value)) == value


def test_a_byte_array_in_a_map_keeps_its_nul() -> None:
    """The vendor's Python classes return `b"x\\0\\0"` for it."""
    recorded = bytes.fromhex("2b000000 0e 1c0463 00 1805 780079".replace(" ", ""))

    assert decode_value(recorded) == {"c": b"x\0y"}


def test_a_destination_decodes_to_its_name() -> None:
    assert decode_value(b"\x20\x07\0a/b\0") == "a/b"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param("", "malformed", id="nothing"),
        pytest.param("1c", "malformed", id="no-length"),
        pytest.param("1cff61", "ends outside", id="cut-off"),
        pytest.param("fc02", "type 63 is not known", id="unknown-type"),
        pytest.param("2b000000 08 1c0361".replace(" ", ""), "no value", id="odd-map"),
        pytest.param("000200", "1 bytes behind", id="more-behind"),
        pytest.param("1006000000", "ends outside", id="short-float"),
        pytest.param("1406ffffffff", "0xffffffff is no character", id="past-unicode"),
        pytest.param("1404d800", "0xd800 is no character", id="surrogate"),
        pytest.param("2f00000005" * 1, "", id="empty-stream-is-fine"),
    ],
)
def test_malformed_structured_data(data: str, text: str) -> None:
    if not text:
        assert decode_value(bytes.fromhex(data)) == []
        return
    with pytest.raises(WireError, match=text):
        decode_value(bytes.fromhex(data))


def test_containers_nested_too_deep_are_refused() -> None:
    data = b""
    for _ in range(40):
        data = b"\x2f" + (len(data) + 5).to_bytes(4, "big") + data

    with pytest.raises(WireError, match="nested deeper than 32"):
        decode_value(data)


def test_a_character_decodes_to_text() -> None:
    assert decode_value(bytes.fromhex("140400e9")) == "é"


@pytest.mark.parametrize("size", [0, 4, 11])
def test_a_message_with_an_incomplete_header_is_refused(size: int) -> None:
    with pytest.raises(WireError, match=f"a message of {size} bytes"):
        header_parameters(b"\x03" * size)


@given(st.binary(max_size=120))
def test_arbitrary_bytes_raise_only_wire_errors(data: bytes) -> None:
    for parameters, body in ((data, b""), (b"\x98\x06a/b\0" + data[:20], data)):
        frame = encode_frame(Protocol.MESSAGE, parameters, body)
        assert survives(
            partial(whole, frame),
            partial(read_topic, frame),
            partial(decode_direct, frame),
            partial(decode_published, frame),
        )


@pytest.mark.parametrize("number", [15, 16, 17, 18, 19, 20, 30])
def test_the_topic_is_read_from_recorded_messages(number: int) -> None:
    heading = decode_header(header_parameters(dump(number)))

    assert read_topic(dump(number)).decode() == heading.topic


def test_a_delivery_is_encoded_as_recorded() -> None:
    published = decode_published(dump(20))

    assert (published.flow_id, published.message_id, published.previous_id) == (2, 1, 0)
    assert encode_delivery(published, 3, 1, 0, redelivered=False) == dump(30)


def test_a_redelivery_carries_the_flag_and_its_new_id() -> None:
    published = decode_published(dump(20))
    frame = encode_delivery(published, 3, 7, 6, redelivered=True)

    assert len(frame) == len(dump(32))
    assert decode_header(header_parameters(frame)).redelivered
    assert decode_published(dump(59)).message_id == 1


def test_a_guaranteed_message_becomes_a_direct_one() -> None:
    direct = encode_direct(decode_published(dump(20)))

    assert not direct[0] & 0x10
    assert read_topic(direct) == b"orders/new"
    assert direct.endswith(dump(20)[-51:])
    assert not has_discard_flag(direct)
    assert not has_discard_flag(b"")
    assert len(DUMPS) > 40
