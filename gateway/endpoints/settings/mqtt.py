"""Settings of an MQTT endpoint; data only, no driver is imported."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.endpoints.settings.base import ALL_FIELDS, U16, U32, TlsSettings, setting
from gateway.model.message import DeliveryMode

MQTT_PACKET = 268_435_460  # bytes: 268,435,455 after a fixed header of 5 (MQTT 5.0, 2.1.4)


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttSettings:
    """An MQTT broker, 3.1.1 or 5.0."""

    name: str = setting("mqtt", "what the endpoint is called in the configuration")
    dialect: str = setting("mqtt", "the naming rules; an override tightens their limits")
    host: str = setting("localhost", "the broker's name or address")
    port: int = setting(
        0, "the broker's port; 0 is 1883, or 8883 with `tls`", minimum=0, maximum=U16
    )
    version: str = setting("5", "the protocol's version", choices=("3.1.1", "5"))
    client_id: str = setting(
        "", "how the broker knows this client; `gateway-` and the endpoint's name when empty"
    )
    session_expiry: int = setting(
        86_400,
        "seconds the broker keeps the source's session after a break; 0 is a clean session."
        " In 3.1.1 every other value keeps it for as long as the broker likes",
        minimum=0,
        maximum=U32,
    )
    keepalive: int = setting(
        30, "seconds of silence after which the peer is asked for a sign", minimum=1, maximum=U16
    )
    qos: int = setting(
        1, "the highest QoS of subscriptions and of what is published", choices=(0, 1, 2)
    )
    username: str | None = setting(None, "the user name")
    password: str | None = setting(None, "the password", secret=True)
    tls: TlsSettings | None = setting(None, "encryption; absent is plain TCP")  # noqa: RUF009
    receive_maximum: int = setting(
        5_000,
        "messages of QoS 1 and 2 the broker may have under way to the source (5.0 only)",
        minimum=1,
        maximum=U16,
    )
    inflight: int = setting(
        5_000,
        "messages of QoS 1 and 2 the sink may have under way; a broker of 5.0 can lower it",
        minimum=1,
        maximum=U16,
    )
    queue_bytes: int = setting(
        16_777_216,
        "bytes a source holds that nobody has received; above it reads no more",
        minimum=65_536,
    )
    max_packet: int = setting(
        MQTT_PACKET,
        "bytes of the longest packet the broker takes; a message past it is rejected",
        minimum=64,
        maximum=MQTT_PACKET,
    )
    no_local: bool = setting(
        default=False, doc="do not receive what the same connection has published (5.0 only)"
    )
    connect_timeout: float = setting(
        10.0, "seconds for the connection, the log-in and the subscriptions", minimum=0.1
    )
    answer_timeout: float = setting(
        30.0, "seconds after which an unanswered publish declares the connection stuck", minimum=0.1
    )
    backoff_min: float = setting(0.5, "seconds before the first new attempt", minimum=0.01)
    backoff_max: float = setting(30.0, "seconds between attempts at most", minimum=0.01)

    @property
    def broker_key(self) -> str:
        """What two endpoints of one broker have in common."""
        return f"mqtt://{self.host}:{self.port or (8883 if self.tls else 1883)}"

    @property
    def carries(self) -> frozenset[str]:
        """The fields of `Headers` that survive the way over this system and back."""
        if self.version == "5":
            return ALL_FIELDS - {"redelivered"}
        return frozenset({"mode", "retained"})

    @property
    def mode(self) -> DeliveryMode:
        """The best this endpoint promises."""
        return DeliveryMode(self.qos)
