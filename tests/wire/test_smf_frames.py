from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import WireError
from gateway.wire.smf.frames import Protocol, SmfDecoder, encode_frame, protocol_of, split_frame
from gateway.wire.smf.parameters import (
    LIGHT_TAG,
    RESPONSE,
    encode_parameter,
    read_extended,
    read_parameters,
)
from gateway.wire.smf.responses import SmfResponse, decode_response, encode_response
from tests.wire.smf_dumps import DUMPS, dump, survives

FRAMES = st.builds(
    encode_frame,
    st.sampled_from(Protocol),
    st.binary(max_size=40),
    st.binary(max_size=200),
)


@given(frames=st.lists(FRAMES, max_size=8), cuts=st.lists(st.integers(0, 900)))
def test_any_slicing_gives_the_same_frames(frames: list[bytes], cuts: list[int]) -> None:
    data = b"".join(frames)
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    decoder = SmfDecoder()

    got = [f for a, b in pairwise(bounds) for f in decoder.feed(data[a:b])]

    assert got == frames
    assert decoder.held == 0


def test_all_recorded_bytes_are_whole_messages() -> None:
    stream = b"".join(map(bytes.fromhex, DUMPS.values()))

    frames = SmfDecoder().feed(stream)

    assert frames == [bytes.fromhex(text) for text in DUMPS.values()]
    assert {protocol_of(frame) for frame in frames} == set(Protocol)


BROKEN = [
    pytest.param("160301020001", "version 6 is not 3", id="tls-hello-in-part"),
    pytest.param("0b8d00ff0000000b0000000c", "header size 11 is outside", id="short-header"),
    pytest.param("0b8d00ff0000000d0000000c", "header size 13 is outside", id="header-past-message"),
    pytest.param("0b8d00ff0000000c000003e9", "message size 1001 is above 1000", id="too-long"),
    pytest.param("0b8d00ff000001f5000002ff", "header size 501 is outside", id="long-header"),
]


@pytest.mark.parametrize(("data", "text"), BROKEN)
def test_bytes_that_are_not_smf_are_refused_immediately(data: str, text: str) -> None:
    with pytest.raises(WireError, match=text):
        SmfDecoder(max_message=1000, max_header=500).feed(bytes.fromhex(data))


def test_single_bytes_are_joined_once() -> None:
    frame = encode_frame(Protocol.MESSAGE, b"", b"x" * 20_000)
    decoder = SmfDecoder()

    got = [f for i in range(len(frame)) for f in decoder.feed(frame[i : i + 1])]

    assert got == [frame]


def test_both_formats_of_parameters_are_decoded() -> None:
    parameters, body = split_frame(dump(6))

    tag, response = read_parameters(parameters)

    assert (tag.kind, tag.value) == (LIGHT_TAG, b"\0\0\1")
    assert response.kind == RESPONSE
    assert decode_response(response.value) == SmfResponse(200, "OK")
    assert body == split_frame(dump(5))[1]


@pytest.mark.parametrize("size", [0, 253, 254, 255, 70_000])
def test_a_parameter_of_any_length_decodes_to_the_original(size: int) -> None:
    (got,) = read_parameters(encode_parameter(0x18, b"v" * size))

    assert (got.kind, got.value) == (0x18, b"v" * size)


def test_a_response_is_encoded_as_recorded() -> None:
    assert encode_response(SmfResponse(401, "Unauthorized")) in dump(9)


CUT = [
    pytest.param("1809616263", id="standard"),
    pytest.param("1800", id="no-long-length"),
    pytest.param("18", id="no-length"),
    pytest.param("1801", id="shorter-than-its-head"),
    pytest.param("230000", id="light"),
]


@pytest.mark.parametrize("data", CUT)
def test_a_parameter_that_ends_outside_is_refused(data: str) -> None:
    with pytest.raises(WireError, match="ends outside"):
        list(read_parameters(bytes.fromhex(data)))


@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_only_wire_errors(data: bytes) -> None:
    assert survives(lambda: list(read_parameters(data)), lambda: read_extended(data))
