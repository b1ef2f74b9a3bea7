"""Received batches as a relay makes them: their messages, and the ids of a run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from gateway.model.message import Message
from gateway.runtime.delivery.received_batch import ReceivedBatch
from gateway.runtime.delivery.rows import BatchOrigin, message_ids

ORIGIN: Final = BatchOrigin("here", "mqtt", 1)


def received_batch(
    messages: Sequence[Message], origin: BatchOrigin = ORIGIN, identities: Sequence[str] = ()
) -> ReceivedBatch:
    return ReceivedBatch(messages, origin, [*islice(message_ids(2), len(messages))], identities)
