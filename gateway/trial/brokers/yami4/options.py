"""Options of the YAMI4 broker."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from gateway.wire.yami4.frames import DEFAULT_LIMITS, FrameLimits


class OverflowPolicy(Enum):
    """Treatment of an update whose subscription's queue is full; the update is lost each time."""

    DROP_UPDATE = "drop_update"  # a confirmed publisher gets a reply
    REJECT_MESSAGE = "reject_message"  # a confirmed publisher gets an exception
    UNSUBSCRIBE = "unsubscribe"  # the subscription is removed; a confirmed publisher gets a reply


@dataclass(frozen=True, slots=True)
class Yami4BrokerOptions:
    max_subscriptions: int = 100
    max_client_queue: int = 10  # updates of one subscription that are not written yet
    overflow_policy: OverflowPolicy = OverflowPolicy.REJECT_MESSAGE
    warm_up: float = 0.0  # seconds after the start during which publishing is refused
    max_connections: int = 1_000
    max_list_items: int = 4_096  # tags of a message; patterns of a subscription
    max_peer_bytes: int = 64 << 20  # unwritten bytes of one connection
    max_total_bytes: int = 256 << 20  # unwritten and incomplete bytes of all connections
    frames: FrameLimits = DEFAULT_LIMITS


DEFAULT_OPTIONS: Final = Yami4BrokerOptions()
