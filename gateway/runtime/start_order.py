"""The order of a start: targets wait for the sources at their broker, and sources for targets.

A broker that keeps nothing for a source loses what a target sends there before the source
subscribes. So a lane sends nothing over a new connection until the sources at its broker are
subscribed, and a source begins to receive when no source of the same change misses what its routes
send. Asked: by lanes at each connection, by pumps at their first. Changed: by each start and
reload, which may add a source to the broker of a target that runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from gateway.endpoints.continuity import ReportsContinuity, Retention
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.pump import Pump
from gateway.runtime.record.counters import ConnectionState, EndpointState


class StartOrder:
    """The lanes and pumps of a gateway, by their endpoints, as far as they wait for one another.

    Mutable: `lanes` and `pumps` are those of the gateway, which changes them.
    """

    def __init__(self, lanes: Mapping[str, Lane], pumps: Mapping[str, Pump]) -> None:
        self._lanes, self._pumps = lanes, pumps
        self._brokers: Mapping[str, str] = {}  # of the endpoints, by their keys
        self._changing = False  # not every source of a change is in `pumps` yet

    def begin(self, brokers: Mapping[str, str]) -> None:
        """Let every source wait until `complete`; the endpoints are at these brokers from now."""
        self._brokers, self._changing = brokers, True

    def complete(self) -> None:
        """All lanes and pumps of the change are there."""
        self._changing = False

    def sources_ready(self, state: EndpointState, since: float) -> bool:
        """Return whether no source misses what a target, connected `since`, is sent."""
        return not any(_misses(pump, since) for pump in self._sources_at(state.name))

    def hasten_sources(self, state: EndpointState) -> None:
        """Let the sources that miss something connect now: the broker of a target is there."""
        for pump in self._sources_at(state.name):
            if _misses(pump, 0.0):
                pump.state.hasten()

    def readers_ready(self, targets: Sequence[str], deadline: float) -> bool:
        """Return whether no source of a change misses what routes to `targets` send there.

        A target that is not connected yet looks for the sources itself. After `deadline`, in
        monotonic seconds, none is waited for.
        """
        if time.monotonic() >= deadline:
            return True
        return not self._changing and not any(
            pump.replaces_source
            or (not pump.begun and self._lanes[name].sending and _misses(pump, 0.0))
            for name in targets
            if name in self._lanes
            for pump in self._sources_at(name)
        )

    def _sources_at(self, name: str) -> Iterator[Pump]:
        """Yield the pumps of the sources at the broker of the target `name`."""
        brokers = self._brokers
        for source, pump in [*self._pumps.items()]:
            if source in brokers and brokers[source] == brokers.get(name):
                yield pump


def _misses(pump: Pump, since: float) -> bool:
    """Return whether the broker of a source may have no subscription of it, and keep nothing.

    A broker that keeps messages for the source does so from the first connection on. At another
    one, a source that has been busy `since` then, in monotonic seconds, may not know that its
    connection is lost. A broker that refuses the source is not waited for. One inside this
    process reports no continuity, and keeps messages for queues that are subscribed.
    """
    source, state = pump.source, pump.state.connection
    continuity = source.continuity if isinstance(source, ReportsContinuity) else None
    keeps = continuity is not None and continuity.retention is not Retention.NOTHING
    if pump.stopping or (keeps and pump.alive_at):
        return False
    if state is ConnectionState.CONNECTED:
        return continuity is not None and pump.alive_at < since
    return state in {ConnectionState.CONNECTING, ConnectionState.LOST}
