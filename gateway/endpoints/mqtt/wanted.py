"""Everything of an MQTT source that outlives its connections.

subscriptions    from the configuration, and one to the broker's count of dropped messages
memory           the filters that each broker may have, with their options; the rest of a kept
                 session is of the process
addresses        the one to try next, and the ends of connections that tell of a fault
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.base import Subscription
from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.made import Made
from gateway.endpoints.mqtt.addresses import Addresses
from gateway.endpoints.mqtt.client_id import ClosedConnections, client_id
from gateway.endpoints.mqtt.count_request import CountRequest
from gateway.endpoints.mqtt.kept_session import NO_OPTIONS, KeptSession, kept_session, read_options
from gateway.endpoints.mqtt.subscription_state import RequestedSubscription
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.source_memory import SourceMemory
from gateway.wire.mqtt.topic_filters import SHARED, any_selects, inner_filter

# Subscription options (MQTT 5.0, 3.8.3.1)
NO_LOCAL, RETAIN_AS_PUBLISHED = 0x04, 0x08
SEND_RETAINED_IF_NEW, SEND_NO_RETAINED = 0x10, 0x20
LASTING = (
    NO_LOCAL | RETAIN_AS_PUBLISHED
)  # the others are about one SUBSCRIBE; any broker takes a QoS


class WantedSession:
    """The session of a source. Mutable: owned by the receiving thread."""

    def __init__(
        self, settings: MqttSettings, subscriptions: Sequence[Subscription], instance: str
    ) -> None:
        self._settings, self.subscriptions = settings, tuple(subscriptions)
        self.client_id = client_id(settings, instance)
        self._requested: Sequence[RequestedSubscription] = [
            (each.pattern, subscription_options(settings, each)) for each in subscriptions
        ]
        self.filters = {each: options & LASTING for each, options in self._requested}
        self._shares = [*map(inner_filter, filter(settings.removes, self.filters))]
        counts = settings.dropped_topic
        if any_selects(map(inner_filter, self.filters), counts):
            counts = ""  # a route selects the counts: they come once
        self.count_request = CountRequest(settings.name, counts)
        if counts:
            self.filters[counts] = 0
        self.addresses = Addresses(settings, self.client_id)
        self.closed = ClosedConnections()
        self.memory = SourceMemory()
        keeps = settings.session_expiry > 0 and settings.qos > 0
        self.continuity = Continuity(Retention.KEPT if keeps else Retention.NOTHING)
        self.made = False  # a broker made a session since the last connection that was opened

    def removes(self, address: str) -> bool:
        """Return whether a shared subscription selects the topic.

        A message does not tell which subscription it came by.
        """
        return bool(self._shares) and any_selects(self._shares, address)

    def session_at(self, settings: MqttSettings) -> Made:
        """Return the session that a connection to the one address of `settings` makes.

        A cluster has one for all addresses.
        """
        key = (self._settings if settings.cluster else settings).broker_key
        return Made("session", self.client_id, key)

    def requested_after(self, changed: Sequence[str]) -> Sequence[RequestedSubscription]:
        """Return what to subscribe to after an UNSUBSCRIBE from `changed`.

        These are new to the broker, which does not send their retained messages once more.
        """
        if self._settings.version != "5":
            return self._requested
        return [
            (
                each,
                options & ~SEND_RETAINED_IF_NEW | SEND_NO_RETAINED if each in changed else options,
            )
            for each, options in self._requested
        ]

    def kept_at(self, settings: MqttSettings) -> tuple[KeptSession, str]:
        """Return the session at the one address of `settings`, and the fact with its filters."""
        key = self.session_at(settings).broker
        several = key != self._settings.broker_key
        fact = f"filters {self.client_id}" + (f" {key}" if several else "")
        kept = kept_session(key, self.client_id)
        saved = self.memory.get(fact, read_options, NO_OPTIONS)
        kept.filters.update(saved or NO_OPTIONS)
        kept.is_unknown = saved is None
        return kept, fact


def subscription_options(settings: MqttSettings, subscription: Subscription) -> int:
    """Return the options byte of a topic filter in a SUBSCRIBE; in 3.1.1 it is just the QoS."""
    options = settings.qos
    if settings.version == "5":
        options |= 0 if subscription.marks_retained else RETAIN_AS_PUBLISHED
        options |= SEND_NO_RETAINED if subscription.exclude_retained else SEND_RETAINED_IF_NEW
        # MQTT 5.0, 3.8.3.1: No Local is a protocol error with a shared subscription
        if settings.no_local and not subscription.pattern.startswith(SHARED):
            options |= NO_LOCAL
    return options
