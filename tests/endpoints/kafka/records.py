"""Records, topics and an administrator of one Kafka server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from gateway.endpoints.base import Batch, Source, Subscription
from gateway.endpoints.registry import make_source
from gateway.endpoints.settings.kafka import KafkaSettings
from gateway.endpoints.source_shell import SourceShell
from gateway.model.outcome import ACCEPTED
from tests.endpoints.exchange import opened
from tests.waiting import PATIENCE, until


@dataclass
class Records:
    """Records that an administrator and other clients make at a server; `server` is HOST:PORT."""

    server: str

    def __post_init__(self) -> None:
        from confluent_kafka import Producer  # noqa: PLC0415  # the fixture skips without it
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415  # as above

        self.admin = AdminClient({"bootstrap.servers": self.server})
        options = {"bootstrap.servers": self.server, "acks": "all", "linger.ms": 0}
        self._producer = Producer(options | {"message.max.bytes": 4 << 20})

    @property
    def settings(self) -> KafkaSettings:
        plain = KafkaSettings(bootstrap_servers=(self.server,), answer_timeout=5)
        return plain.for_gateway("gateway", "kafka")

    def make(self, topic: str, partitions: int = 1) -> None:
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # noqa: PLC0415

        self.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()

    def remove(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result()

    def remove_records(self, topic: str, before: int, partition: int = 0) -> None:
        from confluent_kafka import TopicPartition  # noqa: PLC0415  # as above

        wanted = TopicPartition(topic, partition, before)
        self.admin.delete_records([wanted])[wanted].result()

    def send(
        self,
        topic: str,
        numbers: Iterable[int],
        key: bytes | None = b"k",
        **other: Any,  # noqa: ANN401  # of produce
    ) -> None:
        for each in numbers:
            self._producer.produce(topic, value=b"%d" % each, key=key, **other)
        assert self._producer.flush(PATIENCE) == 0

    def send_null(self, topic: str, key: bytes) -> None:
        self._producer.produce(topic, value=None, key=key)
        assert self._producer.flush(PATIENCE) == 0

    def committed(self, group: str, topic: str, partition: int = 0) -> int:
        from confluent_kafka import ConsumerGroupTopicPartitions  # noqa: PLC0415  # as above

        asked = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        found = asked[group].result().topic_partitions
        return max(
            (e.offset for e in found if (e.topic, e.partition) == (topic, partition)), default=-1
        )


def source_of(settings: KafkaSettings, *patterns: str) -> SourceShell:
    source = make_source(settings, [Subscription(each) for each in patterns], instance="r")
    assert isinstance(source, SourceShell)
    return source


@contextmanager
def reading(settings: KafkaSettings, *patterns: str) -> Iterator[SourceShell]:
    source = source_of(settings, *patterns)
    with opened(source):
        yield source


def receive(source: Source, count: int) -> list[Batch]:
    """Return batches with so many messages, not settled."""
    batches: list[Batch] = []

    def come() -> bool:
        if (batch := source.receive(0.1)) is not None:
            batches.append(batch)
        return sum(len(each.messages) for each in batches) >= count

    until(come)
    return batches


def settle(batches: Sequence[Batch]) -> None:
    for each in batches:
        each.settle([ACCEPTED] * len(each.messages))


def numbers(batches: Sequence[Batch]) -> list[int]:
    payloads = [each.payload for batch in batches for each in batch.messages]
    return [int(each) for each in payloads if isinstance(each, bytes)]


def marked(batches: Sequence[Batch]) -> list[bool]:
    return [each.headers.redelivered for batch in batches for each in batch.messages]


def marks(batches: Sequence[Batch]) -> set[bool]:
    return {*marked(batches)}


def losses(source: SourceShell) -> list[tuple[str, int | None]]:
    return [(each.reason, each.messages) for each in source.continuity.take_losses()]


def with_small_window(settings: KafkaSettings, messages: int) -> KafkaSettings:
    return replace(settings, receive_window=messages)
