"""Injection of planned faults into one window of synthetic traffic.

A message with a late, duplicated or overtaken delivery gets a unique name, so that its fault causes
no second one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from gateway.errors import ArchiveError
from gateway.trial.synthetic.faults import Fault
from gateway.trial.synthetic.traffic import STARTED_BEFORE, Numbers, Traffic, Window

_LATE: Final = 15 * 60_000_000  # microseconds
_REORDER_WINDOW: Final = 10_000_000  # microseconds between two messages that change places
_DUPLICATE_DELAY: Final = 1_000_000  # microseconds between a delivery and its duplicate
_UNIQUELY_NAMED: Final = (Fault.LATE, Fault.DUPLICATE, Fault.REORDER)


@dataclass(frozen=True)
class FaultAssignment:
    """The faults of one window: positions by fault, and the position that overtakes each."""

    at: Mapping[Fault, list[int]]
    overtaken_by: Mapping[int, int]

    @property
    def unique_names(self) -> dict[int, int]:
        """Positions of messages with a unique name, with the position that determines the name."""
        own = {position: position for fault in _UNIQUELY_NAMED for position in self.at[fault]}
        return own | {other: position for position, other in self.overtaken_by.items()}


@dataclass(frozen=True)
class TargetOutcomes:
    """The outcomes of one window at one target, by position of the message in the window."""

    delivered: Numbers  # a duplicate twice
    time: Numbers  # of each delivered one
    at: Mapping[Fault, list[int]]  # an unexpected outcome takes the time of the message


def assign_faults(traffic: Traffic, window: Window, plan: Mapping[int, Fault]) -> FaultAssignment:
    """Return the faults of `plan`, by message number, that lie in this window.

    Raises:
        ArchiveError: no message of the same route can overtake a message.
    """
    at: dict[Fault, list[int]] = {fault: [] for fault in Fault}
    overtaken: dict[int, int] = {}
    busy = set(np.searchsorted(window.number, list(plan)).tolist())
    for number, fault in plan.items():
        if number % traffic.gateways != window.gateway:
            continue
        position = int(np.searchsorted(window.number, number))
        if fault is Fault.REORDER:
            position, other = _reordered_pair(window, position, busy)
            busy |= {position, other}
            overtaken[position] = other
        at[fault].append(position)
    return FaultAssignment(at, overtaken)


def _reordered_pair(window: Window, position: int, busy: Collection[int]) -> tuple[int, int]:
    """Return the first two free messages from `position` on, of one route and close in time."""
    for first in range(position, len(window.number)):
        if first != position and first in busy:
            continue
        after = int(np.searchsorted(window.time, window.time[first] + _REORDER_WINDOW, "right"))
        for other in range(first + 1, after):
            if window.route[other] == window.route[first] and other not in busy:
                return first, other
    number = int(window.number[position])
    raise ArchiveError(f"faults: nothing can overtake message {number}; make longer segments")


def outcomes_at(
    traffic: Traffic, window: Window, target: str, faults: FaultAssignment
) -> TargetOutcomes:
    """Return the outcomes at `target`; a fault happens at a message's first target."""
    routes = [route for route in range(traffic.routes) if target in traffic.targets(route)]
    first = {route for route in routes if traffic.targets(route)[0] == target}
    by = {
        fault: [each for each in positions if int(window.route[each]) in first]
        for fault, positions in faults.at.items()
    }
    delivered = np.flatnonzero(np.isin(window.route, routes))
    delivered = delivered[~np.isin(delivered, by[Fault.LOSS] + by[Fault.DEAD])]
    end = window.end.copy()
    end[by[Fault.LATE]] += _LATE
    for position in by[Fault.REORDER]:
        end[position] = end[faults.overtaken_by[position]] + 1
    duplicates = np.array(by[Fault.DUPLICATE], np.int64)
    return TargetOutcomes(
        np.concatenate([delivered, duplicates]),
        np.concatenate([end[delivered], end[duplicates] + _DUPLICATE_DELAY]),
        by,
    )


def gateway_start(traffic: Traffic, gateway: int, *, unrecorded: bool = False) -> int:
    """Return the start of a gateway in microseconds; `unrecorded` is a run without other rows."""
    return traffic.midnight - STARTED_BEFORE + gateway + (traffic.gateways if unrecorded else 0)
