"""Rows written as a gateway and its converter do: segments, the seal of a journal, the head."""

from __future__ import annotations

import hashlib

import pyarrow as pa

from gateway.archive.heads import WriterHead, head_path, parsed
from gateway.archive.layout import JournalName, parse_journal_name
from gateway.archive.signed_json import NO_TERM, Previous, Term
from gateway.archive.storage import Storage
from gateway.night.archive.seals.seal import End, Seal
from gateway.night.archive.seals.store import write_seal
from gateway.night.archive.segments.copies import handed_over
from gateway.night.archive.segments.write import write_rows


def write_sealed(  # noqa: PLR0913  # the facts of one journal
    storage: Storage,
    journal: str,
    rows: pa.Table,
    *,
    gateway: str,
    previous: Previous | None = None,
    opened: int | None = None,
    closed: int | None = None,
    end: End = End.CLOSED,
    lease: Term = NO_TERM,
    key: bytes | None = None,
) -> Seal:
    """Write the sorted `rows` as a gateway and its converter do, and return the seal.

    `journal` is the stem of a journal's file name: `str(JournalName(writer, start, number))`. The
    head of the writer states it, unless it states a later one.
    `opened` and `closed` are microseconds; by default the times of the first and the last row.
    The `link` of the returned seal is the `previous` of the next one.

    Raises:
        OSError: the storage cannot be written.
    """
    name = parse_journal_name(journal)
    if name is None:
        raise ValueError(f"{journal!r}: is no stem of a journal")
    entries = list(write_rows(storage, rows, journal, 0, opened or name.start))
    times = [each for entry in entries for each in (entry.first, entry.last)] or [name.start]
    content = "".join(entry.sha256 for entry in entries).encode()
    seal = Seal(
        writer=name.writer,
        gateway=gateway,
        journal=journal,
        start=name.start,
        sequence=name.number,
        opened=min(times) if opened is None else opened,
        closed=max(times) if closed is None else closed,
        previous=previous,
        digest=hashlib.sha256(content).hexdigest(),
        end=end,
        rows=rows.num_rows,
        size=0,
        segments=tuple(entries),
        lease=lease,
        handed=handed_over(rows),
    ).signed(key)
    write_seal(storage, seal, key)
    _state(storage, seal, name, key)
    return seal


def _state(storage: Storage, seal: Seal, name: JournalName, key: bytes | None) -> None:
    """Write the head that the writer of `seal` had after it, unless there is a later one."""
    path = head_path(seal.writer)
    known = parsed(path, storage.read(path) or b"", key).head
    if known is not None and known.at > seal.closed:
        return
    following = {
        End.STOPPED: None,
        End.KILLED: seal.journal,
        End.CLOSED: str(name._replace(number=name.number + 1)),
    }[seal.end]
    head = WriterHead(
        seal.writer, seal.gateway, seal.closed, seal.link, following, lease=seal.lease
    )
    storage.put(path, head.signed(key).to_json())
