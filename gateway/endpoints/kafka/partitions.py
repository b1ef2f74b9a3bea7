"""The partitions of a source as the servers have them; each question is one for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from confluent_kafka import KafkaException, TopicCollection, TopicPartition

from gateway.endpoints.kafka.positions import PartitionState
from gateway.endpoints.settings.kafka import KafkaSettings
from gateway.untyped import Untyped

OLDEST, NEWEST = -2, -1  # times of the protocol: the log's start, and the end of what is committed
NO_ID: Final = "A" * 22  # of a topic at a server that has none


def ask_states(
    consumer: Untyped,
    partitions: Sequence[TopicPartition],
    ids: dict[str, str],
    settings: KafkaSettings,
    *,
    is_new: bool,
) -> list[PartitionState]:
    """Return what the servers have of each partition.

    A partition without a position begins where `start` says when `is_new`, else at its first
    message: it was made since. `ids` are those of the topics.

    Raises:
        KafkaException: the servers refuse it, or do not answer.
    """
    committed = consumer.committed([*partitions], timeout=settings.answer_timeout)
    begins, ends = (_at(consumer, partitions, time, settings) for time in (OLDEST, NEWEST))
    starts = begins
    if is_new and settings.start == "latest":
        starts = ends
    elif is_new and (time := settings.start_time) is not None:
        starts = _at(consumer, partitions, time, settings)
    return [
        PartitionState(
            each.topic,
            each.partition,
            low,
            high,
            high if start < 0 else start,
            ids[each.topic],
            max(known.offset, -1),
            _claim_in(known),
        )
        for each, known, low, high, start in zip(
            partitions, committed, begins, ends, starts, strict=True
        )
    ]


def _claim_in(commit: TopicPartition) -> str:
    """Return the claim in the metadata of a commit; empty where these are not UTF-8."""
    try:
        return commit.metadata or ""
    except UnicodeDecodeError:
        return ""


def ask_ends(consumer: Untyped, partitions: Iterable[tuple[str, int]], timeout: float) -> list[int]:
    """Return the end of each partition; none where the servers do not tell in time."""
    asked = [TopicPartition(*each, NEWEST) for each in partitions]
    try:
        answers = consumer.offsets_for_times(asked, timeout=timeout)
    except KafkaException:
        return []
    return [] if any(each.error for each in answers) else [each.offset for each in answers]


def ask_partitions(admin: Untyped, timeout: float) -> set[tuple[str, int]]:
    """Return each partition of the cluster. Raises as `ask_states` does.

    Within a callback of a consumer that consumer itself must not be asked: the library aborts.
    """
    return partitions_of(admin.list_topics(timeout=timeout))


def partitions_of(cluster: Untyped) -> set[tuple[str, int]]:
    """Return each partition that the servers have told of."""
    found = cluster.topics
    return {(topic, number) for topic, each in found.items() for number in each.partitions}


def ask_ids(admin: Untyped, topics: Iterable[str], timeout: float) -> dict[str, str]:
    """Return the id of each topic; empty where the server has none. Raises as `ask_states` does."""
    found = admin.describe_topics(TopicCollection([*topics]), request_timeout=timeout)
    return {topic: id_of(future.result()) for topic, future in found.items()}


def id_of(description: Untyped) -> str:
    """Return the id of a topic that was described; empty where the server has none."""
    found = str(description.topic_id)
    return "" if found == NO_ID else found


def _at(
    consumer: Untyped,
    partitions: Iterable[TopicPartition],
    time: int,
    settings: KafkaSettings,
) -> list[int]:
    """Return the first offset since a time in each partition; below 0 where there is none."""
    asked = [TopicPartition(each.topic, each.partition, time) for each in partitions]
    answers = consumer.offsets_for_times(asked, timeout=settings.answer_timeout)
    for each in answers:
        if each.error is not None:
            raise KafkaException(each.error)
    return [each.offset for each in answers]
