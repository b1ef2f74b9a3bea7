"""Settings of a RabbitMQ endpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from gateway.endpoints.settings.base import (
    ALL_FIELDS,
    U16,
    EndpointSettings,
    SettingFault,
    TlsSettings,
    address_faults,
    server_key,
    split_url,
)
from gateway.model.message import DeliveryMode
from gateway.setting import choice, optional, seconds, secret, setting, size, timeout, window_bytes

MAX_BODY = 1 << 31  # bytes of a message; a server of RabbitMQ takes 512 MiB at most
QUEUE: str = "queue:"  # begins the address of a queue, which the default exchange reaches
MAX_SHORT = 255  # bytes of a name: AMQP 0-9-1, 4.2.5.3
_URL = re.compile(r"amqps?://([^/@\s]*@)?(\[[^\]\s]+\]|[^/:@\[\]\s]+)(:[0-9]{1,5})?(/[^/\s]*)?")

_PORTS = {"amqp": 5_672, "amqps": 5_671}
STARTS = ("first", "last", "next")


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitmqSettings(EndpointSettings):
    """RabbitMQ server, protocol AMQP 0-9-1."""

    encrypted_schemes: ClassVar[tuple[str, ...]] = ("amqps",)
    carries: ClassVar[frozenset[str]] = ALL_FIELDS - {"redelivered", "retained"}
    mode: ClassVar[DeliveryMode] = DeliveryMode.AT_LEAST_ONCE
    kind_prefixes: ClassVar[tuple[str, ...]] = (QUEUE,)
    durable_key: ClassVar[str] = "queue"
    name: str = setting("name of the endpoint in the configuration", "rabbitmq")
    dialect: str = setting("system whose naming rules the names follow", "rabbitmq")
    url: str = setting(
        "address of the server: amqp://host:port/vhost, or amqps:// with TLS; without a vhost it is"
        " `/`, and a slash in its name is %2F. Several addresses, of nodes of one cluster, are"
        " separated by commas and tried in turn",
        "amqp://localhost:5672/",
    )
    username: str | None = optional("user name; the one in the address when absent")
    password: str | None = secret("password; the one in the address when absent")
    tls: TlsSettings | None = optional(
        "TLS; when absent and the address is amqps://, verified against the system's trust store"
    )
    login: Literal["password", "certificate"] = setting(
        "`certificate`: the server takes the user's name from the client certificate in `tls`"
        " (mechanism EXTERNAL, the server's plug-in rabbitmq_auth_mechanism_ssl)",
        "password",
    )
    exchange: str = setting(
        "topic exchange that a sink publishes to, and to which a source binds its queue",
        "amq.topic",
    )
    create_exchange: bool = setting("create the exchange, durable, when it does not exist", False)
    queue: str = setting(
        "durable queue of a source, created when it does not exist; when empty, `gateway.name`, `-`"
        " and the name of the endpoint. A tap has its own, with `-` and its endpoint behind this",
        "",
    )
    queue_type: str = choice("type of a queue that is created", "classic", "quorum", "stream")
    start: str = choice(
        "first message that a source without a position reads from a stream", *STARTS
    )
    on_unroutable: str = choice(
        "fate of a message for which no queue has a binding: a dead letter (`reject`), or dropped,"
        " as that of any publisher (`drop`)",
        "reject",
        "drop",
    )
    unique_message_ids: bool = setting(
        "publishers give each message a `message_id` of its own, so that a repeat is a duplicate",
        False,
    )
    max_message: int = size(
        "bytes of the longest payload that the server takes (`max_message_size` there); a longer"
        " one would close the channel with every message in it",
        134_217_728,
        minimum=1,
    )
    max_message_in: int = size(
        "bytes of the longest payload that a source takes; a longer one is not read into memory,"
        " and its message is a dead letter without it",
        134_217_728,
        minimum=1,
        maximum=MAX_BODY,
    )
    receive_window: int = setting(
        "messages that the server delivers ahead of the gateway's acknowledgements (prefetch)",
        2_000,
        minimum=1,
        maximum=U16,
    )
    receive_window_bytes: int = window_bytes(
        "bytes of received and unsettled messages at which a source reads no further; one message"
        " may exceed it",
        67_108_864,
    )
    send_window: int = setting(
        "messages that a sink sends ahead of the server's confirms", 5_000, minimum=1, maximum=U16
    )
    heartbeat: int = seconds(
        "seconds of the heartbeat; after twice as many without a sign of the server the connection"
        " counts as lost",
        15,
        minimum=1,
        maximum=U16,
    )
    connect_timeout: float = timeout("seconds for connecting", 10.0)
    answer_timeout: float = timeout(
        "seconds after which an unanswered request or message makes the connection count as stuck,"
        " unless the server has blocked it",
        30.0,
    )

    def for_gateway(self, gateway: str, endpoint: str) -> RabbitmqSettings:
        """Return the settings with a queue."""
        return replace(self, queue=self.queue or f"{gateway}-{endpoint}")

    @property
    def broker_keys(self) -> tuple[str, ...]:
        """The key of each single server, where the address names several."""
        return tuple(replace(self, url=each).broker_key for each in self.urls)

    def faults(self) -> Iterator[SettingFault]:
        """Yield the faults that only a connection would show."""
        form = "amqp://host:port/vhost or amqps://host:port/vhost"
        yield from address_faults("url", self.url.split(","), _URL, form)
        if self.login == "certificate" and (self.tls is None or self.tls.cert_file is None):
            hint = "write `tls: {cert_file: ..., key_file: ...}`"
            yield SettingFault("login", "there is no client certificate", hint)
        if not self.exchange:
            hint = "write the name of a topic exchange; the address queue:NAME reaches a queue"
            yield SettingFault("exchange", "it has no name", hint)
        for key, name in (("exchange", self.exchange), ("queue", self.queue)):
            if len(name.encode("utf-8", "surrogatepass")) > MAX_SHORT:
                yield SettingFault(key, f"it has more than {MAX_SHORT} bytes", "shorten it")
        if self.queue.startswith("amq."):
            reason = "queues of this name belong to the server"
            yield SettingFault("queue", reason, "begin it with something else than `amq.`")

    def removes(self, pattern: str) -> bool:
        """Return whether `pattern` is a queue; a source finds out whether that is a stream."""
        return pattern.startswith(QUEUE)

    @property
    def urls(self) -> tuple[str, ...]:
        """Addresses of the servers, with log-in."""
        return tuple(each.strip() for each in self.url.split(","))

    @property
    def addresses(self) -> tuple[str, ...]:
        """URLs of the servers; their schemes tell whether the connection is encrypted."""
        scheme = "amqps" if self.tls else ""
        return tuple(f"{scheme or own}://{host}" for own, host, _ in map(split_url, self.urls))

    @property
    def name_space(self) -> str:
        """The exchange; none for `amq.topic`, which RabbitMQ's MQTT also has."""
        return "" if self.exchange == "amq.topic" else self.exchange

    @property
    def broker_key(self) -> str:
        """Address of the server and its vhost; equal for two endpoints of the same broker."""
        return f"amqp://{server_key(self.urls, _PORTS)}/{split_url(self.urls[0])[2] or '/'}"
