"""Behaviours of hostile servers, wire format by wire format, and their cost to an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from gateway.endpoints.settings.base import EndpointSettings
from tests.brokers.hostile_servers import Behaviour


class Cost(Enum):
    """The loss of an endpoint by a behaviour."""

    LOG_IN = auto()  # neither a source nor a sink can be opened
    SOURCE = auto()  # no source can be opened
    READING = auto()  # an open source loses its connection
    SENDING = auto()  # an open sink loses its connection, and sends its message again
    NOTHING = auto()  # a source receives the honest message that follows


@dataclass(frozen=True, slots=True)
class Hostile:
    """One behaviour of a hostile server."""

    name: str
    behave: Behaviour
    cost: Cost


@dataclass(frozen=True, slots=True)
class HostileWire:
    """The behaviours of one wire format, and the settings of an endpoint at a port."""

    kind: str
    pattern: str
    settings: Callable[[int], EndpointSettings]
    behaviours: Sequence[Hostile]
