"""How long to wait before the next attempt: a pure function of the attempt's number."""

from __future__ import annotations


def delay(attempt: int, minimum: float, maximum: float, jitter: float) -> float:
    """Seconds before attempt `attempt` (from 1), doubling from `minimum` up to `maximum`.

    `jitter` in 0..1 is drawn by the caller; it takes away up to half, so that many gateways that
    lost one broker do not come back in step.
    """
    doubled = minimum * 2.0 ** min(attempt - 1, 32)
    return min(maximum, doubled) * (1.0 - jitter / 2)
