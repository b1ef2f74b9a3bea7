"""The endpoints in use: the lanes, pumps, taps and heartbeats of the configuration that runs.

A start is a reload that finds nothing: it makes and starts all of them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from gateway.config.load import Configuration
from gateway.errors import EndpointError
from gateway.runtime import wiring
from gateway.runtime.archive_setup import replay_mark
from gateway.runtime.context import GatewayContext, SourceBinding
from gateway.runtime.delivery.duplicates import Identity
from gateway.runtime.endpoint_uses import (
    echo_brokers,
    heartbeat_copies,
    keeps_connection,
    source_endpoints,
    source_parameters,
    tap_targets,
    target_endpoints,
    thinned,
)
from gateway.runtime.monitor.watchdog import Heartbeat
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.outbound.sink_binding import SinkBinding
from gateway.runtime.pump import Pump, wait_until
from gateway.runtime.record.counters import EndpointState
from gateway.runtime.record.gap_rows import Watched
from gateway.runtime.start_order import StartOrder
from gateway.runtime.tap import Tap

log = logging.getLogger(__name__)

RESTART_SECTIONS: Final = ("standby", "archive", "spool", "dead_letters", "web", "tracing")


@dataclass(frozen=True, slots=True)
class Change:
    """A change from one configuration to another, with every sink and source that it needs.

    `renamed` has the earlier name of each target whose lane goes on under another one.
    """

    old: Configuration
    wanted: Configuration
    renamed: Mapping[str, str]
    sinks: Mapping[str, SinkBinding]  # of the targets that are new or have new settings
    sources: Mapping[str, SourceBinding]


class ActiveEndpoints:
    """The lanes, pumps and taps by their endpoints, and the heartbeats by their routes.

    Mutable: only the thread that starts, reloads and stops the gateway changes it.
    """

    def __init__(self) -> None:
        self.lanes: dict[str, Lane] = {}
        self.pumps: dict[str, Pump] = {}
        self.taps: dict[Watched, Tap] = {}
        self.heartbeats: dict[str, Heartbeat] = {}
        self.order = StartOrder(self.lanes, self.pumps)

    def prepare(self, old: Configuration, wanted: Configuration, context: GatewayContext) -> Change:
        """Make what a change to `wanted` needs; nothing is opened, and what runs stays as it is.

        Raises:
            EndpointError: an endpoint cannot be created.
        """
        renamed = self._renamed_targets(old, wanted)
        sinks = {
            name: wiring.make_sink_binding(wanted, name, context.echoes, context.identity)
            for name in target_endpoints(wanted)
            if name not in self.lanes
            or not keeps_connection(old, wanted, name)
            or echo_brokers(old).get(name) != echo_brokers(wanted).get(name)
            or wiring.statement_at(old, name) != wiring.statement_at(wanted, name)
        }
        for name in sinks:
            if name not in self.lanes and name not in renamed:
                self._refuse_foreign_rows(wanted, name)
        unchanged = {
            name: pump.source
            for name in source_endpoints(wanted)
            if (pump := self.pumps.get(name)) is not None
            and source_parameters(old, name) == source_parameters(wanted, name)
        }
        sources = {
            name: wiring.make_source_binding(
                wanted,
                name,
                unchanged.get(name),
                context.memories,
                context.identity,
                context.replies,
            )
            for name in source_endpoints(wanted)
        }
        return Change(old, wanted, renamed, sinks, sources)

    def apply(
        self,
        change: Change,
        context: GatewayContext,
        received: Mapping[str, Iterable[Identity]],
    ) -> None:
        """Carry out a change; unchanged endpoints and routes are not interrupted.

        `received` has the identities of messages, by endpoint, that an earlier run received.
        """
        self.order.begin(change.wanted.brokers)
        for lane in self.lanes.values():
            lane.hasten()
        new: list[Lane | Pump] = []
        self._rebind_lanes(change, [name for name in change.sinks if name in self.lanes])
        for name, was in change.renamed.items():  # by both names: the old routes still use one
            self.lanes[name] = self.lanes[was]
        for name, sink in change.sinks.items():
            if name not in self.lanes:
                self.lanes[name] = self._make_lane(name, sink, context)
                new.append(self.lanes[name])
        self._update_heartbeats(change.wanted)
        self._update_taps(change, context)
        deadline = time.monotonic() + change.wanted.gateway.stop_seconds
        for name, source in change.sources.items():
            routes = source.rules.router.routes
            targets = {each.endpoint for route in routes for each in route.targets}
            ready = partial(self.order.readers_ready, sorted(targets), deadline)
            binding = replace(source, readers_ready=ready)
            if name in self.pumps:
                self.pumps[name].rebind(binding)
            else:
                self.pumps[name] = Pump(binding, _state(name, "source", context), context)
                self.pumps[name].duplicates.remember(received.get(name, ()))
                new.append(self.pumps[name])
        self.order.complete()
        if _renamed(change.old, change.wanted):  # both sources have the same session
            self._close_unused_sources(change.wanted, context)
        for name in change.renamed:  # it has answered the copies of these sources
            self.lanes[name].rename(name)
        self._rebind_lanes(change, change.renamed)
        self._thin_lanes(change.wanted)
        for each in new:  # the lanes first; each looks for the sources at its broker
            each.start()
        self._close_unused_sources(change.wanted, context)
        self._close_unused_targets(change.wanted)

    def stop_receiving(self, deadline: float) -> bool:
        """Receive nothing more; return whether all batches were settled until `deadline`."""
        return _stop_receiving([*self.pumps.values()], deadline)

    def close_targets(self, seconds: float) -> None:
        """Close the lanes, which have `seconds` for the messages that they hold, and the taps."""
        deadline = time.monotonic() + seconds
        _run_in_parallel([partial(lane.stop, seconds) for lane in self.lanes.values()])
        left = max(0.0, deadline - time.monotonic())
        _run_in_parallel([partial(tap.stop, left) for tap in self.taps.values()])

    def close_sources(self) -> None:
        _run_in_parallel([pump.close for pump in self.pumps.values()])

    def _rebind_lanes(self, change: Change, names: Iterable[str]) -> None:
        seconds = change.wanted.gateway.stop_seconds
        _run_in_parallel(
            [partial(self.lanes[name].rebind, change.sinks[name], seconds) for name in names]
        )

    def _thin_lanes(self, wanted: Configuration) -> None:
        mark = replay_mark(wanted)
        for name in target_endpoints(wanted):
            self.lanes[name].thinning.use(thinned(wanted, name), mark)

    def _make_lane(self, name: str, binding: SinkBinding, context: GatewayContext) -> Lane:
        state = _state(name, "sink", context)  # a reload may give it another name
        ready = partial(self.order.sources_ready, state)
        hasten = partial(self.order.hasten_sources, state)
        return Lane(binding, state, context.make_spool(name), ready, hasten, context.require_lease)

    def _renamed_targets(self, old: Configuration, wanted: Configuration) -> dict[str, str]:
        """Return the earlier name of each target that is the same endpoint as one that leaves."""
        left = {old.first_name(was): was for was in self.lanes if was not in wanted.endpoints}
        return {
            name: left[first]
            for name in target_endpoints(wanted)
            if name not in self.lanes and (first := wanted.first_name(name)) in left
        }

    def _refuse_foreign_rows(self, wanted: Configuration, name: str) -> None:
        """Refuse a new target whose rows of the spool a running one sends, which is another one.

        Raises:
            EndpointError: there is one: only a restart gives rows to another target.
        """
        own = {name, wanted.first_name(name)}
        for other, lane in self.lanes.items():
            if lane.spool is not None and (shared := lane.spool.names & own):
                raise EndpointError(
                    f"endpoint {name!r}: the running target {other!r} sends the copies that the"
                    f" spool has for {min(shared)!r}; restart the gateway to apply this"
                )

    @property
    def spooled_names(self) -> frozenset[str]:
        """The names whose rows of the spool a lane sends."""
        spools = [lane.spool for lane in self.lanes.values() if lane.spool is not None]
        return frozenset().union(*(each.names for each in spools))

    def _update_heartbeats(self, wanted: Configuration) -> None:
        """Create, keep or drop heartbeats, so that each route that wants one has one."""
        routes = {route.name: route for route in wanted.routes if route.heartbeat}
        for name in [name for name in self.heartbeats if name not in routes]:
            del self.heartbeats[name]
        for name, route in routes.items():
            old = self.heartbeats.get(name)
            if old is None or (old.endpoint, old.name) != (route.endpoint, route.heartbeat):
                self.heartbeats[name] = Heartbeat(
                    wanted.gateway.name, name, route.endpoint, route.heartbeat, self.lanes
                )
            self.heartbeats[name].targets = sorted({target.endpoint for target in route.targets})
            self.heartbeats[name].copies = heartbeat_copies(wanted, route)

    def _update_taps(self, change: Change, context: GatewayContext) -> None:
        """Stop the taps that are not wanted with these settings, and start the new ones.

        Pauses of those that stay end.
        """
        old, wanted = change.old, change.wanted
        targets = tap_targets(wanted)
        kept = {each for each in targets if keeps_connection(old, wanted, each.endpoint)}
        gone = [self.taps.pop(each) for each in self.taps.keys() - kept]
        # Without time to read: traffic goes on, and there is no end.
        _run_in_parallel([partial(tap.stop, 0.0) for tap in gone])
        for tap in self.taps.values():
            tap.state.hasten()
        for target in targets:
            if target not in self.taps and context.recorder.archive is not None:
                self.taps[target] = wiring.make_tap(wanted, target, context)
                self.taps[target].start()

    def _close_unused_sources(self, wanted: Configuration, context: GatewayContext) -> None:
        """Stop the pumps of endpoints that `wanted` no longer uses."""
        seconds = wanted.gateway.stop_seconds
        unused = self.pumps.keys() - {*source_endpoints(wanted)}
        pumps = [self.pumps.pop(name) for name in unused]
        _stop_receiving(pumps, time.monotonic() + seconds, removed=True)
        _run_in_parallel([pump.close for pump in pumps])
        for name in unused:
            if context.connections is not None:
                context.connections.forget(name)

    def _close_unused_targets(self, wanted: Configuration) -> None:
        """Stop the lanes of endpoints that `wanted` no longer uses; their sources are closed."""
        seconds = wanted.gateway.stop_seconds
        targets = {*target_endpoints(wanted)}
        removed = self.lanes.keys() - targets
        kept = {lane for name, lane in self.lanes.items() if name in targets}
        for name in removed:
            lane = self.lanes[name]
            if lane not in kept and not lane.direct:  # what waits for its room cannot rebind
                lane.remove(0.0)
        wait_until(
            lambda: not any(pump.rebinding for pump in self.pumps.values()),
            time.monotonic() + seconds,
        )
        for name in removed:
            if (lane := self.lanes.pop(name)) not in kept:  # else it has another name now
                lane.remove(seconds)


def warn_of_restart_sections(old: Configuration, wanted: Configuration) -> None:
    """Log each section that a reload cannot apply."""
    for section in RESTART_SECTIONS:
        before, after = (getattr(each, section) for each in (old, wanted))
        if getattr(before, "fixed", before) != getattr(after, "fixed", after):
            log.warning("section %r changed; restart the gateway to apply it", section)
    if old.gateway.writer != wanted.gateway.writer:
        log.warning("the gateway's name or instance changed; restart the gateway to apply it")


def _renamed(old: Configuration, wanted: Configuration) -> set[str]:
    """Return the new names of endpoints that go on under another one."""
    left = {old.first_name(name) for name in old.endpoints if name not in wanted.endpoints}
    return {
        name
        for name in wanted.endpoints
        if name not in old.endpoints and wanted.first_name(name) in left
    }


def _state(name: str, side: str, context: GatewayContext) -> EndpointState:
    return EndpointState(name, side, changed=context.state_changed)


def _stop_receiving(pumps: Sequence[Pump], deadline: float, *, removed: bool = False) -> bool:
    for pump in pumps:
        pump.stop_receiving(deadline, removed=removed)
    return wait_until(lambda: all(pump.idle() for pump in pumps), deadline)


def _run_in_parallel(steps: Sequence[Callable[[], None]]) -> None:
    """Run each step in its own thread: closing one frozen connection takes a second or two."""
    threads = [threading.Thread(target=step) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
