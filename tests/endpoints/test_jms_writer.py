"""What a message becomes before it is given to Java, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.endpoints.jms.names import TOPIC
from gateway.endpoints.jms.values import UnsendableError
from gateway.endpoints.jms.writer import MessageWriter
from gateway.endpoints.jms_settings import JmsSettings
from gateway.model.message import PLAIN, DeliveryMode, Headers, Message

AT_LEAST_ONCE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)


def write(message: Message, **changes: object) -> tuple[bytes, bool]:
    return MessageWriter(replace(JmsSettings(), **changes), TOPIC).write(message)  # type: ignore[arg-type]  # of any setting's type


@pytest.mark.parametrize(
    ("delivery", "headers", "mode"),
    [
        pytest.param("persistent", AT_LEAST_ONCE, 2, id="asked-for"),
        pytest.param("persistent", PLAIN, 1, id="not-asked-for"),
        pytest.param("non_persistent", AT_LEAST_ONCE, 1, id="not-allowed"),
        pytest.param("reliable", AT_LEAST_ONCE, 22, id="reliable"),
    ],
)
def test_the_delivery_mode_is_the_lesser_of_two(delivery: str, headers: Headers, mode: int) -> None:
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
def test_what_ems_has_no_room_for_is_refused(message: Message, rule: str) -> None:
    with pytest.raises(UnsendableError) as caught:
        write(message, max_message=1024)

    assert caught.value.rule == rule
    assert str(caught.value)


def test_what_ems_is_told_comes_from_the_settings_alone() -> None:
    foreign = Headers(properties={"JMS_TIBCO_COMPRESS": True, "JMS_TIBCO_IMPORTED": True})
    record, _ = write(Message("a", b"", foreign))
    told, _ = write(Message("a", b""), compress=True, preserve_undelivered=True, trace=True)

    assert b"TIBCO" not in record
    for name in (b"_COMPRESS", b"_PRESERVE_UNDELIVERED", b"_MSG_TRACE"):
        assert b"JMS_TIBCO" + name in told


def test_equal_headers_are_packed_once() -> None:
    writer = MessageWriter(JmsSettings(), TOPIC)
    headers = Headers(content_type="text/plain")

    assert writer.write(Message("a", b"x", headers)) == writer.write(Message("a", b"x", headers))
