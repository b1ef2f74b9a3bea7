"""Any bytes give messages or a WireError, within the memory limits."""

from __future__ import annotations

import random

import pytest

from gateway.errors import WireError
from gateway.wire.yami4.frames import FrameDecoder, FrameLimits, encode_message
from gateway.wire.yami4.messages import HeaderReader, encode_request
from gateway.wire.yami4.parameters import Long, decode_parameters, encode_parameters

LIMITS = FrameLimits(payload=4096, message=4096, held=16_384, incomplete=16)
BODY = encode_parameters({
    "b": True, "i": 1, "l": Long(1), "d": 1.5, "s": "text", "x": b"bytes", "bs": [True] * 40,
    "is": [1, 2], "ls": [Long(1)], "ds": [1.0], "ss": ["a", "b"], "xs": [b"a"],
    "o": {"p": {"q": 1}}, "os": [{"a": 1}, {}],
})  # fmt: skip
SEEDS = (
    encode_message(1, encode_request(b"a.b", b"publish", 1), BODY),
    encode_message(2, encode_request(b"a.b", b"publish", 2), BODY, max_frame=128),
    encode_message(3, encode_request(b"x", b"y", 3), bytes(4)) * 3,
)
EDGES = (0, 1, 4, 0x7F, 0x80, 0xFF)


def mutate(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randrange(4)):
        position = chance.randrange(len(changed))
        match chance.randrange(4):
            case 0:
                changed[position] = chance.choice(EDGES)
            case 1:
                changed[position] = chance.randrange(256)
            case 2:
                del changed[position : position + chance.randrange(1, 9)]
            case _:
                changed[position:position] = chance.randbytes(chance.randrange(1, 9))
        if not changed:
            return b"\0"
    return bytes(changed)


def swallow(data: bytes, cut: int, reader: HeaderReader) -> int:
    """Decode all messages in `data`; return their number."""
    decoder = FrameDecoder(LIMITS)
    packets = []
    try:
        packets = decoder.feed(data[:cut])
        packets += decoder.feed(data[cut:])
    except WireError:
        assert decoder.fault is not None
    assert decoder.held <= LIMITS.held + LIMITS.payload + 16
    for header, body in packets:
        reader.read(header)
        try:
            decode_parameters(body)
        except WireError:
            continue
    return len(packets)


def run(inputs: int, seed: int) -> int:
    chance = random.Random(seed)  # noqa: S311  # inputs, not secrets
    reader = HeaderReader()
    whole = 0
    for number in range(inputs):
        data = mutate(SEEDS[number % len(SEEDS)], chance)
        if not number % 10:
            data = chance.randbytes(chance.randrange(200))
        whole += swallow(data, chance.randrange(len(data) + 1), reader)
    return whole


def test_fuzz() -> None:
    assert run(20_000, seed=1) > 10_000


@pytest.mark.nightly
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", range(10))
def test_fuzz_for_long(seed: int) -> None:
    assert run(100_000, seed=100 + seed) > 50_000
