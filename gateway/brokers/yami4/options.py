"""What the YAMI4 broker can be told."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from gateway.wire.yami4.frames import DEFAULT_LIMITS, FrameLimits


class OverflowPolicy(Enum):
    """What happens to an update when its subscription's queue is full."""

    DROP_UPDATE = "drop_update"  # it is lost; a confirmed publisher hears nothing of it
    REJECT_MESSAGE = "reject_message"  # it is lost; a confirmed publisher gets an exception
    UNSUBSCRIBE = "unsubscribe"  # it is lost with the subscription; nobody is told


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    max_subscriptions: int = 100
    max_client_queue: int = 10  # updates of one subscription not yet written
    overflow_policy: OverflowPolicy = OverflowPolicy.REJECT_MESSAGE
    warm_up: float = 0.0  # seconds after the start in which nothing can be published
    max_connections: int = 1_000
    max_list_items: int = 4_096  # tags of a message, patterns of a subscription
    max_peer_bytes: int = 64 << 20  # unwritten bytes of one connection
    max_total_bytes: int = 256 << 20  # unwritten and incomplete bytes of all connections
    frames: FrameLimits = DEFAULT_LIMITS


DEFAULT_OPTIONS: Final = BrokerOptions()
