"""The session with a broker: log-in, limits and the end, as packets in and out."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gateway.endpoints.mqtt.subscription_state import SubscriptionState
from gateway.endpoints.settings.base import U16, U32
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import (
    EndpointError,
    GatewayError,
    NotConnectedError,
    TranslationError,
    WireError,
)
from gateway.setting import current
from gateway.wire.mqtt.reasons import connack_error, disconnect_error, reason_text
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
    UNSUBACK,
    Connect,
    decode_connack,
    decode_disconnect,
    encode_connect,
)

# Others would make a dead letter of every message, or let none be sent (MQTT 5.0, 3.2.2.3).
_LEGAL: Final = MappingProxyType(
    {
        RECEIVE_MAXIMUM: range(1, U16 + 1),
        MAXIMUM_QOS: range(2),
        RETAIN_AVAILABLE: range(2),
        MAXIMUM_PACKET_SIZE: range(1, U32 + 1),
    }
)


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

    def __init__(
        self,
        settings: MqttSettings,
        client_id: str,
        *,
        clean: bool,
        label: str,
        will: tuple[str, bytes] | None = None,
    ) -> None:
        self._settings, self._clean, self._label = settings, clean, label
        self._will = will
        self._client_id = client_id
        self._five = settings.version == "5"
        self.subscriptions = SubscriptionState(settings, label)
        self.connected = False
        self.present = False  # the broker has kept the session
        self.keepalive = settings.keepalive  # seconds; the broker may choose fewer
        self.limits = BrokerLimits()

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
            username=current(settings.username),
            password=current(settings.password),
            session_expiry=None if self._clean else min(settings.session_expiry, U32),
            receive_maximum=settings.receive_window,
            max_packet=settings.max_packet_in,
            will=self._will,
        )
        try:
            return encode_connect(connect, five=self._five)
        except TranslationError as error:
            raise EndpointError(f"{self._label}: {error.reason}") from error

    def receive(self, packet: bytes) -> GatewayError | None:
        """Handle one whole packet; return why the session is over, or None."""
        kind = packet[0] >> 4
        try:
            if kind == CONNACK and not self.connected:
                return self._receive_connack(packet)
            if kind == SUBACK and self.connected:
                return self.subscriptions.receive_suback(packet)
            if kind == UNSUBACK and self.connected:
                self.subscriptions.receive_unsuback(packet)
                return None
            if kind == DISCONNECT and self.connected and self._five:
                reason, properties = decode_disconnect(packet)
                text = reason_text(reason, properties.get(REASON_STRING, ""))
                return disconnect_error(self._label, self._client_id, text, reason)
            fault = f"unexpected packet of type {kind}"
        except WireError as error:
            fault = str(error)
        return NotConnectedError(f"{self._label}: the broker broke the protocol: {fault}")

    def _receive_connack(self, packet: bytes) -> GatewayError | None:
        reason, present, properties = decode_connack(packet, five=self._five)
        if reason:
            text = properties.get(REASON_STRING, "")
            return connack_error(self._label, self._settings.version, reason, text)
        for kind, legal in _LEGAL.items():
            if (value := properties.get(kind, legal.start)) not in legal:
                raise WireError(f"mqtt: a CONNACK has {value} as property 0x{kind:02x}")
        self.connected, self.present = True, present
        asked = properties.get(SERVER_KEEP_ALIVE)
        self.keepalive = min(asked or self.keepalive, self.keepalive)  # 0: none for the broker
        self.limits = BrokerLimits(
            qos=properties.get(MAXIMUM_QOS, 2),
            receive_maximum=properties.get(RECEIVE_MAXIMUM, U16),
            max_packet=properties.get(MAXIMUM_PACKET_SIZE, U32),
            retain=properties.get(RETAIN_AVAILABLE, 1) == 1,
        )
        return None
