"""Options of the SMF broker, and refusals that tests inject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.trial.brokers.smf.subscription_table import compile_pattern
from gateway.wire.smf.responses import SmfResponse


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """A durable queue that exists from the start."""

    name: str
    topics: tuple[str, ...] = ()
    exclusive: bool = True


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    vpns: tuple[str, ...] = ("default",)
    users: Mapping[str, str] | None = None  # name -> password; None accepts every client
    tokens: frozenset[str] = frozenset()  # accepted OAuth tokens
    queues: tuple[QueueOptions, ...] = ()  # in every VPN
    router: str = "gateway"
    reject_unmatched: bool = False  # refuse guaranteed messages without a subscriber
    max_connections: int = 1_000
    max_subscriptions: int = 10_000  # of one client, and of one queue
    max_queues: int = 1_000
    max_flows: int = 1_000  # of one connection, publishers and consumers together
    max_publishers: int = 10_000  # flow names kept for clients that reconnect
    max_unacked: int = 10_000  # unsettled messages of one consumer
    max_message: int = 10_000_000  # bytes of the longest guaranteed message
    queue_bytes: int = 256 << 20  # of messages in one queue
    spool_bytes: int = 1 << 30  # of messages in all queues
    peer_bytes: int = 64 << 20  # unwritten to one client; past it direct messages are dropped
    total_bytes: int = 256 << 20  # unwritten to all clients, and incomplete from them
    login_timeout: float = 15.0  # seconds a connection may stay without a login
    temporary_seconds: float = 60.0  # lifetime of a temporary queue without a client


DEFAULT_OPTIONS: Final = BrokerOptions()


class InjectedFaults:
    """Refusals that tests inject into a running broker.

    The keys of `publish` and `subscribe` are patterns.
    Mutable: changed by any thread; the broker's event loop reads it.
    """

    def __init__(self) -> None:
        self.login: SmfResponse | None = None
        self.publish: dict[str, SmfResponse] = {}
        self.subscribe: dict[str, SmfResponse] = {}
        self.suppress_acks = False  # publishers get no answer


def find_injected_refusal(refusals: dict[str, SmfResponse], topic: bytes) -> SmfResponse | None:
    """Return the injected refusal whose pattern matches `topic`; `topic` may be a pattern."""
    for pattern, response in refusals.items():
        matches = compile_pattern(pattern.encode())
        if pattern.encode() == topic or (matches is not None and matches(topic)):
            return response
    return None
