"""The seam of a store that keeps a lease, and the stores there are."""

from __future__ import annotations

from typing import Protocol

from gateway.errors import GatewayError
from gateway.lease.lease import Record


class LeaseError(GatewayError):
    """The store of a lease did not answer, or refused; the text says where and why."""

    retryable = True


class LeaseStore(Protocol):
    """The place where the instances of a pair keep their lease.

    Each call raises LeaseError when the store does not answer. A call may block: nothing that
    decides about a message waits for one.
    """

    look_every: float  # seconds between two looks of a standby

    def look(self, instance: str = "") -> Record:
        """Return the record; with a name, state that this instance waits."""

    def take(self, seen: Record, instance: str) -> Record | None:
        """Make the next record; return None when the last one is not `seen` any more.

        A renewal of `seen` that arrives later must not be answered as one.
        """

    def renew(self, number: int, instance: str) -> Record:
        """Change the record `number` if it is the last; return the last one."""

    def give(self, number: int, instance: str) -> None:
        """State that the record `number` was given away, if it is the last."""

    def want(self, number: int) -> None:
        """Ask the holder of the record `number` to give it away."""
