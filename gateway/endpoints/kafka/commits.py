"""The offsets that a source commits over one connection.

    settled     the end of the settled messages of a partition; noted by any thread
    asked       the offsets of a commit without an answer: there is one at a time
    committed   when the servers answer; after an error the offsets are settled again, and those
                that are settled since take their place

Each commit has the claim of the source beside its offset (`positions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from threading import Lock

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from gateway.endpoints.kafka.positions import PartitionPlace, claim_of
from gateway.endpoints.source_memory import SourceMemory
from gateway.untyped import Untyped


class Commits:
    """Commits of one member. Its thread owns it, but for what is settled: self._lock guards it."""

    def __init__(self, memory: SourceMemory) -> None:
        self._memory = memory
        self._lock = Lock()
        self._settled: dict[PartitionPlace, int] = {}
        self._asked: dict[PartitionPlace, int] = {}

    def settle(self, ends: Mapping[PartitionPlace, int]) -> None:
        """Note the last settled offset of some partitions. From any thread."""
        for place, offset in ends.items():
            place.position.settle(offset)
        with self._lock:
            self._settled |= {place: offset + 1 for place, offset in ends.items()}

    def ask(self, consumer: Untyped) -> None:
        """Commit what is settled, unless an earlier commit has no answer."""
        if not self._asked and (offsets := self._take()):
            self._asked = offsets
            consumer.commit(offsets=self._partitions(offsets), asynchronous=True)

    def answered(self, error: KafkaError | None) -> None:
        """Take the answer to `ask`."""
        asked, self._asked = self._asked, {}
        if error is not None:
            with self._lock:
                self._settled = asked | self._settled

    def finish(self, consumer: Untyped) -> None:
        """Commit all that is settled, wait for the answer, and forget it.

        After an error it comes again, marked.
        """
        asked, self._asked = self._asked, {}
        if offsets := asked | self._take():
            with suppress(KafkaException):
                self.claim(consumer, offsets)

    def claim(self, consumer: Untyped, offsets: Mapping[PartitionPlace, int]) -> None:
        """Commit these offsets, and wait for the answer.

        Raises:
            KafkaException: the servers refuse it, or do not answer.
        """
        for each in consumer.commit(offsets=self._partitions(offsets), asynchronous=False):
            if each.error is not None:
                raise KafkaException(each.error)

    def _take(self) -> dict[PartitionPlace, int]:
        with self._lock:
            settled, self._settled = self._settled, {}
        return settled

    def _partitions(self, offsets: Mapping[PartitionPlace, int]) -> list[TopicPartition]:
        claim = claim_of(self._memory)
        return [
            TopicPartition(place.topic, place.number, offset, claim)
            for place, offset in offsets.items()
        ]
