"""Commits of a member: one at a time, repeated after an error, and all of them at the end."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.source_memory import SourceMemory

pytest.importorskip("confluent_kafka")

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from gateway.endpoints.kafka.commits import Commits
from gateway.endpoints.kafka.positions import (
    CLAIM,
    PartitionPlace,
    PartitionState,
    find_places,
)


class Servers:
    """The servers' side of a consumer, which takes commits, or refuses those that wait. Mutable."""

    def __init__(self) -> None:
        self.asked: list[list[tuple[int, int]]] = []  # partition and offset
        self.claims: set[str | None] = set()
        self.refuses = False

    def commit(self, offsets: list[Any], *, asynchronous: bool) -> list[TopicPartition] | None:
        self.asked.append([(each.partition, each.offset) for each in offsets])
        self.claims |= {each.metadata for each in offsets}
        if self.refuses and not asynchronous:
            raise KafkaException(KafkaError(KafkaError.ILLEGAL_GENERATION))
        return None if asynchronous else offsets


def made() -> tuple[Commits, list[PartitionPlace], SourceMemory]:
    memory = SourceMemory()
    states = [PartitionState("t", number, 0, 100, 0) for number in range(2)]
    places = find_places(states, "cluster", memory, Continuity(Retention.KEPT))
    return Commits(memory), places, memory


def test_one_commit_at_a_time_has_the_end_of_what_is_settled_and_the_claim() -> None:
    commits, (first, second), memory = made()
    servers = Servers()
    commits.settle({first: 4})
    commits.ask(servers)
    commits.settle({first: 6, second: 0})
    commits.ask(servers)
    assert servers.asked == [[(0, 5)]]

    commits.answered(None)
    commits.ask(servers)
    commits.ask(servers)
    commits.answered(None)
    commits.ask(servers)

    assert servers.asked == [[(0, 5)], [(0, 7), (1, 1)]]
    assert servers.claims == {memory.get(CLAIM, str, "")}
    assert first.position.settled == 6


def test_a_commit_that_failed_is_repeated_and_takes_no_offset_back() -> None:
    commits, (first, second), _ = made()
    servers = Servers()
    commits.settle({first: 4, second: 9})
    commits.ask(servers)
    commits.settle({first: 6})

    commits.answered(KafkaError(KafkaError.REBALANCE_IN_PROGRESS))
    commits.ask(servers)

    assert [sorted(each) for each in servers.asked] == [[(0, 5), (1, 10)], [(0, 7), (1, 10)]]


def test_the_end_commits_what_has_no_answer_and_survives_a_refusal() -> None:
    commits, (first, second), _ = made()
    servers = Servers()
    commits.settle({first: 4})
    commits.ask(servers)
    commits.settle({second: 1})

    commits.finish(servers)
    commits.finish(servers)

    assert servers.asked == [[(0, 5)], [(0, 5), (1, 2)]]

    commits.settle({second: 2})
    servers.refuses = True
    commits.finish(servers)
    with pytest.raises(KafkaException):
        commits.claim(servers, {first: 0})
