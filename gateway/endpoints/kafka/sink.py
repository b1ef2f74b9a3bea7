"""A Kafka sink: an idempotent producer, whose reports settle messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from confluent_kafka import KafkaError, murmur2

from gateway.endpoints.base import NamesAnswer, Settle
from gateway.endpoints.kafka.client import BATCH
from gateway.endpoints.kafka.headers import TOMBSTONE, RecordHeaderWriter, timestamp
from gateway.endpoints.kafka.names import INTERNAL, topics_of
from gateway.endpoints.kafka.producer import ANY, DeliveryReport, KafkaProducer, SentRecord
from gateway.endpoints.kafka.topics import (
    ABSENT,
    UNAUTHORISED,
    TopicAnswer,
    TopicBook,
    TopicFacts,
    TopicRefusal,
    refusal_of,
)
from gateway.endpoints.sent_messages import SendWindow, SentBatch, write_each
from gateway.endpoints.settings.kafka import KafkaSettings
from gateway.errors import GatewayError, NotConnectedError, TranslationError
from gateway.model.dead_letter_rule import (
    DESTINATION,
    EMPTY_NAME,
    FORBIDDEN_CHARACTER,
    MESSAGE_BYTES,
    PARTITION,
    PAYLOAD_KIND,
    REFUSED,
    RESERVED,
    SURROGATE,
    TOO_LONG,
)
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import text_size
from gateway.model.message import CHOSEN_PARTITION, Message, Value
from gateway.model.outcome import ACCEPTED, NO_ROOM, RETRY, Settlement, rejected
from gateway.terminal.units import counted

MAX_TOPIC: Final = 249  # characters: Kafka, Topic.java
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]+")
_REMEDY: Final = "make them, or write create_topics: true"
_ABSENT: Final = "a message to an absent one becomes a dead letter `destination`"
_MAX_CACHED: Final = 16 << 20  # bytes of addresses
_OVERHEAD: Final = 120  # bytes of a batch with one message, beside key, payload and headers
# Answers that concern a message, which would get them again.
_OF_MESSAGE: Final = frozenset(
    {
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.POLICY_VIOLATION,
        KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    }
)
_TOO_LARGE: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})


_Place: TypeAlias = tuple[str, bytes | None]  # topic and key


class KafkaSink:
    """Produces. Thread-safe: each producer has a window of its own."""

    def __init__(self, settings: KafkaSettings, instance: str = "") -> None:
        self._settings, self._instance = settings, instance
        self._headers = RecordHeaderWriter()
        self._places: LimitedCache[str, _Place] = LimitedCache(_MAX_CACHED)
        self._batch = BATCH  # bytes of a batch; each topic takes as many
        self._producer: KafkaProducer | None = None
        self._window: SendWindow[SentRecord] = SendWindow(settings.send_window)

    @property
    def address(self) -> str:
        """HOST:PORT of a server of the cluster; empty without a connection."""
        return "" if self._producer is None else self._producer.address

    def open(self) -> None:
        self.close()
        window = self._window = SendWindow(self._settings.send_window)
        producer = KafkaProducer(self._settings, self._instance, self._batch, window.fail)
        producer.on_reports = partial(self._take_reports, producer, window)
        producer.on_look = partial(self._look, producer, window)
        producer.start()
        self._producer = producer

    def ask_about(self, patterns: Sequence[str]) -> Iterator[NamesAnswer]:
        """Say which topics of the names that each pattern selects exist; make none."""
        if self._producer is None:
            return
        for each in patterns:
            try:
                yield self._answer_about(each, self._producer.topics)
            except GatewayError as error:
                yield NamesAnswer(f"it is not known which topics {each!r} has: {error}")

    def _answer_about(self, each: str, topics: TopicBook) -> NamesAnswer:
        """Return the answer about a pattern of names: its topic, or its topics."""
        topic = topics_of(each)
        made = "absent ones are made at their first message"
        if topic.startswith("^"):
            count = len(_selected(topic, topics))
            todo = made if self._settings.create_topics else f"{_ABSENT}; {_REMEDY}"
            is_missing = not count and not self._settings.create_topics
            return NamesAnswer(f"{counted(count, 'topic')} for {each!r}; {todo}", is_missing)
        found = topics.look([topic], make=False)[topic]
        if not isinstance(found, TopicRefusal):
            return NamesAnswer(f"the topic {topic!r} exists")
        if found.rule == DESTINATION and self._settings.create_topics:
            return NamesAnswer(f"the topic {topic!r} is absent; {made}")
        return NamesAnswer(found.reason, missing=True)

    def ask_about_partitions(self, chosen: Sequence[tuple[str, int]]) -> Iterator[NamesAnswer]:
        """Say which topics lack a partition that a route names; an absent one may be made."""
        producer, made = self._producer, self._settings.partitions
        if producer is None:
            return
        for pattern, number in chosen:
            found = _selected(topics_of(pattern), producer.topics)
            if not found and made and self._settings.create_topics:
                found = {pattern.partition(":")[0]: made}
            for name, partitions in found.items():
                if number >= partitions:
                    lacks = _lack(name, partitions, number)
                    yield NamesAnswer(f"{lacks}: such messages become dead letters", missing=True)

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        producer, window = self._producer, self._window
        if producer is None:
            raise NotConnectedError(f"{self._settings.name}: not connected")
        producer.check()
        write = partial(self._write, producer.topics, self._look_for(producer.topics, messages))
        written, refused = write_each(self._settings.name, messages, write)
        records = [record for _, record in written]
        producer.wait_for_room(sum(each.size for each in records))
        window.send(
            SentBatch(len(messages), settled, refused),
            written,
            producer.check,
            lambda numbers: producer.send(numbers, records),
        )

    def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close()
            self._window.fail()

    def _look_for(
        self, topics: TopicBook, messages: Sequence[Message]
    ) -> Mapping[str, TopicAnswer]:
        """Return the longest message and the partitions of each topic, or why it takes none.

        Raises:
            NotConnectedError: no server answers, or batches are too long for a topic.
        """
        places = (self._places.get(each.address) or _legal(each.address) for each in messages)
        names = {each[0] for each in places if each is not None}
        found = topics.look(names, make=self._settings.create_topics)
        facts = (each for each in found.values() if isinstance(each, TopicFacts))
        lowest = min((each.longest for each in facts if each.longest), default=0)
        if 0 < lowest < self._batch:
            self._batch = lowest
            reason = f"a topic takes batches of {lowest} bytes; the next connection sends such ones"
            raise NotConnectedError(f"{self._settings.name}: {reason}")
        return {name: self._for_messages(each) for name, each in found.items()}

    def _for_messages(self, answer: TopicAnswer) -> TopicAnswer:
        """Return an answer with the bytes of the longest message in place of those of a batch."""
        if isinstance(answer, TopicRefusal):
            return answer
        most = self._settings.max_message
        if answer.longest and self._settings.compression == "none":
            most = min(most, answer.longest)
        return answer._replace(longest=most)

    def _write(
        self, book: TopicBook, topics: Mapping[str, TopicAnswer], message: Message
    ) -> SentRecord:
        """Return a message as it is sent.

        Raises:
            TranslationError: Kafka or this topic cannot carry it.
        """
        address, payload, headers = message.address, message.payload, message.headers
        place = self._places.get(address)
        if place is None:
            place = place_of(address)
            self._places.add(address, place, 3 * text_size(address))
        topic, key = place
        facts = topics[topic]
        if isinstance(facts, TopicRefusal):
            raise TranslationError("kafka", address, facts.rule, facts.reason)
        if isinstance(payload, str):
            payload = payload.encode()
        if not isinstance(payload, bytes):
            raise TranslationError("kafka", address, PAYLOAD_KIND, "Kafka carries bytes or text")
        found, size = self._headers.write(headers, message.proof)
        size += len(payload) + len(key or b"") + _OVERHEAD
        if size > facts.longest:
            reason = f"key, payload and headers are {size} bytes, limit {facts.longest}"
            raise TranslationError("kafka", address, MESSAGE_BYTES, reason)
        properties = headers.properties
        is_null = not payload and properties.get(TOMBSTONE) is True
        partition = partition_of(properties.get(CHOSEN_PARTITION), facts.partitions)
        if partition >= facts.partitions:
            book.doubt(topic)
            reason = _lack(topic, facts.partitions, partition)
            raise TranslationError("kafka", address, PARTITION, reason)
        value = None if is_null else payload
        return SentRecord(topic, key, value, found, timestamp(headers), size, partition)

    def _take_reports(
        self, producer: KafkaProducer, window: SendWindow[SentRecord], reports: list[DeliveryReport]
    ) -> None:
        """Settle messages by their reports; a report that concerns no message ends the producer.

        Acceptances come first: the end of a producer leaves no message unsettled.
        """
        window.settle([number for number, _, error in reports if error is None], ACCEPTED)
        for number, _, error in reports:
            if error is not None and (record := window.content(number)) is not None:
                window.settle((number,), self._settlement(producer, record, error))

    def _settlement(
        self, producer: KafkaProducer, record: SentRecord, error: KafkaError
    ) -> Settlement:
        code, name, text = error.code(), self._settings.name, error.str()
        if code in _TOO_LARGE:
            return self._too_large(producer, record)
        if code in ABSENT:
            producer.topics.forget(record.topic)
            return replace(NO_ROOM, reason=f"topic {record.topic!r}: {text}")
        if code in UNAUTHORISED or code == KafkaError.TOPIC_EXCEPTION:
            why = refusal_of(record.topic, code, text)
            producer.topics.note(record.topic, why)
            return rejected(why.rule, f"{name}: {why.reason}")
        if code in _OF_MESSAGE:
            return rejected(REFUSED, f"{name}: topic {record.topic!r}: {text}")
        if code == KafkaError._QUEUE_FULL:  # noqa: SLF001  # the library's own error
            return replace(NO_ROOM, reason="the client's queue is full")
        producer.end(f"topic {record.topic!r}: {text}")
        return RETRY

    def _too_large(self, producer: KafkaProducer, record: SentRecord) -> Settlement:
        """Refuse a message that was a batch of its own; else send the next ones in smaller batches.

        A server refuses a batch with all its messages.
        """
        own = len(record.value or b"") + len(record.key or b"")
        if own > self._batch or self._batch == 1:
            reason = f"topic {record.topic!r} takes no message of {record.size} bytes"
            return rejected(MESSAGE_BYTES, f"{self._settings.name}: {reason}")
        self._batch = max(1, own - 1)
        producer.end(f"topic {record.topic!r} takes no such long batches; the next are shorter")
        return RETRY

    def _look(self, producer: KafkaProducer, window: SendWindow[SentRecord]) -> None:
        """End the producer when the oldest message has had no answer for too long."""
        if window.is_overdue(self._settings.answer_timeout):
            producer.end(f"no answer for {self._settings.answer_timeout:g} s")


def _selected(wanted: str, topics: TopicBook) -> dict[str, int]:
    """Return the topics that a name or a regular expression selects, and their partitions."""
    is_wanted = re.compile(wanted if wanted.startswith("^") else f"^{re.escape(wanted)}$").match
    every = topics.partitions().items()
    return {name: most for name, most in every if is_wanted(name) and not re.match(INTERNAL, name)}


def _lack(topic: str, partitions: int, number: int) -> str:
    return f"topic {topic!r} has the partitions 0..{partitions - 1}, not {number}"


def _legal(address: str) -> _Place | None:
    """Return the place of an address; None where no message can be sent there."""
    try:
        return place_of(address)
    except TranslationError:
        return None


def place_of(address: str) -> _Place:
    """Return topic and key of an address; without a colon the key is null.

    Raises:
        TranslationError: no message can be sent there.
    """
    topic, colon, key = address.partition(":")
    if not topic:
        raise TranslationError("kafka", address, EMPTY_NAME, "the topic is empty")
    if len(topic) > MAX_TOPIC:
        reason = f"the topic has {len(topic)} characters, limit {MAX_TOPIC}"
        raise TranslationError("kafka", address, TOO_LONG, reason)
    if topic in {".", ".."} or re.match(INTERNAL, topic):
        raise TranslationError("kafka", address, RESERVED, f"no client writes to {topic!r}")
    if _TOPIC.fullmatch(topic) is None:
        reason = "a topic has letters, digits, `.`, `_` and `-` only"
        raise TranslationError("kafka", address, FORBIDDEN_CHARACTER, reason)
    try:
        return topic, key.encode() if colon else None
    except UnicodeEncodeError as error:
        raise TranslationError("kafka", address, SURROGATE, "the key has no UTF-8") from error


def partition_of(wanted: Value, partitions: int) -> int:
    """Return the partition for the text or the number that a route chose; ANY without either.

    A text has the partition of a key with this text. A number need not be one of the `partitions`.
    """
    if isinstance(wanted, str):
        return murmur2(wanted.encode(errors="surrogatepass"), partitions)
    return wanted if isinstance(wanted, int) else ANY
