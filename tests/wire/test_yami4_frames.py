from __future__ import annotations

import random
import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import WireError
from gateway.model.message import DroppedPayload
from gateway.wire.yami4.frames import (
    FrameDecoder,
    FrameLimits,
    Packet,
    encode_message,
    to_wire_id,
)

WORDS = st.binary(max_size=64).map(lambda data: data + bytes(-len(data) % 4))
PACKETS = st.tuples(WORDS, WORDS.map(lambda data: data + bytes(4)))
SMALL_FRAME = 48  # bytes with the head, so that most messages take several


def frame(wire_id: int, number: int, header_size: int, payload: bytes) -> bytes:
    return struct.pack("<iiii", wire_id, number, header_size, len(payload)) + payload


def decode_in_slices(data: bytes, cuts: list[int]) -> list[Packet]:
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    decoder = FrameDecoder()
    return [packet for a, b in pairwise(bounds) for packet in decoder.feed(data[a:b])]


@given(
    packets=st.lists(PACKETS), cuts=st.lists(st.integers(0, 2000)), size=st.sampled_from([48, 4096])
)
def test_any_slicing_gives_the_same_messages(
    packets: list[Packet], cuts: list[int], size: int
) -> None:
    data = b"".join(encode_message(n, h, b, size) for n, (h, b) in enumerate(packets, start=1))

    assert decode_in_slices(data, cuts) == packets


@pytest.mark.parametrize("step", range(1, 60))
def test_slices_of_any_length_give_the_same_messages(step: int) -> None:
    packets = [(bytes([n] * 8), bytes([n] * 60)) for n in range(3)]
    data = b"".join(encode_message(n, *packet, SMALL_FRAME) for n, packet in enumerate(packets))

    assert decode_in_slices(data, list(range(0, len(data), step))) == packets


@given(packets=st.lists(PACKETS, max_size=5), seed=st.randoms(use_true_random=False))
def test_frames_may_interleave_and_arrive_out_of_order(
    packets: list[Packet], seed: random.Random
) -> None:
    frames: list[bytes] = []
    for number, packet in enumerate(packets, start=1):
        data = encode_message(number, *packet, SMALL_FRAME)
        frames += [data[at : at + SMALL_FRAME] for at in range(0, len(data), SMALL_FRAME)]
    seed.shuffle(frames)
    decoder = FrameDecoder()

    got = decoder.feed(b"".join(frames))

    assert sorted(got) == sorted(packets)
    assert decoder.held == 0


def test_a_message_of_two_frames_has_the_recorded_bytes() -> None:
    # Section 3: max frame 128, header 0x74 bytes; the second frame begins with its last 4.
    data = encode_message(4, bytes(0x74), bytes(60), 128)

    assert data[:16].hex(" ", 4) == "04000000 01000000 74000000 70000000"
    assert data[128:144].hex(" ", 4) == "04000000 feffffff 74000000 40000000"
    assert FrameDecoder().feed(data) == [(bytes(0x74), bytes(60))]


@pytest.mark.parametrize("header_size", range(4072, 4084, 4))
@pytest.mark.parametrize("body_size", [4, 4076, 4080, 4084])
def test_messages_around_the_default_frame_size(header_size: int, body_size: int) -> None:
    packet = (b"h" * header_size, b"b" * body_size)

    assert FrameDecoder().feed(encode_message(1, *packet)) == [packet]


ILLEGAL = [
    pytest.param(frame(0, 0, 0, b""), "payload size 0 is outside", id="zeros"),
    pytest.param(frame(1, -1, 0, b"12345"), "payload size 5 is outside", id="no-whole-word"),
    pytest.param(struct.pack("<iiii", 1, -1, 0, -4), "payload size -4 is", id="negative"),
    pytest.param(struct.pack("<iiii", 1, -1, 0, 2**31 - 4), "size 2147483644", id="too-big"),
    pytest.param(frame(1, -1, 8, bytes(8)), "header size 8 is outside 0..4", id="no-body"),
    pytest.param(frame(1, -1, 2, bytes(8)), "header size 2 is outside", id="header-no-word"),
    pytest.param(frame(1, -1, -4, bytes(8)), "header size -4 is outside", id="header-negative"),
    pytest.param(b"GET / HTTP/1.1\r\n\r\n", "payload size 168636718 is", id="http"),
    pytest.param(
        frame(1, 1, 8, bytes(4)) + frame(1, -2, 8, bytes(4)), "header size 8", id="two-no-body"
    ),
    pytest.param(frame(1, 1, 0, bytes(4)) * 2, "frame 1 of message 1 has no place", id="duplicate"),
    pytest.param(
        frame(1, -3, 0, bytes(4)) + frame(1, 4, 0, bytes(4)), "frame 4 of message 1", id="past-end"
    ),
    pytest.param(
        frame(1, -3, 0, bytes(4)) + frame(1, -4, 0, bytes(4)), "two ends, 3, 4", id="two-ends"
    ),
]


@pytest.mark.parametrize(("data", "reason"), ILLEGAL)
def test_a_malformed_stream_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        FrameDecoder().feed(data)


def test_messages_before_a_fault_are_delivered_and_the_fault_stays() -> None:
    decoder = FrameDecoder()

    assert decoder.feed(encode_message(1, b"head", b"body") + bytes(16)) == [(b"head", b"body")]
    assert isinstance(decoder.fault, WireError)
    with pytest.raises(WireError, match="payload size 0"):
        decoder.feed(encode_message(2, b"head", b"body"))


@pytest.mark.parametrize("number", [0, -(2**31)])
def test_frames_of_no_message_are_dropped(number: int) -> None:
    decoder = FrameDecoder()

    got = decoder.feed(frame(7, number, 4, bytes(8)) + encode_message(7, b"head", b"body"))

    assert got == [(b"head", b"body")]
    assert decoder.held == 0


LIMITS = FrameLimits(payload=256, message=512, held=2048, incomplete=3)
EXCESSIVE = [
    pytest.param(lambda n: frame(n, 1, 0, bytes(4)), "3 messages are incomplete", id="count"),
    pytest.param(lambda n: frame(1, n, 0, bytes(256)), "is over 512 bytes", id="one-message"),
    pytest.param(lambda n: frame(n % 3, n, 0, bytes(4)), "are over 2048 bytes", id="held"),
    pytest.param(lambda n: frame(1, n, 0, bytes(260)), "outside 4..256", id="one-frame"),
]


@pytest.mark.parametrize(("make", "reason"), EXCESSIVE)
def test_incomplete_messages_are_bounded(make: object, reason: str) -> None:
    assert callable(make)
    decoder = FrameDecoder(LIMITS)

    data = b"".join(map(make, range(1, 100)))

    with pytest.raises(WireError, match=reason):
        decoder.feed(data)

    assert decoder.held == 0


def test_a_message_that_is_too_large_comes_without_its_body() -> None:
    decoder = FrameDecoder(LIMITS, skip_large=True)
    small = encode_message(2, b"head", b"body")

    (header, body), last = decoder.feed(encode_message(1, b"head", bytes(1000), 128) + small)

    assert (header, body, last) == (b"head", b"", (b"head", b"body"))
    assert isinstance(body, DroppedPayload)
    assert body.full == 1_000
    assert (decoder.skipped, decoder.held) == (0, 0)
    with pytest.raises(WireError, match="incomplete messages are over 2048"):
        decoder.feed(encode_message(3, b"head", bytes(4000), 128))


def test_a_message_that_is_too_large_is_skipped_when_its_header_comes_late() -> None:
    decoder = FrameDecoder(LIMITS, skip_large=True)
    first, *rest = (
        frame(1, -9 if number == 9 else number, 4, bytes(100)) for number in range(1, 10)
    )

    assert decoder.feed(b"".join(rest) + first) == []
    assert (decoder.skipped, decoder.held) == (1, 0)


def test_wire_ids_wrap_before_the_sign_changes() -> None:
    assert to_wire_id(1) == 1
    assert to_wire_id(2**31 - 1) == 2**31 - 1
    assert to_wire_id(2**31) == 1
