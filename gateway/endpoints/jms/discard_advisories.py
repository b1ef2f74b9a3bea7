"""Advisories of ActiveMQ about messages that the server discarded for a slow consumer.

A server sends them where its policy for a topic has `advisoryForDiscardingMessages`, when the
messages that wait for a consumer without a durable subscription exceed its
`pendingMessageLimitStrategy`. Each has the id of the consumer and the number so far
(https://activemq.apache.org/components/classic/documentation/advisory-message).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from time import monotonic
from typing import Final

from gateway.clock import Clock
from gateway.endpoints.jms import jvm
from gateway.endpoints.jms.addresses import TOPIC
from gateway.endpoints.jms.connection import JmsConnection
from gateway.endpoints.jms.connection_factory import ACTIVEMQ
from gateway.endpoints.jms.consumers import ConsumerSpec
from gateway.endpoints.jms.jvm import Java, JavaError, describe

log = logging.getLogger(__name__)

_ADVISORIES: Final = "ActiveMQ.Advisory.MessageDiscarded.Topic."
_ARTEMIS: Final = f"{ACTIVEMQ}artemis."  # whose consumers have no such id
_AUTO_ACKNOWLEDGE: Final = 1  # javax.jms.Session
_INTERVAL: Final = 0.25  # seconds between two looks
_MAX_READ: Final = 1_000  # advisories in one look
_MAX_COUNT: Final = 1 << 48  # messages; the sum of all consumers fits 8 bytes


class DiscardAdvisories:
    """The numbers of messages that a server discarded for some consumers.

    Mutable: owned by the receiving thread.
    """

    def __init__(self, advisories: Java, clock: Clock) -> None:
        self._advisories, self._clock = advisories, clock
        self._discarded: dict[str, int] = {}  # by the id of a consumer
        self._next_look = 0.0  # monotonic
        self._looked = self._clock()
        self.since = self._looked  # the look before the last one

    def watch(self, specs: Sequence[ConsumerSpec], consumers: Sequence[Java]) -> None:
        """Note the ids of the consumers, by which the advisories name them."""
        for spec, consumer in zip(specs, consumers, strict=True):
            if _has_advisories(spec):
                self._discarded[str(consumer.getConsumerId().toString())] = 0

    def take(self) -> int:
        """Return how many messages were discarded after `since`.

        Raises:
            JavaError: the connection is lost.
        """
        if monotonic() < self._next_look:
            return 0
        self._next_look = monotonic() + _INTERVAL
        self.since, self._looked = self._looked, self._clock()
        before = sum(self._discarded.values())
        for _ in range(_MAX_READ):
            advisory = self._advisories.receiveNoWait()
            if advisory is None:
                break
            self._note(advisory)
        return sum(self._discarded.values()) - before

    def _note(self, advisory: Java) -> None:
        """Note the number in an advisory; any client with the right may send a malformed one."""
        try:
            consumer = str(advisory.getStringProperty("consumerId"))
            count = int(advisory.getLongProperty("discardedCount"))
        except JavaError as error:
            log.debug("an advisory without a number: %s", describe(error))
            return
        if self._discarded.get(consumer, _MAX_COUNT) < count <= _MAX_COUNT:
            self._discarded[consumer] = count


def discard_advisories(
    connection: JmsConnection,
    specs: Sequence[ConsumerSpec],
    clock: Clock,
) -> DiscardAdvisories | None:
    """Subscribe to the advisories about the consumers of `specs`, before there are any.

    Returns None where there are none: at other servers, for queues and durable subscriptions, and
    when the server refuses. Its answer would wait behind the messages of the consumers, for which
    the thread that reads may wait (ReceiveWindow.java).
    """
    name = str(connection.connection.getClass().getName())
    if not name.startswith(ACTIVEMQ) or name.startswith(_ARTEMIS):
        return None
    names = [_ADVISORIES + each.name for each in specs if _has_advisories(each)]
    if not names:
        return None
    try:
        session = connection.connection.createSession(False, _AUTO_ACKNOWLEDGE)
        topic = session.createTopic(f"{','.join(names)}?consumer.prefetchSize={_MAX_READ}")
        advisories = session.createConsumer(topic, jvm.text(None))
    except JavaError as error:
        log.debug("no advisories of discarded messages: %s", describe(error))
        return None
    return DiscardAdvisories(advisories, clock)


def _has_advisories(spec: ConsumerSpec) -> bool:
    return spec.kind == TOPIC and not spec.durable
