"""Numbers, counts and nesting near the limits of structured data give values or a WireError."""

from __future__ import annotations

import sys
import time
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.errors import WireError
from gateway.wire.smf.assured_control import (
    AssuredControl,
    ControlField,
    ControlType,
    encode_field,
)
from gateway.wire.smf.client_control import decode_login
from gateway.wire.smf.frames import Protocol, encode_frame
from gateway.wire.smf.parameters import TOPIC, encode_parameter
from gateway.wire.smf.received_message import (
    SmfPayloadForm,
    decode_header,
    decode_metadata,
    decode_payload,
    header_parameters,
    split_body,
)
from gateway.wire.smf.relayed_message import decode_direct, decode_published
from gateway.wire.smf.sdt import (
    INTEGER,
    MAP,
    MAX_ELEMENTS,
    MAX_NESTING,
    MAX_SHORT_CONTAINERS,
    NULL,
    STREAM,
    STRING,
    UNSIGNED,
    decode_value,
)
from tests.wire.smf_dumps import survives
from tests.wire.smf_requests import encode_value

BUDGET = 5.0  # seconds; a decoder with quadratic time needs minutes
EMPTY_STREAM = bytes((STREAM << 2, 2))  # the shortest form, which Solace's libraries do not write
KINDS = st.sampled_from(range(14))
SIZES = st.one_of(st.sampled_from([0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 255, 2_000]), st.integers(0, 300))
NEAR_NESTING = st.integers(MAX_NESTING - 2, MAX_NESTING + 2)


def element(kind: int, value: bytes) -> bytes:
    """Encode an element with a length of 4 bytes."""
    return bytes((kind << 2 | 3,)) + (len(value) + 5).to_bytes(4, "big") + value


def nested(depth: int, inner: bytes = b"") -> bytes:
    for _ in range(depth):
        inner = element(STREAM, inner)
    return inner


def memory(value: object) -> int:
    """Estimate the bytes of a decoded value; equal small values are counted each time."""
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        return size + sum(memory(key) + memory(each) for key, each in value.items())
    return size + sum(map(memory, value)) if isinstance(value, list) else size


@pytest.mark.parametrize("kind", [INTEGER, UNSIGNED])
@pytest.mark.parametrize("size", [0, 3, 5, 9, 16, 2_000])
def test_an_integer_of_another_size_than_1_2_4_or_8_is_refused(kind: int, size: int) -> None:
    with pytest.raises(WireError, match=f"an integer has {size} bytes"):
        decode_value(element(kind, b"\x7f" * size))


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_integers_of_1_2_4_and_8_bytes_are_read_with_their_sign(size: int) -> None:
    ones = b"\xff" * size

    assert decode_value(element(INTEGER, ones)) == -1
    assert decode_value(element(UNSIGNED, ones)) == 2 ** (8 * size) - 1


def test_an_integer_past_64_bits_is_not_encoded() -> None:
    with pytest.raises(WireError, match="an integer of 16001 bits"):
        encode_value(1 << 16_000)


def test_a_character_of_another_size_is_refused() -> None:
    with pytest.raises(WireError, match="a character has 2000 bytes"):
        decode_value(element(5, bytes(2_000)))


@pytest.mark.parametrize("more", [0, 1])
def test_the_number_of_elements_is_limited(more: int) -> None:
    data = element(STREAM, bytes((NULL << 2, 2)) * (MAX_ELEMENTS + more))
    if not more:
        assert decode_value(data) == [None] * MAX_ELEMENTS
        return
    with pytest.raises(WireError, match="more than 65536 elements"):
        decode_value(data)


def test_the_elements_of_all_levels_count_together() -> None:
    inner = element(STREAM, bytes((NULL << 2, 2)) * 1_000)

    with pytest.raises(WireError, match="more than 65536 elements"):
        decode_value(element(STREAM, inner * 66))


def test_many_containers_of_two_bytes_are_refused() -> None:
    few = element(STREAM, EMPTY_STREAM * (MAX_SHORT_CONTAINERS - 1))

    assert decode_value(few) == [[]] * (MAX_SHORT_CONTAINERS - 1)
    with pytest.raises(WireError, match="more containers than its bytes allow"):
        decode_value(element(STREAM, EMPTY_STREAM * 60_000))


def test_containers_as_solace_writes_them_are_limited_by_the_elements_only() -> None:
    assert len(decode_value(element(STREAM, nested(1) * MAX_ELEMENTS))) == MAX_ELEMENTS  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "unit",
    [
        pytest.param(EMPTY_STREAM, id="empty-streams-of-2-bytes"),
        pytest.param(element(STREAM, b""), id="empty-streams-of-5-bytes"),
        pytest.param(element(MAP, b""), id="empty-maps"),
        pytest.param(bytes((STRING << 2, 2)), id="empty-texts"),
        pytest.param(bytes((INTEGER << 2, 4, 0x7F, 0xFF)), id="integers"),
    ],
)
@pytest.mark.parametrize("size", [10_000, 400_000])
def test_a_decoded_value_takes_at_most_8_mb_beside_its_bytes(unit: bytes, size: int) -> None:
    data = element(STREAM, unit * (size // len(unit)))
    try:
        value = decode_value(data)
    except WireError:
        return
    assert memory(value) < len(data) + (8 << 20)


@given(KINDS, SIZES, st.binary(min_size=1, max_size=1))
@example(INTEGER, 2_000, b"\x7f")
def test_every_type_with_every_size_gives_a_value_or_a_wire_error(
    kind: int, size: int, fill: bytes
) -> None:
    one = element(kind, fill * size)
    for data in (one, element(STREAM, one), element(MAP, element(STRING, b"k\0") + one)):
        assert survives(partial(_decode_and_show, data))


@given(NEAR_NESTING, KINDS, SIZES)
def test_nesting_near_its_limit_gives_a_value_or_a_wire_error(
    depth: int, kind: int, size: int
) -> None:
    data = nested(depth, element(kind, b"\1" * size))
    metadata = b"\1" + len(data).to_bytes(4, "big") + data

    assert survives(
        partial(_decode_and_show, data),
        partial(decode_metadata, metadata),
        *(partial(decode_payload, data, form) for form in SmfPayloadForm),
    )


@given(
    st.sampled_from([EMPTY_STREAM, bytes((NULL << 2, 2)), nested(1), element(INTEGER, b"\1")]),
    st.sampled_from([MAX_SHORT_CONTAINERS, MAX_ELEMENTS]),
    st.integers(-2, 2),
)
def test_counts_near_a_limit_give_a_value_or_a_wire_error(
    unit: bytes, count: int, more: int
) -> None:
    started = time.monotonic()

    assert survives(partial(_decode_and_show, element(STREAM, unit * (count + more))))
    assert time.monotonic() - started < BUDGET


def test_declared_lengths_past_the_data_take_no_time() -> None:
    started = time.monotonic()
    for kind in range(64):
        assert survives(partial(decode_value, bytes((kind << 2 | 3,)) + b"\xff" * 4 + b"\0" * 20))
    assert time.monotonic() - started < BUDGET


def _decode_and_show(data: bytes) -> str:
    """Return the value as text: a decoded value never raises when it is shown."""
    return repr(decode_value(data))


FIELDS = st.sampled_from(list(ControlField))


@given(FIELDS, SIZES, st.binary(min_size=1, max_size=1))
@example(ControlField.FLOW_ID, 2_000, b"\x7f")
def test_a_number_of_a_control_message_fits_its_field(
    field: ControlField, size: int, fill: bytes
) -> None:
    """A broker repeats such a number in its answer."""
    control = AssuredControl(ControlType.UNBIND, fields=((field, fill * size),))
    try:
        number = control.get_int(field)
    except WireError:
        return
    assert encode_field(field, number)


@pytest.mark.parametrize("field", [0x11, 0x18])
def test_a_number_of_a_login_has_at_most_4_bytes(field: int) -> None:
    entry = bytes((field,)) + (5 + 2_000).to_bytes(4, "big") + b"\x7f" * 2_000
    body = b"\1\0" + (6 + len(entry)).to_bytes(4, "big") + entry
    with pytest.raises(WireError, match="has 2000 bytes"):
        decode_login(encode_frame(Protocol.CLIENT_CONTROL, b"", body))


@given(st.integers(0, 0x1F), SIZES, st.binary(min_size=1, max_size=1))
def test_every_header_parameter_with_every_size_gives_a_header_or_a_wire_error(
    kind: int, size: int, fill: bytes
) -> None:
    parameters = encode_parameter(TOPIC, b"a\0", handling=2)
    parameters += encode_parameter(kind, fill * size, handling=2)
    frame = encode_frame(Protocol.MESSAGE, parameters, b"x" * 20)

    assert survives(
        partial(_read_whole, frame), partial(decode_published, frame), partial(decode_direct, frame)
    )


def _read_whole(frame: bytes) -> str:
    found = decode_header(header_parameters(frame))
    payload, metadata = split_body(frame, found)
    described = decode_metadata(metadata)
    return repr((decode_payload(payload, described.form), described))
