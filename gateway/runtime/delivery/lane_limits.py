"""How much a lane holds, how often it tries, and how fast it sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_HELD_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """The limits of one lane.

    Units: seconds and bytes.
    """

    backoff: tuple[float, float]
    capacity: int = MAX_HELD_BYTES  # bytes in flight and waiting in memory
    isolate_after: int = 3  # attempts after which a batch is searched by halves
    stuck_after_seconds: float = 60.0  # silence after which an unanswered target is stuck
    rate: float = 0.0  # most messages a second; 0: no limit
