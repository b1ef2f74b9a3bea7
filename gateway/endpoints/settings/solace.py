"""Settings of a Solace endpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from gateway.endpoints.settings.base import (
    ALL_FIELDS,
    EndpointSettings,
    SettingFault,
    TlsSettings,
    address_faults,
    server_key,
)
from gateway.model.message import DeliveryMode
from gateway.setting import optional, seconds, secret, setting, size, timeout, window_bytes

_ADDRESS = re.compile(r"\s*(?:(?P<scheme>tcps?|https?|wss?):(?://)?)?(?P<rest>.*)")  # tcp if absent
_HOST = r"(\[[^\]\s]+\]|[^/:\[\]\s]+)(:[0-9]+)?"
_URL = re.compile(rf"(tcps?:(//)?)?{_HOST}|(https?|wss?)://{_HOST}(/[^\s]*)?")
_PORTS = {"tcp": 55_555, "tcps": 55_443, "http": 80, "ws": 80, "https": 443, "wss": 443}
QUEUE_PREFIXES = ("#P2P/QUE/", "#P2P/QTMP/")  # topics that stand for queues


@dataclass(frozen=True, slots=True, kw_only=True)
class SolaceSettings(EndpointSettings):
    """Solace broker, reached by SMF with the vendor's client library."""

    encrypted_schemes: ClassVar[tuple[str, ...]] = ("tcps", "https", "wss")
    carries: ClassVar[frozenset[str]] = ALL_FIELDS - {"redelivered"}
    kind_prefixes: ClassVar[tuple[str, ...]] = QUEUE_PREFIXES
    durable_key: ClassVar[str] = "queue"
    name: str = setting("name of the endpoint in the configuration", "solace")
    dialect: str = setting("system whose naming rules the names follow", "smf")
    url: str = setting(
        "address of the broker: tcp://host:port, or tcps://host:port with TLS; several addresses"
        " are separated by commas and tried in turn",
        "tcp://localhost:55555",
    )
    vpn: str = setting("name of the message VPN", "default")
    username: str = setting("user name", "gateway")
    password: str | None = secret("password")
    token_file: str | None = optional(
        "file with an OAuth access token, read at every connection attempt; needs tcps://",
        path="state",
    )
    client_name: str = setting(
        "client name at the broker, to which a unique suffix is added; when empty, `gateway.name`,"
        " `-` and the name of the endpoint",
        "",
    )
    tls: TlsSettings | None = optional(
        "TLS of a tcps:// address; when absent, verified against the system's trust store"
    )
    trust_store: str | None = optional(
        "folder of trusted CA certificates (PEM), instead of `ca_file` in `tls`", path="folder"
    )
    guaranteed: bool = setting(
        "guaranteed messaging: a source reads a queue, a sink waits for the broker's receipts;"
        " false: direct messaging, whose messages the broker drops when a client is slow or"
        " disconnected",
        True,
    )
    queue: str = setting(
        "durable queue of a source, {instance} stands for the route; when empty,"
        " gateway/ENDPOINT/ROUTE",
        "",
    )
    create_queue: bool = setting("create the queue when it does not exist", True)
    exclusive_queue: bool = setting(
        "create exclusive queues, with one active reader, which keeps the order; false: the"
        " gateways that read the queue share its messages",
        True,
    )
    subscribe_queue: bool = setting(
        "add the patterns of the route to the queue; subscriptions of others stay", True
    )
    retry_at_broker: bool = setting(
        "return a message that must be retried to the broker, which counts attempts; false: retry"
        " it in the gateway, which keeps the order",
        False,
    )
    share: str = setting(
        "group of a shared subscription, which divides direct messages among several gateways", ""
    )
    partition_level: int = setting(
        "level of the topic, counted from 1, that is sent as partition key; 0: the property"
        " JMSXGroupID is the only partition key",
        0,
        minimum=0,
        maximum=128,
    )
    receive_window: int = setting(
        "guaranteed messages that the broker may send before the library has acknowledged them; the"
        " library holds up to so many and 50 more outside `receive_window_bytes`",
        255,
        minimum=1,
        maximum=255,
    )
    receive_window_bytes: int = window_bytes(
        "bytes of received and unsettled messages at which a source pauses the flow of its queue,"
        " or drops and counts direct messages",
        16_777_216,
    )
    direct_buffer: int = setting(
        "direct messages that the library buffers before the receive window", 50_000, minimum=1
    )
    max_message: int = size(
        "bytes of the longest payload; messages with a longer one are rejected",
        10_000_000,
        minimum=1_024,
    )
    keepalive: float = seconds(
        "seconds between keepalive messages; the third unanswered one ends the connection",
        3.0,
        minimum=0.05,
    )
    reconnect_attempts: int = setting(
        "attempts of the library to restore a lost connection, which avoids redeliveries; 0: the"
        " gateway reconnects",
        0,
        minimum=0,
    )
    reconnect_wait: float = seconds(
        "seconds between the library's attempts", 3.0, minimum=0.0, maximum=60.0
    )
    connect_timeout: float = timeout("seconds for connecting", 10.0)
    answer_timeout: float = timeout(
        "seconds after which an unacknowledged publish makes the connection count as stuck", 30.0
    )

    def for_gateway(self, gateway: str, endpoint: str) -> SolaceSettings:
        """Return the settings with a client name, and with the queue of a renamed endpoint."""
        queue = self.queue or (f"gateway/{endpoint}/{{instance}}" if endpoint != self.name else "")
        client = self.client_name or f"{gateway}-{endpoint}"
        return replace(self, client_name=client, queue=queue)

    def durable_name(self, route: str) -> str:
        """Return the queue of a source for `route`; direct messages come without one."""
        name = self.queue or f"gateway/{self.name}/{{instance}}"
        return name.replace("{instance}", route) if self.guaranteed else ""

    def faults(self) -> Iterator[SettingFault]:
        """Yield the faults that only a connection would show."""
        yield from address_faults("url", self.url.split(","), _URL, "tcp://host:port or tcps://...")

    def group(self, _pattern: str) -> str:
        """Name of the readers that divide messages: those of a queue, or of a share."""
        return (self.queue or f"gateway/{self.name}") if self.guaranteed else self.share

    def removes(self, _pattern: str) -> bool:
        """Return whether others fill the queue or read it, or a share divides the messages."""
        if self.guaranteed:
            return not (self.subscribe_queue and self.exclusive_queue)
        return bool(self.share)

    @property
    def broker_key(self) -> str:
        """Address of the broker; equal for two endpoints of the same broker."""
        return f"tcp://{server_key(self.addresses, _PORTS)}/{self.vpn}"

    @property
    def broker_keys(self) -> tuple[str, ...]:
        """The key of each single server, where the address names several."""
        return tuple(replace(self, url=each).broker_key for each in self.url.split(","))

    @property
    def addresses(self) -> tuple[str, ...]:
        """URLs of the brokers; their schemes tell whether the connection is encrypted."""
        found = map(_ADDRESS.fullmatch, self.url.split(","))
        return tuple(f"{each['scheme'] or 'tcp'}://{each['rest']}" for each in found if each)

    @property
    def mode(self) -> DeliveryMode:
        """Strongest delivery mode of the endpoint."""
        return DeliveryMode.AT_LEAST_ONCE if self.guaranteed else DeliveryMode.AT_MOST_ONCE
