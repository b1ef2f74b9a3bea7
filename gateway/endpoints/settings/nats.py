"""Settings of a NATS endpoint."""

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

_URL = re.compile(r"(nats|tls)://(\[[^\]\s]+\]|[^/:@\[\]\s]+)(:[0-9]+)?/?")
_PREFIX = re.compile(r"(?!.{25})[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")  # a line has room for 24
MAX_MESSAGE = 64 << 20  # bytes with headers; no server takes longer ones
_PORTS = {"nats": 4_222, "tls": 4_222}
_STREAM = re.compile(r"[^.*>\s/\\\x00-\x1f\x7f]{0,255}")  # NATS documentation, JetStream names


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsSettings(EndpointSettings):
    """NATS server, with JetStream or without."""

    encrypted_schemes: ClassVar[tuple[str, ...]] = ("tls",)
    greets: ClassVar[bool] = True
    carries: ClassVar[frozenset[str]] = ALL_FIELDS - {"redelivered"}
    durable_key: ClassVar[str] = "consumer"
    name: str = setting("name of the endpoint in the configuration", "nats")
    dialect: str = setting("system whose naming rules the names follow", "nats")
    url: str = setting(
        "address of the server: nats://host:port, or tls://host:port with TLS; several addresses"
        " are separated by commas and tried in turn",
        "nats://localhost:4222",
    )
    jetstream: bool = setting(
        "JetStream: a source reads a durable consumer, a sink waits for the stream's answers;"
        " false: core NATS, which drops the messages of a client that is slow or away",
        True,
    )
    stream: str = setting(
        "stream that a source reads, and in which a sink's messages must land; when empty, the"
        " stream of the subjects",
        "",
    )
    create_stream: bool = setting("create the stream with `subjects` when it does not exist", False)
    subjects: tuple[str, ...] = setting("subjects of a stream that is created", ())
    replicas: int = setting(
        "servers of a cluster that keep a stream that is created", 1, minimum=1, maximum=5
    )
    duplicate_window: float = seconds(
        "seconds in which the stream knows a repeated message by its id; a stream that is created"
        " gets it, and of another one it is the present value",
        120.0,
        minimum=0.1,
    )
    consumer: str = setting(
        "durable consumer of a source, {instance} stands for the route; when empty,"
        " `gateway.name`, `-`, the name of the endpoint, `-` and the route",
        "",
    )
    queue_group: str = setting(
        "queue group of core NATS, which divides messages among several gateways", ""
    )
    inbox_prefix: str = setting(
        "begin of the subjects on which the server answers the endpoint; where others may not"
        " publish there, nobody can forge an answer",
        "_INBOX",
    )
    username: str | None = optional("user name")
    password: str | None = secret("password")
    token: str | None = secret("token for the log-in")
    credentials_file: str | None = optional(
        "credentials file with a JWT and its seed, read at every connection attempt", path="state"
    )
    nkey_file: str | None = optional(
        "file with the seed of an NKey, read at every connection attempt", path="state"
    )
    tls: TlsSettings | None = optional(
        "TLS; when absent and the address is tls://, verified against the system's trust store"
    )
    ack_wait: float = seconds(
        "seconds after which the server delivers an unanswered message again; the gateway asks for"
        " more time while a target is away",
        30.0,
        minimum=1,
    )
    ack_sync: bool = setting(
        "wait for the server to confirm the answers of each batch; without a confirmation within"
        " `answer_timeout` the connection counts as stuck",
        False,
    )
    max_message_in: int = size(
        "bytes of the longest payload that a source takes; a longer one is not read into memory,"
        " and its message is a dead letter without it. A stream may have messages that are longer"
        " than `max_payload` of the server",
        MAX_MESSAGE,
        minimum=1,
        maximum=MAX_MESSAGE,
    )
    receive_window: int = setting(
        "messages that the server delivers ahead of the gateway's answers",
        5_000,
        minimum=1,
        maximum=100_000,
    )
    receive_window_bytes: int = window_bytes(
        "bytes of received and unsettled messages at which a source stops asking for more",
        67_108_864,
    )
    send_window: int = setting(
        "messages that a sink sends ahead of the stream's answers", 5_000, minimum=1, maximum=65_536
    )
    keepalive: float = seconds(
        "seconds between questions to a silent server; the third unanswered one ends the"
        " connection",
        5.0,
        minimum=0.05,
    )
    connect_timeout: float = timeout("seconds for connecting", 10.0)
    answer_timeout: float = timeout(
        "seconds for each answer of the server; without it the connection counts as stuck", 10.0
    )

    def for_gateway(self, gateway: str, endpoint: str) -> NatsSettings:
        """Return the settings with a consumer."""
        own = f"{gateway}-{endpoint}-{{instance}}"
        return replace(self, consumer=self.consumer or own)

    def durable_name(self, route: str) -> str:
        """Return the durable consumer of a source for `route`; core NATS has none."""
        return self.consumer.replace("{instance}", route) if self.jetstream else ""

    def group(self, _pattern: str) -> str:
        """Name of the readers that divide messages: a queue group of core NATS."""
        return "" if self.jetstream else self.queue_group

    def faults(self) -> Iterator[SettingFault]:
        """Yield the faults that only a connection would show."""
        form = "nats://host:port or tls://host:port"
        yield from address_faults("url", self.url.split(","), _URL, form)
        if _STREAM.fullmatch(self.stream) is None:
            reason = f"{self.stream!r} is no name of a stream"
            yield SettingFault("stream", reason, "write up to 255 characters without . * > / \\")
        if self.create_stream and not (self.stream and self.subjects):
            reason = "no stream can be made without a name and subjects"
            yield SettingFault("create_stream", reason, "set `stream` and `subjects`")
        if _PREFIX.fullmatch(self.inbox_prefix) is None:
            reason = f"{self.inbox_prefix!r} is no begin of a subject"
            yield SettingFault(
                "inbox_prefix", reason, "write up to 24 letters, digits, _ and -, and dots between"
            )
        if not self.jetstream and self.stream:
            yield SettingFault("stream", "core NATS has no streams", "remove it or `jetstream`")

    def removes(self, _pattern: str) -> bool:
        """Return whether a queue group divides the messages; a source asks its stream itself."""
        return bool(self.queue_group) and not self.jetstream

    @property
    def broker_key(self) -> str:
        """Address of the server; equal for two endpoints of the same server."""
        return f"nats://{server_key(self.addresses, _PORTS)}"

    @property
    def broker_keys(self) -> tuple[str, ...]:
        """The key of each single server, where the address names several."""
        return tuple(replace(self, url=each).broker_key for each in self.url.split(","))

    @property
    def addresses(self) -> tuple[str, ...]:
        """URLs of the servers; their schemes tell whether the connection is encrypted."""
        urls = tuple(each.strip() for each in self.url.split(","))
        return tuple(each.replace("nats://", "tls://") for each in urls) if self.tls else urls

    @property
    def repeat_window(self) -> float:
        """Seconds in which a repeated message is kept once; 0 without a stream."""
        return self.duplicate_window if self.jetstream else 0.0

    @property
    def mode(self) -> DeliveryMode:
        """Strongest delivery mode of the endpoint."""
        return DeliveryMode.AT_LEAST_ONCE if self.jetstream else DeliveryMode.AT_MOST_ONCE
