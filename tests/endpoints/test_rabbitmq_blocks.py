"""Messages in blocks of bytes, beside the library's own reading and writing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pika import BasicProperties, spec
from pika.frame import Body, Header, Method, decode_frame

from gateway.endpoints.rabbitmq.blocks import (
    Confirm,
    WholeMessage,
    publish_method,
    read_confirms,
    read_delivery,
    write_messages,
)

MOST = 131_072
PROPERTIES = b"\x10\x00\x02"  # delivery mode 2


def delivered(key: str | bytes = "a.b", body: bytes = b"one", piece: int = MOST) -> bytes:
    method = spec.Basic.Deliver("tag", 7, True, "amq.topic", key)
    frames = [Method(1, method), Header(1, len(body), BasicProperties(delivery_mode=2))]
    frames += [Body(1, body[at : at + piece]) for at in range(0, len(body), piece)]
    return b"".join(frame.marshal() for frame in frames)


@pytest.mark.parametrize("body", [b"", b"one", bytes(1_000)])
@pytest.mark.parametrize("key", ["a.b", "", "\u00e4.b"])
def test_delivery(key: str, body: bytes) -> None:
    data = delivered(key, body)

    found = read_delivery(b"before" + data + b"behind", 6, MOST, MOST)

    expected = WholeMessage(1, "tag", 7, True, "amq.topic", key, PROPERTIES, body)
    assert found == (expected, 6 + len(data))


def test_delivery_with_a_key_that_is_no_utf_8() -> None:
    data = delivered("xxx").replace(b"xxx", b"t.\xff")

    found = read_delivery(data, 0, MOST, MOST)

    assert found is not None
    assert found[0].routing_key == b"t.\xff"


def test_no_part_of_a_delivery_is_a_message() -> None:
    data = delivered()

    assert not any(read_delivery(data[:end], 0, MOST, MOST) for end in range(len(data)))


@pytest.mark.parametrize(
    ("data", "most", "longest"),
    [
        pytest.param(delivered(body=bytes(100), piece=60), MOST, MOST, id="two-body-frames"),
        pytest.param(delivered(body=bytes(100)), MOST, 99, id="longer-than-wanted"),
        pytest.param(delivered(body=bytes(100)), 100, MOST, id="frame-too-large"),
        pytest.param(delivered()[:-1] + b"\0", MOST, MOST, id="no-end"),
        pytest.param(Method(1, spec.Basic.Ack(1)).marshal(), MOST, MOST, id="another-method"),
    ],
)
def test_left_to_the_library(data: bytes, most: int, longest: int) -> None:
    assert read_delivery(data, 0, most, longest) is None


@given(st.binary(max_size=200), st.integers(0, 210), st.integers(0, 255))
def test_a_changed_byte_raises_nothing(body: bytes, place: int, value: int) -> None:
    data = bytearray(delivered(body=body))
    data[place % len(data)] = value

    found = read_delivery(bytes(data), 0, MOST, MOST)

    assert found is None or found[1] == len(data)


def test_confirms_of_one_channel_that_follow_one_another() -> None:
    confirms = [
        (1, spec.Basic.Ack(3, multiple=True)),
        (1, spec.Basic.Nack(4)),
        (2, spec.Basic.Ack(9)),
    ]
    parts = [Method(channel, confirm).marshal() for channel, confirm in confirms]

    found = read_confirms(b"".join(parts), 0)

    expected = [Confirm(1, 3, True, True), Confirm(1, 4, False, False)]
    assert found == (expected, len(parts[0]) + len(parts[1]))


def test_a_confirm_that_is_not_whole() -> None:
    assert read_confirms(Method(1, spec.Basic.Ack(3)).marshal()[:-1], 0) == ([], 0)


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_written_as_the_library_reads(bodies: list[bytes]) -> None:
    method = publish_method("amq.topic", "\u00e4.b")

    data = b"".join(write_messages(1, [(method, PROPERTIES, each) for each in bodies], 100))

    read: list[bytes] = []
    while data:
        size, frame = decode_frame(data)
        data = data[size:]
        if isinstance(frame, Method):
            found = frame.method
            assert (found.exchange, found.routing_key, found.mandatory) == (
                "amq.topic",
                "\u00e4.b",
                True,
            )
            read.append(b"")
        elif isinstance(frame, Header):
            assert frame.properties.delivery_mode == 2
            size = frame.body_size
        else:
            assert len(frame.fragment) <= 100
            read[-1] += frame.fragment
    assert read == bodies


def test_blocks_end_with_a_message() -> None:
    message = (publish_method("", "q"), PROPERTIES, bytes(70_000))

    blocks = [*write_messages(1, [message] * 4, 65_536)]

    assert [len(block) > 131_072 for block in blocks] == [True, True]
    assert len({*map(len, blocks)}) == 1
