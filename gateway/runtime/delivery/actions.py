"""Actions: all that a lane's state asks of the threads, the sink and the disk around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from gateway.runtime.delivery.outbound_batch import OutboundBatch


class Step(Enum):
    """The actions without facts of their own."""

    OPEN = auto()  # connect the sink, then tell `opened` or `failed`
    CLOSE = auto()  # the sink, for good
    RECOVER = auto()  # close the sink, which ends a send; tell `recover` when none is in progress
    CHECK = auto()  # ask an idle sink whether its connection is known to be lost
    END = auto()  # the lane has stopped


@dataclass(frozen=True, slots=True)
class Send:
    """Send part of a batch at the time `since`; its answer has this number."""

    number: int
    batch: OutboundBatch
    positions: Sequence[int]
    since: float


@dataclass(frozen=True, slots=True)
class Finish:
    """Pass on the settlements of a batch, which are final."""

    batch: OutboundBatch


@dataclass(frozen=True, slots=True)
class Lost:
    """The answer was not final, and the connection counts as lost for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Store:
    """Write the unsettled messages of a batch to disk, then tell `written` and `stored`."""

    batch: OutboundBatch


@dataclass(frozen=True, slots=True)
class Read:
    """Read rows with numbers above `after` and below `before`, then tell `read`."""

    after: int
    before: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Write that the rows up to `number` may have been sent, then tell `marked`."""

    number: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing for these seconds, or until the next event; None without an end."""

    seconds: float | None


Action: TypeAlias = Step | Send | Finish | Store | Read | Mark | Wait
