"""Messages as the Solace library delivers them, and the queue in which they wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from gateway.endpoints.redelivery_queue import RedeliveryQueue

OVERHEAD: Final = 1_024  # bytes of memory of a message beside its frame, once it is decoded


@dataclass(frozen=True, slots=True)
class Arrival:
    """One received message: its undecoded bytes and the number to acknowledge it by."""

    frame: bytes
    message_id: int  # 0 for direct messages, which are not acknowledged
    at: int  # microseconds since 1970
    redelivered: bool = False


ArrivalQueue: TypeAlias = RedeliveryQueue[Arrival]


def arrival_queue(capacity: int) -> ArrivalQueue:
    """Return a queue of arrivals that holds about `capacity` bytes."""
    return RedeliveryQueue(capacity, _measure, _mark)


def _measure(arrivals: Sequence[Arrival]) -> int:
    return sum([len(each.frame) for each in arrivals]) + OVERHEAD * len(arrivals)


def _mark(arrival: Arrival) -> Arrival:
    return replace(arrival, redelivered=True)
