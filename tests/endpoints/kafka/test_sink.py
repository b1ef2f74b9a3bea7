"""A sink of Kafka at a real server: topics, keys, headers, sizes, null payloads, restarts."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.endpoints.base import AnswersForNames, AnswersForPartitions, Sink
from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.kafka import KafkaSettings
from gateway.errors import NotConnectedError
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED, RETRY, Outcome
from tests.brokers.kafka_server import KafkaServer
from tests.endpoints.exchange import Answer, opened, reopen, send
from tests.waiting import PATIENCE, until

HEADERS = Headers(
    priority=3,
    time=1_700_000_000_123_456,
    content_type="text/plain",
    source_id="ID:7",
    properties={"a": "b", "none": None, "number": 5, "raw": b"\xff", "again": ["x", None, "y"]},
)


@pytest.fixture
def settings(kafka_server: KafkaServer) -> KafkaSettings:
    kafka_server.make_topic("t")
    return kafka_server.settings


@pytest.fixture
def sink(settings: KafkaSettings) -> Iterator[Sink]:
    sink = make_sink(settings, instance="r")
    with opened(sink):
        yield sink


def say(number: int, address: str = "t:k") -> Message:
    return Message(address, str(number).encode())


def test_a_record_has_topic_key_payload_time_and_headers(
    kafka_server: KafkaServer, sink: Sink
) -> None:
    assert send(sink, Message("t:line 7.ü", b"hot", HEADERS, "ab.cd")) == [ACCEPTED]
    (record,) = kafka_server.records("t")

    assert (record.topic(), record.key(), record.value()) == ("t", "line 7.ü".encode(), b"hot")
    assert record.timestamp() == (1, 1_700_000_000_123)
    assert record.headers() == [
        ("a", b"b"),
        ("none", None),
        ("raw", b"\xff"),
        ("again", b"x"),
        ("again", None),
        ("again", b"y"),
        ("gateway_fields", b'{"priority":3,"properties":{"number":5}}'),
        ("content-type", b"text/plain"),
        ("gateway_message_id", b"ID:7"),
        ("gateway_time", b"1700000000123456"),
        ("gateway_proof", b"ab.cd"),
    ]


@pytest.mark.parametrize(
    ("message", "key", "value"),
    [
        pytest.param(Message("t", b"x"), None, b"x", id="null-key"),
        pytest.param(Message("t:", b"x"), b"", b"x", id="empty-key"),
        pytest.param(Message("t:a:b", b"x"), b"a:b", b"x", id="colon-in-the-key"),
        pytest.param(Message("t:k", b""), b"k", b"", id="empty-payload"),
        pytest.param(Message("t:k", "ü"), b"k", "ü".encode(), id="text"),
        pytest.param(
            Message("t:k", b"", Headers(properties={"kafka_tombstone": True})),
            b"k",
            None,
            id="tombstone",
        ),
    ],
)
def test_null_and_empty_are_two_things(
    kafka_server: KafkaServer, sink: Sink, message: Message, key: bytes | None, value: bytes | None
) -> None:
    assert send(sink, message) == [ACCEPTED]
    (record,) = kafka_server.records("t")

    assert (record.key(), record.value()) == (key, value)
    assert not record.headers()


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        pytest.param("", "empty-name", id="empty"),
        pytest.param(":key", "empty-name", id="key-alone"),
        pytest.param("a b:k", "forbidden-character", id="blank"),
        pytest.param("a/b", "forbidden-character", id="slash"),
        pytest.param("..:k", "reserved", id="dots"),
        pytest.param("x" * 250, "too-long", id="long"),
        pytest.param("t:\ud800", "surrogate", id="surrogate"),
        pytest.param("absent:k", "destination", id="absent"),
    ],
)
def test_a_name_without_a_topic_is_refused_and_the_others_are_sent(
    kafka_server: KafkaServer, sink: Sink, address: str, rule: str
) -> None:
    answers = send(sink, say(1), say(2, address), say(3))

    assert [each.rule for each in answers] == ["", rule, ""]
    assert answers[1].outcome is Outcome.REJECTED
    assert [each.value() for each in kafka_server.records("t")] == [b"1", b"3"]


def test_a_payload_of_values_is_refused(sink: Sink) -> None:
    (answer,) = send(sink, Message("t:k", {"a": 1}))

    assert answer.rule == "payload-kind"


def test_an_absent_topic_is_made_where_that_is_wanted(
    kafka_server: KafkaServer, settings: KafkaSettings
) -> None:
    sink = make_sink(replace(settings, create_topics=True, partitions=3), instance="r")
    with opened(sink):
        assert send(sink, say(1, "new:k"), say(2, "new:k"), say(3)) == [ACCEPTED] * 3

    partitions = kafka_server.admin().list_topics(timeout=5).topics["new"].partitions
    assert len(partitions) == 3


def test_a_topic_that_is_deleted_refuses_its_messages_and_one_that_is_made_takes_them(
    kafka_server: KafkaServer, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gateway.endpoints.kafka import topics  # noqa: PLC0415  # the fixture skips without it

    monkeypatch.setattr(topics, "REFUSED_FOR", 0.0)
    kafka_server.make_topic("u")
    assert send(sink, say(1, "u:k")) == [ACCEPTED]
    kafka_server.delete_topic("u")

    (answer,) = send(sink, say(2, "u:k"))
    while answer.outcome is Outcome.RETRY:  # the client knew the topic
        assert answer.rule == "no-room"
        (answer,) = send(sink, say(2, "u:k"))
    assert answer.rule == "destination"

    kafka_server.make_topic("u")
    (answer,) = send(sink, say(3, "u:k"))
    while answer.outcome is Outcome.RETRY:
        (answer,) = send(sink, say(3, "u:k"))
    assert answer == ACCEPTED


@pytest.mark.parametrize("limit", [pytest.param(4_000, id="low"), pytest.param(300_000, id="high")])
def test_a_message_longer_than_its_topic_takes_is_refused_and_short_ones_arrive_in_their_order(
    kafka_server: KafkaServer, settings: KafkaSettings, limit: int
) -> None:
    kafka_server.make_topic("short", max_message_bytes=limit)
    sink = make_sink(settings, instance="r")
    messages = [say(number, "short:k") for number in range(300)]
    messages[100] = Message("short:k", bytes(limit))
    with opened(sink):
        answer = Answer()
        try:
            sink.send(messages, answer)
        except NotConnectedError:  # it makes its batches as short as the topic takes them
            reopen(sink)
            sink.send(messages, answer)
        rules = [each.rule for each in answer.wait()]

    assert rules.pop(100) == "message-bytes"
    assert set(rules) == {""}
    found = [int(each.value()) for each in kafka_server.records("short")]
    assert found == [number for number in range(300) if number != 100]


def test_a_topic_whose_limit_is_not_told_gets_shorter_batches_after_a_refused_one(
    kafka_server: KafkaServer, settings: KafkaSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gateway.endpoints.kafka.topics import TopicBook  # noqa: PLC0415  # as above

    monkeypatch.setattr(TopicBook, "_limits", lambda _self, _topics: {})
    kafka_server.make_topic("short", max_message_bytes=4_000)
    sink = make_sink(settings, instance="r")
    wanted = [Message("short:k", str(number).encode().zfill(100)) for number in range(100)]
    wanted[50] = Message("short:k", bytes(5_000))
    with opened(sink):
        left = wanted
        refused: list[Any] = []
        while left:
            answers = send(sink, *left)
            refused += [each.rule for each in answers if each.outcome is Outcome.REJECTED]
            left = [
                m for m, each in zip(left, answers, strict=True) if each.outcome is RETRY.outcome
            ]
            if left:
                reopen(sink)

    assert refused == ["message-bytes"]
    found = [int(each.value()) for each in kafka_server.records("short")]
    assert sorted({*found}) == [number for number in range(100) if number != 50]


def test_connect_tells_which_topics_exist_and_makes_none(
    kafka_server: KafkaServer, settings: KafkaSettings
) -> None:
    asked = ["t:*", "absent", "p.*:>", "*:k"]
    answers = {}
    for create in (False, True):
        sink = make_sink(replace(settings, create_topics=create), instance="connect")
        with opened(sink):
            assert isinstance(sink, AnswersForNames)
            answers[create] = [*sink.ask_about(asked)]

    assert [each.missing for each in answers[False]] == [False, True, True, False]
    assert "'t' exists" in answers[False][0].text
    assert "'absent'" in answers[False][1].text
    assert [each.text[:8] for each in answers[False][2:]] == ["0 topics", "1 topic "]
    assert [each.missing for each in answers[True]] == [False] * 4
    assert "absent" not in kafka_server.admin().list_topics(timeout=5).topics


def test_connect_tells_which_topics_lack_a_partition(
    kafka_server: KafkaServer, settings: KafkaSettings
) -> None:
    kafka_server.make_topic("wide", 4)
    asked = [("t:*", 0), ("t:*", 1), ("wide:>", 3), ("*:>", 3), ("absent:*", 2), ("a.*:>", 2)]
    answers = {}
    for create in (False, True):
        sink = make_sink(replace(settings, create_topics=create, partitions=2), instance="connect")
        with opened(sink):
            assert isinstance(sink, AnswersForPartitions)
            answers[create] = [*sink.ask_about_partitions(asked)]

    lacks = "topic {!r} has the partitions {}, not {}: such messages become dead letters"
    narrow = [(lacks.format("t", "0..0", number), True) for number in (1, 3)]
    absent = [
        (lacks.format("absent", "0..1", 2), True),
        (lacks.format("a.*", "0..1", 2), True),
    ]
    assert answers == {False: narrow, True: narrow + absent}


def test_a_server_that_ends_is_noticed_and_what_had_no_answer_is_sent_again(
    kafka_server: KafkaServer, settings: KafkaSettings
) -> None:
    sink = make_sink(settings, instance="r")
    with opened(sink):
        assert send(sink, say(1)) == [ACCEPTED]
        kafka_server.freeze()
        waiting = Answer()
        sink.send([say(2)], waiting)
        kafka_server.kill()
        assert waiting.wait() == [RETRY]
        with pytest.raises(NotConnectedError, match=r"127\.0\.0\.1"):
            sink.send([], Answer())
        kafka_server.start()
        reopen(sink)
        kafka_server.make_topic("v")  # it stores a topic later than a second
        assert send(sink, say(3, "v:k")) == [ACCEPTED]


def test_a_silent_server_ends_the_connection(
    kafka_server: KafkaServer, settings: KafkaSettings
) -> None:
    sink = make_sink(replace(settings, answer_timeout=0.5), instance="r")
    with opened(sink):
        assert send(sink, say(1)) == [ACCEPTED]
        kafka_server.freeze()
        try:
            assert send(sink, say(2)) == [RETRY]
            with pytest.raises(NotConnectedError, match=r"no answer for 0\.5 s"):
                sink.send([], Answer())
        finally:
            kafka_server.thaw()


def test_a_closed_sink_leaves_no_thread(settings: KafkaSettings) -> None:
    sink = make_sink(settings, instance="r")
    gc.disable()  # the library's threads end with its client, and not with the next collection
    try:
        before = threads()
        for _ in range(3):
            with opened(sink):
                assert send(sink, say(1)) == [ACCEPTED]
        until(lambda: threads() <= before, "threads of the library are left")
    finally:
        gc.enable()


def threads() -> int:
    return len([*Path("/proc/self/task").iterdir()])


@pytest.mark.parametrize(
    "window",
    [
        pytest.param(KafkaSettings(send_window=1), id="messages"),
        pytest.param(KafkaSettings(send_window_bytes=65_536), id="bytes"),
    ],
)
def test_a_batch_longer_than_the_window_goes_alone_and_in_its_order(
    kafka_server: KafkaServer, settings: KafkaSettings, window: KafkaSettings
) -> None:
    sink = make_sink(replace(window, bootstrap_servers=settings.bootstrap_servers), instance="r")
    batches = [
        [Message("t:k", b"%03d" % (10 * i + n) * 5_000) for n in range(10)] for i in range(3)
    ]
    with opened(sink):
        answers = [Answer() for _ in batches]
        for batch, answer in zip(batches, answers, strict=True):
            sink.send(batch, answer)
        assert [each.wait() for each in answers] == [[ACCEPTED] * 10] * 3

    found = [int(each.value()[:3]) for each in kafka_server.records("t")]
    assert found == [*range(30)]


class Room(threading.Condition):
    """Tells that somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.is_waited_for = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.is_waited_for.set()
        return super().wait(timeout)


@pytest.mark.parametrize("event", ["answers", "end"])
def test_bytes_without_an_answer_are_bounded(settings: KafkaSettings, event: str) -> None:
    from gateway.endpoints.kafka.producer import KafkaProducer, SentRecord  # noqa: PLC0415  # as above

    few = replace(settings, send_window_bytes=65_536)
    producer = KafkaProducer(few, "r", 1_000, lambda _failure: None)
    producer._room = room = Room()  # noqa: SLF001  # to see that a sender waits
    record = SentRecord("t", b"k", bytes(60_000), [], 0, 60_000)
    try:
        producer.wait_for_room(record.size)
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(producer.wait_for_room, record.size)
            assert room.is_waited_for.wait(PATIENCE)
            producer.send([1], [record])
            if event == "end":
                producer.end("test")
                with pytest.raises(NotConnectedError, match="test"):
                    second.result(PATIENCE)
            producer.start()
            if event == "answers":
                second.result(PATIENCE)
    finally:
        producer.close()
