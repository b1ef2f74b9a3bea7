"""Faults for a generated archive: how many of each class, and which messages they befall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from gateway.errors import ArchiveError

Ranges = Sequence[tuple[int, int]]  # numbers of messages: the first, and the first after them


class Fault(Enum):
    """What may happen to one copy of a message; the value is its word on the command line."""

    LOSS = "loss"  # no end at all
    DUPLICATE = "duplicate"  # two delivered rows
    ALTER = "alter"  # delivered with another payload
    REORDER = "reorder"  # recorded before an earlier message of the same name
    LATE = "late"  # delivered a quarter of an hour after it came
    DEAD = "dead"  # set aside by a rule of the target
    UNEXPECTED = "unexpected"  # an end of a message that never came
    UNOBSERVED = "unobserved"  # delivered, and never seen at the target


# What the reconciliation calls them.
CLASSES: Final[Mapping[Fault, str]] = {
    Fault.LOSS: "missing",
    Fault.DUPLICATE: "duplicated",
    Fault.ALTER: "altered",
    Fault.REORDER: "out of order",
    Fault.LATE: "delivered late",
    Fault.DEAD: "refused",
    Fault.UNEXPECTED: "unexpected",
    Fault.UNOBSERVED: "lost in target",
}


@dataclass(frozen=True, slots=True)
class Injected:
    """One fault as the manifest lists it; `other` is the message that was overtaken."""

    id: str
    gateway: str
    route: str
    target: str
    fault: Fault
    minute: str
    other: str = ""

    def as_dict(self) -> dict[str, str]:
        told = {"id": self.id, "gateway": self.gateway, "route": self.route, "target": self.target}
        told |= {"class": CLASSES[self.fault], "fault": self.fault.value, "minute": self.minute}
        return told | ({"overtaken": self.other} if self.other else {})


def parse_faults(text: str, messages: int) -> dict[Fault, int]:
    """How many of each: `loss=1e-6,dead=3`; below 1 a share of `messages`, from 1 on a number.

    Raises:
        ArchiveError: a word or a number is none; there are more faults than messages.
    """
    counts: dict[Fault, int] = {}
    for part in filter(None, text.split(",")):
        word, _, number = part.partition("=")
        try:
            fault, share = Fault(word.strip()), float(number)
        except ValueError as error:
            known = ", ".join(each.value for each in Fault)
            raise ArchiveError(
                f"faults: {part!r} is no fault; write WORD=NUMBER with one of {known}"
            ) from error
        if not 0 <= share < float("inf"):
            raise ArchiveError(f"faults: {part!r} is not 0 or more")
        counts[fault] = round(share * messages) if share < 1 else int(share)
    if sum(counts.values()) * 4 > messages:
        raise ArchiveError(f"faults: {sum(counts.values())} are too many for {messages} messages")
    return counts


def plan(
    counts: Mapping[Fault, int], messages: int, minutes: Ranges | None, rng: np.random.Generator
) -> dict[int, Fault]:
    """Which messages are befallen, by number; in `minutes` alone where those are given."""
    faults = [fault for fault in Fault for _ in range(counts.get(fault, 0))]
    if minutes is None:
        where = rng.choice(messages // 2, len(faults), replace=False) * 2  # never two in a row
    else:
        numbers = np.concatenate([np.arange(first, after, 2) for first, after in minutes])
        if len(numbers) < len(faults):
            raise ArchiveError(f"faults: {len(faults)} do not fit into {len(minutes)} minutes")
        where = rng.choice(numbers, len(faults), replace=False)
    return dict(sorted(zip(where.tolist(), faults, strict=True)))
