"""One connection of a source of Kafka: a member of its consumer group, and what it brought.

    joined      the servers have given it partitions; each has a place (`positions`)
    read        while there is room; without room for a second, its partitions pause, and it only
                answers to its group
    settled     the end of the settled messages of each partition, which is committed while it
                reads, and at its end before it leaves
    revoked     the group divides its partitions again: it waits for its unsettled messages, and
                commits. It ends when some stay unsettled
    ended       at every doubt; the next connection finds out where it begins. It commits, and then
                leaves the group

A member has the same name each time (`group.instance.id`): after a kill the next process has its
partitions at once, and the servers end an earlier member of that name.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer
from contextlib import suppress
from functools import partial
from threading import Thread
from time import monotonic
from typing import Any, Final, TypeAlias

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from gateway.endpoints.base import Batch
from gateway.endpoints.continuity import Retention
from gateway.endpoints.kafka.client import (
    ClientFaults,
    address_of,
    client_options,
    connect,
    consumer_options,
    refusal,
)
from gateway.endpoints.kafka.commits import Commits
from gateway.endpoints.kafka.empty_answers import INTERVAL, EmptyAnswers
from gateway.endpoints.kafka.headers import TOMBSTONE, RecordHeaderReader, headers_of
from gateway.endpoints.kafka.names import INTERNAL, name_of
from gateway.endpoints.kafka.partitions import (
    ask_ends,
    ask_ids,
    ask_partitions,
    ask_states,
    id_of,
    partitions_of,
)
from gateway.endpoints.kafka.positions import Partition, PartitionPlace, find_places, forget_deleted
from gateway.endpoints.kafka.wanted import SubscribedTopics
from gateway.endpoints.made import Made
from gateway.endpoints.receipts import ReceiptQueue, ReceivedMessage
from gateway.endpoints.source_memory import NO_TEXTS, read_texts
from gateway.endpoints.source_shell import not_open
from gateway.errors import (
    EndpointError,
    GatewayError,
    NotConnectedError,
    SubscriptionRefusedError,
    TakenOverError,
    first_line,
)
from gateway.model.message import DroppedPayload, Message
from gateway.untyped import Untyped

log = logging.getLogger(__name__)

BEGAN: Final = "began"  # a fact: the topics that were subscribed when partitions had a begin
PULL: Final = 500  # messages that are read together
POLL: Final = 0.1  # seconds without a message until settlements are committed
REST: Final = 0.25  # seconds between questions for the ends, where empty answers come at once
PAUSE: Final = 1.0  # seconds without room until the partitions pause; also between signs of life
REFRESH: Final = 5.0  # seconds between looks for topics that are new, or gone
COUNT: Final = 5.0  # seconds between counts of what waits
HEARTBEAT: Final = 3.0  # seconds between questions whether the group divides its partitions again
LOOK: Final = 30.0  # seconds between looks for topics that were made again
CLOSE: Final = 10.0  # seconds for the last commit
DIVIDED: Final = "the group divided its partitions again before all messages were settled"
LOST: Final = "the servers gave its partitions to another member of the group"
MADE_AGAIN: Final = "somebody made a topic again"
_CREATED: Final = 1  # the producer's time, not that of the server

KafkaMessage: TypeAlias = ReceivedMessage[PartitionPlace]


class KafkaIntake:
    """An intake (`endpoints.source_shell`) of the topics `wanted`.

    Thread-safe: its thread owns the client, and adds arrivals; the queue guards them.
    """

    ended = True  # the servers keep what is not taken in

    def __init__(self, wanted: SubscribedTopics) -> None:
        self._wanted, self._settings = wanted, wanted.settings
        self.queue: ReceiptQueue[PartitionPlace] = ReceiptQueue(
            self._settings.receive_window_bytes, self._confirm
        )
        self.address = self._cluster = ""
        self._faults = ClientFaults(self._settings.name, self._end_for)
        self._headers = RecordHeaderReader()
        self._has_header_names = self._settings.named_by_headers
        self._joined: Future[None] = Future()
        self._commits = Commits(wanted.memory)
        self._ids: dict[str, str] = {}  # of the topics of its partitions
        self._places: dict[Partition, PartitionPlace] = {}
        self._read_all: set[Partition] = set()  # at the last count
        self._is_paused = False
        self._empty_answers, self._found_none = EmptyAnswers(), False
        self._count_at = self._look_at = 0.0  # monotonic
        self._admin: Any = None
        self._thread: Thread | None = None

    def open(self) -> None:
        """Connect, join the group, and find the places. Raises as `Source.open` does."""
        wanted, settings = self._wanted, self._settings
        own = {
            "group.instance.id": settings.client_id.replace("{instance}", wanted.instance)
            or wanted.group,
            "heartbeat.interval.ms": int(min(HEARTBEAT, settings.session_timeout / 3) * 1_000),
            "topic.metadata.refresh.interval.ms": int(REFRESH * 1_000),
            "topic.blacklist": INTERNAL,
            "on_commit": lambda error, _partitions: self._commits.answered(error),
            "statistics.interval.ms": int(INTERVAL * 1_000),
            "stats_cb": self._empty_answers.note,
        }
        options = consumer_options(settings, wanted.instance, self._faults) | own
        try:
            consumer = Consumer(options)
            self._admin = AdminClient(client_options(settings, wanted.instance, self._faults))
        except KafkaException as error:
            raise EndpointError(f"{settings.name}: {error.args[0].str()}") from error
        try:
            self._join(consumer)
        except BaseException:
            consumer.close()
            self._admin = None  # its threads and sockets end with it, and a callback leads here
            raise
        name = f"{settings.name}-kafka"
        self._thread = Thread(target=self._run, args=(consumer,), name=name, daemon=True)
        self._thread.start()
        patience = settings.connect_timeout + settings.session_timeout
        try:
            self._joined.result(patience)
        except NoAnswer:
            reason = f"group {wanted.group!r} gives no partitions within {patience:g} s"
            raise NotConnectedError(f"{settings.name}: {reason}") from None

    def _join(self, consumer: Untyped) -> None:
        """Connect, and ask the group for partitions."""
        faults, queue = self._faults, self.queue
        cluster = connect(consumer, self._settings, faults, lambda: queue.failure is not None)
        self.address = address_of(cluster)
        self._cluster = str(cluster.cluster_id or "")
        self._forget(partitions_of(cluster))
        if not self._wanted.selects(cluster.topics):  # the library joins no group without a topic
            self._wanted.memory.put(BEGAN, sorted(self._wanted.topics))
            self._joined.set_result(None)
        consumer.subscribe(
            [*self._wanted.topics],
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._taken_away,
        )

    def receive(self, timeout: float) -> Batch | None:
        return self.queue.receive(timeout)

    def end(self) -> None:
        """Do nothing: the servers keep what is not taken in."""

    def close(self) -> None:
        self._end(not_open(self._settings.name))
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(CLOSE)

    def _end(self, failure: GatewayError) -> None:
        """End this connection; its thread commits what is settled, and leaves."""
        self.queue.fail(failure)
        with suppress(Exception):  # it has its answer
            self._joined.set_exception(failure)

    def _end_for(self, error: KafkaError) -> None:
        """End this connection for an error of the library."""
        text = error.str()
        if "fenced" in text:
            self._end(TakenOverError(f"{self._settings.name}: another client has its name: {text}"))
        else:
            self._end(refusal(self._settings, error))

    def _run(self, consumer: Untyped) -> None:
        """Read until the end; this thread alone uses the client."""
        try:
            while self.queue.failure is None:
                self._read(consumer)
        except Exception as error:  # of the library
            log.debug("%s: the client failed", self._settings.name, exc_info=True)
            self._end(NotConnectedError(f"{self._settings.name}: {first_line(error)}"))
        self._leave(consumer)

    def _leave(self, consumer: Untyped) -> None:
        """Leave the group, which revokes the partitions: the last commit comes first."""
        if self._faults.lost is None:
            with suppress(KafkaException):  # of a client at its end
                consumer.unsubscribe()  # a member with a name of its own leaves in no other way
                consumer.poll(POLL)
        consumer.close()
        self._admin = None

    def _read(self, consumer: Untyped) -> None:
        """Take what has come where there is room; else only answer to the group."""
        window, most = self._settings.receive_window, 1
        if not self.queue.wait_for_answers(window - 1, PAUSE):
            if self.queue.failure is not None:
                return
            self._pause(consumer)
            found = consumer.poll(0)
        elif self._found_none and self._empty_answers.hurry and self._is_at_end(consumer):
            self._pause(consumer)
            found = consumer.poll(REST)
        else:
            self._resume(consumer)
            most = min(PULL, window - len(self.queue.unanswered))
            found = consumer.poll(POLL)
            self._found_none = found is None
        if found is not None:
            self._take([found, *consumer.consume(most - 1, 0)] if most > 1 else [found])
        self._commits.ask(consumer)
        self._look(consumer)

    def _pause(self, consumer: Untyped) -> None:
        if not self._is_paused:
            self._is_paused = True
            consumer.pause([TopicPartition(*each) for each in self._places])

    def _resume(self, consumer: Untyped) -> None:
        """Go on; a question wakes the threads of the library, which else sleep for up to 1 s."""
        if self._is_paused:
            self._is_paused = False
            consumer.resume([TopicPartition(*each) for each in self._places])
            ask_ends(consumer, self._places, POLL)

    def _is_at_end(self, consumer: Untyped) -> bool:
        """Return whether all has come that is there; the servers do not wait for more of it."""
        ends = ask_ends(consumer, self._places, POLL)
        places = [TopicPartition(*each) for each in self._places]
        firsts = (each.first for each in self._places.values())
        reached = (
            max(each.offset, first)
            for each, first in zip(consumer.position(places), firsts, strict=True)
        )
        return bool(ends) and ends == [*reached]

    def _take(self, found: Iterable[Any]) -> None:
        """Put what has come into the queue."""
        arrivals: list[KafkaMessage] = []
        ends: dict[PartitionPlace, int] = {}
        for each in found:
            if (error := each.error()) is not None:
                self._refused(error, each.topic())
                continue
            place = self._places.get((each.topic(), each.partition()))
            if place is not None:
                arrivals.append(arrival := self._arrival(each, place))
                ends[place] = arrival.number
        if arrivals:
            for place, offset in ends.items():
                place.position.received(offset)
            continuity = self._wanted.continuity
            continuity.heard = continuity.clock()
            self.queue.put(arrivals)

    def _arrival(self, record: Untyped, place: PartitionPlace) -> KafkaMessage:
        offset = record.offset()
        kind, milliseconds = record.timestamp()
        identity = place.identity(offset, milliseconds)
        headers, proof, claimed = self._headers.read(
            headers_of(record),
            milliseconds if kind == _CREATED else None,
            identity,
            redelivered=offset <= place.position.seen,
        )
        name = claimed if claimed and self._has_header_names else name_of(place.topic, record.key())
        if (payload := record.value()) is None:
            headers = headers.with_properties({**headers.properties, TOMBSTONE: True})
            payload = b""
        elif len(payload) > self._settings.max_message_in:
            payload = DroppedPayload(len(payload))
        message = Message(name, payload, headers, proof)
        return ReceivedMessage(message, place, offset, identity)

    def _refused(self, error: KafkaError, topic: str | None) -> None:
        """Take an error that came in the place of a message."""
        name, code = self._settings.name, error.code()
        if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
            if topic and topic not in self._wanted.absent:
                self._wanted.absent.add(topic)
                log.warning("%s: there is no topic %s; it is read once it is there", name, topic)
        elif code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            self._end(SubscriptionRefusedError(f"{name}: topic {topic}: {error.str()}"))
        else:
            self._end_for(error)

    def _assigned(self, consumer: Untyped, partitions: Sequence[Untyped]) -> None:
        """Find the places in the partitions that the group gives, and claim them."""
        wanted, places = self._wanted, list[PartitionPlace]()
        try:
            if self.queue.failure is None:
                self._forget(ask_partitions(self._admin, self._settings.answer_timeout))
            if partitions and self.queue.failure is None:
                places = self._find_places(consumer, partitions)
                self._commits.claim(consumer, {each: each.first for each in places})
                wanted.memory.put(BEGAN, sorted(wanted.topics))
            consumer.assign([TopicPartition(e.topic, e.number, e.first) for e in places])
        except KafkaException as error:
            self._end_for(error.args[0])
            return
        self._places = {(each.topic, each.number): each for each in places}
        self._is_paused = False
        if not self._joined.done():
            skips = any(each.skips for each in places)
            wanted.continuity.retention = Retention.NEW if skips else Retention.KEPT
            self._joined.set_result(None)

    def _find_places(
        self, consumer: Untyped, partitions: Sequence[Untyped]
    ) -> list[PartitionPlace]:
        settings, memory = self._settings, self._wanted.memory
        topics = {each.topic for each in partitions}
        self._ids = ask_ids(self._admin, topics, settings.answer_timeout)
        began = memory.get(BEGAN, read_texts, NO_TEXTS)
        is_new = began is not None and [*began] != sorted(self._wanted.topics)
        states = ask_states(consumer, partitions, self._ids, settings, is_new=is_new)
        if all(each.committed < 0 for each in states):
            memory.note_made(Made("group", self._wanted.group, settings.broker_key))
        return find_places(states, self._cluster, memory, self._wanted.continuity)

    def _forget(self, there: Container[Partition]) -> None:
        forget_deleted(there, self._read_all, self._wanted.memory, self._wanted.continuity)

    def _revoked(self, consumer: Untyped, _partitions: Sequence[Untyped]) -> None:
        """Wait for what is in flight, then commit: the next member begins behind it."""
        patience = self._settings.answer_timeout
        if self.queue.failure is None and not self.queue.wait_for_answers(0, patience):
            self._end(NotConnectedError(f"{self._settings.name}: {DIVIDED}"))
        if self._faults.lost is None:
            self._commits.finish(consumer)
        self._places, self._ids = {}, {}

    def _taken_away(self, _consumer: object, _partitions: object) -> None:
        self._places = {}
        self._end(NotConnectedError(f"{self._settings.name}: {LOST}"))

    def _confirm(self, settled: Sequence[KafkaMessage]) -> None:
        """Note settled messages; the queue calls this in order."""
        self._commits.settle({each.receipt: each.number for each in settled})

    def _look(self, consumer: Untyped) -> None:
        """Count what waits; now and then ask whether a topic was made again."""
        now = monotonic()
        if now < self._count_at or not self._places:
            return
        self._count_at = now + COUNT
        waiting: dict[Partition, int] = {}
        for key, place in self._places.items():
            _, end = consumer.get_watermark_offsets(TopicPartition(*key), cached=True)
            waiting[key] = max(0, max(end, place.end) - place.position.settled - 1)
        self._wanted.backlog = sum(waiting.values())
        self._read_all = {key for key, each in waiting.items() if not each}
        if now >= self._look_at and any(self._ids.values()):
            self._look_at = now + LOOK
            known = self._ids
            found = self._admin.describe_topics(TopicCollection([*known]))
            for topic, future in found.items():
                future.add_done_callback(partial(self._found_id, known[topic]))

    def _found_id(self, known: str, future: Future[Any]) -> None:
        """End for a topic that was made again; one that is gone is revoked."""
        with suppress(Exception):  # asked again
            if id_of(future.result()) != known:
                self._end(NotConnectedError(f"{self._settings.name}: {MADE_AGAIN}"))
