"""Behaviours of hostile servers, wire format by wire format, and their cost to an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeAlias

import pytest

from gateway.endpoints.settings.base import EndpointSettings
from tests.brokers.hostile_servers import serving

Honest: TypeAlias = Callable[[pytest.FixtureRequest, ExitStack], EndpointSettings]
Serve: TypeAlias = Callable[[Any], AbstractContextManager[Any]]


class Cost(Enum):
    """The loss of an endpoint by a behaviour."""

    LOG_IN = auto()  # neither a source nor a sink can be opened
    SOURCE = auto()  # no source can be opened
    READING = auto()  # an open source loses its connection
    SENDING = auto()  # an open sink loses its connection, and sends its message again
    ROOM = auto()  # a source reads no further while its messages are unsettled
    NOTHING = auto()  # a source receives the honest message that follows


@dataclass(frozen=True, slots=True)
class Hostile:
    """One behaviour of a hostile server: what `serve` of its wire format needs."""

    name: str
    behave: Any
    cost: Cost


@dataclass(frozen=True, slots=True)
class HostileWire:
    """The behaviours of one wire format.

    `settings` are those of an endpoint at what `serve` yields, by default the port of a server that
    behaves so. `honest` starts an honest server and returns the settings of an endpoint there.
    `pattern` selects `address`. `fewest` behaviours stand in the list.
    """

    kind: str
    name: str
    pattern: str
    address: str
    settings: Callable[[Any], EndpointSettings]
    honest: Honest
    behaviours: Sequence[Hostile]
    serve: Serve = serving
    fewest: int = 38
