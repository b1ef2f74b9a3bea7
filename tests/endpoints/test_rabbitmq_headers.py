"""The tables and properties of AMQP: laws, rows of bytes, and input that no server would send."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.endpoints.rabbitmq.headers import (
    MALFORMED,
    PropertyReader,
    PropertyWriter,
    read_properties,
    write_properties,
)
from gateway.endpoints.rabbitmq.tables import MAX_DEPTH, TableReader, encode_table
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.errors import TranslationError, WireError
from gateway.model.message import DeliveryMode, Headers, Value
from tests.copy_proofs import PROOF, PROOFS

SETTINGS = RabbitmqSettings()
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES: st.SearchStrategy[Value] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
TABLES = st.dictionaries(TEXTS, VALUES, max_size=6)


@given(TABLES)
def test_a_table_is_read_as_it_was_written(table: dict[str, Value]) -> None:
    data = encode_table(table)
    reader = TableReader(data)

    assert reader.table() == table
    assert reader.at == len(data)


@given(
    st.binary(max_size=200) | TABLES.map(encode_table), st.integers(0, 200), st.binary(max_size=4)
)
def test_no_bytes_raise_anything_but_an_error_of_the_wire(
    data: bytes, at: int, change: bytes
) -> None:
    broken = data[:at] + change + data[at + len(change) :]
    try:
        TableReader(broken).table()
    except WireError:
        return


@given(st.binary(max_size=300))
def test_malformed_properties_are_a_property(data: bytes) -> None:
    headers, _, of_server = read_properties(data, SETTINGS, {"p": 1}, now=0, redelivered=True)

    assert headers.redelivered
    assert headers.properties["p"] == 1
    assert MALFORMED not in headers.properties or not of_server


FOREIGN = [
    pytest.param(b"b\xff", -1, id="signed-octet"),
    pytest.param(b"B\xff", 255, id="octet"),
    pytest.param(b"s\xff\xfe", -2, id="short"),
    pytest.param(b"u\xff\xfe", 65_534, id="unsigned-short"),
    pytest.param(b"I\xff\xff\xff\xff", -1, id="int"),
    pytest.param(b"i\xff\xff\xff\xff", 4_294_967_295, id="unsigned-int"),
    pytest.param(b"f" + struct.pack(">f", 1.5), 1.5, id="float"),
    pytest.param(b"D\2\0\0\0\x7b", "1.23", id="decimal"),
    pytest.param(b"D\xff\0\0\0\1", "0." + "0" * 254 + "1", id="small-decimal"),
    pytest.param(b"T" + b"\xff" * 8, 2**64 - 1, id="date-past-9999"),
    pytest.param(b"S\0\0\0\1\xff", b"\xff", id="text-without-utf-8"),
    pytest.param(b"t\2", True, id="boolean"),
]


@pytest.mark.parametrize(("encoded", "value"), FOREIGN)
def test_every_type_of_the_server_is_read(encoded: bytes, value: Value) -> None:
    table = b"\1k" + encoded

    assert TableReader(struct.pack(">I", len(table)) + table).table() == {"k": value}


def test_a_deep_table_is_malformed_and_not_sent() -> None:
    deep: Value = None
    for _ in range(MAX_DEPTH + 2):
        deep = [deep]
    data = b"V"
    for _ in range(20_000):
        data = b"A" + struct.pack(">I", len(data)) + data
    table = b"\1k" + data

    with pytest.raises(TranslationError, match="nested"):
        encode_table({"k": deep})
    with pytest.raises(WireError, match="nested"):
        TableReader(struct.pack(">I", len(table)) + table).table()


READER, WRITER = PropertyReader(SETTINGS), PropertyWriter(SETTINGS)
HEADERS = st.builds(
    Headers,
    mode=st.sampled_from([DeliveryMode.AT_MOST_ONCE, DeliveryMode.AT_LEAST_ONCE]),
    priority=st.none() | st.integers(0, 9),
    expiry=st.none() | st.integers(0, 2**60),
    time=st.none() | st.integers(0, 2**60),
    content_type=st.none() | TEXTS,
    correlation_id=st.none() | TEXTS | st.just(b"\xff"),
    reply_to=st.none() | st.sampled_from(["a.b", "queue:q"]),
    origin=st.lists(st.sampled_from("abc"), max_size=3).map(tuple),
    properties=st.dictionaries(
        TEXTS.filter(lambda name: not name.startswith(("amqp_", "gateway_")))
        | st.sampled_from(["CC", "BCC", "x-match", "amqp_type"]),
        TEXTS,
        max_size=4,
    ),
)


@given(HEADERS, PROOFS)
def test_headers_and_proof_are_read_as_they_were_written(headers: Headers, proof: str) -> None:
    data = write_properties(headers, SETTINGS, 1_000, proof)

    assert [WRITER.write(headers, 1_000, proof) for _ in range(2)] == [data, data]
    assert read_properties(data, SETTINGS, {}, now=2_000, redelivered=False) == (headers, proof, {})
    for _ in range(2):  # the second time from the headers that are kept
        assert READER.read(data, {}, now=2_000, redelivered=False) == (headers, proof, {})


def test_copies_that_differ_in_their_proofs_share_headers() -> None:
    headers = Headers(mode=DeliveryMode.AT_LEAST_ONCE, origin=("@1:2", "one~3/r"))
    proofs = [PROOF, PROOF.replace("a", "b"), ""]

    read = [
        READER.read(WRITER.write(headers, 0, each), {}, now=0, redelivered=False) for each in proofs
    ]

    assert [(found, proof) for found, proof, _ in read] == [(headers, each) for each in proofs]
    assert read[0][0] is read[1][0]


@pytest.mark.parametrize("value", [5, "!", b"a", "a" * 129, [PROOF], {"a": PROOF}, None])
def test_a_header_that_is_no_proof_is_left_out(value: Value) -> None:
    table = encode_table({"gateway_proof": value, "k": "v"})

    found, proof, _ = read_properties(b"\x20\0" + table, SETTINGS, {}, now=0, redelivered=False)

    assert (found.properties, proof) == ({"k": "v"}, "")


def test_the_id_of_a_gateway_is_taken_and_that_of_a_publisher_is_not() -> None:
    headers = Headers(mode=DeliveryMode.AT_LEAST_ONCE, source_id="id")
    sent = [headers, replace(headers, origin=("plant",))]
    found = [
        read_properties(
            write_properties(each, SETTINGS, 0), SETTINGS, {}, now=0, redelivered=False
        )[0]
        for each in sent
    ]

    assert [each.source_id for each in found] == [None, "id"]
    assert found[0].properties == {"amqp_message_id": "id"}
