"""The partition of a message: by a text as by a key, by its number, or by its key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from gateway.endpoints.base import Sink
from gateway.endpoints.registry import make_sink
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED
from tests.brokers.kafka_server import KafkaServer
from tests.endpoints.exchange import opened, reopen, send
from tests.waiting import until

PARTITIONS = 4
LINES = ["7", "line 8", "ü", "", "a longer line of the plant"]


@pytest.fixture
def sink(kafka_server: KafkaServer) -> Iterator[Sink]:
    kafka_server.make_topic("t", PARTITIONS)
    sink = make_sink(kafka_server.settings, instance="r")
    with opened(sink):
        yield sink


def say(wanted: str | int, payload: str = "x", address: str = "t:k") -> Message:
    return Message(address, payload.encode(), Headers(properties={"gateway_partition": wanted}))


def stored(server: KafkaServer, count: int) -> dict[int, list[Any]]:
    """Return the records of each partition of the topic `t`, once there are as many in all."""
    partitions = range(len(server.admin().list_topics(timeout=5).topics["t"].partitions))
    found: dict[int, list[Any]] = {}

    def are_there() -> bool:  # the server acknowledges a message before it stores it
        found.update({each: server.records("t", each) for each in partitions})
        return sum(map(len, found.values())) == count

    until(are_there)
    return found


def partitions_of(server: KafkaServer, *payloads: bytes) -> list[int]:
    """Return the partition of each of these payloads, which are all."""
    found = stored(server, len(payloads)).items()
    places = {record.value(): each for each, records in found for record in records}
    return [places[each] for each in payloads]


def chosen_by_library(server: KafkaServer, keys: Sequence[str]) -> dict[str, int]:
    """Return the partitions that confluent-kafka's own partitioner chooses for keys."""
    from confluent_kafka import Producer  # noqa: PLC0415  # the fixture skips without it

    server.make_topic("u", PARTITIONS)
    producer = Producer({"bootstrap.servers": server.url, "partitioner": "murmur2_random"})
    found: dict[str, int] = {}

    def note(_: object, record: Any) -> None:  # noqa: ANN401  # the driver's
        found[(record.key() or b"").decode()] = record.partition()

    for key in keys:
        producer.produce("u", b"", key.encode(), on_delivery=note)
    producer.flush()
    return found


def test_a_text_chooses_the_partition_that_a_key_of_that_text_has(
    kafka_server: KafkaServer, sink: Sink
) -> None:
    expected = chosen_by_library(kafka_server, LINES)
    sent = [say(line, f"{line}/{number}", f"t:{number}") for line in LINES for number in range(40)]
    assert send(sink, *sent) == [ACCEPTED] * len(sent)

    found = {line: list[str]() for line in LINES}
    for partition, records in stored(kafka_server, len(sent)).items():
        for record in records:
            line, _, number = record.value().decode().rpartition("/")
            assert partition == expected[line]
            assert record.key().decode() == number
            found[line].append(number)
    assert all(each == [str(number) for number in range(40)] for each in found.values())
    assert len({*expected.values()}) > 1


@pytest.mark.parametrize("number", range(PARTITIONS))
def test_a_number_is_the_partition(kafka_server: KafkaServer, sink: Sink, number: int) -> None:
    assert send(sink, say(number)) == [ACCEPTED]

    assert partitions_of(kafka_server, b"x") == [number]


def test_no_reader_sees_what_chose_the_partition(kafka_server: KafkaServer, sink: Sink) -> None:
    assert send(sink, say(0)) == [ACCEPTED]
    (record,) = stored(kafka_server, 1)[0]

    assert not record.headers()


def test_a_number_outside_of_the_topic_is_a_dead_letter_until_the_topic_has_it(
    kafka_server: KafkaServer, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gateway.endpoints.kafka import topics  # noqa: PLC0415  # the fixture skips without it

    answers = send(sink, say(PARTITIONS), say(0), say("7"))
    assert [each.rule for each in answers] == ["partition", "", ""]
    assert "topic 't' has the partitions 0..3, not 4" in answers[0].reason

    grow(kafka_server, "t", PARTITIONS + 1)
    monkeypatch.setattr(topics, "monotonic", lambda: 1e12)  # ten seconds later
    assert send(sink, say(PARTITIONS, "late")) == [ACCEPTED]
    assert [each.value() for each in stored(kafka_server, 3)[PARTITIONS]] == [b"late"]


def test_a_topic_that_grows_counts_at_the_next_connection(
    kafka_server: KafkaServer, sink: Sink
) -> None:
    from confluent_kafka import murmur2  # noqa: PLC0415  # the fixture skips without it

    text = next(each for each in "abcdef" if murmur2(each.encode(), 12) >= PARTITIONS)
    assert send(sink, say(text, "one")) == [ACCEPTED]
    grow(kafka_server, "t", 12)
    assert send(sink, say(text, "two")) == [ACCEPTED]
    reopen(sink)
    assert send(sink, say(text, "three")) == [ACCEPTED]

    before, after = murmur2(text.encode(), PARTITIONS), murmur2(text.encode(), 12)
    assert partitions_of(kafka_server, b"one", b"two", b"three") == [before, before, after]


def grow(server: KafkaServer, topic: str, partitions: int) -> None:
    from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]  # noqa: PLC0415  # it states no exports

    admin = server.admin()
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(5)
