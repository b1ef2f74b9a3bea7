"""The request for a broker's count of dropped messages: some brokers hang up at it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeVar

from gateway.endpoints.mqtt.subscription_state import SubscriptionState
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import GatewayError

log = logging.getLogger(__name__)
T = TypeVar("T")

MAX_UNANSWERED: Final = 2  # connections in a row that ended without an answer to the request


class CountRequest:
    """Whether a connection of a source subscribes to `topic`; empty for no count.

    A connection that ends before the broker answers is followed by one without the request; a
    later one asks again, because the network may have ended it. A second such end, and a refusal,
    are for good. Mutable: owned by the source.
    """

    def __init__(self, name: str, topic: str) -> None:
        self._name, self._topic = name, topic
        self._unanswered = 0
        self._skips = False
        self.ended_last = False  # the request may be why the last connection is lost

    @property
    def topic(self) -> str:
        """The topic to subscribe to over the next connection; empty for none."""
        return "" if self._skips or self._unanswered >= MAX_UNANSWERED else self._topic

    def attempt(self, connect: Callable[[MqttSettings], T], settings: MqttSettings) -> T:
        """Connect, and a second time, without the request, when it may have ended the connection.

        Raises:
            GatewayError: of `connect`.
        """
        try:
            return connect(settings)
        except GatewayError:
            if not self.ended_last:
                raise
            return connect(settings)

    def connected(self) -> None:
        """Note a connection that is subscribed."""
        self._skips = False

    def ended(self, subscriptions: SubscriptionState, *, lost: bool) -> None:
        """Note the end of a connection, and whether it was `lost`."""
        self.ended_last = False
        if subscriptions.count_refused:
            self._unanswered = MAX_UNANSWERED
        elif subscriptions.count_asked and not subscriptions.count_unanswered:
            self._unanswered = 0
        elif subscriptions.count_unanswered and lost:
            self._unanswered += 1
            self._skips = self.ended_last = True
            log.warning(
                "%s: the connection ended before the broker answered the subscription to"
                " `dropped_topic` %r: messages that the broker drops are in no gap; set"
                ' `dropped_topic: ""` if the broker takes no such subscription',
                self._name,
                self._topic,
            )
