"""Messages packed for Java, and the messages that the JMS sink refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.endpoints.jms.addresses import DESTINATION_KINDS, TOPIC, import_mark
from gateway.endpoints.jms.message_reader import BYTES, RECORD, BatchReader
from gateway.endpoints.jms.message_writer import MessageWriter
from gateway.endpoints.jms.value_codec import (
    UnsendableError,
    ValueReader,
    write_text,
    write_value,
)
from gateway.endpoints.settings.jms import EMS_MESSAGE, JmsSettings
from gateway.model.message import NO_HEADERS, DeliveryMode, Headers, Message
from tests.copy_proofs import OTHER_PROOF, PROOF

_HEAD_END = 16  # bytes of a record before the name
_NO_FIELDS = 4  # bytes for correlation id, reply-to and type that are absent
AT_LEAST_ONCE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)


def write(message: Message, **changes: object) -> tuple[bytes, bool]:
    settings = replace(JmsSettings(), **changes)  # type: ignore[arg-type]  # of any setting's type
    return MessageWriter(settings, DESTINATION_KINDS[settings.destination]).write(message)


@pytest.mark.parametrize(
    ("delivery", "headers", "mode"),
    [
        pytest.param("persistent", AT_LEAST_ONCE, 2, id="requested"),
        pytest.param("persistent", NO_HEADERS, 1, id="not-requested"),
        pytest.param("non_persistent", AT_LEAST_ONCE, 1, id="not-allowed"),
        pytest.param("reliable", AT_LEAST_ONCE, 22, id="reliable"),
    ],
)
def test_the_delivery_mode_is_the_weaker_of_setting_and_message(
    delivery: str, headers: Headers, mode: int
) -> None:
    record, persistent = write(Message("a", b"x", headers), delivery=delivery)

    assert record[7] == mode
    assert persistent is (mode == 2)


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        pytest.param(Message("a.>", b""), "wildcard", id="wildcard"),
        pytest.param(Message("a", b"x" * 1025), "message-size", id="size"),
        pytest.param(
            Message("a", b"", Headers(correlation_id="x" * 4097)), "correlation-size", id="4-kb"
        ),
        pytest.param(Message("a", b"", Headers(priority=10)), "priority", id="priority"),
        pytest.param(Message("a", b"", Headers(reply_to="$x")), "reply-to", id="reply"),
        pytest.param(
            Message("a", b"", Headers(properties={"JMSType": 1})), "jms-type", id="type-is-text"
        ),
        pytest.param(Message("a", {"x": 2**70}), "integer-size", id="number-in-a-map"),
        pytest.param(
            Message("a", b"", Headers(properties={"x": [b"y"]})), "property", id="bytes-in-a-list"
        ),
    ],
)
def test_a_message_that_ems_cannot_carry_is_refused(message: Message, rule: str) -> None:
    with pytest.raises(UnsendableError) as caught:
        write(message, max_message=1024)

    assert caught.value.rule == rule
    assert str(caught.value)


def test_a_message_past_512_mb_is_refused_with_its_size_and_the_limit() -> None:
    with pytest.raises(UnsendableError, match="536870913 bytes, limit 536870912") as caught:
        MessageWriter(JmsSettings(), TOPIC).write(Message("a", bytes(EMS_MESSAGE + 1)))

    assert caught.value.rule == "message-size"


def test_requests_to_ems_come_from_the_settings_alone() -> None:
    foreign = Headers(properties={"JMS_TIBCO_COMPRESS": True, "JMS_TIBCO_IMPORTED": True})
    record, _ = write(Message("a", b"", foreign))
    requested, _ = write(Message("a", b""), compress=True, preserve_undelivered=True, trace=True)

    assert b"TIBCO" not in record
    for name in (b"_COMPRESS", b"_PRESERVE_UNDELIVERED", b"_MSG_TRACE"):
        assert b"JMS_TIBCO" + name in requested


def test_equal_headers_are_packed_once() -> None:
    writer = MessageWriter(JmsSettings(), TOPIC)
    headers = Headers(content_type="text/plain")

    assert writer.write(Message("a", b"x", headers)) == writer.write(Message("a", b"x", headers))


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(NO_HEADERS, id="none"),
        pytest.param(Headers(content_type="a/b"), id="a-field"),
        pytest.param(Headers(properties={"gateway_proof": "x"}), id="a-property-of-its-name"),
    ],
)
def test_a_proof_is_the_last_property(headers: Headers) -> None:
    writer = MessageWriter(JmsSettings(), TOPIC)
    packed = [writer.write(Message("a", b"x", headers, proof))[0] for proof in (PROOF, OTHER_PROOF)]
    read = read_back(packed[0])

    for record, proof in zip(packed, (PROOF, OTHER_PROOF), strict=True):
        assert record.endswith(write_text("gateway_proof") + write_value(proof))
    assert packed[0].replace(PROOF.encode(), OTHER_PROOF.encode()) == packed[1]
    assert (read.headers, read.proof) == (headers, PROOF)


def read_back(record: bytes) -> Message:
    """Return a message without other fields as a source reads it; Java adds a delivery time."""
    reader = ValueReader(record, _HEAD_END)
    name, size = reader.read_text(), reader.read_int()
    body = record[reader.position : reader.position + size]
    extra = record[reader.position + size :]
    extra = extra[:_NO_FIELDS] + bytes(8) + extra[_NO_FIELDS:]
    head = RECORD.pack(BYTES, TOPIC << 4, 4, 0, 0, 0, 0, len(name), size, len(extra))
    data = b"\0\0\0\1" + head + name.encode() + body + extra
    (message,) = BatchReader(JmsSettings(), [(TOPIC, ">")]).read(data).messages
    return message


THIS_BROKER = JmsSettings().broker_key
IMPORTED = Headers(origin=(import_mark(THIS_BROKER, "a.b"), "gateway/out"))


@pytest.mark.parametrize(
    ("address", "changes", "refused"),
    [
        pytest.param("a.b", {}, True, id="topic-of-the-import"),
        pytest.param("topic:a.b", {"destination": "queue"}, True, id="same-topic-with-prefix"),
        pytest.param(
            "a.b", {"urls": ("tcp://localhost:7222",) * 2}, True, id="server-listed-twice"
        ),
        pytest.param("a.c", {}, False, id="another-topic"),
        pytest.param("queue:a.b", {}, False, id="queues-do-not-export"),
        pytest.param("a.b", {"urls": ("tcp://other:7222",)}, False, id="another-server"),
    ],
)
def test_a_message_is_not_sent_to_the_topic_it_was_imported_to(
    address: str, changes: dict[str, object], refused: bool
) -> None:
    message = Message(address, b"", IMPORTED)
    if not refused:
        assert write(message, **changes)
        return
    with pytest.raises(UnsendableError) as caught:
        write(message, **changes)

    assert caught.value.rule == "imported-loop"
    assert "'a.b'" in str(caught.value)
