"""What the SMF broker can be told before it starts, and the answers it gives; data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.wire.smf.parameters import Response

UNAUTHORIZED: Final = Response(401, "Unauthorized")
VPN_NOT_ALLOWED: Final = Response(403, "Message VPN Not Allowed")
NAME_IN_USE: Final = Response(403, "Client Name Already In Use")
NAME_PARSE_ERROR: Final = Response(400, "Client Name Parse Error")
TOO_MANY_CLIENTS: Final = Response(503, "Too Many Clients")

SUBSCRIPTION_PARSE_ERROR: Final = Response(400, "Subscription Parse Error")
SUBSCRIPTION_EXISTS: Final = Response(400, "Subscription Already Exists")
SUBSCRIPTION_NOT_FOUND: Final = Response(400, "Subscription Not Found")
SUBSCRIPTIONS_EXCEEDED: Final = Response(400, "Max Num Subscriptions Exceeded")
SUBSCRIPTION_DENIED: Final = Response(403, "Subscription ACL Denied")

PUBLISH_DENIED: Final = Response(403, "Publish ACL Denied")
NO_MATCH: Final = Response(503, "No Subscription Match")
OVER_QUOTA: Final = Response(503, "Spool Over Quota")
TOO_LONG: Final = Response(400, "Message Too Long")
TOPIC_PARSE_ERROR: Final = Response(400, "Topic Parse Error")
QUEUE_NOT_FOUND: Final = Response(400, "Queue Not Found")
UNKNOWN_FLOW: Final = Response(400, "Unknown Flow Name")

UNKNOWN_QUEUE: Final = Response(503, "Unknown Queue")
QUEUE_SHUTDOWN: Final = Response(503, "Queue Shutdown")
MAX_BINDS: Final = Response(503, "Max clients exceeded for queue")
NOT_ALLOWED: Final = Response(403, "Permission Not Allowed")
INVALID_SELECTOR: Final = Response(400, "Invalid Selector")
ALREADY_EXISTS: Final = Response(400, "Already Exists")
NO_SPACE: Final = Response(503, "Spool Over Quota")
SERVICE_UNAVAILABLE: Final = Response(503, "Service Unavailable")


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """A durable queue that exists from the start."""

    name: str
    topics: tuple[str, ...] = ()
    exclusive: bool = True


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    vpns: tuple[str, ...] = ("default",)
    users: Mapping[str, str] | None = None  # name -> password; None lets everybody in
    tokens: frozenset[str] = frozenset()  # OAuth tokens that are let in
    queues: tuple[QueueOptions, ...] = ()  # in every VPN
    router: str = "gateway"
    reject_unmatched: bool = False  # a guaranteed message nobody wants is refused, not dropped
    max_connections: int = 1_000
    max_subscriptions: int = 10_000  # of one client, and of one queue
    max_queues: int = 1_000
    max_flows: int = 1_000  # of one connection, publishers and consumers together
    max_publishers: int = 10_000  # flow names remembered for clients that come back
    max_unacked: int = 10_000  # messages one consumer may hold
    max_message: int = 10_000_000  # bytes of the longest guaranteed message
    queue_bytes: int = 256 << 20  # what one queue holds
    spool_bytes: int = 1 << 30  # what all queues hold
    peer_bytes: int = 64 << 20  # unwritten to one client; past it direct messages are dropped
    total_bytes: int = 256 << 20  # unwritten to all clients, and incomplete from them
    login_timeout: float = 15.0  # seconds a connection may stay without a login
    temporary_seconds: float = 60.0  # how long a temporary queue waits for its client


DEFAULT_OPTIONS: Final = BrokerOptions()


class Faults:
    """Refusals on demand. Mutable on purpose: tests and trials change it while the broker runs.

    The keys of `publish` and `subscribe` are patterns, those of `bind` and `create` queue names.
    """

    def __init__(self) -> None:
        self.login: Response | None = None
        self.publish: dict[str, Response] = {}
        self.subscribe: dict[str, Response] = {}
        self.bind: dict[str, Response] = {}
        self.create: dict[str, Response] = {}
        self.mute_acks = False  # publishers get no answer
