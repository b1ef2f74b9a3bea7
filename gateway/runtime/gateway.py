"""A configuration set to work: opens lanes, archive and pumps, and closes them in order."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.lookup.name_file import NameFile, read_names
from gateway.clock import now
from gateway.config.load import Configuration
from gateway.config.process import SpoolRef
from gateway.endpoints.base import Source
from gateway.errors import ArchiveError
from gateway.routing.route import Route
from gateway.runtime import wiring
from gateway.runtime.context import Carrier, Identities, Surroundings
from gateway.runtime.inbound.dedup_recovery import Recall, recall
from gateway.runtime.inbound.echo_cache import Echoes
from gateway.runtime.monitor.counters import EndpointState, RouteCounters
from gateway.runtime.monitor.heartbeat import Pulse
from gateway.runtime.monitor.tracing import Sampler, TracedLanes, open_spans
from gateway.runtime.monitor.watchdog import Watch
from gateway.runtime.outbound.dead_letters import DeadLetters, Letter
from gateway.runtime.outbound.lane import Lane, Outlet
from gateway.runtime.outbound.spool import Bounds, Spool
from gateway.runtime.outbound.spool_db import Store
from gateway.runtime.pump import Pump
from gateway.runtime.record.ledger import Ledger
from gateway.runtime.record.tap import Tap, Tapped
from gateway.runtime.wiring import options_of, place_of

if TYPE_CHECKING:  # its SDK is optional
    from gateway.tracing.spans import Spans

log = logging.getLogger(__name__)
CLOSING = 2.0  # seconds kept for closing, of those a stop has
PAUSE = 0.02  # seconds between two looks at whether all is settled


class Gateway:
    """The running bridge; mutable, it owns every thread and connection of the process."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.started = self.reloaded = now()
        self.counters = {route.name: RouteCounters() for route in configuration.routes}
        self.lanes: dict[str, Lane] = {}
        self.pumps: dict[str, Pump] = {}
        self.pulses: dict[str, Pulse] = {}
        self.taps: dict[Tapped, Tap] = {}
        self.archive: ArchiveWriter | None = None
        self.store: Store | None = None
        self.letters: DeadLetters | None = None
        self._names: NameFile | None = None
        self._echoes = Echoes()
        self._identities = Identities(self.started)
        self._ledger = Ledger(self.counters)
        self._spans: Spans | None = None
        self._watch = Watch(
            self.lanes,
            self.pumps,
            self.pulses,
            lambda: self.configuration.gateway.heartbeat_seconds,
        )

    def start(self) -> None:
        """Open archive and spool, then connect in the background; what is away is tried again.

        Raises:
            ArchiveError: the archive's folder cannot be written.
            SpoolError: the spool's folder cannot be, or another gateway uses it.
            DriverMissingError, TracingError: traces are wanted and cannot be made.
        """
        self._spans = self._open_spans()
        before = self._open_archive()
        self._open_spool()
        archive = self.archive.append if self.archive else None
        self._ledger = Ledger(self.counters, archive, self.letters, self._find_route)
        for name in wiring.targets_of(self.configuration):
            self.lanes[name] = self._make_lane(name)
        self._set_pulses()
        for name in wiring.sources_of(self.configuration):
            self.pumps[name] = self._make_pump(name)
            self.pumps[name].seen.remember(before.seen.get(name, ()))
        self._echoes.remember(before.sent)
        self._set_taps()
        for lane in self.lanes.values():
            lane.start()
        for pump in self.pumps.values():
            pump.start()
        self._watch.start()

    @property
    def states(self) -> list[EndpointState]:
        """The connections: what is sent to, what is received from, and taps."""
        ends = [lane.state for lane in self.lanes.values()]
        ends += [pump.state for pump in self.pumps.values()]
        return ends + [tap.state for tap in self.taps.values()]

    def stop(self, seconds: float) -> bool:
        """Stop receiving, finish what is in hand within `seconds`, close everything.

        Returns whether all was settled; what was not is delivered again by its source.
        """
        deadline = time.monotonic() + seconds
        self._watch.stop()
        for pump in self.pumps.values():
            pump.stop_receiving()
        settled = _wait(
            lambda: all(pump.idle() for pump in self.pumps.values()), deadline - CLOSING
        )
        left = max(0.0, deadline - CLOSING - time.monotonic())
        _all_at_once([partial(lane.stop, left) for lane in self.lanes.values()])
        _all_at_once([tap.stop for tap in self.taps.values()])
        if self.store is not None:
            self.store.flush(max(CLOSING, deadline - time.monotonic()))
        if self.archive is not None:
            try:
                self.archive.close(max(CLOSING, deadline - time.monotonic()))
            except ArchiveError as error:
                log.error("%s", error)  # noqa: TRY400  # the text says it all
                settled = False
        if self.store is not None:
            self.store.close(CLOSING)
        _all_at_once([pump.close for pump in self.pumps.values()])
        if self._names is not None:
            self._names.close()
        if self._spans is not None:
            self._spans.close()
        return settled

    def reload(self, wanted: Configuration) -> None:
        """Go on with another configuration; only what is different in it is touched.

        Sections that hold files open (archive, spool) stay as they were until a restart.

        Raises:
            EndpointError: an endpoint cannot be made; everything stays as it was.
        """
        old = self.configuration
        self._say_what_stays(old, wanted)
        wanted.dictionary.names |= old.dictionary.names
        wanted.dictionary.tell = old.dictionary.tell
        outlets = self._changed_outlets(old, wanted)
        intakes = {
            name: wiring.make_intake(wanted, name, self._kept_source(name, old, wanted))
            for name in wiring.sources_of(wanted)
        }
        for route in wanted.routes:
            self.counters.setdefault(route.name, RouteCounters())
        self.configuration = wanted
        self.reloaded = now()
        for name, outlet in outlets.items():
            if name in self.lanes:
                self.lanes[name].exchange(outlet)
            else:
                self.lanes[name] = self._make_lane(name, outlet)
                self.lanes[name].start()
        self._set_pulses()
        self._set_taps()
        for name, intake in intakes.items():
            if name in self.pumps:
                self.pumps[name].exchange(intake)
            else:
                self.pumps[name] = Pump(intake, EndpointState(name, "source"), self._around())
                self.pumps[name].start()
        self._let_go(wanted)

    def _open_archive(self) -> Recall:
        """Start the archive; what the journals of the last run tell."""
        archive = self.configuration.archive
        if archive is None:
            return Recall()
        name = self.configuration.gateway.name
        place = place_of(archive)
        root = place.local
        before = recall(root, name, wiring.echoing(self.configuration))
        self.archive = ArchiveWriter(place, name, self._identities.run, options_of(archive))
        self._keep_names(root, name)
        return before

    def _open_spool(self) -> None:
        spool = self.configuration.spool
        if spool is None:
            return
        self.store = Store(Path(spool.path))
        self.letters = DeadLetters(self.store, self.configuration.dead_letters.bytes)
        self.letters.published = self._publish
        waiting = {str(row[0]) for row in self.store.rows("SELECT DISTINCT endpoint FROM parcels")}
        for name in sorted(waiting - set(wiring.targets_of(self.configuration))):
            log.warning(
                "the spool keeps messages for an endpoint that no route sends to",
                extra={"endpoint": name},
            )

    def _find_route(self, name: str) -> Route | None:
        return next((each for each in self.configuration.routes if each.name == name), None)

    def _around(self) -> Surroundings:
        name = self.configuration.gateway.name
        return Surroundings(
            name, self._carriers(), self._ledger, self._identities, self._echoes, self.pulses
        )

    def _open_spans(self) -> Spans | None:
        ref = self.configuration.tracing
        return None if ref is None else open_spans(ref, self.configuration.gateway.name)

    def _carriers(self) -> Mapping[str, Carrier]:
        """The lanes, or traced ones: without traces a message passes no line of theirs."""
        if self._spans is None or self.configuration.tracing is None:
            return self.lanes
        return TracedLanes(self.lanes, self._spans, Sampler(self.configuration.tracing.sample))

    def _make_lane(self, name: str, outlet: Outlet | None = None) -> Lane:
        outlet = outlet or wiring.make_outlet(self.configuration, name, self._echoes)
        backlog = None
        if self.store is not None and self.configuration.spool is not None:
            backlog = Spool(name, self.store, self._ledger, _bounds(self.configuration.spool))
        return Lane(outlet, EndpointState(name, "sink"), backlog)

    def _make_pump(self, name: str) -> Pump:
        intake = wiring.make_intake(self.configuration, name)
        return Pump(intake, EndpointState(name, "source"), self._around())

    def _set_pulses(self) -> None:
        """One pulse for each route that has a heartbeat; those that have one already keep it."""
        wanted = {route.name: route for route in self.configuration.routes if route.heartbeat}
        for name in [name for name in self.pulses if name not in wanted]:
            del self.pulses[name]
        for name, route in wanted.items():
            old = self.pulses.get(name)
            if old is None or (old.endpoint, old.name) != (route.endpoint, route.heartbeat):
                gateway = self.configuration.gateway.name
                self.pulses[name] = Pulse(gateway, name, route.endpoint, route.heartbeat)
            targets = sorted({target.endpoint for target in route.targets})
            self.pulses[name].healthy = lambda targets=targets: all(  # type: ignore[misc]  # a default binds it now
                self.lanes[each].direct for each in targets if each in self.lanes
            )

    def _set_taps(self) -> None:
        """One tap for each target that is to be observed; those there are go on."""
        wanted = wiring.taps_of(self.configuration)
        _all_at_once([self.taps.pop(gone).stop for gone in self.taps.keys() - {*wanted}])
        for tapped in wanted:
            if tapped not in self.taps and self.archive is not None:
                archive, identities = self.archive.append, self._identities
                tap = wiring.make_tap(self.configuration, tapped, archive, identities)
                self.taps[tapped] = tap
                tap.start()

    def _changed_outlets(self, old: Configuration, wanted: Configuration) -> dict[str, Outlet]:
        """Outlets of targets that are new, or whose settings are."""
        return {
            name: wiring.make_outlet(wanted, name, self._echoes)
            for name in wiring.targets_of(wanted)
            if name not in self.lanes
            or old.endpoints[name].settings != wanted.endpoints[name].settings
            or wiring.echoing(old).get(name) != wiring.echoing(wanted).get(name)
        }

    def _kept_source(self, name: str, old: Configuration, wanted: Configuration) -> Source | None:
        """The source that goes on, when it would be made in the same way."""
        if name not in self.pumps:
            return None
        same = wiring.connection_of(old, name) == wiring.connection_of(wanted, name)
        return self.pumps[name].source if same else None

    def _let_go(self, wanted: Configuration) -> None:
        """Stop what the configuration no longer has: sources first, then idle targets."""
        seconds = wanted.gateway.stop_seconds
        gone = [self.pumps.pop(name) for name in self.pumps.keys() - {*wiring.sources_of(wanted)}]
        for pump in gone:
            pump.stop_receiving()
        _wait(lambda: all(pump.idle() for pump in gone), time.monotonic() + seconds)
        _all_at_once([pump.close for pump in gone])
        _wait(
            lambda: not any(pump.changing for pump in self.pumps.values()),
            time.monotonic() + seconds,
        )
        for name in self.lanes.keys() - {*wiring.targets_of(wanted)}:
            self.lanes.pop(name).stop(seconds)

    def _say_what_stays(self, old: Configuration, wanted: Configuration) -> None:
        for section in ("archive", "spool", "dead_letters", "web", "tracing"):
            if getattr(old, section) != getattr(wanted, section):
                log.warning("the section %r changes at the next start", section)
        if old.gateway.name != wanted.gateway.name:
            log.warning("the gateway's name changes at the next start")

    def _publish(self, letters: Sequence[Letter]) -> None:
        """Send copies of dead letters to the endpoint that wants them; they stay on disk too."""
        ref = self.configuration.dead_letters
        if ref.endpoint is not None:
            messages = [letter.as_message(ref.name) for letter in letters]
            self._watch.publish(ref.endpoint, messages)

    def _keep_names(self, root: Path, name: str) -> None:
        """Let shortened names outlive the process."""
        configuration = self.configuration
        dictionary = configuration.dictionary
        if any(
            wiring.dictionary_at(configuration, each) is not None
            for each in configuration.endpoints
        ):
            self._names = NameFile(root, name)
            dictionary.names |= read_names(root)
            dictionary.tell = self._names.write


def _bounds(spool: SpoolRef) -> Bounds:
    return Bounds(spool.bytes, spool.messages, spool.seconds)


def _all_at_once(steps: Sequence[Callable[[], None]]) -> None:
    """Run all steps, each in a thread: closing one frozen connection takes a second or two."""
    threads = [threading.Thread(target=step) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _wait(done: Callable[[], bool], deadline: float) -> bool:
    tick = threading.Event()
    while not done():
        if time.monotonic() >= deadline:
            return False
        tick.wait(PAUSE)
    return True
