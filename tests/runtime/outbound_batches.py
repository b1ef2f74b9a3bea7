"""Batches of tests: their answers go to a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gateway.model.message import Message
from gateway.model.outcome import Settlement
from gateway.routing.route import WhenFull
from gateway.runtime.delivery.outbound_batch import OutboundBatch, PendingRow

Done: TypeAlias = Callable[[Sequence[Settlement], int], None]  # and the number of attempts


@dataclass(frozen=True, slots=True)
class Asker:
    """The origin of a batch of a test."""

    done: Done = lambda _settlements, _attempts: None
    pending: Sequence[PendingRow] = ()

    def answered(self, batch: OutboundBatch) -> None:
        self.done(batch.settlements, batch.attempts)

    def pending_rows(self, _: OutboundBatch) -> Sequence[PendingRow]:
        return self.pending


def batch_of(
    messages: Sequence[Message],
    done: Done = lambda _settlements, _attempts: None,
    pending: Sequence[PendingRow] = (),
    *,
    size: int = 0,
    when: WhenFull = WhenFull.SLOW,
) -> OutboundBatch:
    """Return a batch; `size` replaces its true size in bytes."""
    batch = OutboundBatch(Asker(done, pending), when, messages)
    batch.size = size or batch.size
    return batch
