"""Converts closed journals into Parquet segments: `python -m gateway.night.archive.segments`.

Segment names follow from the journal's name and content: a repeated conversion writes the same
files. The seal is written after the segments; then the journal is removed. A journal that has its
seal is only removed: its segments may be merged already. A journal that a gateway still writes is
skipped.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from gateway.archive.durable import sync_folder
from gateway.archive.heads import upload_heads
from gateway.archive.journal.claim_and_removal import (
    claim_journal,
    discard_journal,
    remove_done,
    set_aside,
)
from gateway.archive.journal.ends import read_head
from gateway.archive.journal.file import acknowledged_size
from gateway.archive.journal.local_head import note_end
from gateway.archive.journal.records import Damage, Rows, fault_of, read_records
from gateway.archive.layout import (
    DAMAGED,
    converted_journals,
    journals,
    oldest_kept,
    parse_journal_name,
)
from gateway.archive.location import ArchiveLocation
from gateway.archive.routes import upload_routes
from gateway.archive.schema import REQUIRED
from gateway.archive.seal_key import key_from_environment
from gateway.archive.storage import LocalStorage, RemoteStorage, Storage, open_storage
from gateway.clock import today
from gateway.errors import ArchiveError, first_line
from gateway.night.archive.open_archive import OpenArchive
from gateway.night.archive.retention import remove_days
from gateway.night.archive.seals.seal import HandedOver, SealedDamage, SegmentEntry
from gateway.night.archive.seals.store import write_seal
from gateway.night.archive.segments.buffer import copy_others, upload_names
from gateway.night.archive.segments.copies import handed_over
from gateway.night.archive.segments.journal_facts import JournalFacts
from gateway.night.archive.segments.tables import sort_rows, to_table
from gateway.night.archive.segments.write import write_rows
from gateway.terminal.units import counted

_SEGMENT_ROWS: Final = 100_000  # in memory at once, as a table: about 150 MB while it is written
_SEGMENT_BYTES: Final = 128 << 20  # of it, when names or payloads are long
_BATCH_ROWS: Final = 10_000  # in memory at once, as Python objects
_MAX_FINDINGS: Final = 20  # of one journal; the others are counted


@dataclass(slots=True)
class Conversion:
    """The result of converting one journal.

    Mutable: owned by `convert`, which fills it.
    """

    journal: Path
    rows: int = 0
    lost_values: int = 0  # values of a type that their column cannot hold
    damages: list[Damage] = field(default_factory=list)  # found by the reader of the records
    sealed_damages: tuple[SealedDamage, ...] = ()  # that cost rows; a torn tail costs none
    segments: list[SegmentEntry] = field(default_factory=list)
    handed: HandedOver | None = None

    def report_lines(self) -> list[str]:
        """Return a line for each problem, at most `_MAX_FINDINGS` for damages."""
        torn = [SealedDamage(each.offset, each.size, "torn tail cut") for each in self.damages]
        found = self.sealed_damages or torn
        lines = [f"{self.journal}: {each}" for each in found[:_MAX_FINDINGS]]
        if len(found) > _MAX_FINDINGS:
            lines.append(f"{self.journal}: {len(found) - _MAX_FINDINGS} more damages")
        if self.lost_values:
            lines.append(
                f"{self.journal}: null, as no column fits: {counted(self.lost_values, 'value')}"
            )
        return lines


def convert(
    root: Path, journal: Path, storage: Storage | None = None, key: bytes | None = None
) -> Conversion | None:
    """Convert `journal` to segments and remove it; return None when it is in use or gone.

    The segments and their seal go to `storage`, or to `root` without one; the seal is signed with
    the `key`. A journal with a damage is converted without its unreadable records, and kept as
    `.damaged`.

    Raises:
        ArchiveError: the file is not a journal of this version; it is renamed to `.damaged`.
        OSError: the segments cannot be written; the journal stays.
    """
    with _claimed(journal) as data:
        if data is None:
            return None
        return _converted(root, journal, data, storage or LocalStorage(root), key)


def convert_abandoned(archive: OpenArchive) -> None:
    """Convert the readable journals that no process holds, as the next start of a gateway does.

    A journal stays when it cannot be converted, or when its seal would need another key: then its
    gateway converts it, and a verification names it.
    """
    folder, storage, key = archive.location.local, archive.storage, archive.key
    try:
        waiting = journals(folder)
    except OSError:
        return
    for path in waiting:
        with suppress(ArchiveError, OSError), _claimed(path) as data:
            if data is not None and _is_of_key(data, key):
                _converted(folder, path, data, storage, key)


@contextmanager
def _claimed(journal: Path) -> Iterator[bytes | None]:
    """Claim a journal and yield its content; None when it is in use or gone."""
    file = claim_journal(journal)
    if file is None:
        yield None
        return
    with os.fdopen(file, "rb") as opened:
        yield opened.read()


def _is_of_key(data: bytes, key: bytes | None) -> bool:
    """Return whether `key` is that of a journal, by the `mac` of its head."""
    head = read_head(data)
    if head is None or not head.keyed:
        return key is None
    return head.has_valid_mac(key)


def _converted(
    root: Path, journal: Path, data: bytes, storage: Storage, key: bytes | None
) -> Conversion:
    """Convert a claimed journal with the content `data`, as `convert` does."""
    name = parse_journal_name(journal.stem)
    fault = fault_of(data)
    if name is None or fault:
        set_aside(journal)
        raise ArchiveError(f"{journal}: {fault or 'is not a journal'}; it was renamed to {DAMAGED}")
    conversion = Conversion(journal)
    facts = JournalFacts(journal.stem, name, data, acknowledged_size(journal), key)
    _convert_rows(facts, conversion, storage)
    if facts.link is not None:
        note_end(root, name.writer, facts.link, stopped=facts.stopped, key=key)
    if conversion.sealed_damages:
        set_aside(journal)
    else:
        discard_journal(journal)
    sync_folder(journal.parent)
    return conversion


def _convert_rows(facts: JournalFacts, conversion: Conversion, storage: Storage) -> None:
    """Write the segments and the seal of a journal, unless it has its seal."""
    sealed = facts.existing_seal(storage)
    if sealed is not None:
        conversion.rows, conversion.sealed_damages = sealed.rows, sealed.damages
        return
    for number, table in enumerate(segment_tables(facts.data, conversion)):
        conversion.segments += write_rows(storage, table, facts.stem, number, facts.head.opened)
        conversion.rows += table.num_rows
        conversion.handed = handed_over(table, conversion.handed)
        del table  # frees its memory before the next one is built
    conversion.sealed_damages = facts.damages(conversion.damages, conversion.rows)
    seal = facts.seal(conversion.sealed_damages, conversion.rows, conversion.lost_values)
    if seal is not None:
        seal = replace(seal, segments=tuple(conversion.segments), handed=conversion.handed)
        write_seal(storage, seal, facts.key)


def segment_tables(data: bytes, conversion: Conversion) -> Iterator[pa.Table]:
    """Yield the sorted rows of one segment after the other, with one table in memory at a time."""
    tables: list[pa.Table] = []
    collected = size = 0
    for batches in _grouped(_batches(data, conversion)):
        table, lost = to_table(batches)
        conversion.lost_values += lost
        tables.append(table)
        collected, size = collected + table.num_rows, size + table.nbytes
        if collected >= _SEGMENT_ROWS or size >= _SEGMENT_BYTES:
            yield _merged(tables)
            collected = size = 0
    if tables:
        yield _merged(tables)


def _merged(tables: list[pa.Table]) -> pa.Table:
    """Return all rows of `tables`, sorted, and clear the list to free its memory."""
    merged = pa.concat_tables(tables)
    tables.clear()
    return sort_rows(merged)


def _grouped(batches: Iterator[Rows]) -> Iterator[list[Rows]]:
    """Yield lists of batches with about `_BATCH_ROWS` rows each."""
    group: list[Rows] = []
    collected = 0
    for rows in batches:
        group.append(rows)
        collected += rows.count
        if collected >= _BATCH_ROWS:
            yield group
            group, collected = [], 0
    if group:
        yield group


def _batches(data: bytes, conversion: Conversion) -> Iterator[Rows]:
    for record in read_records(data, required=REQUIRED):
        if isinstance(record, Damage):
            conversion.damages.append(record)
        else:
            yield from record


def main(arguments: Sequence[str]) -> int:
    """Convert journals, then remove old days; return 1 when one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m gateway.night.archive.segments")
    parser.add_argument("archive", metavar="ARCHIVE", type=Path, help="folder of the journals")
    parser.add_argument("journals", metavar="JOURNAL", type=Path, nargs="*", help="default: all")
    parser.add_argument(
        "--to", metavar="URL", default="", help="write the segments there (default: ARCHIVE)"
    )
    parser.add_argument(
        "--fetch",
        metavar="WRITER",
        help="only copy what its other instances and machines left there",
    )
    parser.add_argument("--keep-days", metavar="N", type=int, help="remove older days")
    parser.add_argument("--nice", metavar="N", type=int, default=0, help="lower the priority by N")
    try:
        args = parser.parse_intermixed_args(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    with suppress(OSError):
        os.nice(args.nice)
    location, key, status = ArchiveLocation(args.archive, args.to), key_from_environment(), 0
    if args.fetch:
        steps = _fetch(location, args.fetch, key)
    else:
        waiting = args.journals or journals(location.local)
        steps = _convert_all(location, waiting, args.keep_days, key)
    for failed, line in steps:
        status |= failed
        print(line, file=sys.stderr)  # noqa: T201  # the parent process logs it
    return status


def _fetch(location: ArchiveLocation, writer: str, key: bytes | None) -> Iterator[tuple[bool, str]]:
    try:
        storage = open_storage(location)
        yield from [(True, fault) for fault in copy_others(storage, location.local, writer, key)]
    except (ArchiveError, OSError) as error:
        yield True, str(error)


def _convert_all(
    location: ArchiveLocation, waiting: Sequence[Path], keep_days: int | None, key: bytes | None
) -> Iterator[tuple[bool, str]]:
    """Do all the work; yield whether a step failed, and a line that reports it."""
    try:
        storage = open_storage(location)
        for path in converted_journals(location.local):
            try:
                remove_done(path)
            except OSError as error:  # the waiting journals are converted nevertheless
                yield True, str(error)
        if isinstance(storage, RemoteStorage):
            upload_heads(storage, location.local)
            upload_routes(storage, location.local)
        for path in waiting:
            yield from _convert(location, path, storage, key)
        if isinstance(storage, RemoteStorage):
            upload_heads(storage, location.local, changed=True)  # they state ends that were noted
            upload_names(storage, location.local)
        if keep_days is not None:
            for day in remove_days(storage, oldest_kept(keep_days, today()), key).days:
                yield False, f"{day} is removed, as the archive keeps {keep_days} days"
    except (ArchiveError, OSError) as error:
        yield True, str(error)


def _convert(
    location: ArchiveLocation, path: Path, storage: Storage, key: bytes | None
) -> Iterator[tuple[bool, str]]:
    try:
        conversion = convert(location.local, path, storage, key)
    except ArchiveError as error:
        yield True, str(error)
    except OSError as error:
        if location.url:  # the storage is not reachable: the other journals would fail, too
            raise
        yield True, str(error)
    except Exception as error:  # noqa: BLE001  # our fault: it concerns no other journal
        yield True, f"{path}: is not converted: {first_line(error)}"
    else:
        for line in conversion.report_lines() if conversion else ():
            yield False, line
