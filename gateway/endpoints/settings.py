"""One frozen settings class per kind of endpoint; data only, it imports no driver.

Every field carries its documentation and its bounds in `field.metadata`, so that the
configuration loader, the JSON Schema and the documentation come from the same lines:
`doc`, `minimum`, `maximum`, `choices`, `secret`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from gateway.model.message import DeliveryMode

T = TypeVar("T")

U16 = 65_535
U32 = 4_294_967_295
MQTT_PACKET = 268_435_460  # bytes: 268,435,455 after a fixed header of 5 (MQTT 5.0, 2.1.4)

ALL_FIELDS = frozenset(
    {
        "mode", "retained", "redelivered", "priority", "expiry", "time", "content_type",
        "correlation_id", "reply_to", "source_id", "origin", "properties",
    }
)  # fmt: skip


def setting(  # noqa: PLR0913  # the facts of one field
    default: T,
    doc: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[object, ...] = (),
    secret: bool = False,
) -> T:
    """A dataclass field with its facts; a secret stays out of `repr`."""
    facts: dict[str, object] = {"doc": doc}
    if minimum is not None:
        facts["minimum"] = minimum
    if maximum is not None:
        facts["maximum"] = maximum
    if choices:
        facts["choices"] = choices
    if secret:
        facts["secret"] = True
    return field(default=default, repr=not secret, metadata=facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """How a connection is encrypted and who proves what to whom."""

    ca_file: str | None = setting(
        None, "file of trusted authorities (PEM); the system's own when absent"
    )
    cert_file: str | None = setting(None, "our certificate (PEM), for mutual TLS")
    key_file: str | None = setting(None, "the key of our certificate; in `cert_file` when absent")
    key_password: str | None = setting(None, "what unlocks the key", secret=True)
    verify: bool = setting(
        default=True, doc="check the broker's certificate and its name; off only for trials"
    )
    server_hostname: str | None = setting(
        None, "the name to expect in the broker's certificate; `host` when absent"
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """A broker inside this process, with the naming rules of any system."""

    name: str = setting("memory", "what the endpoint is called in the configuration")
    dialect: str = setting("mqtt", "the system whose naming rules the broker follows")
    broker: str = setting("default", "which of the process's brokers; made at first use")
    capacity: int = setting(
        67_108_864, "bytes each subscriber's queue holds; a full one slows senders", minimum=1
    )
    durable: bool = setting(
        default=True, doc="the queue outlives a closed source and goes on collecting"
    )
    headers: bool = setting(
        default=True, doc="carry all headers; off: only what MQTT 3.1.1 has room for"
    )
    backoff_min: float = setting(0.5, "seconds before the first new attempt", minimum=0.01)
    backoff_max: float = setting(30.0, "seconds between attempts at most", minimum=0.01)

    @property
    def broker_key(self) -> str:
        """What two endpoints of one broker have in common."""
        return f"memory:{self.broker}"

    @property
    def carries(self) -> frozenset[str]:
        """The fields of `Headers` that survive: nothing is encoded, so all can."""
        return ALL_FIELDS if self.headers else frozenset({"mode", "retained"})

    @property
    def mode(self) -> DeliveryMode:
        """The best this endpoint promises."""
        return DeliveryMode.EXACTLY_ONCE


class EndpointSettings(Protocol):
    """What the settings of every kind tell the runtime."""

    @property
    def name(self) -> str: ...

    @property
    def dialect(self) -> str: ...

    @property
    def broker_key(self) -> str: ...

    @property
    def backoff_min(self) -> float: ...

    @property
    def backoff_max(self) -> float: ...

    @property
    def carries(self) -> frozenset[str]: ...

    @property
    def mode(self) -> DeliveryMode: ...


def dialects_of(settings: EndpointSettings) -> tuple[str, ...]:
    """Every system whose rules the endpoint's names keep to; the first one spells them."""
    found: tuple[str, ...] = getattr(settings, "dialects", (settings.dialect,))
    return found
