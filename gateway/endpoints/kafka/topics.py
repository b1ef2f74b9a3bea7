"""The topics that a sink has met: which exist, which takes which messages, and their making.

A topic: name, its partitions and the bytes of the longest batch that it takes, or why its messages
are refused.
Learned: before its first message over a connection, by questions to the servers. Forgotten: with
the connection; after REFUSED_FOR a refusal, and a topic that lacks the partition of a message; a
topic whose message is answered that it is gone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from threading import Lock
from time import monotonic, sleep
from typing import Any, Final, NamedTuple, TypeAlias

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it states no exports
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from gateway.endpoints.kafka.client import ClientFaults, client_options, refusal
from gateway.endpoints.settings.kafka import KafkaSettings
from gateway.errors import NotConnectedError
from gateway.model.dead_letter_rule import (
    DESTINATION,
    NOT_AUTHORISED,
    TOPIC_INVALID,
    DeadLetterRule,
)
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import text_size
from gateway.untyped import Untyped

REFUSED_FOR: Final = 10.0  # seconds until a topic that takes no message is asked about again
MAX_CACHED: Final = 16 << 20  # bytes of topics
MAX_BYTES: Final = "max.message.bytes"  # Kafka documentation, topic configuration
LIMIT_TIMEOUT: Final = 2.0  # seconds for the limits of topics, which are asked for until one fails
_STEP: Final = 0.2  # seconds between questions for a topic that was made
_DEFAULT: Final = -1  # of the servers
ABSENT: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}  # noqa: SLF001  # names of the library's own errors
)
_NO_ANSWER: Final = frozenset(
    {KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.REQUEST_TIMED_OUT}  # noqa: SLF001  # as above
)
UNAUTHORISED: Final = frozenset(
    {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
)


class TopicRefusal(NamedTuple):
    """Why a topic takes no message."""

    rule: DeadLetterRule
    reason: str


class TopicFacts(NamedTuple):
    """The bytes of the longest batch of a topic, 0 where no server tells, and its partitions."""

    longest: int
    partitions: int


TopicAnswer: TypeAlias = "TopicFacts | TopicRefusal"
_UNKNOWN: Final = (0.0, TopicFacts(0, 0))


def refusal_of(topic: str, code: int, text: str) -> TopicRefusal:
    """Return why messages of a topic are refused, by the servers' error."""
    rule = DESTINATION
    if code in UNAUTHORISED:
        rule = NOT_AUTHORISED
    elif code == KafkaError.TOPIC_EXCEPTION:
        rule = TOPIC_INVALID
    elif code in ABSENT:
        text = "it does not exist; make it, or set `create_topics`"
    return TopicRefusal(rule, f"topic {topic!r}: {text.removeprefix('Broker: ')}")


class TopicBook:
    """The topics of one connection. Thread-safe: guarded by self._lock."""

    def __init__(
        self,
        settings: KafkaSettings,
        instance: str,
        list_topics: Callable[..., Any],
    ) -> None:
        """`list_topics` is that of a client with a connection."""
        self._settings, self._instance = settings, instance
        self._list: Callable[..., Any] | None = list_topics
        self._lock = Lock()
        # until when an answer counts, and the answer
        self._known: LimitedCache[str, tuple[float, TopicAnswer]] = LimitedCache(MAX_CACHED)
        self._admin: Any = None
        self._tells_limits = True

    def end(self) -> None:
        """Release the clients: their threads and sockets end with them."""
        self._list = self._admin = None

    def forget(self, topic: str) -> None:
        """Ask about a topic again at its next message."""
        with self._lock:
            self._known.pop(topic, None)

    def doubt(self, topic: str) -> None:
        """Ask about a topic again in REFUSED_FOR: it lacks a partition, and may get it."""
        with self._lock:
            until, answer = self._known.get(topic, _UNKNOWN)
            if (soon := monotonic() + REFUSED_FOR) < until:
                self._known[topic] = soon, answer

    def note(self, topic: str, answer: TopicAnswer) -> TopicAnswer:
        """Keep the answer for a topic, and return it."""
        seconds = REFUSED_FOR if isinstance(answer, TopicRefusal) else math.inf
        with self._lock:
            self._known.add(topic, (monotonic() + seconds, answer), 3 * text_size(topic))
        return answer

    def look(self, topics: Collection[str], *, make: bool) -> dict[str, TopicAnswer]:
        """Return the answers for topics; ask the servers about new ones, and `make` absent ones.

        Raises:
            NotConnectedError: no server answers.
        """
        now = monotonic()
        with self._lock:
            known = [(each, self._known.get(each, _UNKNOWN)) for each in topics]
        found = {each: answer for each, (until, answer) in known if now < until}
        if len(found) == len(topics):
            return found
        asked = {*topics} - found.keys()
        every = self.partitions()
        present: dict[str, int] = {}
        for topic in asked:
            count = every.get(topic) or self._look_for(topic, make=make)
            if isinstance(count, TopicRefusal):
                found[topic] = self.note(topic, count)
            else:
                present[topic] = count
        limits = self._limits(present)
        for topic, count in present.items():
            found[topic] = self.note(topic, TopicFacts(limits.get(topic, 0), count))
        return found

    def partitions(self) -> dict[str, int]:
        """Return the topics that the user may describe, and the numbers of their partitions.

        Raises as `look` does.
        """
        found = self._ask().topics.items()
        return {name: len(each.partitions) for name, each in found if each.error is None}

    def _ask(self, topic: str = "") -> Untyped:
        asked = {"topic": topic} if topic else {}
        if (ask := self._list) is None:
            raise NotConnectedError(f"{self._settings.name}: not connected")
        try:
            return ask(timeout=self._settings.answer_timeout, **asked)
        except KafkaException as error:
            raise refusal(self._settings, error.args[0]) from error

    def _partitions_of(self, topic: str) -> int | KafkaError:
        found = self._ask(topic).topics[topic]
        error: KafkaError | None = found.error
        return len(found.partitions) if error is None else error

    def _look_for(self, topic: str, *, make: bool) -> int | TopicRefusal:
        """Return the partitions of a topic that is there now, or why it takes no message."""
        found = self._partitions_of(topic)
        if isinstance(found, int):
            return found
        if make and found.code() in ABSENT:
            return self._make(topic)
        return refusal_of(topic, found.code(), found.str())

    def _make(self, topic: str) -> int | TopicRefusal:
        settings, until = self._settings, monotonic() + self._settings.answer_timeout
        new = NewTopic(topic, settings.partitions or _DEFAULT, settings.replicas or _DEFAULT)
        try:
            self._administer().create_topics([new])[topic].result()  # as long as a request
        except KafkaException as error:
            failure: KafkaError = error.args[0]
            if failure.code() in _NO_ANSWER:
                raise refusal(settings, failure) from error
            if failure.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                return refusal_of(topic, failure.code(), f"it cannot be made: {failure.str()}")
        while not isinstance(found := self._partitions_of(topic), int):  # others learn of it later
            if monotonic() > until:
                raise NotConnectedError(f"{settings.name}: no server has the topic {topic!r} yet")
            sleep(_STEP)
        return found

    def _limits(self, topics: Collection[str]) -> dict[str, int]:
        """Return the bytes of the longest batch of topics, where the servers tell."""
        found: dict[str, int] = {}
        if not topics or not self._tells_limits:
            return found
        resources = [ConfigResource(ResourceType.TOPIC, each) for each in topics]
        asked = self._administer().describe_configs(resources, request_timeout=LIMIT_TIMEOUT)
        for resource, answer in asked.items():
            try:
                entry = answer.result().get(MAX_BYTES)
            except KafkaException as error:  # of one topic: the user may not read it
                self._tells_limits &= error.args[0].code() in UNAUTHORISED
                continue
            if entry is not None and str(entry.value).isdecimal():
                found[resource.name] = int(entry.value)
        return found

    def _administer(self) -> Untyped:
        """Return a client for questions about topics, made at the first one."""
        if self._admin is None:
            faults = ClientFaults(self._settings.name)
            self._admin = AdminClient(client_options(self._settings, self._instance, faults))
        return self._admin
