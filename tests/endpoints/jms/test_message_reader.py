"""A packed message that cannot be read in full spoils no other message of its batch."""

from __future__ import annotations

import json

import pytest

from gateway.endpoints.jms import property_names as names
from gateway.endpoints.jms.addresses import TOPIC
from gateway.endpoints.jms.message_reader import BYTES, MAP, RECORD, STREAM, BatchReader
from gateway.endpoints.jms.message_writer import _flatten
from gateway.endpoints.jms.value_codec import (
    LIST,
    MAX_NESTING,
    UnsendableError,
    write_text,
    write_value,
)
from gateway.endpoints.settings.jms import JmsSettings
from gateway.model.message import Message, Value
from tests.copy_proofs import PROOF

EMPTY_LIST = bytes((LIST, 0, 0, 0, 0))


def packed(*messages: tuple[int, bytes, dict[str, Value]]) -> bytes:
    """Pack messages to the topic `t`: form, body and properties, as BatchPacker.java does."""
    records, contents = [], []
    for form, body, properties in messages:
        more = b""
        if properties:
            more = write_value(None) + b"\0" + write_value(None) + write_value(None) + bytes(8)
            more += len(properties).to_bytes(4, "big")
            more += b"".join(write_text(key) + write_value(properties[key]) for key in properties)
        records.append(RECORD.pack(form, TOPIC << 4, 4, 0, 0, 0, 0, 1, len(body), len(more)))
        contents.append(b"t" + body + more)
    return len(records).to_bytes(4, "big") + b"".join(records + contents)


def read(*messages: tuple[int, bytes, dict[str, Value]]) -> tuple[list[Message], int]:
    settings = JmsSettings(temporary_reply="drop")
    batch = BatchReader(settings, [(TOPIC, "t")]).read(packed(*messages))
    return batch.messages, batch.counts["unreadable"]


def nested(depth: int) -> bytes:
    return bytes((LIST, 0, 0, 0, 1)) * depth + EMPTY_LIST


@pytest.mark.parametrize("form", [MAP, STREAM])
@pytest.mark.parametrize("depth", [MAX_NESTING + 1, 100_000])
def test_a_body_nested_too_deep_makes_only_its_message_unreadable(form: int, depth: int) -> None:
    messages, unreadable = read((BYTES, b"1", {}), (form, nested(depth), {}), (BYTES, b"2", {}))

    assert [message.payload for message in messages] == [b"1", b"", b"2"]
    assert unreadable == 1
    error = messages[1].headers.properties[names.BODY_ERROR]
    assert "nested deeper than 64" in str(error)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        pytest.param("json", "[" * 100_000, id="nested-past-the-stack"),
        pytest.param("int", "9" * 5_000, id="too-many-digits"),
        pytest.param("bytes", "\u20ac", id="no-base64"),
        pytest.param("set", "1", id="unknown-form"),
    ],
)
def test_a_property_that_no_gateway_wrote_stays_text(form: str, text: str) -> None:
    types = json.dumps({"p": form})
    (message,), _ = read((BYTES, b"x", {"p": text, names.PROPERTY_TYPES: types}))

    assert message.headers.properties["p"] == text


@pytest.mark.parametrize(
    ("value", "proof"),
    [
        pytest.param(PROOF, PROOF, id="a-proof"),
        pytest.param("!", "", id="another-text"),
        pytest.param("a" * 129, "", id="too-long"),
        pytest.param(b"a", "", id="bytes"),
        pytest.param(5, "", id="number"),
        pytest.param(None, "", id="null"),
    ],
)
def test_a_property_is_read_as_a_proof_or_none(value: Value, proof: str) -> None:
    (first, message), _ = read((BYTES, b"1", {}), (BYTES, b"x", {names.PROOF: value, "k": "v"}))

    assert (first.proof, message.proof) == ("", proof)
    assert message.headers.properties == {"k": "v"}


def test_values_without_a_form_in_jms_are_refused() -> None:
    deep: list[Value] = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(UnsendableError, match="nested too deep"):
        _flatten(deep)
    with pytest.raises(UnsendableError, match="an integer of 16001 bits"):
        _flatten(1 << 16_000)
    with pytest.raises(UnsendableError, match="an integer of 16001 bits"):
        write_value(1 << 16_000)
