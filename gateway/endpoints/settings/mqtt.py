"""Settings of an MQTT endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from gateway.endpoints.settings.base import (
    ALL_FIELDS,
    U16,
    U32,
    EndpointSettings,
    SettingFault,
    TlsSettings,
)
from gateway.model.message import DeliveryMode
from gateway.setting import optional, seconds, secret, setting, size, timeout, window_bytes
from gateway.wire.mqtt.topic_filters import SHARED

MAX_PACKET_IN = 16_777_216  # bytes: longer ones cost the other messages seconds
MQTT_PACKET = 268_435_460  # bytes: 268,435,455 after a fixed header of 5 (MQTT 5.0, 2.1.4)


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttSettings(EndpointSettings):
    """MQTT broker, protocol 3.1.1 or 5.0."""

    encrypted_schemes: ClassVar[tuple[str, ...]] = ("mqtts",)
    client_key: ClassVar[str] = "client_id"
    name: str = setting("name of the endpoint in the configuration", "mqtt")
    dialect: str = setting("system whose naming rules the names follow", "mqtt")
    host: str = setting(
        "host name or IP address of the broker; several addresses, HOST or HOST:PORT, are separated"
        " by commas and tried in turn",
        "localhost",
    )
    port: int = setting(
        "TCP port of the broker, where `host` has none; 0: 1883, or 8883 with `tls`",
        0,
        minimum=0,
        maximum=U16,
    )
    cluster: bool = setting(
        "the addresses are nodes of one cluster, which shares sessions and messages; false:"
        " brokers with sessions of their own",
        False,
    )
    fail_back: bool = setting(
        "return to the first address when it answers again, at a moment without unsettled messages;"
        " false: stay at the address in use until its connection is lost",
        False,
    )
    version: str = setting("protocol version", "5", choices=("3.1.1", "5"))
    client_id: str = setting(
        "client id at the broker, different for each gateway; when empty, `gateway.name`, `-` and"
        " the name of the endpoint",
        "",
    )
    session_expiry: int = seconds(
        "seconds for which the broker keeps the source's session after a disconnect; 0: a clean"
        " session. In 3.1.1 any other value keeps the session for as long as the broker chooses",
        86_400,
        minimum=0,
        maximum=U32,
    )
    keepalive: int = seconds("keep alive interval, in seconds", 30, minimum=1, maximum=U16)
    qos: int = setting(
        "highest QoS of subscriptions and of published messages", 1, choices=(0, 1, 2)
    )
    username: str | None = optional("user name")
    password: str | None = secret("password")
    tls: TlsSettings | None = optional("TLS; plain TCP when absent")
    receive_window: int = setting(
        "unacknowledged messages of QoS 1 and 2 that the broker may send to a source (Receive"
        " Maximum of MQTT 5.0; no effect in 3.1.1)",
        5_000,
        minimum=1,
        maximum=U16,
    )
    send_window: int = setting(
        "unacknowledged messages of QoS 1 and 2 that a sink sends; a broker of 5.0 can lower it",
        5_000,
        minimum=1,
        maximum=U16,
    )
    receive_window_bytes: int = window_bytes(
        "bytes of received and unsettled messages at which a source stops reading", 16_777_216
    )
    max_packet: int = size(
        "bytes of the longest packet that the broker accepts; longer messages are rejected; a"
        " broker of 5.0 can lower it",
        MQTT_PACKET,
        minimum=64,
        maximum=MQTT_PACKET,
    )
    max_packet_in: int = size(
        "bytes of the longest packet that the endpoint receives (Maximum Packet Size of MQTT 5.0);"
        " a broker of 5.0 drops longer messages, and in 3.1.1 each is a dead letter without its"
        " payload",
        MAX_PACKET_IN,
        minimum=4_194_304,
        maximum=MQTT_PACKET,
    )
    no_local: bool = setting(
        "do not receive messages that the same connection has published (5.0 only)", False
    )
    dropped_topic: str = setting(
        "topic on which the broker publishes how many messages it has dropped; the default is that"
        " of mosquitto. A source records a rise as a gap, although the broker counts for all its"
        " clients; a source asks for no count when empty",
        "$SYS/broker/publish/messages/dropped",
    )
    connect_timeout: float = timeout("seconds for connecting, logging in and subscribing", 10.0)
    answer_timeout: float = timeout(
        "seconds without progress after which the connection of a sink with unacknowledged"
        " messages is closed as stuck",
        30.0,
    )

    def for_gateway(self, gateway: str, endpoint: str) -> MqttSettings:
        """Return the settings with a client id."""
        return replace(self, client_id=self.client_id or f"{gateway}-{endpoint}")

    def faults(self) -> Iterator[SettingFault]:
        """Yield the faults that only a connection would show."""
        for text in self.host.split(","):
            host, port = _host_and_port(text)
            if not host or "/" in host or " " in host or port > U16:
                hint = "write HOST or HOST:PORT; `port` and `tls` have keys of their own"
                yield SettingFault("host", f"{text.strip()!r} is no host name", hint)

    def removes(self, pattern: str) -> bool:
        """Return whether the subscription is shared."""
        return pattern.startswith(SHARED)

    @property
    def each_address(self) -> tuple[MqttSettings, ...]:
        """The settings with one address each, in the order of the file."""
        default = self.port or (8883 if self.tls else 1883)
        found = map(_host_and_port, self.host.split(","))
        return tuple(replace(self, host=host, port=port or default) for host, port in found)

    @property
    def address(self) -> str:
        """HOST:PORT of the broker; of the first one if there are several."""
        first = self.each_address[0]
        return f"{f'[{first.host}]' if ':' in first.host else first.host}:{first.port}"

    @property
    def broker_key(self) -> str:
        """Address of the broker; equal for two endpoints of the same broker."""
        return f"mqtt://{','.join(sorted(each.address.lower() for each in self.each_address))}"

    @property
    def broker_keys(self) -> tuple[str, ...]:
        """The key of each broker alone, where the address names several."""
        return tuple(f"mqtt://{each.address.lower()}" for each in self.each_address)

    @property
    def addresses(self) -> tuple[str, ...]:
        """URLs of the brokers; their schemes tell whether the connection is encrypted."""
        scheme = "mqtts" if self.tls else "mqtt"
        return tuple(f"{scheme}://{each.address}" for each in self.each_address)

    @property
    def carries(self) -> frozenset[str]:
        """Fields of `Headers` that survive a round trip through the system."""
        if self.version == "5":
            return ALL_FIELDS - {"redelivered"}
        return frozenset({"mode", "retained"})

    @property
    def mode(self) -> DeliveryMode:
        """Strongest delivery mode of the endpoint."""
        return DeliveryMode(self.qos)


def _host_and_port(text: str) -> tuple[str, int]:
    """Return host and port of an address; the port is 0 where the text has none."""
    text = text.strip()
    host, colon, port = text.rpartition(":")
    if colon and port.isdecimal() and (":" not in host or host.endswith("]")):
        return host.strip("[]"), int(port)
    return text.strip("[]"), 0
