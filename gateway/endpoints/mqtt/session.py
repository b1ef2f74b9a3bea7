"""The session with a broker: log-in and subscriptions, as packets in and out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from gateway.endpoints.settings.base import U16, U32
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import (
    EndpointError,
    GatewayError,
    NotConnectedError,
    SubscriptionRefusedError,
    TranslationError,
    WireError,
)
from gateway.wire.mqtt.reasons import (
    FAILURE,
    connack_error,
    disconnect_error,
    reason_text,
)
from gateway.wire.mqtt.session_packets import (
    CONNACK,
    DISCONNECT,
    MAXIMUM_PACKET_SIZE,
    MAXIMUM_QOS,
    REASON_STRING,
    RECEIVE_MAXIMUM,
    RETAIN_AVAILABLE,
    SERVER_KEEP_ALIVE,
    SUBACK,
    TOO_LARGE_PACKET,
    UNSUBACK,
    Connect,
    Properties,
    decode_connack,
    decode_disconnect,
    decode_suback,
    decode_unsuback,
    encode_connect,
    encode_subscribe,
    encode_unsubscribe,
)
from gateway.wire.mqtt.topic_filters import is_legal_filter

MAX_FILTERS = 8  # in one SUBSCRIBE or UNSUBSCRIBE: hosted brokers accept no more

RequestedSubscription: TypeAlias = tuple[str, int]  # topic filter, subscription options


@dataclass(frozen=True, slots=True)
class BrokerLimits:
    """The limits that a broker announces in its CONNACK (MQTT 5.0, 3.2.2.3)."""

    qos: int = 2
    receive_maximum: int = U16
    max_packet: int = U32
    retain: bool = True


class MqttSession:
    """The state of one session.

    Mutable: owned by the leader of its connection.
    """

    def __init__(self, settings: MqttSettings, client_id: str, *, clean: bool, label: str) -> None:
        self._settings, self._clean, self._label = settings, clean, label
        self._client_id = client_id
        self._five = settings.version == "5"
        self._last_id = 0
        self._unanswered: dict[int, list[str]] = {}  # packet id of a SUBSCRIBE -> its filters
        self._unsubscribing: dict[int, Sequence[str]] = {}  # the same of an UNSUBSCRIBE
        self._refused: list[str] = []
        self._count_id = 0  # packet id of the SUBSCRIBE to the count of dropped messages; 0: none
        self.count_asked = self.count_unanswered = self.count_refused = False
        self.connected = False
        self.present = False  # the broker has kept the session
        self.granted = 2  # the lowest QoS of all subscriptions
        self.warnings: list[str] = []  # for the log; the connection takes them
        self.unsubscribed: set[str] = set()  # filters that the broker has removed
        self.keepalive = settings.keepalive  # seconds; the broker may choose fewer
        self.limits = BrokerLimits()

    @property
    def subscribed(self) -> bool:
        return not self._unanswered

    def log_in(self) -> bytes:
        """Return a CONNECT.

        Raises:
            EndpointError: a setting has no legal form in MQTT.
        """
        settings = self._settings
        connect = Connect(
            client_id=self._client_id,
            clean=self._clean,
            keepalive=settings.keepalive,
            username=settings.username,
            password=settings.password,
            session_expiry=None if self._clean else min(settings.session_expiry, U32),
            receive_maximum=settings.receive_window,
            max_packet=settings.max_packet_in,
        )
        try:
            return encode_connect(connect, five=self._five)
        except TranslationError as error:
            raise EndpointError(f"{self._label}: {error.reason}") from error

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

    def refuse_packet(self) -> bytes:
        """Return the last bytes to a broker that has sent a packet over the limit."""
        return TOO_LARGE_PACKET if self._five else b""

    def receive(self, packet: bytes) -> GatewayError | None:
        """Handle one whole packet; return why the session is over, or None."""
        kind = packet[0] >> 4
        try:
            if kind == CONNACK and not self.connected:
                return self._receive_connack(packet)
            if kind == SUBACK and self.connected:
                return self._receive_suback(packet)
            if kind == UNSUBACK and self.connected:
                self._receive_unsuback(packet)
                return None
            if kind == DISCONNECT and self.connected and self._five:
                reason, properties = decode_disconnect(packet)
                text = reason_text(reason, _reason_string(properties))
                return disconnect_error(self._label, self._client_id, text, reason)
        except WireError as error:
            return NotConnectedError(f"{self._label}: the broker broke the protocol: {error}")
        return NotConnectedError(
            f"{self._label}: the broker broke the protocol: unexpected packet of type {kind}"
        )

    def _receive_connack(self, packet: bytes) -> GatewayError | None:
        connack = decode_connack(packet, five=self._five)
        properties = connack.properties
        if connack.reason:
            text = _reason_string(properties)
            return connack_error(self._label, self._settings.version, connack.reason, text)
        self.connected, self.present = True, connack.session_present
        asked = _number(properties, SERVER_KEEP_ALIVE, self.keepalive)
        self.keepalive = min(asked or self.keepalive, self.keepalive)  # 0: none for the broker
        self.limits = BrokerLimits(
            qos=_number(properties, MAXIMUM_QOS, 2),
            receive_maximum=_number(properties, RECEIVE_MAXIMUM, U16),
            max_packet=_number(properties, MAXIMUM_PACKET_SIZE, U32),
            retain=_number(properties, RETAIN_AVAILABLE, 1) == 1,
        )
        return None

    def _receive_suback(self, packet: bytes) -> GatewayError | None:
        """Return an error with the last SUBACK if the broker has refused a filter."""
        packet_id, reasons = decode_suback(packet, five=self._five)
        if packet_id == self._count_id:
            self._receive_count_suback(reasons)
            return None
        for topic_filter, reason in zip(self._unanswered.pop(packet_id, []), reasons, strict=False):
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

    def _receive_count_suback(self, reasons: Sequence[int]) -> None:
        self.count_unanswered = False
        for reason in reasons:
            if reason >= FAILURE:
                self.count_refused = True
                self.warnings.append(
                    f"the broker refuses `dropped_topic` {self._settings.dropped_topic!r}"
                    f" ({reason_text(reason)}); messages that it drops are in no gap"
                )

    def _receive_unsuback(self, packet: bytes) -> None:
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


def _number(properties: Properties, kind: int, default: int) -> int:
    return cast(int, properties.get(kind, default))


def _reason_string(properties: Properties) -> str:
    return cast(str, properties.get(REASON_STRING, ""))
