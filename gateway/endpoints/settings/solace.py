"""Settings of a Solace endpoint; data only, it imports no driver."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.endpoints.settings.base import ALL_FIELDS, TlsSettings, setting
from gateway.model.message import DeliveryMode


@dataclass(frozen=True, slots=True, kw_only=True)
class SolaceSettings:
    """A Solace broker, spoken to with SMF by the vendor's client."""

    name: str = setting("solace", "what the endpoint is called in the configuration")
    dialect: str = setting("smf", "the naming rules; an override tightens their limits")
    url: str = setting(
        "tcp://localhost:55555",
        "where the broker listens: tcp://host:port, or tcps://host:port with TLS; several are"
        " separated by commas and tried in turn",
    )
    vpn: str = setting("default", "the message VPN")
    username: str = setting("gateway", "the user name")
    password: str | None = setting(None, "the password", secret=True)
    token_file: str | None = setting(
        None, "file with an OAuth access token, read at every connection; needs tcps://"
    )
    client_name: str = setting(
        "",
        "how the broker knows this client, followed by what makes it unique; the name when empty",
    )
    tls: TlsSettings | None = setting(  # noqa: RUF009  # it is frozen
        None, "how tcps:// is encrypted; absent means verified against the system's authorities"
    )
    trust_store: str | None = setting(
        None, "folder of trusted authorities (PEM), instead of `ca_file` in `tls`"
    )
    guaranteed: bool = setting(
        default=True,
        doc="a source reads a queue and a sink waits for the broker's receipts; off is direct"
        " messaging, which a broker drops when a client is slow or away",
    )
    queue: str = setting(
        "",
        "the durable queue of a source, with {instance} for the route; gateway/NAME/INSTANCE"
        " when empty",
    )
    create_queue: bool = setting(default=True, doc="make the queue when it does not exist")
    exclusive_queue: bool = setting(
        default=True,
        doc="a queue we make has one active reader, which keeps the order; off shares the messages"
        " among the gateways that read it",
    )
    subscribe_queue: bool = setting(
        default=True, doc="add the route's patterns to the queue; it keeps those it has"
    )
    retry_at_broker: bool = setting(
        default=False,
        doc="hand a message that is to be tried again back to the broker, which counts attempts;"
        " off keeps it here and keeps the order",
    )
    share: str = setting(
        "", "the group of a shared subscription, for direct messages among several gateways"
    )
    partition_level: int = setting(
        0,
        "the level of the topic, from 1, that is sent as partition key; 0 sends none but the"
        " property JMSXGroupID",
        minimum=0,
        maximum=128,
    )
    queue_bytes: int = setting(
        16_777_216,
        "bytes a source holds that are not settled; above it the queue's flow is paused, and"
        " direct messages are dropped and counted",
        minimum=65_536,
    )
    direct_buffer: int = setting(
        50_000, "direct messages the library holds in front of that", minimum=1
    )
    max_message: int = setting(
        10_000_000, "bytes of the longest payload; past it a message is rejected", minimum=1_024
    )
    keepalive: float = setting(
        3.0,
        "seconds between signs of life; the third unanswered one ends the connection",
        minimum=0.05,
    )
    reconnect_attempts: int = setting(
        0,
        "times the library tries to get a lost connection back by itself, which saves repeated"
        " messages; 0 leaves it to the gateway",
        minimum=0,
    )
    reconnect_wait: float = setting(
        3.0, "seconds between those attempts", minimum=0.0, maximum=60.0
    )
    connect_timeout: float = setting(10.0, "seconds for the connection", minimum=0.1)
    answer_timeout: float = setting(
        30.0, "seconds after which an unanswered publish declares the broker stuck", minimum=0.1
    )
    backoff_min: float = setting(0.5, "seconds before the first new attempt", minimum=0.01)
    backoff_max: float = setting(30.0, "seconds between attempts at most", minimum=0.01)

    @property
    def broker_key(self) -> str:
        """What two endpoints of one broker have in common."""
        return f"{self.url}/{self.vpn}"

    @property
    def carries(self) -> frozenset[str]:
        """The fields of `Headers` that survive the way over this system and back."""
        return ALL_FIELDS - {"redelivered"}

    @property
    def mode(self) -> DeliveryMode:
        """The best this endpoint promises."""
        return DeliveryMode.AT_LEAST_ONCE if self.guaranteed else DeliveryMode.AT_MOST_ONCE
