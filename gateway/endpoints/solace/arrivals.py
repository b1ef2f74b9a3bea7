"""Received messages with their numbers, and the queue in which they wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from gateway.endpoints.redelivery_queue import RedeliveryQueue, mark_redelivered
from gateway.model.memory_size import messages_size
from gateway.model.message import Message

OVERHEAD: Final = 200  # bytes of memory of an arrival beside its message


@dataclass(frozen=True, slots=True)
class FlowMessage:
    """One received message, and the number to acknowledge it by.

    It is decoded before it waits: the decoded message can take ten times the memory of its bytes,
    and the queue counts this memory.
    """

    message: Message
    message_id: int  # 0 for direct messages, which are not acknowledged


ArrivalQueue: TypeAlias = RedeliveryQueue[FlowMessage]


def arrival_queue(capacity: int) -> ArrivalQueue:
    """Return a queue of arrivals that holds about `capacity` bytes."""
    return RedeliveryQueue(capacity, _measure, _mark)


def _measure(arrivals: Sequence[FlowMessage]) -> int:
    return messages_size([each.message for each in arrivals]) + OVERHEAD * len(arrivals)


def _mark(arrival: FlowMessage) -> FlowMessage:
    return replace(arrival, message=mark_redelivered(arrival.message))
