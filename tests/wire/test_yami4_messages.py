from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model.message import Value
from gateway.wire.yami4.frames import FrameDecoder, encode_message
from gateway.wire.yami4.messages import (
    HeaderReader,
    MessageHeading,
    MessageKind,
    encode_exception,
    encode_reply,
    encode_request,
    read_header,
)
from gateway.wire.yami4.parameters import EMPTY, Long, decode_parameters, encode_parameters

# Section 4 of the facts: a subscription and its answer, as the reference broker saw them.
SUBSCRIBE = bytes.fromhex(
    "01000000 ffffffff 78000000 a0000000 04000000"
    "04000000 74797065 05000000 07000000 6d657373 61676500"
    "0b000000 6f626a65 63745f6e 616d6500 05000000 03000000 612e2a00"
    "0c000000 6d657373 6167655f 6e616d65 05000000 09000000 73756273 63726962 65000000"
    "0a000000 6d657373 6167655f 69640000 03000000 01000000 00000000"
    "01000000 12000000 64657374 696e6174 696f6e5f 6f626a65 63740000 05000000 03000000 75706400"
)
REPLY = bytes.fromhex(
    "01000000 ffffffff 38000000 3c000000 02000000 04000000 74797065 05000000 05000000 7265706c"
    "79000000 0a000000 6d657373 6167655f 69640000 03000000 01000000 00000000 00000000"
)


def test_a_subscription_is_encoded_and_decoded() -> None:
    body = encode_parameters({"destination_object": "upd"})

    assert encode_message(1, encode_request(b"a.*", b"subscribe", 1), body) == SUBSCRIBE
    [(header, got)] = FrameDecoder().feed(SUBSCRIBE)
    assert read_header(header) == (MessageHeading(MessageKind.MESSAGE, b"a.*", b"subscribe"), 1)
    assert decode_parameters(got) == {"destination_object": "upd"}


def test_a_reply_is_encoded_and_decoded() -> None:
    assert encode_message(1, encode_reply(1), EMPTY) == REPLY
    [(header, body)] = FrameDecoder().feed(REPLY)
    assert (read_header(header), body) == ((MessageHeading(MessageKind.REPLY), 1), EMPTY)


def test_sizes_of_an_update_and_an_exception() -> None:
    body = encode_parameters({"v": 42})
    update = encode_message(1, encode_request(b"upd", b"update a.b", 1), body)
    rejection = encode_message(1, encode_exception(8, b"No such name."), EMPTY)

    assert (len(update), len(rejection)) == (156, 116)
    [(header, _)] = FrameDecoder().feed(rejection)
    assert read_header(header) == (
        MessageHeading(MessageKind.EXCEPTION, reason=b"No such name."),
        8,
    )


IGNORED: list[dict[str, Value]] = [
    {},
    {"type": "message", "object_name": "a", "message_name": "b"},
    {"type": "message", "object_name": "a", "message_name": "b", "message_id": 1},
    {"type": "message", "object_name": "a", "message_id": Long(1)},
    {"type": "message", "object_name": 1, "message_name": "b", "message_id": Long(1)},
    {"type": "other", "message_id": Long(1)},
    {"type": 5, "message_id": Long(1)},
]


@pytest.mark.parametrize("fields", IGNORED)
def test_headers_that_peers_ignore(fields: dict[str, Value]) -> None:
    assert read_header(encode_parameters(fields)) is None
    assert HeaderReader().read(encode_parameters(fields)) is None


@pytest.mark.parametrize("header", [b"", b"junk", bytes(64), b"\xff" * 64])
def test_headers_that_cannot_be_decoded_are_ignored(header: bytes) -> None:
    assert HeaderReader().read(header) is None


def test_fields_come_in_any_order_between_unknown_ones() -> None:
    fields: dict[str, Value] = {"message_id": Long(-3), "extra": 1, "message_name": "b"}
    header = encode_parameters(fields | {"object_name": "a", "type": "message"})
    reader = HeaderReader()

    assert (
        reader.read(header)
        == reader.read(header)
        == (MessageHeading(MessageKind.MESSAGE, b"a", b"b"), -3)
    )


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"a", b"a.b", b"\xff\xfe", b"", b"a\0b"]),
            st.sampled_from([b"publish", b"", b"\xe4"]),
            st.integers(-(2**63), 2**63 - 1),
        )
    )
)
def test_a_caching_reader_agrees_with_one_without_a_cache(
    rows: list[tuple[bytes, bytes, int]],
) -> None:
    reader = HeaderReader()
    for object_name, message_name, message_id in rows:
        header = encode_request(object_name, message_name, message_id)
        expected = MessageHeading(MessageKind.MESSAGE, object_name, message_name), message_id
        assert reader.read(header) == read_header(header) == expected


def test_long_headers_are_not_cached() -> None:
    reader = HeaderReader()
    for number in range(3):
        header = encode_request(b"a" * 100_000, b"publish", number)
        assert reader.read(header) == (
            MessageHeading(MessageKind.MESSAGE, b"a" * 100_000, b"publish"),
            number,
        )
