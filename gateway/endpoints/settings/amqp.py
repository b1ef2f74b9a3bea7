"""Settings of an endpoint of AMQP 1.0, and the products that it knows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

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

MAX_BODY = 1 << 31  # bytes of a message
QUEUE: str = "queue:"  # begins the address of a queue
MAX_NAME = 255  # bytes of a name at RabbitMQ
PORTS = {"amqp": 5_672, "amqps": 5_671}
_URL = re.compile(r"amqps?://([^/@\s]*@)?(\[[^\]\s]+\]|[^/:@\[\]\s]+)(:[0-9]{1,5})?(/[^/\s]*)?")


@dataclass(frozen=True, slots=True)
class Product:
    """The addresses of a product: `topic` and `queue` begin those of a name.

    With `capabilities` a symbol of that name says which of both is meant.
    `selectors`: it evaluates the selector of a link. `has_exchanges`: RabbitMQ, whose addresses are
    paths. `divides`: every address is a queue, or a subscription that all its readers divide.
    """

    dialect: str
    topic: str = ""
    queue: str = ""
    capabilities: bool = False
    selectors: bool = False
    has_exchanges: bool = False
    divides: bool = False
    reference: str = ""


KNOWN: Final[Mapping[str, Product]] = {
    "rabbitmq-4": Product(
        "rabbitmq", has_exchanges=True, reference="RabbitMQ documentation, AMQP, Address v2"
    ),
    "artemis": Product(
        "rabbitmq",
        capabilities=True,
        selectors=True,
        reference="ActiveMQ Artemis User Manual, AMQP; Wildcard",
    ),
    "servicebus": Product(
        "smf", divides=True, reference="Azure Service Bus, AMQP 1.0 protocol guide"
    ),
    "ibmmq": Product(
        "ibm", capabilities=True, reference="IBM MQ documentation, AMQP client applications"
    ),
    "solace": Product(
        "smf",
        "topic://",
        "queue://",
        selectors=True,
        reference="Solace documentation, AMQP 1.0 conformance",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AmqpSettings(EndpointSettings):
    """Server with the protocol AMQP 1.0: RabbitMQ 4, and others that were not tested."""

    encrypted_schemes: ClassVar[tuple[str, ...]] = ("amqps",)
    carries: ClassVar[frozenset[str]] = ALL_FIELDS - {"redelivered", "retained"}
    mode: ClassVar[DeliveryMode] = DeliveryMode.AT_LEAST_ONCE
    kind_prefixes: ClassVar[tuple[str, ...]] = (QUEUE,)
    durable_key: ClassVar[str] = "queue"
    name: str = setting("name of the endpoint in the configuration", "amqp")
    known: str = choice("product of the server: the forms of its addresses", *KNOWN)
    spelling: str = setting(
        "system whose naming rules the names follow; the system of the product when empty",
        "",
        key="dialect",
        choices=("", *dict.fromkeys(each.dialect for each in KNOWN.values())),
    )
    url: str = setting(
        "address of the server: amqp://host:port, or amqps:// with TLS; at RabbitMQ with a vhost"
        " behind it, `/` by default, and a slash in its name is %2F. Several addresses, of nodes of"
        " one cluster, are separated by commas and tried in turn",
        "amqp://localhost:5672/",
    )
    username: str | None = optional("user name; the one in the address when absent")
    password: str | None = secret("password; the one in the address when absent")
    tls: TlsSettings | None = optional(
        "TLS; when absent and the address is amqps://, verified against the system's trust store"
    )
    login: Literal["password", "certificate", "anonymous"] = setting(
        "`password`: SASL PLAIN. `certificate`: the server takes the user's name from the client"
        " certificate in `tls` (EXTERNAL). `anonymous`: without a user",
        "password",
    )
    container_id: str = setting(
        "name of the connection, which a durable subscription belongs to; when empty,"
        " `gateway.name`, `-` and the name of the endpoint",
        "",
    )
    exchange: str = setting(
        "RabbitMQ: topic exchange that a sink publishes to, and to which a source binds its queue",
        "amq.topic",
    )
    create_exchange: bool = setting(
        "RabbitMQ: create the exchange, durable, when it does not exist", False
    )
    queue: str = setting(
        "RabbitMQ: durable queue of a source, created when it does not exist; elsewhere: durable"
        " subscription. When empty, `gateway.name`, `-` and the name of the endpoint. A tap has its"
        " own, with `-` and its endpoint behind this",
        "",
    )
    queue_type: str = choice("RabbitMQ: type of a queue that is created", "classic", "quorum")
    on_unroutable: str = choice(
        "RabbitMQ: fate of a message for which no queue has a binding: a dead letter (`reject`), or"
        " dropped, as that of any publisher (`drop`)",
        "reject",
        "drop",
    )
    unique_message_ids: bool = setting(
        "publishers give each message a `message-id` of its own, so that a repeat is a duplicate",
        False,
    )
    max_message: int = size(
        "bytes of the longest payload that a sink sends; the server may have a lower limit",
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
        "messages that the server delivers ahead of the gateway's settlements (credit)",
        2_000,
        minimum=1,
        maximum=U16,
    )
    receive_window_bytes: int = window_bytes(
        "bytes of received and unsettled messages; the server is allowed no more frames than have"
        " room, and one at least",
        67_108_864,
    )
    send_window: int = setting(
        "messages that a sink sends ahead of the server's outcomes", 5_000, minimum=1, maximum=U16
    )
    heartbeat: int = seconds(
        "seconds without a frame of the server after which the connection counts as lost",
        30,
        minimum=2,
        maximum=U16,
    )
    connect_timeout: float = timeout("seconds for connecting", 10.0)
    answer_timeout: float = timeout(
        "seconds after which an unanswered request or message makes the connection count as stuck",
        30.0,
    )

    def for_gateway(self, gateway: str, endpoint: str) -> AmqpSettings:
        """Return the settings with a queue and a container id."""
        own = f"{gateway}-{endpoint}"
        return replace(self, queue=self.queue or own, container_id=self.container_id or own)

    @property
    def product(self) -> Product:
        return KNOWN[self.known]

    @property
    def evaluates_selectors(self) -> bool:
        return self.product.selectors

    @property
    def dialect(self) -> str:
        """Dialect that spells the names."""
        return self.spelling or self.product.dialect

    @property
    def broker_keys(self) -> tuple[str, ...]:
        """The key of each single server, where the address names several."""
        return tuple(replace(self, url=each).broker_key for each in self.urls)

    def faults(self) -> Iterator[SettingFault]:
        """Yield the faults that only a connection would show."""
        form = "amqp://host:port or amqps://host:port"
        yield from address_faults("url", self.url.split(","), _URL, form)
        if self.login == "certificate" and (self.tls is None or self.tls.cert_file is None):
            hint = "write `tls: {cert_file: ..., key_file: ...}`"
            yield SettingFault("login", "there is no client certificate", hint)
        if self.product.has_exchanges and self.dialect != self.product.dialect:
            hint = f"remove it: {self.known} has the names of {self.product.dialect}"
            yield SettingFault("dialect", f"{self.known} has other names", hint)
        if not self.exchange:
            hint = "write the name of a topic exchange; the address queue:NAME reaches a queue"
            yield SettingFault("exchange", "it has no name", hint)
        for key, name in (("exchange", self.exchange), ("queue", self.queue)):
            if len(name.encode("utf-8", "surrogatepass")) > MAX_NAME:
                yield SettingFault(key, f"it has more than {MAX_NAME} bytes", "shorten it")
        if self.queue.startswith("amq."):
            reason = "queues of this name belong to the server"
            yield SettingFault("queue", reason, "begin it with something else than `amq.`")

    def removes(self, pattern: str) -> bool:
        """Return whether `pattern` names a queue."""
        return self.product.divides or pattern.startswith(QUEUE)

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
        """The exchange of RabbitMQ; none for `amq.topic`, which RabbitMQ's MQTT also has."""
        has_own = self.product.has_exchanges and self.exchange != "amq.topic"
        return self.exchange if has_own else ""

    @property
    def broker_key(self) -> str:
        """Address of the server and its vhost; equal for two endpoints of the same broker."""
        return f"amqp://{server_key(self.urls, PORTS)}/{split_url(self.urls[0])[2] or '/'}"
