"""NATS beside the conformance suite: refusals, full streams, repeats, gaps, kills and headers."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.dialects.registry import DIALECTS
from gateway.endpoints.base import Source
from gateway.endpoints.nats import jetstream_reader
from gateway.endpoints.nats.jetstream_reader import DROPPED, MADE_AGAIN, PULL
from gateway.endpoints.nats.removed_messages import REMOVED
from gateway.endpoints.registry import make_sink, removal
from gateway.endpoints.settings.nats import NatsSettings
from gateway.errors import EndpointError
from gateway.model.message import DeliveryMode, DroppedPayload, Headers, Message
from gateway.model.outcome import ACCEPTED, NO_ROOM, REPEATED, Outcome
from tests.brokers.nats_server import LARGE, NatsServer, StartNats
from tests.endpoints.exchange import collect, hold, opened, receive, reopen, send, wait_for_loss
from tests.endpoints.nats.stream import MODE, answering, ask, numbers, say, source_of
from tests.memories import remember, remembered
from tests.waiting import PATIENCE, until


def test_a_subject_of_no_stream_is_refused_and_the_others_are_sent(settings: NatsSettings) -> None:
    sink = make_sink(replace(settings, stream="T"))
    with opened(sink):
        first, wrong, last = send(sink, say(1), say(2, "other.x"), say(3))

    assert (first, last) == (ACCEPTED, ACCEPTED)
    assert (wrong.outcome, wrong.rule) == (Outcome.REJECTED, "no-stream")


@pytest.mark.parametrize(
    ("subject", "rule"),
    [
        ("t..x", "empty-element"),
        ("t.*.x", "wildcard-in-name"),
        ("t.>", "wildcard-in-name"),
        ("t x", "white-space"),
        ("t." + "x" * 5_000, "too-long"),
    ],
)
def test_a_subject_that_the_server_would_lose_is_refused(
    settings: NatsSettings, subject: str, rule: str
) -> None:
    sink = make_sink(settings)
    with opened(sink):
        (wrong,) = send(sink, say(1, subject))

    assert (wrong.outcome, wrong.rule) == (Outcome.REJECTED, rule)


def test_the_next_request_leaves_with_the_last_message_of_one(
    settings: NatsSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jetstream_reader, "PAUSE", 3_600.0)  # only messages lead to requests
    source, sink = source_of(settings), make_sink(settings)
    with opened(source, sink):
        send(sink, *map(say, range(3 * PULL)))
        assert numbers(collect(source, 3 * PULL)) == [*range(3 * PULL)]


def test_the_longest_subject_of_the_dialect_arrives(settings: NatsSettings) -> None:
    longest = DIALECTS["nats"].limits[0].maximum
    source, sink = source_of(settings), make_sink(settings)
    with opened(source, sink):
        long = say(1, "t." + "x" * (longest - 2))
        assert send(sink, long) == [ACCEPTED]
        assert [each.address for each in collect(source, 1)] == [long.address]
        assert send(sink, say(2, long.address + "x"))[0].rule == "too-long"


def test_a_source_asks_for_no_more_bytes_than_it_may_hold(settings: NatsSettings) -> None:
    source = source_of(replace(settings, receive_window_bytes=65_536))
    sink = make_sink(settings)
    with opened(sink):
        for number in range(40):
            send(sink, replace(say(number), payload=b"%d" % number + bytes(1 << 20)))
    with opened(source):
        held = [*hold(source, 1)]
        while (batch := source.receive(0.3)) is not None:
            held.append(batch)
        assert sum(len(each.messages) for each in held) < 10  # of 8 MiB, the server's largest
        for each in held:
            each.settle([ACCEPTED] * len(each.messages))
        assert collect(source, 1)


def test_a_source_asks_for_no_more_messages_than_the_server_allows(start_nats: StartNats) -> None:
    url = start_nats("jetstream {limits {max_request_batch: 7}}").url
    settings = NatsSettings(url=url, stream="T", create_stream=True, subjects=("t.>",))
    source, sink = source_of(settings), make_sink(settings)
    with opened(source, sink):
        send(sink, *(say(number) for number in range(20)))
        assert numbers(collect(source, 20)) == list(range(20))


def test_a_message_from_before_a_smaller_limit_of_the_server_arrives(
    settings: NatsSettings, nats_server: NatsServer
) -> None:
    source = source_of(replace(settings, receive_window_bytes=65_536))
    sink = make_sink(settings)
    with opened(sink):
        large = [replace(say(number), payload=bytes(4 << 20)) for number in range(3)]
        send(sink, say(1), *large, say(2))
    nats_server.stop()
    nats_server.configure((LARGE, "max_payload: 65536"))
    nats_server.start()
    with opened(source):
        got = collect(source, 5)
    assert [len(bytes(each.payload)) for each in got] == [1, *[4 << 20] * 3, 1]  # type: ignore[arg-type]  # bytes were sent


@pytest.mark.parametrize("jetstream", [True, False])
@pytest.mark.parametrize("properties", [{}, {"line": "7"}])
def test_a_message_past_the_limit_comes_without_its_payload(
    settings: NatsSettings, properties: dict[str, str], *, jetstream: bool
) -> None:
    settings = replace(settings, max_message_in=1_000)
    if not jetstream:
        settings = NatsSettings(url=settings.url, jetstream=False, max_message_in=1_000)
    source, sink = source_of(settings), make_sink(settings)
    headers = Headers(mode=MODE, properties=properties)
    with opened(source, sink):
        for size in (1, 500_000, 1_000, 1_001, 2):
            send(sink, Message("t.x", b"1" * size, headers))
        got = collect(source, 5)
    full = [each.payload.full for each in got if isinstance(each.payload, DroppedPayload)]
    assert [len(each.payload) for each in got] == [1, 0, 1_000, 0, 2]
    assert full == [500_000, 1_001]
    assert all(each.headers.properties == properties for each in got)


@pytest.mark.parametrize("retention", ["limits", "interest", "workqueue"])
def test_a_source_says_whether_its_stream_keeps_what_it_has_read(
    settings: NatsSettings, retention: str
) -> None:
    async def make(jetstream: Any) -> None:  # noqa: ANN401  # the driver's
        await jetstream.add_stream(name="T", subjects=["t.>"], retention=retention)

    def kept() -> int:
        found: list[int] = []

        async def look(jetstream: Any) -> None:  # noqa: ANN401  # the driver's
            found.append((await jetstream.stream_info("T")).state.messages)

        ask(settings, look)
        return found[0]

    ask(settings, make)
    source, sink = source_of(replace(settings, ack_sync=True)), make_sink(settings)
    with opened(source, sink):
        send(sink, say(1), say(2), say(3))
        hold(source, 3)
    with opened(source):
        again = collect(source, 3)
        said = removal(source, settings, [])("t.x")
        until(lambda: kept() == (0 if said else 3))

    assert said == (retention != "limits")
    assert all(each.headers.redelivered for each in again)


def test_a_full_stream_has_no_room(settings: NatsSettings) -> None:
    from nats.js.api import DiscardPolicy  # noqa: PLC0415

    ask(
        settings,
        lambda js: js.add_stream(name="T", subjects=["t.>"], max_msgs=2, discard=DiscardPolicy.NEW),
    )
    sink = make_sink(settings)
    with opened(sink):
        answers = send(sink, say(1), say(2), say(3))

    assert answers == [ACCEPTED, ACCEPTED, replace(NO_ROOM, reason="maximum messages exceeded")]


@pytest.mark.parametrize("answer", [{"ok": True}, {}, [], "text", 7, None])
def test_an_answer_of_a_service_is_none_of_a_stream(
    nats_server: NatsServer, answer: object
) -> None:
    settings = NatsSettings(url=nats_server.url)
    sink = make_sink(settings)
    with answering(settings, "t.x", answer), opened(sink):
        (wrong,) = send(sink, say(1))

    assert (wrong.outcome, wrong.rule) == (Outcome.REJECTED, "no-stream")


def test_a_service_beside_a_stream_settles_nothing(settings: NatsSettings) -> None:
    from nats.js.api import DiscardPolicy  # noqa: PLC0415

    ask(
        settings,
        lambda js: js.add_stream(name="T", subjects=["t.>"], max_msgs=1, discard=DiscardPolicy.NEW),
    )
    sink = make_sink(settings)
    with answering(settings, "t.x", {"ok": True}), opened(sink):
        answers = [send(sink, say(number))[0].rule for number in range(5)]

    assert answers == ["", *[NO_ROOM.rule] * 4]


def test_a_subject_of_no_stream_that_somebody_hears_is_refused(nats_server: NatsServer) -> None:
    settings = NatsSettings(url=nats_server.url, jetstream=False)
    listener = source_of(settings)
    sink = make_sink(replace(settings, jetstream=True, answer_timeout=0.5))
    with opened(listener, sink):
        answers = send(sink, say(1), say(2), say(3, "t.y"))

    assert [each.rule for each in answers] == ["no-stream"] * 3


def test_a_full_account_has_no_room(start_nats: StartNats) -> None:
    account = "{A: {jetstream: {max_file: 3MB}, users: [{user: a, password: a}]}}"
    url = start_nats("no_auth_user: a", f"accounts {account}").url
    sink = make_sink(NatsSettings(url=url, stream="T", create_stream=True, subjects=("t.>",)))
    with opened(sink):
        answers = send(sink, *(replace(say(number), payload=bytes(1 << 20)) for number in range(4)))

    assert [each.rule for each in answers] == ["", "", *[NO_ROOM.rule] * 2]


@pytest.mark.parametrize(
    ("code", "number", "text", "rule"),
    [
        (503, 10_077, "message too large", "stream"),
        (400, 10_054, "message size exceeds maximum allowed", "stream"),
        (500, 10_118, "stream is offline", "no-room"),
        (400, 10_002, "resource limits exceeded for account", "no-room"),
        (409, 10_158, "duplicate message id is in process", "no-room"),
        (429, 10_167, "too many requests", "no-room"),
    ],
)
def test_an_answer_refuses_the_message_or_the_moment(
    nats_server: NatsServer, code: int, number: int, text: str, rule: str
) -> None:
    error = {"code": code, "err_code": number, "description": text}
    settings = NatsSettings(url=nats_server.url)
    sink = make_sink(settings)
    with answering(settings, "t.x", {"error": error, "stream": "T", "seq": 0}), opened(sink):
        (answer,) = send(sink, say(1))

    assert answer.rule == rule
    assert text in answer.reason


def test_a_repeat_is_recognised_and_other_messages_of_its_id_are_not(
    settings: NatsSettings,
) -> None:
    source, sink = source_of(settings), make_sink(settings)
    with opened(source, sink):
        answers = [
            send(sink, say(number, subject, "same"))
            for number, subject in ((1, "t.x"), (1, "t.x"), (1, "t.y"), (2, "t.x"))
        ]
        got = collect(source, 3)
        assert source.receive(0.1) is None

    assert [(each.address, each.payload) for each in got] == [
        ("t.x", b"1"), ("t.y", b"1"), ("t.x", b"2"),
    ]  # fmt: skip
    assert answers == [[ACCEPTED], [REPEATED], [ACCEPTED], [ACCEPTED]]
    assert getattr(sink, "counts") == {"repeats": 1}  # noqa: B009  # only of this sink


def test_messages_that_the_stream_dropped_unread_are_counted(settings: NatsSettings) -> None:
    ask(settings, lambda js: js.add_stream(name="T", subjects=["t.>"], max_msgs=10))
    source, sink = source_of(settings), make_sink(settings)
    with opened(source):
        pass
    with opened(sink):
        send(sink, *(say(number) for number in range(25)))
    with opened(source):
        got = collect(source, 10)

    losses = source.continuity.take_losses()  # type: ignore[attr-defined]  # of this source
    assert numbers(got) == list(range(15, 25))
    assert [each.messages for each in losses] == [15]


def test_a_stream_without_losses_has_none(settings: NatsSettings) -> None:
    source, sink = source_of(settings), make_sink(settings)
    with opened(source, sink):
        send(sink, say(1), say(2))
        collect(source, 2)
        reopen(source)
        send(sink, say(3))
        collect(source, 1)

    assert source.continuity.take_losses() == []  # type: ignore[attr-defined]  # of this source


def test_a_frozen_server_is_noticed(settings: NatsSettings, nats_server: NatsServer) -> None:
    source = source_of(replace(settings, keepalive=0.1, answer_timeout=1.0))
    with opened(source):
        nats_server.freeze()
        wait_for_loss(source)
        nats_server.thaw()


def test_a_deleted_stream_is_noticed_and_made_again(settings: NatsSettings) -> None:
    source, sink = source_of(settings), make_sink(settings)
    with opened(source):
        with opened(sink):
            send(sink, say(1), say(2))
        old = collect(source, 2)
        ask(replace(settings, create_stream=False), lambda js: js.delete_stream("T"))
        wait_for_loss(source)
        reopen(source)
        assert source.continuity.retention.value == "new"  # type: ignore[attr-defined]  # of this source
        with opened(sink):
            send(sink, say(3))
        (new,) = collect(source, 1)
        assert numbers([new]) == [3]
        # it has the number of the first one again
        assert new.headers.source_id not in {each.headers.source_id for each in old}
    assert source.continuity.take_losses() == []  # type: ignore[attr-defined]  # as above


def test_a_stream_that_somebody_makes_again_with_its_consumer_is_a_gap(
    settings: NatsSettings, tmp_path: Path
) -> None:
    """The consumer is there, as the source knows it."""
    source, sink = source_of(settings), make_sink(settings)
    remember(source, tmp_path / "memory")
    with opened(source, sink):
        send(sink, say(1))
        collect(source, 1)
        known = ask(settings, lambda js: js.consumer_info("T", "gateway-nats-r"))
    ask(settings, lambda js: js.delete_stream("T"))
    with opened(make_sink(settings)):  # it makes the stream
        ask(settings, lambda js: js.add_consumer("T", known.config))

    remember(source := source_of(settings), tmp_path / "memory")
    with opened(source):
        losses = source.continuity.take_losses()  # type: ignore[attr-defined]  # of this source
        assert [each.reason for each in losses] == [MADE_AGAIN]


def test_a_stream_that_another_connection_makes_meanwhile_is_used(settings: NatsSettings) -> None:
    """The look-up finds none, and the making of one of another configuration is refused."""
    from nats.js.errors import NotFoundError  # noqa: PLC0415  # the fixture skips without it

    from gateway.endpoints.nats.connection import NatsConnection  # noqa: PLC0415  # as above

    made = NatsConnection(settings, lambda _failure: None)
    find = made.jetstream.stream_info

    async def find_none_and_lose(name: str) -> Any:  # noqa: ANN401  # the driver's
        made.jetstream.stream_info = find
        try:
            return await find(name)
        except NotFoundError:
            ask(settings, lambda js: js.add_stream(name=name, subjects=["t.>", "other"]))
            raise

    made.jetstream.stream_info = find_none_and_lose
    try:
        made.call(made.make_stream())
    finally:
        made.close()
    found = ask(settings, lambda js: js.stream_info("T"))
    assert found.config.subjects == ["t.>", "other"]


def test_a_stream_that_cannot_be_made_is_told_with_its_reason(settings: NatsSettings) -> None:
    ask(settings, lambda js: js.add_stream(name="S", subjects=["t.>"]))

    with pytest.raises(EndpointError, match="subjects overlap with an existing stream"):
        make_sink(settings).open()


@pytest.mark.parametrize("subjects", [("t.>",), ("t.>", "other.>")], ids=["all", "narrow"])
def test_a_purge_while_a_source_was_away_is_one_gap(
    settings: NatsSettings, tmp_path: Path, subjects: tuple[str, ...]
) -> None:
    """The server moves the consumer's floor past what nobody read."""
    settings = replace(settings, subjects=subjects)
    sink, source = make_sink(settings), source_of(settings)
    remember(source, tmp_path / "memory")
    with opened(source, sink):
        send(sink, say(1))
        collect(source, 1)
    with opened(sink):
        send(sink, say(2), say(3))
    ask(settings, lambda js: js.purge_stream("T"))

    told = []
    for _ in range(2):
        remember(source := source_of(settings), tmp_path / "memory")
        with opened(source):
            told.append([each.reason for each in source.continuity.take_losses()])  # type: ignore[attr-defined]  # of this source
    assert told == [[DROPPED if len(subjects) == 1 else REMOVED], []]


def test_a_stream_that_nobody_makes_is_named(settings: NatsSettings) -> None:
    source = source_of(replace(settings, create_stream=False))

    with pytest.raises(EndpointError, match="no stream 'T'"):
        source.open()


def test_a_pattern_of_several_streams_is_refused(settings: NatsSettings) -> None:
    async def make(jetstream: Any) -> None:  # noqa: ANN401  # the driver's
        await jetstream.add_stream(name="T", subjects=["t.2.>"])
        await jetstream.add_stream(name="S", subjects=["t.1.>", "s"])

    ask(settings, make)
    plain = replace(settings, stream="", create_stream=False)
    for patterns in (("t.>",), ("t.2.x", "s")):
        with pytest.raises(EndpointError, match="of the pattern: S, T; set"):
            source_of(plain, *patterns).open()
    with pytest.raises(EndpointError, match=r"no stream has the subject 'u'"):
        source_of(plain, "t.2.x", "u").open()
    with opened(source_of(plain, "t.1.*", "s")):
        pass


def test_unconfirmed_answers_end_the_connection(
    settings: NatsSettings, nats_server: NatsServer
) -> None:
    sink = make_sink(settings)
    source = source_of(replace(settings, ack_sync=True, answer_timeout=2.0, keepalive=60.0))
    with opened(source):
        with opened(sink):
            send(sink, say(1), say(2))
        first = receive(source)
        nats_server.freeze()
        first.settle([ACCEPTED] * len(first.messages))
        wait_for_loss(source)
        nats_server.thaw()
        reopen(source)
        with opened(sink):
            send(sink, say(3))
        assert numbers(collect(source, 1))[-1] == 3


def test_headers_cross(settings: NatsSettings) -> None:
    headers = Headers(
        mode=MODE, priority=7, time=5, expiry=9, content_type="a/b", correlation_id=b"\0\xff",
        reply_to="t.back", source_id="id", origin=("a", "b"), retained=True,
        properties={"Plain": "text", "blank ": " x ", "n": 7, "b": b"\0", "line": "a\r\nb"},
    )  # fmt: skip
    source, sink = source_of(settings), make_sink(settings)
    with opened(source, sink):
        send(sink, Message("t.x", "text", headers))
        (got,) = collect(source, 1)

    assert got == Message("t.x", b"text", headers)


def test_a_message_without_an_id_has_its_number_in_the_stream(settings: NatsSettings) -> None:
    source, sink = source_of(settings), make_sink(settings)
    with opened(source, sink):
        send(sink, say(1), say(2), say(3, source_id="own"))
        got = collect(source, 3)

    ids = [(each.headers.source_id or "").split() for each in got]
    assert [(each[0], each[-1]) for each in ids] == [("nats", "1"), ("nats", "2"), ("own", "own")]


def test_several_patterns_share_a_consumer(settings: NatsSettings) -> None:
    source, sink = source_of(settings, "t.a", "t.b.>"), make_sink(settings)
    with opened(source, sink):
        send(sink, say(1, "t.a"), say(2, "t.c"), say(3, "t.b.c"))
        assert numbers(collect(source, 2)) == [1, 3]


def test_core_nats_carries_a_reply_subject(nats_server: NatsServer) -> None:
    settings = NatsSettings(url=nats_server.url, jetstream=False)
    source, sink = source_of(settings, "t.>", "t.x"), make_sink(settings)
    with opened(source, sink):
        send(sink, Message("t.x", b"1", Headers(reply_to="t.back")))
        (got,) = collect(source, 1)
        assert source.receive(0.1) is None

    assert (got.headers.reply_to, got.headers.mode) == ("t.back", DeliveryMode.AT_MOST_ONCE)


def test_messages_of_core_nats_that_have_arrived_outlive_the_connection(
    nats_server: NatsServer,
) -> None:
    """The server delivers none of them again."""
    settings = NatsSettings(url=nats_server.url, jetstream=False)
    source, sink = source_of(settings), make_sink(settings)
    with opened(source, sink):
        send(sink, *(say(number) for number in range(5)))
        queue = source._intake.queue  # type: ignore[attr-defined]  # noqa: SLF001  # what waits there
        until(lambda: len(queue.unsettled()) == 5)
        nats_server.kill()
        until(lambda: queue.failure is not None)

        assert numbers(wait_for_loss(source)) == list(range(5))


def test_core_nats_refuses_a_line_that_the_server_would_not_take(nats_server: NatsServer) -> None:
    sink = make_sink(NatsSettings(url=nats_server.url, jetstream=False))
    with opened(sink):
        long = Message("t.x", b"1", Headers(reply_to="r" * 3_990))
        wrong, right = send(sink, replace(long, address="t." + "x" * 20), long)

    assert (wrong.rule, right) == ("too-long", ACCEPTED)


def test_a_queue_group_divides_the_messages(nats_server: NatsServer) -> None:
    settings = NatsSettings(url=nats_server.url, jetstream=False, queue_group="g")
    first, second, sink = source_of(settings), source_of(settings), make_sink(settings)
    with opened(first, second, sink):
        send(sink, *(say(number) for number in range(200)))
        got: list[list[int]] = [[], []]
        until(lambda: take_all((first, second), got) == 200)

    assert sorted(got[0] + got[1]) == list(range(200))
    assert all(got)


def take_all(sources: tuple[Source, ...], got: list[list[int]]) -> int:
    for source, found in zip(sources, got, strict=True):
        if (batch := source.receive(0.01)) is not None:
            found.extend(numbers(list(batch.messages)))
            batch.settle([ACCEPTED] * len(batch.messages))
    return sum(map(len, got))


def test_faults_of_settings() -> None:
    wrong = NatsSettings(url="http://x", stream="a.b", create_stream=True)

    assert [fault.key for fault in wrong.faults()] == ["url", "stream", "create_stream"]


@pytest.mark.parametrize(
    ("subject", "head"),
    [
        pytest.param(b"t.\xff", b"", id="subject-without-utf-8"),
        pytest.param(b"t.\x0bx", b"", id="subject-with-a-control-character"),
        pytest.param(b"t.x", b"NATS/1.0\r\nno colon\r\n\r\n", id="header-without-colon"),
        pytest.param(b"t.x", b"NATS/1.0\r\nkey: \xff\xfe\r\n\r\n", id="header-without-utf-8"),
        pytest.param(b"t.x", b"NATS/1.0\r\n\xff: v\r\n\r\n", id="key-without-utf-8"),
        pytest.param(b"t.x", b"NATS/1.0 999 x\r\n\r\n", id="status-of-a-publisher"),
        pytest.param(b"t.x", b"NATS/1.0\r\n\r\n", id="no-header"),
        pytest.param(b"t.x", b"NATS/1.0\r\n: \r\n\r\n", id="no-key"),
        pytest.param(b"t.x", b"rubbish", id="rubbish"),
        pytest.param(b"t.x", b"x", id="one-byte"),
    ],
)
def test_a_malformed_message_stops_nothing(
    settings: NatsSettings, nats_server: NatsServer, subject: bytes, head: bytes
) -> None:
    source, sink = source_of(settings), make_sink(settings)
    with opened(sink, source):
        publish_raw(nats_server, subject, head)
        send(sink, say(2, "t.y"))
        got = collect(source, 2)

    assert numbers(got) == [1, 2]


def publish_raw(server: NatsServer, subject: bytes, head: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client:
        client.settimeout(PATIENCE)
        verb = b"HPUB %b %d %d" % (subject, len(head), len(head) + 1)
        line = verb if head else b"PUB %b 1" % subject
        login = b'CONNECT {"headers": true, "verbose": false}\r\n'
        client.sendall(login + line + b"\r\n" + head + b"1\r\nPING\r\n")
        heard = b""
        while b"PONG" not in heard and b"-ERR" not in heard:
            heard += client.recv(65_536)
        assert b"-ERR" not in heard, heard


@pytest.mark.parametrize("between", [("t.a", "t.b"), ("t.b",), ()])
def test_messages_that_a_stream_may_have_dropped_unread_of_a_part_are_a_gap_without_a_number(
    settings: NatsSettings, tmp_path: Path, between: Sequence[str]
) -> None:
    ask(settings, lambda js: js.add_stream(name="T", subjects=["t.>"], max_msgs=10))
    sink = make_sink(settings)
    with opened(source := part_of(settings, tmp_path), sink):
        send(sink, say(0, "t.a"))
        collect(source, 1)
    with opened(sink):
        for subject in between:
            send(sink, *(say(number, subject) for number in range(15)))
    with opened(source := part_of(settings, tmp_path)):
        pass

    losses = source.continuity.take_losses()  # type: ignore[attr-defined]  # of this source
    assert [each.messages for each in losses] == ([None] if between else [])


def test_messages_of_other_subjects_that_a_stream_dropped_meanwhile_are_no_gap(
    settings: NatsSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gateway.endpoints.nats import jetstream_reader  # noqa: PLC0415  # skips without it

    monkeypatch.setattr(jetstream_reader, "REMOVAL_LOOK", 0.01)
    ask(settings, lambda js: js.add_stream(name="T", subjects=["t.>"], max_msgs=10))
    sink = make_sink(settings)
    with opened(source := part_of(settings, tmp_path), sink):
        send(sink, say(0, "t.a"))
        collect(source, 1)
        for begin in range(0, 45, 5):
            send(sink, *(say(number, "t.b") for number in range(begin, begin + 5)))
            until(lambda: remembered(tmp_path / "memory")["read to T"][1] == begin + 6)  # type: ignore[index]  # noqa: B023
    with opened(source := part_of(settings, tmp_path)):
        pass

    assert source.continuity.take_losses() == []  # type: ignore[attr-defined]  # as above


def part_of(settings: NatsSettings, folder: Path) -> Source:
    """Return a source of a part of the stream, with a memory."""
    source = source_of(settings, "t.a")
    remember(source, folder / "memory")
    return source
