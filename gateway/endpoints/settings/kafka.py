"""Settings of a Kafka endpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
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
from gateway.setting import choice, optional, seconds, secret, setting, size, timeout, window_bytes

PORT = 9_092
MAX_MESSAGE = 1_000_000_000  # bytes: librdkafka, `message.max.bytes`
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
STARTS = ("earliest", "latest")
_SERVER = re.compile(r"(\[[^\]\s,]+\]|[^/:@\[\]\s,]+)(:[0-9]{1,5})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings(EndpointSettings):
    """Cluster of Kafka servers."""

    encrypted_schemes: ClassVar[tuple[str, ...]] = ("ssl",)
    carries: ClassVar[frozenset[str]] = ALL_FIELDS - {"redelivered"}
    mode: ClassVar[DeliveryMode] = DeliveryMode.AT_LEAST_ONCE
    durable_key: ClassVar[str] = "group_id"
    name: str = setting("name of the endpoint in the configuration", "kafka")
    dialect: str = setting("system whose naming rules the names follow", "kafka")
    bootstrap_servers: tuple[str, ...] = setting(
        "HOST:PORT of some servers of the cluster, which tell the others; the port is 9092 by"
        " default",
        ("localhost:9092",),
        key="servers",
    )
    username: str | None = optional("user name for the log-in")
    password: str | None = secret("password for the log-in")
    mechanism: str = choice("SASL mechanism of the log-in with `username`", *MECHANISMS)
    token: str | None = secret("token for the log-in with OAUTHBEARER, read at each refresh")
    tls: TlsSettings | None = optional("TLS; plain TCP when absent")
    client_id: str = setting(
        "client id, which the servers write into their logs and quotas, {instance} stands for the"
        " route; when empty, `gateway.name`, `-`, the name of the endpoint, `-` and the route",
        "",
    )
    group_id: str = setting(
        "consumer group of a source, {instance} stands for the route; when empty, as `client_id`",
        "",
    )
    start: str = setting(
        "first message that a source reads whose group has no position: `earliest`, `latest`, or"
        " the first one since a time such as 2026-01-31T00:00:00Z",
        STARTS[0],
    )
    named_by: str = setting(
        "name of a received message: that of its topic and key (`parts`), or the one in the header"
        " `gateway_name` (`header`), for producers who are trusted",
        "parts",
        choices=("parts", "header"),
    )
    create_topics: bool = setting("create the topic of a message when it does not exist", False)
    partitions: int = setting(
        "partitions of a topic that is created; 0: as many as the servers' default", 0, minimum=0
    )
    replicas: int = setting(
        "replicas of a topic that is created; 0: as many as the servers' default",
        0,
        minimum=0,
        maximum=32_767,
    )
    compression: str = choice(
        "compression of the batches that a sink sends", "none", "gzip", "snappy", "lz4", "zstd"
    )
    max_message: int = size(
        "bytes of the longest message that a sink sends, with key and headers; a topic's own limit"
        " (`max.message.bytes`) counts where the servers tell a lower one",
        1_048_588,
        minimum=1_000,
        maximum=MAX_MESSAGE,
    )
    max_message_in: int = size(
        "bytes of the longest payload that a source takes; a longer message is a dead letter"
        " without its payload. A batch with twice as many bytes stops the source",
        33_554_432,
        minimum=1_000,
        maximum=MAX_MESSAGE,
    )
    receive_window: int = setting(
        "messages that a source receives ahead of their settlement",
        10_000,
        minimum=1,
        maximum=100_000,
    )
    receive_window_bytes: int = window_bytes(
        "bytes of received and unsettled messages at which a source reads no further", 67_108_864
    )
    send_window: int = setting(
        "messages that a sink sends ahead of the servers' answers",
        10_000,
        minimum=1,
        maximum=65_536,
    )
    send_window_bytes: int = window_bytes(
        "bytes of messages that a sink sends ahead of the servers' answers", 33_554_432
    )
    session_timeout: float = seconds(
        "seconds without a sign of a source after which the servers give its partitions to another"
        " member of its group",
        30.0,
        minimum=1,
    )
    connect_timeout: float = timeout("seconds for connecting", 10.0)
    answer_timeout: float = timeout(
        "seconds after which an unanswered request or message makes the connection count as stuck",
        30.0,
    )

    def for_gateway(self, gateway: str, endpoint: str) -> KafkaSettings:
        """Return the settings with a client id and a group."""
        own = f"{gateway}-{endpoint}-{{instance}}"
        client = self.client_id or own
        return replace(self, client_id=client, group_id=self.group_id or client)

    def faults(self) -> Iterator[SettingFault]:
        """Yield the faults that only a connection would show."""
        yield from address_faults("servers", self.bootstrap_servers, _SERVER, "HOST:PORT")
        if not self.bootstrap_servers:
            yield SettingFault("servers", "there is no server", 'write `servers: ["HOST:PORT"]`')
        if (self.username is None) is not (self.password is None):
            yield SettingFault("username", "a log-in has both", "write `username` and `password`")
        if self.token is not None and self.username is not None:
            yield SettingFault("token", "there are two log-ins", "remove it or `username`")
        if self.start not in STARTS and self.start_time is None:
            hint = "write earliest, latest, or a time such as 2026-01-31T00:00:00Z"
            yield SettingFault("start", f"{self.start!r} is no time", hint)

    @property
    def named_by_headers(self) -> bool:
        return self.named_by == "header"

    @property
    def start_time(self) -> int | None:
        """The time in `start`, in milliseconds since 1970; None where it has none."""
        try:
            found = datetime.fromisoformat(self.start)
        except ValueError:
            return None
        with_zone = found if found.tzinfo else found.replace(tzinfo=UTC)
        return int(with_zone.timestamp() * 1_000)

    @property
    def addresses(self) -> tuple[str, ...]:
        """URLs of the servers; their scheme tells whether the connection is encrypted."""
        scheme = "kafka+ssl" if self.tls else "kafka"
        return tuple(f"{scheme}://{_with_port(each)}" for each in self.bootstrap_servers)

    @property
    def broker_key(self) -> str:
        """Addresses of the servers; equal for two endpoints of the same cluster."""
        return f"kafka://{server_key(self.addresses, {})}"

    @property
    def broker_keys(self) -> tuple[str, ...]:
        """The key of each server alone, where the address names several."""
        return tuple(
            replace(self, bootstrap_servers=(each,)).broker_key for each in self.bootstrap_servers
        )


def _with_port(server: str) -> str:
    has_port = ":" in server.rpartition("]")[2]
    return server if has_port else f"{server}:{PORT}"
