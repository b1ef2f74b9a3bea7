"""Defects of the vendor's library that the endpoint prevents: silent truncation and loss."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from threading import Event
from types import MappingProxyType

import pytest

from gateway.errors import EndpointError, NotConnectedError
from gateway.model.message import Headers, Message, Properties
from gateway.model.outcome import ACCEPTED, RETRY, Outcome
from tests.brokers.wire import Wire
from tests.endpoints.exchange import Answer, collect, opened, send
from tests.endpoints.solace.restartable import (
    DIRECT,
    GUARANTEED,
    RestartableBroker,
    guaranteed_message,
    restartable,
)
from tests.waiting import PATIENCE, until

from gateway.endpoints.solace.native_library import NativeLibrary, Pointer  # isort: skip


@pytest.fixture
def system() -> Iterator[RestartableBroker]:
    with restartable() as system:
        yield system


ILLEGAL = [
    pytest.param(
        "é" * 126, "topic-bytes", "is 252 bytes, limit 250", id="250-characters-in-252-bytes"
    ),
    pytest.param("a" * 251, "topic-bytes", "is 251 bytes, limit 250", id="too-long"),
    pytest.param("a\0b", "nul", "cut it at its NUL", id="nul"),
    pytest.param("a\ud800", "not-utf-8", "cannot be written as UTF-8", id="surrogate"),
    pytest.param("", "empty", "is empty", id="empty"),
    pytest.param("/" * 128, "topic-levels", "has 129 levels, limit 128", id="levels"),
]


@pytest.mark.parametrize("mode", [DIRECT, GUARANTEED.mode])
@pytest.mark.parametrize(("topic", "rule", "reason"), ILLEGAL)
def test_a_harmful_topic_is_rejected_and_others_are_sent(  # a table
    system: RestartableBroker, topic: str, rule: str, reason: str, mode: object, request: object
) -> None:
    del request
    headers = Headers(mode=mode)  # type: ignore[arg-type]  # a DeliveryMode
    source, sink = system.source("ok/>"), system.sink()
    with opened(source, sink):
        wrong, right = send(sink, Message(topic, b"", headers), Message("ok/x", b"1", headers))
        (got,) = collect(source, 1)

    assert (wrong.outcome, wrong.rule) == (Outcome.REJECTED, rule)
    assert reason in wrong.reason
    assert right == ACCEPTED
    assert got.payload == b"1"


def test_a_topic_of_128_levels_and_250_bytes_is_sent(system: RestartableBroker) -> None:
    topics = ["ok/" + "a" * 247, "ok" + "/" * 127]
    source, sink = system.source("ok/>"), system.sink()
    with opened(source, sink):
        assert send(sink, *map(guaranteed_message, topics)) == [ACCEPTED, ACCEPTED]
        assert [message.address for message in collect(source, 2)] == topics


PATTERNS = [
    pytest.param("a*b", "`*` stands alone or at the end", id="star-inside"),
    pytest.param("*a", "`*` stands alone or at the end", id="star-in-front"),
    pytest.param("#P2P/x", "belongs to one client", id="p2p"),
    pytest.param("a//b", "has an empty level", id="empty-level"),
    pytest.param("a/", "has an empty level", id="empty-last-level"),
    pytest.param("é" * 126, "is 252 bytes, limit 250", id="bytes"),
    pytest.param("a\0", "cut it at its NUL", id="nul"),
    pytest.param("#share//a", "names no group", id="share-without-group"),
]


@pytest.mark.parametrize(("pattern", "reason"), PATTERNS)
def test_a_subscription_the_library_would_misjudge_is_refused(
    system: RestartableBroker, pattern: str, reason: str
) -> None:
    with pytest.raises(EndpointError, match=reason.replace("*", r"\*")):
        system.source(pattern)


@pytest.mark.parametrize(
    ("queue", "reason"),
    [("q" * 201, "is 201 bytes, limit 200"), ("a*b", "is not allowed"), ("#x", "the broker")],
)
def test_a_queue_name_the_library_does_not_check_is_refused(
    system: RestartableBroker, queue: str, reason: str
) -> None:
    with pytest.raises(EndpointError, match=reason):
        system.source("a", queue=queue)


def test_a_wildcard_character_in_a_topic_is_sent_unchanged(system: RestartableBroker) -> None:
    source, sink = system.source("ok/>"), system.sink()
    with opened(source, sink):
        send(sink, guaranteed_message("ok/a*b"), guaranteed_message("ok/>"))

        assert [message.address for message in collect(source, 2)] == ["ok/a*b", "ok/>"]


@pytest.mark.parametrize("attempts", [0, 30])
def test_direct_messages_during_an_interruption_never_count_as_sent(
    system: RestartableBroker, attempts: int
) -> None:
    sink = system.sink(reconnect_attempts=attempts, reconnect_wait=0.1)
    direct = guaranteed_message("a", headers=Headers())
    with opened(sink):
        assert send(sink, direct) == [ACCEPTED]
        system.stop()
        refused = []

        def is_refused() -> bool:
            answer = Answer()
            try:
                sink.send([direct], answer)
            except NotConnectedError as error:
                refused.append(str(error))
                assert not answer.has_come
            return bool(refused)

        until(is_refused, "the interruption is noticed")

    assert "solace: " in refused[0]


def test_direct_messages_before_a_restored_connection_are_sent_again(
    system: RestartableBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library asks over the connection that it has restored, also a question of before."""
    messages, answer, restored = [guaranteed_message("a", headers=Headers())] * 5, Answer(), Event()
    ask = NativeLibrary.ask
    with closing(Wire(system.broker.port)) as wire:
        url = f"tcp://127.0.0.1:{wire.port}"
        with opened(sink := system.sink(url=url, reconnect_attempts=30, reconnect_wait=0.1)):
            assert send(sink, *messages) == [ACCEPTED] * 5
            session = sink._session  # noqa: SLF001  # whose connection tells when it is restored
            assert session is not None
            session._connection.on_restored = restored.set  # noqa: SLF001

            def ask_after_a_break(native: NativeLibrary, pointer: Pointer) -> bool:
                wire.cut()
                wire.flow()
                return restored.wait(PATIENCE) and ask(native, pointer)

            monkeypatch.setattr(NativeLibrary, "ask", ask_after_a_break)
            wire.stall()  # the socket takes the messages, and no broker reads them
            sink.send(messages, answer)

            assert answer.wait() == [RETRY] * 5
            assert restored.is_set()


def test_an_error_in_a_settlement_callback_is_logged(
    system: RestartableBroker, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_settlements: object) -> None:
        raise RuntimeError("out of cheese")

    sink = system.sink()
    with opened(sink), caplog.at_level(logging.ERROR):
        sink.send([guaranteed_message("a")], fail)
        until(lambda: "out of cheese" in caplog.text, "the error is logged")

        assert send(sink, guaranteed_message("a")) == [ACCEPTED]


def test_bytes_with_a_nul_inside_maps_are_not_corrupted(system: RestartableBroker) -> None:
    properties: Properties = MappingProxyType({"raw": b"x\0y", "in": {"deep": b"\0\0z"}})
    source, sink = system.source("a"), system.sink()
    message = Message("a", {"k": b"a\0b", "l": [b"\0"]}, Headers(properties=properties))
    with opened(source, sink):
        send(sink, message)
        (got,) = collect(source, 1)

    assert got.payload == message.payload
    assert got.headers.properties == properties


def test_bytes_that_look_like_structured_text_stay_bytes(system: RestartableBroker) -> None:
    """For the first payload `get_payload_as_string` returns "a"."""
    payloads = [b"\x1f\0\0\0\x07a\0", b"\x2b\0\0\0\x05", b""]
    source, sink = system.source("a"), system.sink()
    with opened(source, sink):
        send(sink, *(guaranteed_message("a", payload) for payload in payloads))

        assert [message.payload for message in collect(source, 3)] == payloads


NULS = [
    pytest.param(Headers(correlation_id="a\0b"), id="correlation"),
    pytest.param(Headers(source_id="a\0b"), id="message-id"),
    pytest.param(Headers(content_type="a\0b"), id="content-type"),
    pytest.param(Headers(reply_to="a\0b"), id="reply-to"),
    pytest.param(Headers(properties={"a\0b": 1}), id="property-name"),
    pytest.param(Headers(properties={"a": "x\0y"}), id="property-value"),
    pytest.param(Headers(properties={"a": ["x", {"b": "\0"}]}), id="nested"),
]


@pytest.mark.parametrize("headers", NULS)
def test_a_text_that_the_library_would_truncate_is_rejected(
    system: RestartableBroker, headers: Headers
) -> None:
    sink = system.sink()
    with opened(sink):
        (answer,) = send(sink, Message("a", b"", headers))

    assert (answer.outcome, answer.rule) == (Outcome.REJECTED, "nul")


def test_messages_that_wait_on_a_broken_connection_are_settled(system: RestartableBroker) -> None:
    system.broker.faults.suppress_acks = True
    sink = system.sink()
    answer = Answer()
    with opened(sink):
        sink.send(
            [guaranteed_message("a"), guaranteed_message("\0"), guaranteed_message("a")], answer
        )
        system.stop()
        first, second, third = answer.wait()

    assert (first, second.rule, third) == (RETRY, "nul", RETRY)


def test_a_priority_out_of_range_concerns_its_message_alone(system: RestartableBroker) -> None:
    source, sink = system.source("ok/>"), system.sink()
    wrong = Message("ok/x", b"", Headers(priority=256))
    with opened(source, sink):
        first, second, third = send(sink, Message("ok/x", b"1"), wrong, Message("ok/x", b"2"))
        got = collect(source, 2)

    assert (second.outcome, second.rule) == (Outcome.REJECTED, "priority")
    assert [first, third] == [ACCEPTED, ACCEPTED]
    assert [each.payload for each in got] == [b"1", b"2"]
