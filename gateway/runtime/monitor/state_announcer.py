"""The states of connections, told at brokers as retained messages.

Told: when the sink there is connected, and with each change. The state is that of one endpoint,
which is connected when its source and its sink are. After a crash, or a loss of the sink's
connection, the broker tells the will: not connected. At a stop the sink tells that
itself. A message of this kind is not a copy: it has no row, and no route counts it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from gateway.config.state_settings import StateSettings
from gateway.endpoints.base import TellsState
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.record.counters import ConnectionState, EndpointState


class HasState(Protocol):
    @property
    def state(self) -> EndpointState: ...


class StateAnnouncer:
    """Tells the states of the configuration in use.

    Thread-safe: self._lock guards the order of reading and telling, so that the last is right.
    """

    def __init__(
        self,
        wanted: Callable[[], Sequence[StateSettings]],
        lanes: Mapping[str, Lane],
        pumps: Mapping[str, HasState],
    ) -> None:
        self._wanted, self._lanes, self._pumps = wanted, lanes, pumps
        self._lock = threading.Lock()

    def changed(self, name: str) -> None:
        """Tell what a change of a connection of the endpoint `name` makes of the states."""
        for each in self._wanted():
            if name == each.of or name in each.endpoint:
                self._tell(each)

    def renew(self) -> None:
        """Tell all states, after a reload."""
        for each in self._wanted():
            self._tell(each)

    def _tell(self, wanted: StateSettings) -> None:
        with self._lock:
            connected = self._is_connected(wanted.of)
            for name in wanted.endpoint:
                lane = self._lanes.get(name)
                if lane is not None and isinstance(lane.binding.sink, TellsState):
                    lane.binding.sink.tell(connected=connected)

    def _is_connected(self, name: str) -> bool:
        sides: tuple[HasState | None, ...] = (self._lanes.get(name), self._pumps.get(name))
        states = [each.state.connection for each in sides if each is not None]
        return bool(states) and all(each is ConnectionState.CONNECTED for each in states)
