"""Settings of an MQTT endpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from gateway.endpoints.settings.base import (
    ALL_FIELDS,
    U16,
    U32,
    EndpointSettings,
    SettingFault,
    TlsSettings,
)
from gateway.endpoints.settings.proxy import ProxySettings
from gateway.model.message import DeliveryMode
from gateway.setting import optional, seconds, secret, setting, size, timeout, window_bytes
from gateway.wire.mqtt.topic_filters import SHARED

MAX_PACKET_IN = 16_777_216  # bytes: longer ones cost the other messages seconds
MAX_ALPN: Final = 255  # bytes of the name of a protocol (RFC 7301, 3.1)
MQTT_PACKET = 268_435_460  # bytes: 268,435,455 after a fixed header of 5 (MQTT 5.0, 2.1.4)
_HEADER_NAME: Final = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")  # RFC 9110, 5.6.2
_PATH: Final = re.compile(r"/[!-\"$-~]*")  # no space, and no fragment
_OF_HANDSHAKE: Final = {"host", "upgrade", "connection", "content-length", "transfer-encoding"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttTlsSettings(TlsSettings):
    """Encryption of a connection, and the certificates of both sides."""

    alpn: tuple[str, ...] = setting(
        "protocols that the TLS handshake offers (ALPN), such as `x-amzn-mqtt-ca` for port 443 of"
        " AWS IoT Core; none when absent",
        (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSocketSettings:
    """MQTT in a WebSocket, with the subprotocol `mqtt`."""

    path: str = setting(
        "path of the request, with a query if the server wants one", "/mqtt", reread=True
    )
    headers: Mapping[str, str] = setting(
        "further headers of the request, by name, such as `Authorization: ${file:token}`",
        default_factory=dict,
        secret=True,
    )

    @property
    def shown_path(self) -> str:
        """The path without its query, which may have a secret."""
        return self.path.partition("?")[0]

    def faults(self) -> Iterator[SettingFault]:
        """Yield what makes every handshake fail."""
        if not _PATH.fullmatch(self.path):
            hint = "begin it with `/`, and write spaces and `#` as %20 and %23"
            yield SettingFault("websocket", f"`path`: {self.shown_path!r} is no path", hint)
        for name, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(name):
                reason = f"`headers`: {name!r} is no name of a header"
                yield SettingFault("websocket", reason, "write a name such as Authorization")
            elif name.lower() in _OF_HANDSHAKE or name.lower().startswith("sec-websocket-"):
                reason = f"`headers`: {name!r} belongs to the handshake"
                yield SettingFault("websocket", reason, "remove it")
            elif any(not " " <= each <= "\xff" or each == "\x7f" for each in value):
                reason = f"`headers`: the value of {name!r} has a line break or another character"
                hint = "write it in one line of Latin-1"
                yield SettingFault("websocket", f"{reason} that no header can have", hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttSettings(EndpointSettings):
    """MQTT broker, protocol 3.1.1 or 5.0."""

    encrypted_schemes: ClassVar[tuple[str, ...]] = ("mqtts", "wss")
    client_key: ClassVar[str] = "client_id"
    name: str = setting("name of the endpoint in the configuration", "mqtt")
    dialect: str = setting("system whose naming rules the names follow", "mqtt")
    host: str = setting(
        "host name or IP address of the broker; several addresses, HOST or HOST:PORT, are separated"
        " by commas and tried in turn",
        "localhost",
    )
    port: int = setting(
        "TCP port of the broker, where `host` has none; 0: 1883, or 8883 with `tls`; with"
        " `websocket` 80, or 443",
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
    username: str | None = optional("user name", reread=True)
    password: str | None = secret("password")
    tls: MqttTlsSettings | None = optional("TLS; plain TCP when absent")
    websocket: WebSocketSettings | None = optional(
        "WebSocket (`ws://`, with `tls` `wss://`), as a mapping or as its path; absent: none",
        shorthand="path",
    )
    proxy: ProxySettings | None = optional(
        "proxy that makes the connections, as a mapping or as its URL; absent: none",
        shorthand="url",
    )
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
    restore_retained: bool = setting(
        "send the retained messages of the sources again to this target when its broker began"
        " empty",
        False,
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
                keys = "`port`, `tls` and `websocket` have keys of their own"
                hint = f"write HOST or HOST:PORT; {keys}"
                yield SettingFault("host", f"{text.strip()!r} is no host name", hint)
        for each in self.tls.alpn if self.tls else ():
            if not 0 < len(each.encode()) <= MAX_ALPN:
                hint = f"write 1 to {MAX_ALPN} bytes"
                yield SettingFault("tls", f"`alpn`: {each!r} is no name of a protocol", hint)
        if self.websocket is not None:
            yield from self.websocket.faults()
        if self.proxy is not None:
            yield from self.proxy.faults()

    def removes(self, pattern: str) -> bool:
        """Return whether the subscription is shared."""
        return pattern.startswith(SHARED)

    @property
    def each_address(self) -> tuple[MqttSettings, ...]:
        """The settings with one address each, in the order of the file."""
        plain, encrypted = (1883, 8883) if self.websocket is None else (80, 443)
        default = self.port or (encrypted if self.tls else plain)
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
        return f"mqtt://{','.join(sorted(map(self._place, self.each_address)))}"

    @property
    def broker_keys(self) -> tuple[str, ...]:
        """The key of each single broker, where the address names several."""
        return tuple(f"mqtt://{self._place(each)}" for each in self.each_address)

    @property
    def addresses(self) -> tuple[str, ...]:
        """URLs of the brokers; their schemes tell whether the connection is encrypted."""
        schemes = ("mqtt", "mqtts") if self.websocket is None else ("ws", "wss")
        scheme = schemes[self.tls is not None]
        return tuple(f"{scheme}://{each.address}{self._path}" for each in self.each_address)

    @property
    def way(self) -> str:
        """WebSocket and proxy between the gateway and the broker, as a text; empty without."""
        websocket = f"WebSocket {self._path}" if self.websocket else ""
        proxy = f"by proxy {self.proxy.address}" if self.proxy else ""
        return ", ".join(filter(None, (websocket, proxy)))

    @property
    def _path(self) -> str:
        return "" if self.websocket is None else self.websocket.shown_path

    def _place(self, each: MqttSettings) -> str:
        """Return the address of one broker; one HTTP server may have several, by their paths."""
        return each.address.lower() + self._path

    @property
    def carries(self) -> frozenset[str]:
        """Fields of `Headers` that survive a round trip through the system."""
        if self.version == "5":
            return ALL_FIELDS - {"redelivered"}
        return frozenset({"mode", "retained"})

    @property
    def loses(self) -> frozenset[str]:
        """Fields that the broker does not pass on to a source with every message.

        In 3.1.1 a live message has no RETAIN (MQTT 3.1.1, 3.3.1.3).
        """
        return frozenset() if self.version == "5" else frozenset({"retained"})

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
