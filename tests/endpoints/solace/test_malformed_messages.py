"""Messages that no Solace library would send: each is received, counted and settled."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from gateway.endpoints.base import Subscription
from gateway.errors import NotConnectedError
from gateway.model.message import Headers, Message
from gateway.model.outcome import Outcome
from gateway.wire.smf.frames import Protocol, encode_frame
from gateway.wire.smf.parameters import SUMMARY, TOPIC, encode_parameter
from gateway.wire.smf.sdt import MAX_ELEMENTS
from tests.brokers.smf_client import SmfClient, direct
from tests.endpoints.exchange import collect, opened, receive, send
from tests.endpoints.solace.restartable import (
    GUARANTEED,
    RestartableBroker,
    guaranteed_message,
    restartable,
)
from tests.waiting import until
from tests.wire.smf_requests import encode_value

from gateway.endpoints.solace import open_source  # isort: skip  # needs the library
from gateway.endpoints.solace.intake import SolaceIntake  # isort: skip

HUGE = b"\x0b\0\0\x07\xd5" + b"\x7f" * 2_000  # an integer of 2,000 bytes


@pytest.fixture
def system() -> Iterator[RestartableBroker]:
    with restartable() as system:
        yield system


def sdt_text(text: bytes) -> bytes:
    return bytes((0x1C, len(text) + 3)) + text + b"\0"


def sdt_map(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return b"\x2b" + (len(body) + 5).to_bytes(4, "big") + body


def metadata_block(form: int, content: bytes) -> bytes:
    body = bytes((0x18, 4, form, 0)) + content
    stream = b"\x2f" + (len(body) + 5).to_bytes(4, "big") + body
    return b"\1" + len(stream).to_bytes(4, "big") + stream


def frame_of(topic: str, payload: bytes, metadata: bytes) -> bytes:
    sizes = (len(payload).to_bytes(4, "big"), len(metadata).to_bytes(4, "big"))
    summary = b"\x25" + sizes[0] + b"\x45" + sizes[1]
    parameters = encode_parameter(TOPIC, topic.encode() + b"\0", handling=2)
    parameters += encode_parameter(SUMMARY, summary, handling=2)
    return encode_frame(Protocol.MESSAGE | 0x80, parameters, payload + metadata, time_to_live=255)


def header(name: bytes, value: bytes) -> bytes:
    return metadata_block(0x80, sdt_map(sdt_text(b"h"), sdt_map(sdt_text(name), value)))


# Solace's C library reads past the end of these: once in some runs that ends its whole process.
PAST_THE_END = pytest.mark.nightly
MALFORMED = [
    pytest.param(b"x", header(b"ct", b"\x1c\x05\xff\xfe\0"), id="content-type-not-utf-8"),
    pytest.param(b"x", header(b"ce", b"\x1c\x05\xff\xfe\0"), id="content-encoding-not-utf-8"),
    pytest.param(
        b"x", header(b"ct", b"\x1c\x40ab\0"), id="content-type-past-its-map", marks=PAST_THE_END
    ),
    pytest.param(
        b"x", b"\1\0\0\0\x09" + b"\xff" * 9, id="metadata-without-structure", marks=PAST_THE_END
    ),
    pytest.param(
        b"x", b"\1\0\0\0\xff\x2f\0\0\0\xff", id="metadata-past-its-end", marks=PAST_THE_END
    ),
    pytest.param(b"x", b"\7", id="metadata-of-one-byte"),
    pytest.param(
        b"x",
        metadata_block(0x80, sdt_map(sdt_text(b"p"), sdt_map(sdt_text(b"n"), HUGE))),
        id="property-of-2000-bytes",
    ),
    pytest.param(
        sdt_map(sdt_text(b"n"), HUGE), metadata_block(0x0A, sdt_map()), id="number-of-2000-bytes"
    ),
    pytest.param(
        encode_value([None] * (MAX_ELEMENTS + 1)), metadata_block(0x0B, sdt_map()), id="elements"
    ),
]
READABLE = [
    pytest.param(header(b"ct", b"\x08\x0a" + bytes(8)), id="content-type-is-a-number"),
    pytest.param(header(b"ci", b"\x2b\0\0\0\x05"), id="correlation-is-a-map"),
]


@pytest.mark.parametrize("guaranteed", [True, False])
@pytest.mark.parametrize(("payload", "metadata"), MALFORMED)
def test_a_malformed_message_is_received_as_its_bytes_and_settled(
    system: RestartableBroker,
    caplog: pytest.LogCaptureFixture,
    payload: bytes,
    metadata: bytes,
    guaranteed: bool,
) -> None:
    source = system.source("a/>", guaranteed=guaranteed)
    with opened(source), SmfClient(system.broker.port, "hostile") as client:
        for number in range(3):
            client.send(frame_of(f"a/bad/{number}", payload, metadata))
        client.send(direct("a/good"))
        *bad, good = collect(source, 4)
        if guaranteed:
            until(lambda: system.depth() == 0, "all are settled")

    assert good.address == "a/good"
    assert [message.address for message in bad] == [""] * 3
    assert source.counts["undecoded"] == 3
    for number, message in enumerate(bad):
        assert isinstance(message.payload, bytes)
        assert message.payload.endswith(payload + metadata)
        assert message.headers.properties["solace.topic"] == f"a/bad/{number}"
    assert caplog.text.count("cannot be read") == 3


@pytest.mark.parametrize("metadata", READABLE)
def test_headers_of_an_unexpected_type_are_left_out(
    system: RestartableBroker, metadata: bytes
) -> None:
    source = system.source("a/>")
    with opened(source), SmfClient(system.broker.port, "hostile") as client:
        client.send(frame_of("a/b", b"x", metadata))
        (got,) = collect(source, 1)

    assert (got.address, got.payload) == ("a/b", b"x")
    assert got.headers.content_type is None
    assert got.headers.correlation_id is None


def test_more_malformed_messages_than_the_window_do_not_stop_the_source(
    system: RestartableBroker,
) -> None:
    source = system.source("a/>")
    bad = frame_of("a/bad", b"x", header(b"ct", b"\x1c\x05\xff\xfe\0"))
    with opened(source), SmfClient(system.broker.port, "hostile") as client:
        client.send(bad * 600)
        client.send(direct("a/good"))
        got = collect(source, 601)
        until(lambda: system.depth() == 0, "all are settled")

    assert got[-1].address == "a/good"
    assert source.counts["undecoded"] == 600


def test_an_error_of_the_reader_makes_only_that_message_undecodable(
    system: RestartableBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RecursionError("too deep")

    source, sink = system.source("a"), system.sink()
    with opened(source, sink), monkeypatch.context() as patched:
        patched.setattr("gateway.wire.smf.received_message.decode_payload", fail)
        send(sink, guaranteed_message("a", b"raw"))
        (got,) = collect(source, 1)

    assert got.address == ""
    assert isinstance(got.payload, bytes)
    assert b"raw" in got.payload
    assert "RecursionError" in str(got.headers.properties["solace.undecoded"])


def fail_to_queue(_intake: object, _message: object) -> None:
    raise RuntimeError("out of cheese")


def test_an_error_in_the_handler_is_logged_once(
    system: RestartableBroker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, sink = system.source("a"), system.sink()
    with monkeypatch.context() as patched:
        patched.setattr(SolaceIntake, "_put_guaranteed", fail_to_queue)
        with opened(source, sink):
            send(sink, *(guaranteed_message("a") for _ in range(50)))
            with pytest.raises(NotConnectedError, match="out of cheese"):
                receive(source)
            until(lambda: system.broker.unsettled(system.queue) == 50, "all were delivered")

    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1
    with opened(again := open_source(system.settings, [Subscription("a")], instance="one")):
        assert all(each.headers.redelivered for each in collect(again, 50))


@pytest.mark.parametrize(
    "properties",
    [
        pytest.param({"n": 1 << 16_000}, id="property"),
        pytest.param({"l": [{"n": -(1 << 16_000)}]}, id="nested"),
    ],
)
def test_a_number_past_64_bits_is_rejected_and_others_are_sent(
    system: RestartableBroker, properties: dict[str, object]
) -> None:
    headers = Headers(mode=GUARANTEED.mode, properties=properties)  # type: ignore[arg-type]
    messages = [
        Message("a", b"", headers),
        Message("a", properties, GUARANTEED),  # type: ignore[arg-type]
        guaranteed_message("a"),
    ]
    source, sink = system.source("a"), system.sink()
    with opened(source, sink):
        first, second, third = send(sink, *messages)
        assert len(collect(source, 1)) == 1

    assert [first.outcome, second.outcome] == [Outcome.REJECTED] * 2
    assert [first.rule, second.rule] == ["integer-range"] * 2
    assert third.outcome is Outcome.ACCEPTED
