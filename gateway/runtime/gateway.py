"""The running gateway: opens lanes, archive and pumps of a configuration and closes them."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.archive.journal.converter_process import fetch_others
from gateway.archive.journal.head_file import HeadFile
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.lookup.name_store import NameStore
from gateway.archive.signed_json import NO_TERM, Term
from gateway.clock import RowClock, now
from gateway.config.load import Configuration
from gateway.config.process import SpoolSettings
from gateway.endpoints.base import Source
from gateway.endpoints.kept_subscriptions import SubscriptionStore
from gateway.endpoints.registry import warm_up
from gateway.errors import ArchiveError, LeaseNotHeldError
from gateway.lease.holder import LeaseHolder
from gateway.routing.route import Route
from gateway.runtime import wiring
from gateway.runtime.context import GatewayContext, SourceBinding, TraceBatch
from gateway.runtime.delivery.backlog import SpoolLimits
from gateway.runtime.delivery.dead_letter import DeadLetter
from gateway.runtime.inbound.dedup_recovery import RecoveredState, recover, save_echoes
from gateway.runtime.inbound.echo_cache import EchoCache
from gateway.runtime.monitor.tracing import Sampler, Tracer, open_span_recorder
from gateway.runtime.monitor.watchdog import Heartbeat, Watchdog
from gateway.runtime.outbound.dead_letters import DeadLetters
from gateway.runtime.outbound.lane import Lane, SinkBinding
from gateway.runtime.outbound.spool import Spool
from gateway.runtime.outbound.spool_db import SpoolDatabase
from gateway.runtime.pump import Pump
from gateway.runtime.record.connection_log import ConnectionLog
from gateway.runtime.record.counters import EndpointState, RouteCounters
from gateway.runtime.record.ledger import Ledger
from gateway.runtime.record.message_ids import MessageIds
from gateway.runtime.record.tap import Tap, TapContext, TapTarget

if TYPE_CHECKING:  # its SDK is optional
    from gateway.tracing.spans import SpanRecorder

log = logging.getLogger(__name__)
CLOSE_TIMEOUT: Final = 2.0  # seconds of a stop that are reserved for closing files
POLL_INTERVAL: Final = 0.02  # seconds between two checks for unsettled batches
RESTART_SECTIONS: Final = ("standby", "archive", "spool", "dead_letters", "web", "tracing")


class Gateway:
    """A running configuration.

    Mutable: owns every thread and connection of the process.
    """

    def __init__(self, configuration: Configuration, lease: LeaseHolder | None = None) -> None:
        """Prepare a gateway; with `lease` it connects and hands over while that is held."""
        self.configuration = configuration
        self.lease = lease
        self.started = self.reloaded = now()
        self.reload_refused = False  # the last one; the previous configuration runs
        self.counters = {route.name: RouteCounters() for route in configuration.routes}
        self.lanes: dict[str, Lane] = {}
        self.pumps: dict[str, Pump] = {}
        self.heartbeats: dict[str, Heartbeat] = {}
        self.taps: dict[TapTarget, Tap] = {}
        self.archive: ArchiveWriter | None = None
        self.spool_database: SpoolDatabase | None = None
        self.dead_letters: DeadLetters | None = None
        self.thread_failure = ""  # why a thread ended, which ends the process
        self._names: NameStore | None = None
        self._connections: ConnectionLog | None = None
        self._sessions: SubscriptionStore | None = None
        self._echoes = EchoCache()
        self._clock = RowClock()
        self._message_ids = MessageIds(self.started)
        self._ledger = Ledger(self.counters, clock=self._clock)
        self._span_recorder: SpanRecorder | None = None
        self._watchdog = Watchdog(
            self.lanes,
            self.pumps,
            self.heartbeats,
            lambda: self.configuration.gateway.heartbeat_seconds,
        )

    def start(self) -> None:
        """Open archive and spool, then connect the endpoints in the background, with retries.

        Raises:
            ArchiveError: the archive's folder is not writable.
            SpoolError: the spool's folder is not writable, or another gateway uses it.
            DriverMissingError, TracingError: tracing is configured and cannot start.
        """
        self._span_recorder = self._open_span_recorder()
        self._open_spool()  # first: another gateway may use it, and then nothing is touched
        recovered = self._open_archive()
        self._sessions = wiring.session_file(self.configuration)
        append = self.archive.append if self.archive else None
        keep = self.dead_letters.put if self.dead_letters else self._publish_only
        keeps = self.dead_letters is not None
        self._ledger = Ledger(self.counters, append, keep, self._find_route, self._clock, keeps)
        for name in wiring.target_endpoints(self.configuration):
            self.lanes[name] = self._make_lane(name)
        self._update_heartbeats()
        for name in wiring.source_endpoints(self.configuration):
            self.pumps[name] = self._make_pump(name)
            self.pumps[name].duplicates.remember(recovered.identities.get(name, ()))
        self._echoes.remember(recovered.sent)
        self._update_taps(self.configuration)
        for lane in self.lanes.values():
            lane.start()
        for pump in self.pumps.values():
            pump.start()
        self._watchdog.start()

    def warm_up(self) -> None:
        """Load every driver, so that a takeover does not wait for it; connect to nothing.

        Raises:
            DriverMissingError: a driver is not installed; the text names the extra.
        """
        for endpoint in self.configuration.endpoints.values():
            warm_up(endpoint.settings)

    @property
    def states(self) -> list[EndpointState]:
        """The connection states of all lanes, pumps and taps."""
        states = [lane.state for lane in self.lanes.values()]
        states += [pump.state for pump in self.pumps.values()]
        return states + [tap.state for tap in self.taps.values()]

    def stop(self, seconds: float) -> bool:
        """Stop receiving, settle the batches in flight within `seconds`, and close everything.

        Return whether every batch was settled; the source delivers the others again.
        """
        deadline = time.monotonic() + seconds
        self._watchdog.stop()
        for pump in self.pumps.values():
            pump.stop_receiving()
        settled = _wait_until(
            lambda: all(pump.idle() for pump in self.pumps.values()), deadline - CLOSE_TIMEOUT
        )
        remaining = max(0.0, deadline - CLOSE_TIMEOUT - time.monotonic())
        _run_in_parallel([partial(lane.stop, remaining) for lane in self.lanes.values()])
        _run_in_parallel([tap.stop for tap in self.taps.values()])
        if self.spool_database is not None:
            self.spool_database.flush(max(CLOSE_TIMEOUT, deadline - time.monotonic()))
        if self.archive is not None:
            self.archive.end(max(CLOSE_TIMEOUT, deadline - time.monotonic()))
        if self.spool_database is not None:
            self.spool_database.close(CLOSE_TIMEOUT)
        _run_in_parallel([pump.close for pump in self.pumps.values()])
        self._save_echoes()
        if self.lease is not None and not self._is_remote:  # else the next needs its uploads
            self.lease.give()
        if self.archive is not None:
            try:
                self.archive.close(max(CLOSE_TIMEOUT, deadline - time.monotonic()))
            except ArchiveError as error:
                log.error("%s", error)  # noqa: TRY400  # the text is complete
                settled = False
        if self._names is not None:
            self._names.close()
        if self._span_recorder is not None:
            self._span_recorder.close()
        return settled

    def reload(self, wanted: Configuration) -> None:
        """Apply another configuration; unchanged endpoints and routes are not interrupted.

        The RESTART_SECTIONS keep their old values until a restart.

        Raises:
            EndpointError: an endpoint cannot be created; nothing was changed.
            ArchiveError: the archive cannot store the routes, or the names that they shorten;
                likewise.
        """
        old = self.configuration
        if self.lease is not None and not self.lease.holds():
            self._adopt(wanted)
            return
        _warn_of_restart_sections(old, wanted)
        wanted.dictionary.take_over(old.dictionary)
        self._open_name_store(wanted)
        sinks = self._changed_sink_bindings(old, wanted)
        sources = {
            name: wiring.make_source_binding(
                wanted, name, self._unchanged_source(name, old, wanted), self._sessions
            )
            for name in wiring.source_endpoints(wanted)
        }
        if old.archive is not None:
            wiring.archive_routes(old.archive, old.gateway.writer, wanted.routes, self._clock())
        for route in wanted.routes:
            self.counters.setdefault(route.name, RouteCounters())
        self.configuration = wanted
        self.reloaded = now()
        new = self._apply_sink_bindings(sinks)
        self._update_heartbeats()
        self._update_taps(old)
        self._apply_source_bindings(sources)
        for lane in new:  # after the sources: it looks for those at its broker
            lane.start()
        self._close_unused(wanted)

    def _adopt(self, wanted: Configuration) -> None:
        """Take over the configuration of a standby, which has opened nothing yet."""
        self.configuration = wanted
        self.counters.clear()
        self.counters.update((route.name, RouteCounters()) for route in wanted.routes)
        self.reloaded = now()

    def _apply_sink_bindings(self, bindings: Mapping[str, SinkBinding]) -> list[Lane]:
        """Return the new lanes, which are not started; pauses of the others end."""
        for lane in self.lanes.values():
            lane.hasten()
        new: list[Lane] = []
        for name, binding in bindings.items():
            if name in self.lanes:
                self.lanes[name].rebind(binding)
            else:
                self.lanes[name] = self._make_lane(name, binding)
                new.append(self.lanes[name])
        return new

    def _apply_source_bindings(self, bindings: Mapping[str, SourceBinding]) -> None:
        for name, binding in bindings.items():
            if name in self.pumps:
                self.pumps[name].rebind(binding)
            else:
                self.pumps[name] = Pump(binding, EndpointState(name, "source"), self._context())
                self.pumps[name].start()

    def _open_archive(self) -> RecoveredState:
        """Start the archive writer and return the state recovered from the last run's journals."""
        archive = self.configuration.archive
        if archive is None:
            return RecoveredState()
        settings = self.configuration.gateway
        name, instance = settings.name, settings.instance
        location = wiring.archive_location(archive)
        root = location.local
        options = wiring.archive_options(archive)
        if location.url and instance:
            fetch_others(location, settings.writer, options.seal_key)
        recovered = recover(root, name, wiring.echo_brokers(self.configuration))
        for last in wiring.last_times(root, name, self.spool_database):
            self._clock.continue_from(last)
        self._message_ids = MessageIds(run := self._clock())
        term = self._term(run)
        sources = wiring.source_endpoints(self.configuration)
        head = HeadFile(root, name, settings.writer, options.seal_key, self._clock, instance, term)
        self._connections = ConnectionLog(head, sources)  # before our head becomes the newest
        self.archive = ArchiveWriter(
            location, name, run, options, instance=instance, lease=term, clock=self._clock
        )
        wiring.archive_routes(archive, settings.writer, self.configuration.routes, run)
        self._open_name_store(self.configuration)
        return recovered

    @property
    def _is_remote(self) -> bool:
        """Whether another instance knows of this one by what the conversion uploads."""
        archive = self.configuration.archive
        return archive is not None and wiring.archive_location(archive).url != ""

    def _term(self, since: int) -> Term:
        """Return the lease under which this process writes: it ends with it."""
        if self.lease is None or self.configuration.standby is None:
            return NO_TERM
        return Term(self.lease.number, since, math.ceil(self.configuration.standby.seconds))

    def _save_echoes(self) -> None:
        """Keep what a kept session returns after this stop; after a kill the journals have it."""
        archive = self.configuration.archive
        if archive is None:
            return
        root, name = wiring.archive_location(archive).local, self.configuration.gateway.name
        try:
            save_echoes(root, name, self._echoes.waiting())
        except OSError as error:
            log.warning("the echoes that are on their way are forgotten: %s", error)

    def _open_spool(self) -> None:
        spool = self.configuration.spool
        if spool is None:
            return
        self.spool_database = database = SpoolDatabase(Path(spool.path))
        self.dead_letters = DeadLetters(database, self.configuration.dead_letters.bytes)
        self.dead_letters.publish = self._publish_dead_letters
        waiting = {str(row[0]) for row in database.rows("SELECT DISTINCT endpoint FROM batches")}
        for name in sorted(waiting - set(wiring.target_endpoints(self.configuration))):
            log.warning(
                "the spool holds messages for an endpoint that no route sends to",
                extra={"endpoint": name},
            )

    def _find_route(self, name: str) -> Route | None:
        return next((each for each in self.configuration.routes if each.name == name), None)

    def _context(self) -> GatewayContext:
        return GatewayContext(
            self.configuration.gateway.name,
            self.lanes,
            self._ledger,
            self._message_ids,
            self._echoes,
            self.heartbeats,
            self._connections,
            self._require_lease,
            self._tracing(),
        )

    def _open_span_recorder(self) -> SpanRecorder | None:
        ref = self.configuration.tracing
        return None if ref is None else open_span_recorder(ref, self.configuration.gateway.name)

    def _tracing(self) -> TraceBatch | None:
        if self._span_recorder is None or self.configuration.tracing is None:
            return None
        sampler = Sampler(self.configuration.tracing.sample)
        return Tracer(self._span_recorder, sampler, self._clock).trace

    def _make_lane(self, name: str, binding: SinkBinding | None = None) -> Lane:
        binding = binding or wiring.make_sink_binding(self.configuration, name, self._echoes)
        spool, settings = None, self.configuration.spool
        if self.spool_database is not None and settings is not None:
            spool = Spool(name, self.spool_database, self._ledger, _limits(settings))
        ready, hasten = partial(self._sources_ready, name), partial(self._hasten_sources, name)
        state = EndpointState(name, "sink")
        return Lane(binding, state, spool, ready, hasten, self._require_lease)

    def _require_lease(self) -> None:
        """Do nothing while this instance may hand messages over.

        Raises:
            LeaseNotHeldError: another instance of the pair may hold the lease.
        """
        if self.lease is not None and not self.lease.holds():
            raise LeaseNotHeldError(self.lease.instance)

    def _sources_ready(self, name: str, since: float) -> bool:
        """Return whether no source misses what the target `name`, connected `since`, is sent."""
        return not any(pump.misses(since) for pump in self._sources_at(name))

    def _hasten_sources(self, name: str) -> None:
        """Let the sources that miss something connect now: the broker of `name` is there."""
        for pump in self._sources_at(name):
            if pump.misses(0.0):
                pump.state.hasten()

    def _sources_at(self, name: str) -> list[Pump]:
        """Return the pumps of the sources at the broker of the target `name`."""
        endpoints = self.configuration.endpoints
        broker = endpoints[name].settings.broker_key if name in endpoints else ""
        return [
            pump
            for source, pump in [*self.pumps.items()]
            if source in endpoints and endpoints[source].settings.broker_key == broker
        ]

    def _make_pump(self, name: str) -> Pump:
        binding = wiring.make_source_binding(self.configuration, name, sessions=self._sessions)
        return Pump(binding, EndpointState(name, "source"), self._context())

    def _update_heartbeats(self) -> None:
        """Create, keep or drop heartbeats, so that each route that wants one has one."""
        wanted = {route.name: route for route in self.configuration.routes if route.heartbeat}
        for name in [name for name in self.heartbeats if name not in wanted]:
            del self.heartbeats[name]
        for name, route in wanted.items():
            old = self.heartbeats.get(name)
            if old is None or (old.endpoint, old.name) != (route.endpoint, route.heartbeat):
                gateway = self.configuration.gateway.name
                self.heartbeats[name] = Heartbeat(gateway, name, route.endpoint, route.heartbeat)
            targets = sorted({target.endpoint for target in route.targets})
            self.heartbeats[name].targets_ready = partial(self._all_direct, targets)

    def _all_direct(self, endpoints: Sequence[str]) -> bool:
        """Return whether the lanes of `endpoints` are connected and have no backlog."""
        return all(self.lanes[name].direct for name in endpoints if name in self.lanes)

    def _update_taps(self, old: Configuration) -> None:
        """Stop the taps that are not wanted with these settings, and start the new ones.

        `old` is the configuration of the taps that run; pauses of those that stay end.
        """
        wanted, new = wiring.tap_targets(self.configuration), self.configuration
        kept = {
            each
            for each in wanted
            if each.endpoint in old.endpoints
            and wiring.connection_parameters(old, each.endpoint)
            == wiring.connection_parameters(new, each.endpoint)
        }
        _run_in_parallel([self.taps.pop(gone).stop for gone in self.taps.keys() - kept])
        for tap in self.taps.values():
            tap.state.hasten()
        for target in wanted:
            if target not in self.taps and self.archive is not None:
                append, message_ids = self.archive.append, self._message_ids
                context = TapContext(
                    append, message_ids, self._connections, self._clock, self._require_lease
                )
                tap = wiring.make_tap(self.configuration, target, context, self._sessions)
                self.taps[target] = tap
                tap.start()

    def _changed_sink_bindings(
        self, old: Configuration, wanted: Configuration
    ) -> dict[str, SinkBinding]:
        """New bindings of the targets that are new or have new settings."""
        return {
            name: wiring.make_sink_binding(wanted, name, self._echoes)
            for name in wiring.target_endpoints(wanted)
            if name not in self.lanes
            or wiring.connection_parameters(old, name) != wiring.connection_parameters(wanted, name)
            or wiring.echo_brokers(old).get(name) != wiring.echo_brokers(wanted).get(name)
        }

    def _unchanged_source(
        self, name: str, old: Configuration, wanted: Configuration
    ) -> Source | None:
        """The running source of `name`, if the new configuration creates an equal one."""
        if name not in self.pumps:
            return None
        same = wiring.source_parameters(old, name) == wiring.source_parameters(wanted, name)
        return self.pumps[name].source if same else None

    def _close_unused(self, wanted: Configuration) -> None:
        """Stop the pumps, then the lanes, of endpoints that `wanted` no longer uses."""
        seconds = wanted.gateway.stop_seconds
        unused = self.pumps.keys() - {*wiring.source_endpoints(wanted)}
        pumps = [self.pumps.pop(name) for name in unused]
        for pump in pumps:
            pump.stop_receiving(removed=True)
        _wait_until(lambda: all(pump.idle() for pump in pumps), time.monotonic() + seconds)
        _run_in_parallel([pump.close for pump in pumps])
        for name in unused:
            if self._connections is not None:
                self._connections.forget(name)
        removed = self.lanes.keys() - {*wiring.target_endpoints(wanted)}
        for name in removed:
            if not self.lanes[name].direct:  # a source that waits for its room cannot rebind
                self.lanes[name].remove(0.0)
        _wait_until(
            lambda: not any(pump.rebinding for pump in self.pumps.values()),
            time.monotonic() + seconds,
        )
        for name in removed:
            if (lane := self.lanes.pop(name, None)) is not None:
                lane.remove(seconds)

    def _publish_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        """Send copies of dead letters to the configured endpoint, if there is one."""
        ref = self.configuration.dead_letters
        if ref.endpoint is not None:
            messages = [letter.as_message(ref.name) for letter in letters]
            self._watchdog.publish(ref.endpoint, messages)

    def _publish_only(self, letters: Sequence[DeadLetter], durable: Callable[[], None]) -> None:
        """Send copies of dead letters that no spool keeps; the archive has their rows."""
        self._publish_dead_letters(letters)
        durable()

    def _open_name_store(self, wanted: Configuration) -> None:
        """Keep the names that `wanted` shortens in the archive, with those of earlier runs."""
        archive = self.configuration.archive
        if archive is not None and self._names is None:
            writer = self.configuration.gateway.writer
            self._names = wiring.open_name_store(wanted, archive, writer)


def _warn_of_restart_sections(old: Configuration, wanted: Configuration) -> None:
    for section in RESTART_SECTIONS:
        before, after = getattr(old, section), getattr(wanted, section)
        if section == "web" and before is not None and after is not None:
            before, after = before.fixed, after.fixed
        if before != after:
            log.warning("section %r changed; restart the gateway to apply it", section)
    if old.gateway.writer != wanted.gateway.writer:
        log.warning("the gateway's name or instance changed; restart the gateway to apply it")


def _limits(spool: SpoolSettings) -> SpoolLimits:
    return SpoolLimits(spool.bytes, spool.messages, spool.seconds)


def _run_in_parallel(steps: Sequence[Callable[[], None]]) -> None:
    """Run each step in its own thread: closing one frozen connection takes a second or two."""
    threads = [threading.Thread(target=step) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _wait_until(done: Callable[[], bool], deadline: float) -> bool:
    """Wait until `done` returns true; return false when `deadline` (monotonic) passes first."""
    tick = threading.Event()
    while not done():
        if time.monotonic() >= deadline:
            return False
        tick.wait(POLL_INTERVAL)
    return True
