"""What the faults of a plan do to the rows of one window; it draws no numbers and writes nothing.

A message whose end another could be confused with has a name of its own, so that every fault is
exactly one fault.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.errors import ArchiveError
from gateway.synthetic.faults import Fault, Injected
from gateway.synthetic.traffic import EARLIER, Numbers, Traffic, Window

_LATE: Final = 15 * 60_000_000  # microseconds
_MOMENT: Final = 10_000_000
_AGAIN: Final = 1_000_000  # between an end and its duplicate
_RARE: Final = "plant/rare/sensor{}/value"
_APART: Final = (Fault.LATE, Fault.DUPLICATE, Fault.REORDER)


@dataclass(frozen=True)
class Befallen:
    """The faults of one window: positions of its messages by fault, and who overtakes whom."""

    at: Mapping[Fault, list[int]]
    overtaken_by: Mapping[int, int]

    @property
    def apart(self) -> dict[int, int]:
        """Positions of messages with a name of their own, and the position it is made of."""
        own = {position: position for fault in _APART for position in self.at[fault]}
        return own | {other: position for position, other in self.overtaken_by.items()}


@dataclass(frozen=True)
class Ends:
    """The ends of one window at one target, by position of the message in the window."""

    delivered: Numbers  # a duplicate twice
    time: Numbers  # of each delivered
    altered: Sequence[int]
    dead: Sequence[int]
    unseen: Sequence[int]  # delivered, but no tap saw it
    strangers: Sequence[int]  # positions whose moment an end borrows that nobody waits for


def befallen(traffic: Traffic, window: Window, plan: Mapping[int, Fault]) -> Befallen:
    """The faults of `plan`, by number of the message, that lie in this window.

    Raises:
        ArchiveError: a message is to be overtaken and nothing of its route follows it.
    """
    at: dict[Fault, list[int]] = {fault: [] for fault in Fault}
    overtaken: dict[int, int] = {}
    busy = set(np.searchsorted(window.number, list(plan)).tolist())
    for number, fault in plan.items():
        if number % traffic.gateways != window.gateway:
            continue
        position = int(np.searchsorted(window.number, number))
        if fault is Fault.REORDER:
            position, other = _couple(window, position, busy)
            busy |= {position, other}
            overtaken[position] = other
        at[fault].append(position)
    return Befallen(at, overtaken)


def _couple(window: Window, position: int, busy: Collection[int]) -> tuple[int, int]:
    """The first two free messages from `position` on, of one route and about the same moment."""
    for first in range(position, len(window.number)):
        if first != position and first in busy:
            continue
        after = int(np.searchsorted(window.time, window.time[first] + _MOMENT, "right"))
        for other in range(first + 1, after):
            if window.route[other] == window.route[first] and other not in busy:
                return first, other
    number = int(window.number[position])
    raise ArchiveError(f"faults: nothing can overtake message {number}; make longer segments")


def names(traffic: Traffic, window: Window, faults: Befallen) -> tuple[pa.Array, pa.Array]:
    """What each message was received and sent as."""
    apart = dict(sorted(faults.apart.items()))
    where = np.zeros(len(window.number), np.bool_)
    where[list(apart)] = True
    rare = [rare_name(int(window.number[made_of])) for made_of in apart.values()]
    sent = [name.replace("/", ".") for name in rare]
    chosen = pa.array(window.name)
    return (
        pc.replace_with_mask(traffic.sources.take(chosen), where, pa.array(rare, pa.string())),
        pc.replace_with_mask(traffic.sent.take(chosen), where, pa.array(sent, pa.string())),
    )


def rare_name(number: int) -> str:
    return _RARE.format(number)


def ends_at(traffic: Traffic, window: Window, target: str, faults: Befallen) -> Ends:
    """The ends of the messages that owe one to `target`; a message's first target has its fault."""
    owing = [route for route in range(traffic.routes) if target in traffic.targets(route)]
    first = {route for route in owing if traffic.targets(route)[0] == target}
    by = {
        fault: [each for each in positions if int(window.route[each]) in first]
        for fault, positions in faults.at.items()
    }
    owed = np.flatnonzero(np.isin(window.route, owing))
    owed = owed[~np.isin(owed, by[Fault.LOSS] + by[Fault.DEAD])]
    end = window.end.copy()
    end[by[Fault.LATE]] += _LATE
    for position in by[Fault.REORDER]:
        end[position] = end[faults.overtaken_by[position]] + 1
    again = np.array(by[Fault.DUPLICATE], np.int64)
    return Ends(
        np.concatenate([owed, again]),
        np.concatenate([end[owed], end[again] + _AGAIN]),
        by[Fault.ALTER],
        by[Fault.DEAD],
        by[Fault.UNOBSERVED],
        by[Fault.UNEXPECTED],
    )


def start_of(traffic: Traffic, gateway: int, *, stranger: bool = False) -> int:
    """The run of a gateway; a stranger's is another, which recorded nothing else."""
    return traffic.midnight - EARLIER + gateway + (traffic.gateways if stranger else 0)


def told(traffic: Traffic, window: Window, faults: Befallen) -> list[Injected]:
    """The faults as the manifest lists them. Of two in the wrong order, the one that overtook."""
    found = []
    for fault, positions in faults.at.items():
        for position in positions:
            befell = faults.overtaken_by.get(position, position)
            stranger = fault is Fault.UNEXPECTED
            found.append(
                Injected(
                    _hex(traffic, window, befell, stranger=stranger),
                    traffic.gateway(window.gateway),
                    traffic.route(int(window.route[position])),
                    traffic.targets(int(window.route[position]))[0],
                    fault,
                    _minute(int(window.time[befell])),
                    _hex(traffic, window, position) if befell != position else "",
                )
            )
    return found


def _hex(traffic: Traffic, window: Window, position: int, *, stranger: bool = False) -> str:
    start = start_of(traffic, window.gateway, stranger=stranger)
    number = int(window.number[position]) // traffic.gateways
    return (start.to_bytes(8, "big") + number.to_bytes(8, "big")).hex()


def _minute(time: int) -> str:
    return f"{datetime.fromtimestamp(time // 60_000_000 * 60, UTC):%Y-%m-%dT%H:%MZ}"
