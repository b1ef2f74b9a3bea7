"""The faults of a synthetic archive: kinds, counts, and the messages they happen to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

import numpy as np

from gateway.errors import ArchiveError
from gateway.model.copy_class import CopyClass
from gateway.model.cut_class import CutClass

Ranges = Sequence[tuple[int, int]]  # numbers of messages: the first, and the end (exclusive)


class Fault(Enum):
    """A fault of one copy of a message; the value is its name on the command line."""

    LOSS = "loss"  # no outcome
    DUPLICATE = "duplicate"  # two delivered rows
    ALTER = "alter"  # delivered with another payload
    REORDER = "reorder"  # recorded before an earlier message of the same name
    LATE = "late"  # delivered a quarter of an hour after its receipt
    DEAD = "dead"  # dead-lettered by a rule of the target
    UNEXPECTED = "unexpected"  # an outcome of a message that was never received
    UNOBSERVED = "unobserved"  # delivered, and never observed by the tap
    ECHO = "echo"  # it comes back, and its route cuts it
    HIDDEN = "hidden"  # another message is cut, and repeats none
    LEFT_OUT = "left-out"  # a selector leaves out another message


# The class of each fault in a reconciliation.
CLASSES: Final[Mapping[Fault, CopyClass | CutClass]] = {
    Fault.LOSS: CopyClass.MISSING,
    Fault.DUPLICATE: CopyClass.DUPLICATED,
    Fault.ALTER: CopyClass.ALTERED,
    Fault.REORDER: CopyClass.DISORDERED,
    Fault.LATE: CopyClass.LATE,
    Fault.DEAD: CopyClass.REFUSED,
    Fault.UNEXPECTED: CopyClass.UNEXPECTED,
    Fault.UNOBSERVED: CopyClass.LOST,
    Fault.ECHO: CutClass.PROVEN,
    Fault.HIDDEN: CutClass.ON_WORD,
    Fault.LEFT_OUT: CutClass.LEFT_OUT,
}
CUTS: Final[Mapping[Fault, str]] = {  # with the rule of the cut
    Fault.ECHO: "loop",
    Fault.HIDDEN: "loop",
    Fault.LEFT_OUT: "unselected",
}
UNRECORDED: Final = (Fault.UNEXPECTED, *CUTS)  # rows of a message without a received row


def parse_faults(text: str, messages: int) -> dict[Fault, int]:
    """Parse a list like `loss=1e-6,dead=3`: a number, or below 1 a share of `messages`.

    Raises:
        ArchiveError: a fault or number is wrong, or there are too many faults.
    """
    counts: dict[Fault, int] = {}
    for part in filter(None, text.split(",")):
        name, _, number = part.partition("=")
        try:
            fault, share = Fault(name.strip()), float(number)
        except ValueError as error:
            known = ", ".join(each.value for each in Fault)
            reason = f"{part!r} is no fault; write NAME=NUMBER with one of {known}"
            raise ArchiveError(f"faults: {reason}") from error
        if not 0 <= share < float("inf"):
            raise ArchiveError(f"faults: {part!r} is not 0 or more")
        counts[fault] = round(share * messages) if share < 1 else int(share)
    if sum(counts.values()) * 4 > messages:
        raise ArchiveError(f"faults: {sum(counts.values())} are too many for {messages} messages")
    return counts


def plan(
    counts: Mapping[Fault, int], messages: int, minutes: Ranges | None, rng: np.random.Generator
) -> dict[int, Fault]:
    """Choose the messages with faults, by number; only among `minutes` when given.

    Raises:
        ArchiveError: the minutes have too few messages.
    """
    faults = [fault for fault in Fault for _ in range(counts.get(fault, 0))]
    if minutes is None:
        chosen = rng.choice(messages // 2, len(faults), replace=False) * 2  # never two in sequence
    else:
        numbers = np.concatenate([np.arange(first, after, 2) for first, after in minutes])
        if len(numbers) < len(faults):
            raise ArchiveError(f"faults: {len(faults)} do not fit into {len(minutes)} minutes")
        chosen = rng.choice(numbers, len(faults), replace=False)
    return dict(sorted(zip(chosen.tolist(), faults, strict=True)))
