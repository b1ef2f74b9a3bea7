"""Settings of a JMS endpoint: TIBCO EMS or another system with a JMS client library."""

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
)
from gateway.model.dead_letter_rule import JOINED_SYSTEMS
from gateway.model.message import DeliveryMode
from gateway.setting import choice, optional, seconds, secret, setting, size, timeout, window_bytes

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//[^/\s]|\()[^\s]*")  # or failover:(...)
EMS_FACTORY = "com.tibco.tibjms.TibjmsConnectionFactory"
EMS_MESSAGE = 536_870_912  # bytes: 512 MB (EMS User's Guide, "Maximum Message Size")
EMS_CORRELATION = 4_096  # bytes: 4 KB (EMS User's Guide, table 4, JMSCorrelationID)
SYSTEMS = ("ems", "rv", "ibm", "smf")

# Setters of a connection factory for the address of its server (IBM MQ's MQConnectionFactory,
# ActiveMQ's), in lower case.
ADDRESS_SETTERS = frozenset(
    {"brokerurl", "ccdturl", "connectionnamelist", "hostname", "port", "queuemanager"}
)

KIND_PREFIXES = ("topic:", "queue:", "temptopic:", "tempqueue:")  # of an address
ACKNOWLEDGE = ("client", "explicit", "explicit_lazy", "transacted")
DELIVERY = ("persistent", "non_persistent", "reliable")


@dataclass(frozen=True, slots=True, kw_only=True)
class JmsSettings(EndpointSettings):
    """TIBCO EMS, or another system with a JMS client library."""

    encrypted_schemes: ClassVar[tuple[str, ...]] = (
        "ssl",
        "tls",
        "tcps",
        "smfs",
        "mqtts",
        "amqps",
        "https",
        "wss",
    )
    carries: ClassVar[frozenset[str]] = ALL_FIELDS - {"retained", "redelivered"}
    client_key: ClassVar[str] = "client_id"
    evaluates_selectors: ClassVar[bool] = True
    kind_prefixes: ClassVar[tuple[str, ...]] = KIND_PREFIXES
    name: str = setting("name of the endpoint in the configuration", "jms")
    dialects: tuple[str, ...] = setting(
        "system whose naming rules the names follow; behind `ems` also the systems that the server"
        " imports from and exports to: [ems, rv], [ems, smartsockets]",
        ("ems",),
        key="dialect",
        choices=(*SYSTEMS, "smartsockets"),
    )
    classpath: tuple[str, ...] = setting(
        "client library: jar files, or patterns such as /opt/tibco/ems/*/lib/*.jar", (), path="jars"
    )
    api: str = choice("Java package of the library; `auto` detects it", "auto", "javax", "jakarta")
    urls: tuple[str, ...] = setting(
        "addresses of the servers; EMS takes all of them as one fault-tolerant set, other systems"
        " are tried in turn",
        ("tcp://localhost:7222",),
    )
    factory: str = setting(
        "class of the connection factory; not used with `jndi_factory`", EMS_FACTORY
    )
    properties: tuple[str, ...] = setting(
        "`name=value` pairs: for setters of the factory, for the environment of JNDI, or for TLS of"
        " EMS",
        (),
    )
    jndi_factory: str = setting(
        "class of the initial context factory, to look the connection factory up in JNDI", ""
    )
    jndi_url: str = setting("provider URL of JNDI; when empty, the first of `urls`", "")
    lookup: str = setting("name of the connection factory in JNDI", "")
    client_id: str = setting("client id of the connection; required for a durable subscription", "")
    username: str | None = optional("user name")
    password: str | None = secret("password")
    tls: TlsSettings | None = optional("TLS of EMS; its URLs begin with ssl://")
    destination: str = choice(
        "kind of an address without the prefix `topic:` or `queue:`", "topic", "queue"
    )
    durable: str = setting(
        "name of the durable subscription; {pattern} stands for the pattern of the route", ""
    )
    shared: str = setting(
        "name of the shared subscription (JMS 2.0); {pattern} stands for the pattern of the route",
        "",
    )
    selector: str = setting("JMS selector that the server evaluates", "")
    acknowledge: str = choice(
        "`client` and `transacted` acknowledge all messages together, when none is unsettled and"
        " at the latest after a `receive_window`; `explicit` acknowledges each message (EMS,"
        " ActiveMQ); `explicit_lazy` lets EMS delay that",
        *ACKNOWLEDGE,
    )
    delivery: str = choice(
        "highest JMS delivery mode of sent messages; messages for at most once are sent"
        " non-persistent. `reliable` (EMS) gives no answer, not even to refused messages",
        *DELIVERY,
    )
    batch: int = setting(
        "most messages received or sent in one call to Java", 1_000, minimum=1, maximum=100_000
    )
    receive_window: int = setting(
        "received and unsettled messages at which a source stops receiving", 4_000, minimum=1
    )
    send_window: int = setting(
        "messages that a sink has queued or sent without an answer", 4_000, minimum=1
    )
    receive_window_bytes: int = window_bytes(
        "bytes of received and unsettled messages at which a source stops receiving; the JVM needs"
        " twice as much",
        16_777_216,
    )
    send_window_bytes: int = window_bytes(
        "bytes that a sink has queued or sent without an answer; the JVM needs twice as much",
        16_777_216,
    )
    prefetch: int = setting(
        "messages that ActiveMQ sends ahead to a consumer; 0: `batch`. No effect on other systems,"
        " where the server or the library decides",
        0,
    )
    max_message: int = size(
        "bytes of the longest payload; messages with a longer one are rejected",
        EMS_MESSAGE,
        minimum=1024,
    )
    max_correlation: int = size(
        "bytes of the longest correlation id", EMS_CORRELATION, minimum=16, maximum=32_000
    )
    temporary_reply: str = choice(
        "reply addresses that are temporary destinations: `map` forwards them and resolves replies"
        " while this process runs; `drop` removes and counts them",
        "map",
        "drop",
    )
    objects: str = choice(
        "payload of object messages: `opaque` forwards the bytes; `deserialize` runs code of the"
        " sender",
        "opaque",
        "deserialize",
    )
    compress: bool = setting("request compression of sent messages (EMS)", False)
    preserve_undelivered: bool = setting(
        "request that EMS keeps undeliverable messages in $sys.undelivered", False
    )
    trace: bool = setting("request that EMS traces sent messages, without their payload", False)
    jvm_options: tuple[str, ...] = setting(
        "options of the Java virtual machine, behind the gateway's own; the first JMS endpoint of"
        " the process decides",
        (),
    )
    connect_timeout: float = timeout(
        "seconds for one connection attempt, where the library has such a setting", 10.0
    )
    answer_timeout: float = timeout(
        "seconds after which a send without an answer makes the connection count as stuck;"
        " ActiveMQ delays answers while it is full",
        60.0,
    )
    close_timeout: float = seconds("seconds for closing a connection", 3.0, minimum=0.1, maximum=60)

    def __post_init__(self) -> None:
        """Check the list of dialects.

        Raises:
            ValueError: no server joins these systems; the text names the lists allowed.
        """
        alone = len(self.dialects) == 1 and self.dialects[0] in SYSTEMS
        different = len(set(self.dialects)) == len(self.dialects)
        behind_ems = self.dialects[:1] == ("ems",) and set(self.joined) <= set(JOINED_SYSTEMS)
        if not (alone or (behind_ems and different)):
            raise ValueError(
                f"`dialect` is {list(self.dialects)}; write one of {', '.join(SYSTEMS)}, or a list"
                f" of ems and systems it exports to: {', '.join(JOINED_SYSTEMS)}"
            )

    @property
    def dialect(self) -> str:
        """Dialect that spells the names."""
        return self.dialects[0]

    @property
    def joined(self) -> tuple[str, ...]:
        """Dialects of the systems that the server imports from and exports to."""
        return self.dialects[1:]

    @property
    def is_ems(self) -> bool:
        """Return whether the rules of EMS hold, even where the server is laxer."""
        return self.dialect == "ems"

    def faults(self) -> Iterator[SettingFault]:
        """Yield the faults that only a connection would show."""
        if not self.classpath:
            hint = "name the jars of the client library, such as /opt/tibco/ems/*/lib/*.jar"
            yield SettingFault("classpath", "it names no jar", hint)
        names = {each.partition("=")[0].strip().lower() for each in self.properties}
        if self.jndi_factory or names & ADDRESS_SETTERS:
            return  # `urls` are not used, or have the form of the name service
        if not self.urls:
            yield SettingFault("urls", "it names no server", "write tcp://host:port or ssl://...")
        for position, text in enumerate(self.urls):
            # A composite address of ActiveMQ stays whole; a comma divides the servers of EMS.
            servers = [text] if "(" in text else text.split(",")
            form = "tcp://host:port or ssl://host:port"
            for fault in address_faults("urls", servers, _URL, form):
                yield fault._replace(position=position)

    @property
    def default_kind(self) -> str:
        """Kind of an address without a prefix."""
        return self.destination

    def group(self, pattern: str) -> str:
        """Name of the readers that divide the messages of `pattern`: those of a queue, or share."""
        is_queue = self.destination == "queue" and not pattern.startswith("topic:")
        if is_queue or pattern.startswith("queue:"):
            return pattern.removeprefix("queue:")
        return self.shared.replace("{pattern}", pattern)

    def removes(self, pattern: str) -> bool:
        """Return whether `pattern` is a queue, or its subscription is shared."""
        return bool(self.group(pattern))

    @property
    def broker_key(self) -> str:
        """Address of the broker; equal for two endpoints of the same broker."""
        if self.jndi_factory:
            return f"{self.jndi_url or ','.join(self.urls)}#{self.lookup}"
        pairs = [each.partition("=") for each in self.properties]
        properties = [(name.strip().lower(), value.strip()) for name, _, value in pairs]
        address = [f"{name}={value}" for name, value in properties if name in ADDRESS_SETTERS]
        if address:
            return ",".join(sorted(address))
        return ",".join(sorted({url for each in self.urls for url in each.split(",")}))

    @property
    def broker_keys(self) -> tuple[str, ...]:
        """The key of each single server, where `urls` are the address."""
        found = tuple(f"jms://{each.host.lower()}:{each.port or 0}" for each in self.servers())
        by_urls = replace(self, urls=()).broker_key != self.broker_key and not self.jndi_factory
        return found if by_urls else (self.broker_key,)

    @property
    def addresses(self) -> tuple[str, ...]:
        """URLs of the brokers; their schemes tell whether the connection is encrypted."""
        return (*self.urls, self.jndi_url)

    @property
    def mode(self) -> DeliveryMode:
        """Strongest delivery mode of the endpoint."""
        if self.delivery == "persistent":
            return DeliveryMode.AT_LEAST_ONCE
        return DeliveryMode.AT_MOST_ONCE
