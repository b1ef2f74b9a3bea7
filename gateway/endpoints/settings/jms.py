"""Settings of a JMS endpoint, EMS first of all; data only, it imports no driver."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.endpoints.settings.base import ALL_FIELDS, TlsSettings, setting
from gateway.model.message import DeliveryMode

EMS_FACTORY = "com.tibco.tibjms.TibjmsConnectionFactory"
EMS_MESSAGE = 536_870_912  # bytes: 512 MB (EMS User's Guide, "Maximum Message Size")
EMS_CORRELATION = 4_096  # bytes: 4 KB (EMS User's Guide, table 4, JMSCorrelationID)
SYSTEMS = ("ems", "rv", "ibm", "smf")
JOINED = ("rv", "smartsockets")  # what EMS imports from and exports to: User's Guide, 15 and 16

# Setters of a connection factory that say where its server is (IBM MQ's MQConnectionFactory,
# ActiveMQ's), in lower case.
LOCATING = frozenset(
    {"brokerurl", "ccdturl", "connectionnamelist", "hostname", "port", "queuemanager"}
)

ACKNOWLEDGE = ("client", "explicit", "explicit_lazy", "transacted")
DELIVERY = ("persistent", "non_persistent", "reliable")


@dataclass(frozen=True, slots=True, kw_only=True)
class JmsSettings:
    """TIBCO EMS, or any other system that comes with a JMS client library."""

    name: str = setting("jms", "what the endpoint is called in the configuration")
    dialects: tuple[str, ...] = field(
        default=("ems",),
        metadata={
            "key": "dialect",
            "doc": "the naming rules the system follows; behind `ems` also those of systems that"
            " the server imports from and exports to: [ems, rv], [ems, smartsockets]",
            "choices": (*SYSTEMS, "smartsockets"),
        },
    )
    classpath: tuple[str, ...] = setting(
        (), "the client library: jars, or patterns such as /opt/tibco/ems/*/lib/*.jar"
    )
    api: str = setting(
        "auto",
        "the package the library speaks; `auto` finds out",
        choices=("auto", "javax", "jakarta"),
    )
    urls: tuple[str, ...] = setting(
        ("tcp://localhost:7222",),
        "the servers. EMS takes all as one fault-tolerant set, others are tried in turn",
    )
    factory: str = setting(EMS_FACTORY, "the class of the connection factory, when JNDI has none")
    properties: tuple[str, ...] = setting(
        (), "`name=value`, set on the factory by its setters, or given to JNDI, or to EMS with TLS"
    )
    jndi_factory: str = setting("", "the initial context factory; then `lookup` names the rest")
    jndi_url: str = setting("", "where JNDI looks; the first of `urls` when empty")
    lookup: str = setting("", "the connection factory's name in JNDI")
    client_id: str = setting("", "the connection's identity; a durable subscription needs one")
    username: str | None = setting(None, "the user name")
    password: str | None = setting(None, "the password", secret=True)
    tls: TlsSettings | None = setting(  # noqa: RUF009  # it is frozen
        None, "encryption of EMS; the URLs then begin with ssl://"
    )
    destination: str = setting(
        "topic",
        "the kind of an address without a prefix; `topic:` and `queue:` name it otherwise",
        choices=("topic", "queue"),
    )
    durable: str = setting(
        "",
        "the name of the durable subscription; `{pattern}` in it tells several apart",
    )
    shared: str = setting(
        "", "the name of a subscription that several consumers share (JMS 2.0); may say {pattern}"
    )
    selector: str = setting("", "what the server delivers, as an SQL condition on properties")
    acknowledge: str = setting(
        "client",
        "how receipt is confirmed: `client` or `transacted` all at once, when nothing is under way"
        " and at least once a `window`; `explicit` one by one (EMS, ActiveMQ), `explicit_lazy` as"
        " EMS sees fit",
        choices=ACKNOWLEDGE,
    )
    delivery: str = setting(
        "persistent",
        "the most that is asked of the server; a message for at most once is sent non-persistent."
        " `reliable` is EMS's: no answer even to what it refuses",
        choices=DELIVERY,
    )
    batch: int = setting(
        1_000, "messages received or sent in one call at most", minimum=1, maximum=100_000
    )
    window: int = setting(
        4_000, "messages under way: received and not settled, sent and not answered", minimum=1
    )
    window_bytes: int = setting(
        16_777_216, "bytes under way, as `window`; the JVM needs twice that", minimum=65_536
    )
    prefetch: int = setting(
        0, "messages the server sends ahead; 0 leaves it to the server (EMS), ActiveMQ gets `batch`"
    )
    max_message: int = setting(
        EMS_MESSAGE, "bytes of the longest payload; past it a message is rejected", minimum=1024
    )
    max_correlation: int = setting(
        EMS_CORRELATION, "bytes of the longest correlation id", minimum=16, maximum=32_000
    )
    temporary_reply: str = setting(
        "map",
        "what becomes of a reply address that lives as long as its requester: `map` carries it and"
        " finds it again while this process runs, `drop` counts it",
        choices=("map", "drop"),
    )
    objects: str = setting(
        "opaque",
        "an object message's bytes as they came, or `deserialize`, which runs its sender's code",
        choices=("opaque", "deserialize"),
    )
    compress: bool = setting(default=False, doc="ask EMS to compress what is sent")
    preserve_undelivered: bool = setting(
        default=False, doc="have EMS keep in $sys.undelivered what it must give up"
    )
    trace: bool = setting(default=False, doc="have EMS trace what is sent, payload excluded")
    jvm_options: tuple[str, ...] = setting(
        (),
        "how Java starts, behind our own options; the first JMS endpoint decides for the whole"
        " process",
    )
    connect_timeout: float = setting(
        10.0, "seconds for one attempt to connect, where the library can be told", minimum=0.1
    )
    answer_timeout: float = setting(
        60.0,
        "seconds after which a send without an answer declares the connection stuck; ActiveMQ"
        " makes senders wait like that when it is full",
        minimum=0.1,
    )
    close_timeout: float = setting(
        3.0, "seconds a closing connection is waited for", minimum=0.1, maximum=60
    )
    backoff_min: float = setting(0.5, "seconds before the first new attempt", minimum=0.01)
    backoff_max: float = setting(30.0, "seconds between attempts at most", minimum=0.01)

    def __post_init__(self) -> None:
        """Refuse lists of dialects that no server joins.

        Raises:
            ValueError: the text says which lists there are.
        """
        alone = len(self.dialects) == 1 and self.dialects[0] in SYSTEMS
        different = len(set(self.dialects)) == len(self.dialects)
        if not (alone or (self.dialects[:1] == ("ems",) and different and self._are_joined)):
            raise ValueError(
                f"`dialect` is {list(self.dialects)}, and is one of {', '.join(SYSTEMS)}, or a list"
                f" of ems and what it exports to: {', '.join(JOINED)}"
            )

    @property
    def dialect(self) -> str:
        """The dialect that spells the names."""
        return self.dialects[0]

    @property
    def joined(self) -> tuple[str, ...]:
        """The systems that the server imports from and exports to, by their dialects."""
        return self.dialects[1:]

    @property
    def _are_joined(self) -> bool:
        return set(self.joined) <= set(JOINED)

    @property
    def is_ems(self) -> bool:
        """Whether the rules of EMS hold, though the server may be laxer."""
        return self.dialect == "ems"

    @property
    def broker_key(self) -> str:
        """What two endpoints of one broker have in common."""
        if self.jndi_factory:
            return f"{self.jndi_url or ','.join(self.urls)}#{self.lookup}"
        named = [each.partition("=") for each in self.properties]
        places = [f"{name.lower()}={value}" for name, _, value in named if name.lower() in LOCATING]
        if places:
            return ",".join(sorted(places))
        return ",".join(sorted({url for each in self.urls for url in each.split(",")}))

    @property
    def carries(self) -> frozenset[str]:
        """The fields of `Headers` that survive the way over this system and back."""
        return ALL_FIELDS - {"retained", "redelivered"}

    @property
    def mode(self) -> DeliveryMode:
        """The best this endpoint promises."""
        if self.delivery == "persistent":
            return DeliveryMode.AT_LEAST_ONCE
        return DeliveryMode.AT_MOST_ONCE
