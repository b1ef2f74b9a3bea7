"""Subscriptions of a session: SUBSCRIBE and UNSUBSCRIBE packets, and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import EndpointError, GatewayError, SubscriptionRefusedError, WireError
from gateway.wire.mqtt.reasons import FAILURE, reason_text
from gateway.wire.mqtt.session_packets import (
    decode_suback,
    decode_unsuback,
    encode_subscribe,
    encode_unsubscribe,
)
from gateway.wire.mqtt.topic_filters import is_legal_filter

MAX_QOS = 2
MAX_FILTERS = 8  # in one SUBSCRIBE or UNSUBSCRIBE: hosted brokers accept no more

RequestedSubscription: TypeAlias = tuple[str, int]  # topic filter, subscription options


class SubscriptionState:
    """The subscriptions that were asked for, and how the broker answered.

    Mutable: owned by the leader of its connection.
    """

    def __init__(self, settings: MqttSettings, label: str) -> None:
        self._settings, self._label = settings, label
        self._five = settings.version == "5"
        self._last_id = 0
        self._unanswered: dict[int, list[str]] = {}  # packet id of a SUBSCRIBE -> its filters
        self._unsubscribing: dict[int, Sequence[str]] = {}  # the same of an UNSUBSCRIBE
        self._refused: list[str] = []
        self._count_id = 0  # packet id of the SUBSCRIBE to the count of dropped messages; 0: none
        self.count_asked = self.count_unanswered = self.count_refused = False
        self.granted = MAX_QOS  # the lowest QoS of all subscriptions
        self.warnings: list[str] = []  # for the log; the connection takes them
        self.unsubscribed: set[str] = set()  # filters that the broker has removed

    @property
    def answered(self) -> bool:
        return not self._unanswered

    def subscribe(self, wanted: Sequence[RequestedSubscription]) -> list[bytes]:
        """Return SUBSCRIBE packets for all of `wanted`.

        Raises:
            EndpointError: a filter is not legal.
        """
        packets: list[bytes] = []
        for start in range(0, len(wanted), MAX_FILTERS):
            part = wanted[start : start + MAX_FILTERS]
            filters = [topic_filter for topic_filter, _ in part]
            if not all(map(is_legal_filter, filters)):
                shown = ", ".join(map(repr, filters))
                raise EndpointError(f"{self._label}: not a legal filter in {shown}")
            self._last_id += 1
            self._unanswered[self._last_id] = filters
            packets.append(encode_subscribe(self._last_id, part, five=self._five))
        return packets

    def subscribe_count(self, topic: str) -> list[bytes]:
        """Return a SUBSCRIBE to the broker's count at QoS 0, whose refusal is a warning.

        Raises:
            EndpointError: the topic is not a legal filter.
        """
        packets = self.subscribe([(topic, 0)])
        del self._unanswered[self._last_id]
        self._count_id, self.count_asked, self.count_unanswered = self._last_id, True, True
        return packets

    def unsubscribe(self, filters: Sequence[str]) -> list[bytes]:
        """Return UNSUBSCRIBE packets for all of `filters`."""
        packets: list[bytes] = []
        for start in range(0, len(filters), MAX_FILTERS):
            part = filters[start : start + MAX_FILTERS]
            self._last_id += 1
            self._unsubscribing[self._last_id] = part
            packets.append(encode_unsubscribe(self._last_id, part, five=self._five))
        return packets

    def receive_suback(self, packet: bytes) -> GatewayError | None:
        """Return an error with the last SUBACK if the broker has refused a filter.

        Raises:
            WireError: the packet breaks the protocol.
        """
        packet_id, reasons = decode_suback(packet, five=self._five)
        is_count = packet_id == self._count_id and self.count_unanswered
        filters = [""] if is_count else self._unanswered.pop(packet_id, [])
        if len(filters) != len(reasons) or not reasons:
            raise WireError(f"mqtt: a SUBACK of {len(reasons)} reasons for {len(filters)} filters")
        if any(MAX_QOS < each < FAILURE for each in reasons):
            raise WireError("mqtt: a SUBACK grants a QoS above 2")
        if is_count:
            (reason,) = reasons
            self.count_unanswered, self.count_refused = False, reason >= FAILURE
            if self.count_refused:
                self.warnings.append(
                    f"the broker refuses `dropped_topic` {self._settings.dropped_topic!r}"
                    f" ({reason_text(reason)}); messages that it drops are in no gap"
                )
            return None
        for topic_filter, reason in zip(filters, reasons, strict=True):
            if reason >= FAILURE:
                self._refused.append(f"{topic_filter!r} ({reason_text(reason)})")
            else:
                self.granted = min(self.granted, reason)
        if self._unanswered:
            return None
        if self._refused:
            shown = ", ".join(self._refused)
            text = f"{self._label}: the broker refuses the subscription to {shown}"
            return SubscriptionRefusedError(text)
        if self.granted < self._settings.qos:
            qos = self._settings.qos
            self.warnings.append(f"the broker grants QoS {self.granted}, {qos} was requested")
        return None

    def receive_unsuback(self, packet: bytes) -> None:
        """Note the filters that the broker has removed.

        Raises:
            WireError: the packet breaks the protocol.
        """
        packet_id, reasons = decode_unsuback(packet, five=self._five)
        filters = self._unsubscribing.pop(packet_id, ())
        for topic_filter, reason in zip(filters, reasons or bytes(len(filters)), strict=False):
            if reason < FAILURE:
                self.unsubscribed.add(topic_filter)
                continue
            self.warnings.append(
                "the broker does not remove the subscription to"
                f" {topic_filter!r}: {reason_text(reason)}"
            )
