"""Errors of servers: which end a producer, which refuse a message, and which the library mends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.endpoints.base import Sink
from gateway.endpoints.registry import make_sink
from gateway.endpoints.sent_messages import SendWindow, SentBatch
from gateway.endpoints.settings.kafka import KafkaSettings
from gateway.errors import NotConnectedError
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, RETRY, Outcome
from tests.brokers.kafka_mock import PRODUCE, KafkaMock, mock_cluster
from tests.endpoints.exchange import Answer, opened, reopen, send

confluent_kafka = pytest.importorskip("confluent_kafka")
KafkaError = confluent_kafka.KafkaError
INIT_PRODUCER_ID = 22  # Kafka protocol guide


@pytest.fixture
def mock(monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaMock]:
    from gateway.endpoints.kafka import topics  # noqa: PLC0415  # the driver is there

    monkeypatch.setattr(topics, "LIMIT_TIMEOUT", 0.01)  # the cluster does not tell limits
    with mock_cluster() as found:
        found.make_topic("t")
        found.make_topic("u")
        yield found


@pytest.fixture
def sink(mock: KafkaMock) -> Iterator[Sink]:
    sink = make_sink(mock.settings, instance="r")
    with opened(sink):
        assert send(sink, say(0, "t"), say(0, "u")) == [ACCEPTED] * 2
        yield sink


def say(number: int, topic: str = "t") -> Message:
    return Message(f"{topic}:k", str(number).encode())


def payloads(mock: KafkaMock, topic: str, count: int) -> list[int]:
    """Return the payloads in a topic; one more than `count` fails the test."""
    options = {"bootstrap.servers": mock.url, "group.id": "test", "enable.partition.eof": True}
    consumer = confluent_kafka.Consumer(options)
    found: list[int] = []
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        while (record := consumer.poll(60)) is not None and record.error() is None:
            found.append(int(record.value()))
    finally:
        consumer.close()
    assert record is not None, "no end of the partition"
    assert record.error().code() == KafkaError._PARTITION_EOF  # noqa: SLF001  # its name
    assert len(found) == count
    return found


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        pytest.param(KafkaError.TOPIC_AUTHORIZATION_FAILED, "not-authorised", id="no-right"),
        pytest.param(KafkaError.TOPIC_EXCEPTION, "topic-invalid", id="topic"),
        pytest.param(KafkaError.INVALID_RECORD, "refused", id="record"),
        pytest.param(KafkaError.POLICY_VIOLATION, "refused", id="policy"),
    ],
)
def test_an_error_of_a_topic_refuses_its_messages_and_no_others(
    mock: KafkaMock, sink: Sink, code: int, rule: str
) -> None:
    mock.answer(PRODUCE, code)
    (refused,) = send(sink, say(1))
    assert refused.outcome is Outcome.REJECTED
    assert refused.rule == rule

    assert send(sink, say(2, "u")) == [ACCEPTED]
    assert payloads(mock, "u", 2) == [0, 2]


def test_a_topic_without_the_right_is_asked_about_again_later(
    mock: KafkaMock, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gateway.endpoints.kafka import topics  # noqa: PLC0415  # the driver is there

    mock.answer(PRODUCE, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    assert [each.rule for each in send(sink, say(1))] == ["not-authorised"]
    assert [each.rule for each in send(sink, say(2), say(2, "u"))] == ["not-authorised", ""]

    monkeypatch.setattr(topics, "monotonic", lambda: 1e12)
    assert send(sink, say(3)) == [ACCEPTED]
    assert payloads(mock, "t", 2) == [0, 3]


def test_a_hidden_topic_refuses_its_messages(mock: KafkaMock) -> None:
    mock.deny("u", KafkaError.TOPIC_AUTHORIZATION_FAILED)
    sink = make_sink(mock.settings, instance="r")
    with opened(sink):
        answers = send(sink, say(1), say(2, "u"), say(3))

    assert [each.rule for each in answers] == ["", "not-authorised", ""]


@pytest.mark.parametrize(
    "codes",
    [
        pytest.param([KafkaError.NOT_ENOUGH_REPLICAS], id="replicas"),
        pytest.param([KafkaError.NOT_LEADER_FOR_PARTITION] * 2, id="leader"),
        pytest.param([KafkaError.REQUEST_TIMED_OUT], id="time"),
        pytest.param([KafkaError.KAFKA_STORAGE_ERROR], id="disk"),
        pytest.param([0, KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 0], id="in-between"),
    ],
)
def test_an_error_that_passes_makes_no_double_and_no_other_order(
    mock: KafkaMock, sink: Sink, codes: list[int]
) -> None:
    """One request at a time waits for its answer: the mock looks at no sequence numbers."""
    mock.answer(PRODUCE, *codes)
    for number in range(1, 11, 2):
        assert send(sink, say(number), say(number + 1)) == [ACCEPTED] * 2

    assert payloads(mock, "t", 11) == [*range(11)]


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, id="fatal"),
        pytest.param(KafkaError.INVALID_PRODUCER_EPOCH, id="epoch"),
        pytest.param(KafkaError.UNKNOWN, id="unknown"),
    ],
)
def test_an_error_of_the_producer_ends_it_and_the_next_one_sends_in_order(
    mock: KafkaMock, sink: Sink, code: int
) -> None:
    mock.answer(PRODUCE, code)
    left = [say(number) for number in range(1, 4)]
    assert send(sink, *left) == [RETRY] * 3
    with pytest.raises(NotConnectedError):
        sink.send([say(9)], Answer())

    reopen(sink)
    assert send(sink, *left) == [ACCEPTED] * 3
    assert payloads(mock, "t", 4)[-3:] == [1, 2, 3]


def test_a_cluster_that_lets_nobody_write_idempotently_ends_the_producer_with_its_reason(
    mock: KafkaMock,
) -> None:
    def send_until_it_ends(sink: Sink) -> None:
        while True:
            assert send(sink, say(1)) == [RETRY]

    mock.answer(INIT_PRODUCER_ID, *[KafkaError.CLUSTER_AUTHORIZATION_FAILED] * 3)
    sink = make_sink(mock.settings, instance="r")
    with opened(sink), pytest.raises(NotConnectedError, match="Cluster authorization failed"):
        send_until_it_ends(sink)


def test_acceptances_and_refusals_may_come_together() -> None:
    from gateway.endpoints.kafka.producer import SentRecord  # noqa: PLC0415  # the driver is there
    from gateway.endpoints.kafka.sink import KafkaSink  # noqa: PLC0415  # as above

    window: SendWindow[SentRecord] = SendWindow(10)
    answer, record = Answer(), SentRecord("t", None, b"", [], 0, 0)
    written = [(position, record) for position in range(3)]
    window.send(SentBatch(3, answer), written, lambda: None, lambda _numbers: None)
    refused = KafkaError(KafkaError.INVALID_RECORD)
    reports = [(1, 0, None), (2, 0, refused), (3, 0, None)]
    KafkaSink(KafkaSettings())._take_reports(None, window, reports)  # type: ignore[arg-type]  # noqa: SLF001  # it asks no producer

    assert [each.rule for each in answer.wait()] == ["", "refused", ""]
