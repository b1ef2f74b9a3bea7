"""Things that a gateway made at its brokers, by the memory of its sources; listed, and ended.

    listed    by any process at any time: the memory is read, and each broker asked
    ended     by the only process of the gateway, which has the lease of a pair, and the locks of
              spool and journals. The archive has a row for each loss before the first end;
              the memory forgets each thing after its end

A crash in between leaves things in the memory that are listed again, or are there no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from threading import Event
from time import monotonic, sleep
from typing import Final

from gateway.archive.gaps import GapRule
from gateway.archive.heads import Outage
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import is_instance, journal_folder, lock_path
from gateway.clock import now
from gateway.config.load import Configuration
from gateway.config.process import ArchiveSettings
from gateway.endpoints.made import Held, Made
from gateway.endpoints.registry import count_held, end_made
from gateway.endpoints.source_memory import DAMAGE, MADE, Facts, SourceMemory, read_made
from gateway.errors import ArchiveError, EndpointError, GatewayError
from gateway.file_lock import FileLock
from gateway.lease.holder import LeaseHolder
from gateway.runtime.archive_setup import archive_location, archive_options, last_times
from gateway.runtime.inbound.source_memories import MemoryPlace, SourceMemories, read_memories
from gateway.runtime.memory_roles import watched_by_role
from gateway.runtime.outbound.spool_db import FILE_NAME, SpoolDatabase
from gateway.runtime.record.gap_rows import Watched, gap_rows

ANSWER_TIMEOUT: Final = 60.0  # seconds for the archive, and for the spool
POLL_INTERVAL: Final = 0.1  # seconds
STOP_FIRST: Final = "stop every instance of it first, and see that nothing starts it again"


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing at a broker; `endpoint` is that of the configuration, or of the memory.

    `held` is None where the broker cannot be asked; `fault` says why. `is_left` means that the
    endpoint goes on under an earlier name, and nothing reads it any more.
    """

    role: str
    endpoint: str
    made: Made
    watched: Sequence[Watched] = ()
    held: Held | None = None
    fault: str = ""
    is_left: bool = False

    @property
    def may_lose(self) -> bool:
        """Whether messages may end with it."""
        return self.held is not None and self.held.messages != 0


def find_things(configuration: Configuration, place: MemoryPlace) -> list[Thing]:
    """Return what the memories at `place` say that the gateway made, by endpoint and name.

    Each broker is asked what it holds.

    Raises:
        GatewayError: the memories cannot be read, or are damaged.
    """
    memories = read_memories(place, configuration.gateway.name)
    found = [each for role in memories for each in _things_of(configuration, role, memories)]
    return sorted(found, key=lambda each: (each.endpoint, each.made))


def _things_of(
    configuration: Configuration, role: str, memories: Mapping[str, Facts]
) -> Iterator[Thing]:
    kind, _, name = role.partition(" ")
    try:
        everything = read_made(memories[role].get(MADE, []))
    except DAMAGE as error:
        raise GatewayError(f"the memory of {name} is damaged: {error}") from error
    known = watched_by_role(configuration)
    # a tap that a route has no more is a source of its endpoint still
    endpoint, watched = known.get(role) or known.get(f"{kind} {name.partition(' ')[0]}", (name, ()))
    for made in everything:
        thing = Thing(role, endpoint, made, watched, is_left=role not in known)
        try:
            yield _asked(configuration, thing)
        except EndpointError as error:
            yield replace(thing, fault=str(error).removeprefix(f"{endpoint}: "))


def _asked(configuration: Configuration, thing: Thing) -> Thing:
    """Return the thing with what its broker tells. Raises EndpointError as `count_held` does."""
    if thing.endpoint not in configuration.endpoints:
        kind, name = thing.role.partition(" ")[0], thing.made.name
        fault = (
            "the endpoint left the configuration, and nothing reads this any more; to end it, write"
            f" the endpoint again (kind {kind}, a route is not needed), and run gateway withdraw"
            f" CONFIG --yes --only {quote(name)}"
        )
        return replace(thing, fault=fault)
    settings = configuration.endpoints[thing.endpoint].settings
    if thing.made.broker not in {settings.broker_key, *settings.broker_keys}:
        fault = f"the endpoint is at {settings.broker_key} now; give it the earlier address again"
        return replace(thing, fault=fault)
    return replace(thing, held=count_held(settings, thing.made))


@contextmanager
def alone(
    configuration: Configuration, lease: LeaseHolder | None, *, goes_on: bool
) -> Iterator[None]:
    """Be the only process of the gateway, and let none start.

    Raises:
        GatewayError: an instance runs, or holds the lease; the spool or the dead letters hold
            messages, and the gateway is not one that `goes_on`.
    """
    with ExitStack() as stack:
        if lease is not None and configuration.standby is not None:
            stack.callback(lease.give)
            _take(lease, configuration.standby.seconds)
        if configuration.archive is not None:
            for lock in _locks(configuration, configuration.archive):
                stack.enter_context(lock)
        spool = configuration.spool
        if spool is not None and (Path(spool.path) / FILE_NAME).exists():
            database = SpoolDatabase(Path(spool.path))
            stack.callback(database.close, ANSWER_TIMEOUT)
            if not goes_on:
                _require_empty(database)
        yield


def _take(lease: LeaseHolder, seconds: float) -> None:
    """Take the lease, which is free when its holder gave it, or has been silent for `seconds`."""
    lease.start()
    deadline = monotonic() + 2 * seconds
    while not lease.holds() and not lease.ended and monotonic() < deadline:
        sleep(POLL_INTERVAL)
    if not lease.holds():
        holder = f"instance {lease.active} holds it" if lease.active else lease.failure
        raise GatewayError(f"the lease cannot be taken ({holder or 'no answer'}): {STOP_FIRST}")
    if lease.standby:
        raise GatewayError(f"instance {lease.standby[0]} waits for the lease: {STOP_FIRST}")


def _locks(configuration: Configuration, archive: ArchiveSettings) -> Iterator[FileLock]:
    """Yield the locks of all instances of the gateway that write here."""
    root, gateway = archive_location(archive).local, configuration.gateway
    known = {each.stem for each in journal_folder(root).glob("*.lock")}
    for writer in sorted(each for each in known if is_instance(each, gateway.name)):
        try:
            yield FileLock(lock_path(root, writer), f"the gateway runs: {STOP_FIRST}")
        except OSError as error:
            raise GatewayError(str(error)) from error


def _require_empty(database: SpoolDatabase) -> None:
    ((waiting, letters),) = database.rows(
        "SELECT (SELECT COALESCE(SUM(messages), 0) FROM batches), (SELECT COUNT(*) FROM letters)"
    )
    if waiting:
        remedy = "start the gateway, and stop it when they are delivered"
        raise GatewayError(f"the spool holds messages for targets ({waiting:,}): {remedy}")
    if letters:
        remedy = "send them again, or delete them (`gateway dead-letters`)"
        raise GatewayError(f"the spool holds dead letters ({letters:,}): {remedy}")


def record_loss(configuration: Configuration, lost: Sequence[Thing]) -> None:
    """Write a gap for each thing that ends with messages, durably; without an archive, nothing.

    The gap begins at the last sign of the gateway: what came later is in the thing.

    Raises:
        ArchiveError: the archive cannot be written.
    """
    if (archive := configuration.archive) is None or not lost:
        return
    gateway, end = configuration.gateway, now()
    location = archive_location(archive)
    begin = max(last_times(location.local, gateway.name, None)) or end
    rows = []
    for each in lost:
        system = configuration.endpoints[each.endpoint].settings.dialect
        watched = each.watched or [Watched(each.endpoint, "", "", system)]
        reason = f"gateway withdraw ended the {each.made.kind} {each.made.name}"
        gap = Outage(begin, GapRule.WITHDRAWN.value, reason)
        messages = None if each.held is None else each.held.messages
        rows.append(gap_rows(watched, gap, end, messages))
    options, durable = archive_options(archive), Event()
    writer = ArchiveWriter(
        location, gateway.name, end, options, instance=gateway.instance, replay=True
    )
    try:
        writer.append(rows, durable.set)
        if not durable.wait(ANSWER_TIMEOUT):
            raise writer.failure or ArchiveError("the archive does not answer; nothing was ended")
    finally:
        writer.close()


def end_things(
    configuration: Configuration, place: MemoryPlace, things: Sequence[Thing]
) -> Iterator[Thing]:
    """End each thing and let the memory forget it; yield it, with the fault of one that stays."""
    memories = SourceMemories(place, configuration.gateway.name)
    for each in things:
        if each.held is None:
            yield each
            continue
        try:
            if each.held.exists:
                end_made(configuration.endpoints[each.endpoint].settings, each.made)
        except EndpointError as error:
            yield replace(each, held=None, fault=str(error).removeprefix(f"{each.endpoint}: "))
            continue
        memory = SourceMemory()
        memory.keep_in(memories, each.role)
        memory.forget_made(each.made)
        yield each
