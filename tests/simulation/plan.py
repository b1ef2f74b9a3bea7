"""The plan of one run: its world, its messages and its faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.simulation.scheduler import Policy

NOT_TAKEN: Final = "~"  # of a name for which a broker hangs up
CONTROL: Final = "\x01"  # of a name that makes a packet malformed
FOREVER: Final = 1_000.0  # seconds of a fault that never ends


SHAPES: Final = {  # the brokers of a topology
    "one": ("a", "b"),
    "fan": ("a", "b", "c"),
    "both": ("a", "b"),
    "chain": ("a", "b", "c"),
    "ring2": ("a", "b"),
    "ring3": ("a", "b", "c"),
    "relay": ("a", "b", "c"),
    "pair": ("a", "b"),
    "hub": ("a", "h", "c"),
    "ring": ("a", "b", "c"),
    "mesh": ("a", "b", "c"),
    "queue": ("a", "b", "c"),
    "redrive": ("a", "b"),
    "circle": ("a", "b"),
}
INSTANCES: Final = ("g1.a", "g1.b")  # of the gateway of a pair


@dataclass(frozen=True, slots=True)
class Publication:
    """A message that an application publishes at a broker."""

    at: float
    broker: str
    key: str
    payload: bytes
    once: bool = True  # at least once; else at most
    expired: bool = False  # it becomes a dead letter


@dataclass(frozen=True, slots=True)
class Application:
    """An application that publishes messages made from what gateways send.

    Its `kind` is a function of `applications.py`. It takes what arrives at the broker `at`, and
    publishes at the broker `to`, for each payload `times` at most.
    """

    kind: str
    at: str
    to: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault at a time, for some seconds; `where` is a broker or a gateway."""

    at: float
    kind: str
    where: str
    seconds: float = 0.0
    steps: int = 0  # of the scheduler, after `at`
    payload: bytes = b""  # of a message, or a part of several


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that happens in one run, except the order of the steps.

    `brokers` maps a broker to its system; `shape` is the topology.
    """

    seed: int
    shape: str
    brokers: dict[str, str]
    publications: tuple[Publication, ...]
    faults: tuple[Fault, ...]
    policy: Policy = field(default_factory=Policy)
    spool: bool = True
    archive: bool = True
    sync: str = "batch"
    when_full: str = "slow"
    spool_messages: int | None = None
    spool_seconds: float | None = None
    duplicates: str = "drop"
    window: int = 20
    batch: int = 1_000
    capacity: int = 1 << 20
    latency: float = 0.02
    flush: float = 0.01
    heartbeat: bool = False
    small: bool = True  # scaled-down limits of the product
    until: float = 6.0  # seconds at which all faults have ended
    dead_letter_endpoint: bool = False
    taps: bool = False  # at each target
    exactly_once: bool = False  # MQTT 5.0 with QoS 2
    qos: int | None = None  # of MQTT 5.0; its sinks run the product's packet states then
    own_sinks: bool = False  # of JMS, Solace and YAMI4: the product's, with their encoders
    prefix: str = ""  # of the gateways' names
    broker_ids: bool = True  # all gateways give each broker one
    hosts: Mapping[str, str] = field(default_factory=dict)  # "gateway.broker" -> host, else a name
    equal_names: bool = False  # all gateways have one, and their routes have equal names
    path_key: bool = False  # all gateways share one
    max_hops: int | None = None
    removing: str = ""  # brokers where sources remove what they read
    selector: bool = False  # of the routes that read removing sources: one key of two
    fields: bool = False  # names are made of the field `key` of payloads
    message_ids: bool = False  # in the copies of what was published at a
    applications: tuple[Application, ...] = ()
    copies: int | None = None  # of a message at a broker, at most; None: exactly the required ones
    backoff: tuple[float, float] = (0.05, 0.4)  # seconds, of every endpoint
    queued: int = 3_000  # bytes that wait for the disk of the spool at most
    disk: int | None = None  # bytes of the disk of the spool; unlimited without
    thin: float = 0.0  # seconds of the interval in which a target gets one message a name; 0: all
    on_change: bool = False  # a target gets a message only if its payload is a change
    bound: float | None = None  # seconds in which each message must arrive that no fault concerns

    @property
    def loses_rows(self) -> bool:
        """Whether a power cut may lose rows of the archive."""
        return self.sync == "interval" and any(each.kind == "power" for each in self.faults)

    @property
    def is_pair(self) -> bool:
        """Whether two instances share the sessions of one gateway, by a lease."""
        return self.shape == "pair"

    @property
    def sink_qos(self) -> int | None:
        """The QoS of the packet states of MQTT 5.0 sinks; None for sinks without packets."""
        return 2 if self.exactly_once else self.qos
