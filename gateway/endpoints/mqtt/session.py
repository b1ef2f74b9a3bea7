"""The session with a broker, spoken by paho: log-in, subscriptions, good-bye and what they say.

It opens nothing and waits for nothing: packets go out by a pipe and come in by `take`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paho.mqtt.client import ConnectFlags
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from gateway.endpoints.mqtt.paho_client import Pipe, SessionClient, new_properties
from gateway.endpoints.mqtt.reasons import connack_error, disconnect_error
from gateway.endpoints.mqtt.sockets import port
from gateway.endpoints.settings.base import U32
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import EndpointError, GatewayError, NotConnectedError

CONNACK = 2
AT_ONCE = 8  # patterns in one SUBSCRIBE: hosted brokers take no more

Wanted = tuple[str, SubscribeOptions | int]


class Session:
    """Mutable: a conversation has a state."""

    def __init__(
        self, settings: MqttSettings, client_id: str, *, clean: bool, pipe: Pipe, where: str
    ) -> None:
        self._settings, self._clean, self._where = settings, clean, where
        self._client_id = client_id
        self._client = SessionClient(client_id, settings.version, clean=clean, pipe=pipe)
        if settings.username is not None:
            self._client.username_pw_set(settings.username, settings.password)
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_disconnect = self._on_disconnect
        self._unanswered: dict[int, list[str]] = {}  # SUBSCRIBE's packet id -> its patterns
        self._refused: list[str] = []
        self._over: GatewayError | None = None
        self.connected = False
        self.present = False  # the broker has kept our session
        self.granted = 2  # the lowest QoS of all subscriptions
        self.broker = new_properties(PacketTypes.CONNACK)  # what the broker said of its limits

    @property
    def keepalive(self) -> int:
        """Seconds; the broker may have chosen its own (MQTT 5.0, 3.2.2.3.14)."""
        return self._client.keepalive

    @property
    def subscribed(self) -> bool:
        return not self._unanswered

    def log_in(self) -> None:
        settings = self._settings
        where = (settings.host, port(settings), settings.keepalive)
        if settings.version == "5":
            properties = new_properties(PacketTypes.CONNECT)
            properties.ReceiveMaximum = settings.receive_maximum
            if not self._clean:
                properties.SessionExpiryInterval = min(settings.session_expiry, U32)
            self._client.connect(*where, clean_start=self._clean, properties=properties)
        else:
            self._client.connect(*where)
        self._client.drain()

    def subscribe(self, wanted: Sequence[Wanted]) -> None:
        """Ask for all of `wanted`; raises EndpointError for a filter that is not legal."""
        for start in range(0, len(wanted), AT_ONCE):
            part = list(wanted[start : start + AT_ONCE])
            patterns = [pattern for pattern, _ in part]
            try:
                _, packet_id = self._client.subscribe(part)  # type: ignore[arg-type]  # one of two
            except ValueError as error:
                shown = ", ".join(map(repr, patterns))
                raise EndpointError(f"{self._where}: not a legal filter in {shown}") from error
            if packet_id is not None:
                self._unanswered[packet_id] = patterns
            self._client.drain()

    def check_subscriptions(self) -> None:
        """Raise EndpointError when the broker has refused some of them."""
        if self._refused:
            shown = ", ".join(self._refused)
            raise EndpointError(f"{self._where}: the broker refuses the subscription to {shown}")

    def log_out(self) -> None:
        self._client.on_disconnect = None
        self._client.disconnect()
        self._client.drain()

    def take(self, packet: bytes) -> GatewayError | None:
        """Read one whole packet; the answer says why the session is over, when it is."""
        if packet[0] >> 4 == CONNACK and not self.connected and len(packet) > 3:  # noqa: PLR2004
            refusal = connack_error(self._where, self._settings.version, packet[3])
            if refusal is not None:
                return refusal
        if self._client.take(packet) or self._over is not None:
            return self._over
        return NotConnectedError(f"{self._where}: the broker broke the protocol")

    def _on_connect(
        self,
        _client: object,
        _userdata: object,
        flags: ConnectFlags,
        _reason: ReasonCode,
        properties: Properties | None,
    ) -> None:
        self.connected = True
        self.present = flags.session_present
        if properties is not None:
            self.broker = properties

    def _on_subscribe(
        self,
        _client: object,
        _userdata: object,
        packet_id: int,
        reasons: list[ReasonCode],
        _properties: Properties | None,
    ) -> None:
        patterns = self._unanswered.pop(packet_id, [])
        for pattern, reason in zip(patterns, reasons, strict=False):
            if reason.is_failure:
                self._refused.append(f"{pattern!r} ({reason})")
            else:
                self.granted = min(self.granted, reason.value)

    def _on_disconnect(
        self,
        _client: object,
        _userdata: object,
        _flags: object,
        reason: ReasonCode,
        _properties: object,
    ) -> None:
        self._over = disconnect_error(self._where, self._client_id, str(reason), reason.value)
