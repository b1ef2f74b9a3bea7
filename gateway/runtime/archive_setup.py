"""The archive of a configuration: its location, options, routes and names; and the replays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from gateway.archive.journal.local_head import last_end
from gateway.archive.journal.rolling import ArchiveOptions
from gateway.archive.layout import journal_folder
from gateway.archive.location import ArchiveLocation, parse_location
from gateway.archive.name_store import NameStore
from gateway.archive.routes import write_routes
from gateway.archive.seal_key import SealKey
from gateway.config.load import Configuration
from gateway.config.process import ArchiveSettings
from gateway.routing.name_rules import to_rules
from gateway.routing.route import Route
from gateway.runtime.endpoint_uses import dictionary_for
from gateway.runtime.outbound.replay_mark import ReplayMark
from gateway.runtime.outbound.spool_db import SpoolDatabase


def archive_location(archive: ArchiveSettings) -> ArchiveLocation:
    """The location of journals and segments; a checked configuration always has a valid one."""
    return parse_location(archive.path, archive.buffer)


def archive_options(archive: ArchiveSettings) -> ArchiveOptions:
    """The options of the archive writer.

    Only a remote archive has a buffer limit; a local one is limited by its disk.
    """
    key, previous = archive.seal_key, archive.previous_seal_key
    return ArchiveOptions(
        segment_bytes=archive.segment_bytes,
        segment_seconds=archive.segment_seconds,
        sync=archive.sync,
        buffer_bytes=archive.buffer_bytes if archive_location(archive).url else None,
        keep_days=archive.keep_days,
        seal_key=SealKey.of(key.encode(), previous.encode() if previous else None) if key else None,
    )


def open_name_store(
    configuration: Configuration, archive: ArchiveSettings, writer: str
) -> NameStore | None:
    """Keep the names that `configuration` shortens in the archive; None when it shortens none.

    Raises:
        ArchiveError: the folder cannot be written.
    """
    if all(dictionary_for(configuration, each) is None for each in configuration.endpoints):
        return None
    store = NameStore(archive_location(archive).local, writer)
    configuration.dictionary.move_to(store)
    return store


def archive_routes(
    archive: ArchiveSettings, writer: str, routes: Sequence[Route], since: int
) -> None:
    """Store the routes with which `writer` runs from `since` on, in microseconds.

    They tell which names the rows of this time must have.

    Raises:
        ArchiveError: they cannot be written.
    """
    root, key = archive_location(archive).local, archive_options(archive).seal_key
    write_routes(root, writer, to_rules(routes), since, key)


def last_times(root: Path, gateway: str, spool: SpoolDatabase | None) -> Iterator[int]:
    """Yield the latest times that earlier runs left: in their journals, and in the spool.

    A killed run may have put copies into the spool after its last durable row.
    Units: microseconds since 1970-01-01 UTC; 0 for none.
    """
    yield last_end(root, gateway)
    if spool is not None:
        query = "SELECT CAST(time AS INTEGER) FROM batches ORDER BY number DESC LIMIT 1"
        yield from (time for (time,) in spool.rows(query))


def replay_mark(configuration: Configuration) -> ReplayMark:
    """Return the mark of the commands that send beside a gateway, which has a spool or an archive.

    They have the configuration of the gateway, and so its folders.
    """
    spool, archive = configuration.spool, configuration.archive
    if spool is not None:
        return ReplayMark(Path(spool.path) / "replays")
    if archive is None:
        return ReplayMark()
    folder = journal_folder(archive_location(archive).local)
    return ReplayMark(folder / f"{configuration.gateway.writer}.replays")
