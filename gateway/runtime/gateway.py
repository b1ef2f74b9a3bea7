"""The running gateway: opens lanes, archive and pumps of a configuration and closes them."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.archive.heads import head_path
from gateway.archive.journal.converter_process import fetch_others
from gateway.archive.journal.local_head import LocalHead
from gateway.archive.journal.records import Rows
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.name_store import NameStore
from gateway.archive.signed_json import NO_TERM, Term
from gateway.clock import RowClock, now
from gateway.config.load import Configuration
from gateway.endpoints.registry import warm_up
from gateway.errors import ArchiveError, SpoolError
from gateway.lease.holder import LeaseHolder
from gateway.routing.origin_path import GatewayIdentity
from gateway.routing.route import Route
from gateway.routing.router import NOBODY
from gateway.runtime import archive_setup, wiring
from gateway.runtime.context import GatewayContext, SourceBinding, TraceBatch
from gateway.runtime.delivery.backlog import SpoolLimits
from gateway.runtime.delivery.dead_letter import DeadLetter, picks
from gateway.runtime.delivery.rows import message_ids
from gateway.runtime.endpoint_uses import earlier_names, echo_brokers
from gateway.runtime.identity import gateway_identity
from gateway.runtime.inbound.echo_cache import EchoCache
from gateway.runtime.inbound.recovery_from_journals import RecoveredState, recover
from gateway.runtime.inbound.saved_echoes import save_echoes
from gateway.runtime.memory_roles import source_memories, use_roles
from gateway.runtime.monitor.state_announcer import StateAnnouncer
from gateway.runtime.monitor.tracing import Tracer, open_span_recorder
from gateway.runtime.monitor.watchdog import Watchdog
from gateway.runtime.outbound.dead_letters import DeadLetters
from gateway.runtime.outbound.spool import Spool, stranded
from gateway.runtime.outbound.spool_db import SpoolDatabase
from gateway.runtime.record.batch_recorder import ArchiveAppend, BatchRecorder
from gateway.runtime.record.connection_log import ConnectionLog
from gateway.runtime.record.counters import EndpointState, RouteCounters
from gateway.runtime.record.loop_suspicions import LoopSuspicions
from gateway.runtime.record.recent_names import RecentNames
from gateway.runtime.reload import ActiveEndpoints, warn_of_restart_sections
from gateway.runtime.restore import RetainedRestorer
from gateway.terminal.units import counted

if TYPE_CHECKING:  # its SDK is optional
    from gateway.tracing.spans import SpanRecorder

log = logging.getLogger(__name__)
STRANDED: Final = (
    "the spool holds %s for %r, to which no route sends; they go when it is a target again,"
    " or from the next start on by a target with `was: %s`"
)
CLOSE_TIMEOUT: Final = 2.0  # seconds of a stop that are reserved for closing files


class Gateway:
    """A running configuration.

    Mutable: owns every thread and connection of the process.
    """

    def __init__(
        self,
        configuration: Configuration,
        lease: LeaseHolder | None = None,
        watch: Callable[[Sequence[Rows]], None] | None = None,
    ) -> None:
        """Prepare a gateway; with `lease` it connects and hands over while that is held.

        `watch` sees the rows of each batch before they are durable, also without an archive.
        """
        self.configuration = self._begun = configuration  # in use; of the start
        self.lease = lease
        self._watch = watch
        self.started = self.reloaded = now()
        self.reload_refused = ""  # why the last one was; the previous configuration runs
        self.counters = {route.name: RouteCounters() for route in configuration.routes}
        self._active = ActiveEndpoints()
        self.lanes, self.pumps = self._active.lanes, self._active.pumps
        self.taps, self.heartbeats = self._active.taps, self._active.heartbeats
        self.archive: ArchiveWriter | None = None
        self.spool_database: SpoolDatabase | None = None
        self.stranded: tuple[tuple[str, int], ...] = ()  # endpoints without a route: messages
        self.dead_letters: DeadLetters | None = None
        self.thread_failure = ""  # why a thread ended, which ends the process
        self._names: NameStore | None = None
        self._connections: ConnectionLog | None = None
        self._context: GatewayContext | None = None  # None until the start
        self._echoes = EchoCache()
        self.suspicions = LoopSuspicions()
        self.recent_names = RecentNames()
        self._clock = RowClock()
        self._message_ids = message_ids(self.started)
        self._span_recorder: SpanRecorder | None = None
        self._announcer = StateAnnouncer(lambda: self.configuration.state, self.lanes, self.pumps)
        self._restorer = RetainedRestorer(self.lanes, self._retained_readers)
        self._watchdog = Watchdog(
            self.lanes,
            self.pumps,
            self.heartbeats,
            lambda: self.configuration.gateway.heartbeat_seconds,
            self._count_dead_letters,
        )

    def start(self) -> None:
        """Open archive and spool, then connect the endpoints in the background, with retries.

        Raises:
            ArchiveError: the archive's folder is not writable.
            SpoolError: the spool's folder is not writable, or another gateway uses it.
            DriverMissingError, TracingError: tracing is configured and cannot start.
        """
        trace = self._open_tracing()
        self._open_spool()  # first: another gateway may use it, and then nothing is touched
        identity = gateway_identity(self.configuration, self.lease.identity if self.lease else "")
        recovered = self._open_archive(identity)
        append: ArchiveAppend | None = self.archive.append if self.archive else None
        later: ArchiveAppend | None = (
            partial(self.archive.append, awaited=False) if self.archive else None
        )
        if self._watch is not None:
            append = later = _watched(append, self._watch)
        keep = self.dead_letters.put if self.dead_letters else self._publish_only
        keeps = self.dead_letters is not None
        recorder = BatchRecorder(
            self.counters, append, keep, self._find_route, self._clock, keeps, later
        )
        running = self.configuration
        self._context = context = GatewayContext(
            identity,
            self.lanes,
            recorder,
            self._message_ids,
            self._echoes,
            self.heartbeats,
            self._connections,
            (lambda: None) if self.lease is None else self.lease.require,
            trace,
            source_memories(
                running,
                self.lease,
                ran_before=self._connections is not None and self._connections.ran_before,
            ),
            self._spools(recorder),
            wiring.path_rules(running),
            self.suspicions,
            recent_names=self.recent_names,
            state_changed=self._state_changed,
        )
        self._echoes.remember(recovered.sent)
        change = self._active.prepare(running, running, context)
        self._active.apply(change, context, recovered.identities)
        self._find_stranded()
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
        states = [lane.state for lane in dict.fromkeys(self.lanes.values())]
        states += [pump.state for pump in self.pumps.values()]
        return states + [tap.state for tap in self.taps.values()]

    def stop(self, seconds: float) -> bool:
        """Stop receiving, settle the batches in flight within `seconds`, and close everything.

        Return whether every batch was settled; the source delivers the others again.
        """
        deadline = time.monotonic() + seconds
        self._watchdog.stop()
        self._restorer.stop(CLOSE_TIMEOUT)
        settled = self._active.stop_receiving(deadline - CLOSE_TIMEOUT)
        self._active.close_targets(max(0.0, deadline - CLOSE_TIMEOUT - time.monotonic()))
        if self.spool_database is not None:
            self.spool_database.flush(max(CLOSE_TIMEOUT, deadline - time.monotonic()))
        if self.archive is not None:
            self.archive.end(max(CLOSE_TIMEOUT, deadline - time.monotonic()))
        if self.spool_database is not None:
            self.spool_database.close(CLOSE_TIMEOUT)
        self._active.close_sources()
        self._save_echoes()
        if self.lease is not None and not self._is_remote:  # else the next needs its uploads
            self.lease.give()
        if self.archive is not None:
            try:
                self.archive.close(max(CLOSE_TIMEOUT, deadline - time.monotonic()))
            except ArchiveError as error:
                log.error("%s", error)  # noqa: TRY400  # the text is complete
                settled = False
        for each in (self._names, self._span_recorder):
            if each is not None:
                each.close()
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
        if self._context is None:
            self._adopt(wanted)
            return
        warn_of_restart_sections(self._begun, wanted)
        wanted.dictionary.take_over(old.dictionary)
        self._open_name_store(wanted)
        if self._context.memories is not None:
            use_roles(self._context.memories, wanted)
        if self._connections is not None:
            self._connections.rename(earlier_names(wanted, old))
        change = self._active.prepare(old, wanted, self._context)
        if (archive := self._begun.archive) is not None:
            writer = self._begun.gateway.writer
            archive_setup.archive_routes(archive, writer, wanted.routes, self._clock())
        for route in wanted.routes:
            self.counters.setdefault(route.name, RouteCounters())
        self.configuration = wanted
        self.reloaded = now()
        self._active.apply(change, self._context, {})
        self._announcer.renew()
        self._find_stranded()

    def _state_changed(self, name: str) -> None:
        """Tell the state of a connection, and restore what its broker has lost."""
        self._announcer.changed(name)
        if self._context is not None:
            self._restorer.changed(name, self._context)

    def _retained_readers(self, target: str) -> Mapping[str, SourceBinding]:
        identity = self._context.identity if self._context else NOBODY
        return wiring.make_restore_bindings(self.configuration, target, identity)

    def _adopt(self, wanted: Configuration) -> None:
        """Take over the configuration of a standby, which has opened nothing yet."""
        self.configuration = self._begun = wanted
        self.counters.clear()
        self.counters.update((route.name, RouteCounters()) for route in wanted.routes)
        self.reloaded = now()

    def _open_archive(self, identity: GatewayIdentity) -> RecoveredState:
        """Start the archive writer and return the state recovered from the last run's journals."""
        archive = self.configuration.archive
        if archive is None:
            return RecoveredState()
        settings = self.configuration.gateway
        name, instance = settings.name, settings.instance
        location = archive_setup.archive_location(archive)
        root = location.local
        options = archive_setup.archive_options(archive)
        if location.url and (instance or not (root / head_path(settings.writer)).exists()):
            fetch_others(location, settings.writer, options.seal_key)
        recovered = recover(
            root, identity, echo_brokers(self.configuration), self.configuration.routes
        )
        for last in archive_setup.last_times(root, name, self.spool_database):
            self._clock.continue_from(last)
        self._message_ids = message_ids(run := self._clock())
        term = self._term(run)
        sources = earlier_names(self.configuration)
        head = LocalHead(root, name, settings.writer, options.seal_key, self._clock, instance, term)
        self._connections = ConnectionLog(head, sources)  # before our head becomes the newest
        self.archive = ArchiveWriter(
            location, name, run, options, instance=instance, lease=term, clock=self._clock
        )
        archive_setup.archive_routes(archive, settings.writer, self.configuration.routes, run)
        self._open_name_store(self.configuration)
        return recovered

    @property
    def _is_remote(self) -> bool:
        """Whether another instance knows of this one by what the conversion uploads."""
        archive = self._begun.archive
        return archive is not None and archive_setup.archive_location(archive).url != ""

    def _term(self, since: int) -> Term:
        """Return the lease under which this process writes: it ends with it."""
        if self.lease is None or self.configuration.standby is None:
            return NO_TERM
        return Term(self.lease.number, since, math.ceil(self.configuration.standby.seconds))

    def _save_echoes(self) -> None:
        """Keep what a kept session returns after this stop; after a kill the journals have it."""
        archive = self._begun.archive
        if archive is None:
            return
        root, name = archive_setup.archive_location(archive).local, self._begun.gateway.name
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

    def _find_stranded(self) -> None:
        """Look for messages on disk without a target; only a start or a reload changes them."""
        if self.spool_database is not None:
            self.stranded = stranded(self.spool_database, self._active.spooled_names)
        for name, number in self.stranded:
            log.warning(STRANDED, counted(number, "message"), name, name, extra={"endpoint": name})

    def _find_route(self, name: str) -> Route | None:
        return next((each for each in self.configuration.routes if each.name == name), None)

    def _open_tracing(self) -> TraceBatch | None:
        if (ref := self.configuration.tracing) is None:
            return None
        self._span_recorder = open_span_recorder(ref, self.configuration.gateway.name)
        return Tracer(self._span_recorder, ref.sample, self._clock).trace

    def _spools(self, recorder: BatchRecorder) -> Callable[[str], Spool | None]:
        """The function that makes the spool of the lane to an endpoint; None without a spool."""
        spool, database = self.configuration.spool, self.spool_database
        if database is None or spool is None:
            return lambda _: None
        limits = SpoolLimits(spool.bytes, spool.messages, spool.seconds)
        return lambda name: Spool(
            name, database, recorder, limits, self.configuration.endpoints[name].was
        )

    def _count_dead_letters(self) -> None:
        """Count the dead letters that commands of other processes have left."""
        with suppress(SpoolError):  # reported where the spool is written
            if self.dead_letters is not None:
                self.dead_letters.refresh()

    def _publish_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        """Send copies of dead letters to the configured endpoint, if there is one."""
        ref = self.configuration.dead_letters
        if ref.endpoint is not None:
            messages = [
                letter.as_message(ref.name, withheld=picks(self._find_route(letter.route), letter))
                for letter in letters
            ]
            self._watchdog.publish(ref.endpoint, messages)

    def _publish_only(self, letters: Sequence[DeadLetter], durable: Callable[[], None]) -> None:
        """Send copies of dead letters that no spool keeps; the archive has their rows."""
        self._publish_dead_letters(letters)
        durable()

    def _open_name_store(self, wanted: Configuration) -> None:
        """Keep the names that `wanted` shortens in the archive, with those of earlier runs."""
        archive = self._begun.archive
        if archive is not None and self._names is None:
            self._names = archive_setup.open_name_store(wanted, archive, self._begun.gateway.writer)


def _watched(
    append: ArchiveAppend | None, watch: Callable[[Sequence[Rows]], None]
) -> ArchiveAppend:
    """Return a function that shows rows to `watch`, and appends them if there is an archive."""

    def shown(rows: Sequence[Rows], then: Callable[[], None]) -> None:
        watch(rows)
        if append is None:
            then()
        else:
            append(rows, then)

    return shown
