"""What the parts of a running gateway share, and where a pump receives."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gateway.endpoints.base import Source
from gateway.routing.router import Router
from gateway.runtime.inbound.echo_cache import Echoes
from gateway.runtime.monitor.heartbeat import Pulse
from gateway.runtime.outbound.backlog import Parcel
from gateway.runtime.outbound.lane import Outlet
from gateway.runtime.record.ledger import Ledger


class Identities:
    """Message ids of this run: its start in microseconds, then a counter; mutable, it counts."""

    def __init__(self, run: int) -> None:
        self.run = run
        self._next = 0
        self._lock = threading.Lock()

    def take(self, number: int) -> int:
        """The first of `number` counters in a row."""
        with self._lock:
            first = self._next
            self._next += number
        return first


class Carrier(Protocol):
    """Where a pump hands over: a lane, or one that is watched."""

    @property
    def outlet(self) -> Outlet:
        """Where it leads."""

    def deliver(self, parcel: Parcel) -> None:
        """Take the parcel; the order of the calls is the order of the parcels."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all pumps of a gateway share; `gateway` is its name."""

    gateway: str
    lanes: Mapping[str, Carrier]
    ledger: Ledger
    identities: Identities
    echoes: Echoes
    pulses: Mapping[str, Pulse]  # by route, for those that have a heartbeat


@dataclass(frozen=True, slots=True)
class Intake:
    """Where a pump receives: a source, its routes, and how its broker behaves.

    `echoes_of` names a broker that returns our own messages without their origin path; within
    `echo_seconds` the same name and payload counts as the same message.
    """

    source: Source
    router: Router
    backoff: tuple[float, float]
    echoes_of: str = ""
    echo_seconds: float = 0.0
