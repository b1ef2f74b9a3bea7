"""The head of a writer in its local folder: read, changed and replaced under one lock.

The head and the journals that wait for their conversion give the predecessor of a new journal. A
converter notes in the head how a journal ended before it removes the journal, so that one of both
always knows it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.archive.durable import make_folders, read_regular, sync_folder
from gateway.archive.heads import (
    StoredHead,
    WriterHead,
    head_path,
    newest_heads,
    parsed,
    read_head,
    write_head,
)
from gateway.archive.journal.ends import link_of
from gateway.archive.journal.file import acknowledged_size
from gateway.archive.layout import (
    DAMAGED,
    HEADS,
    OPEN,
    OTHERS,
    is_instance,
    is_replay,
    journal_folder,
    journals,
    listed,
    parse_journal_name,
)
from gateway.archive.signed_json import NO_TERM, TAKEN, Previous, Term
from gateway.clock import Clock, now
from gateway.file_lock import wait_lock

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LocalHead:
    """The head of `writer` below the local folder `root`; a `key` signs it."""

    root: Path
    gateway: str
    writer: str
    key: bytes | None = None
    clock: Clock = now
    instance: str = ""
    lease: Term = NO_TERM

    def read(self) -> StoredHead:
        """Return the stored head.

        Raises:
            OSError: it cannot be read.
        """
        return read_head(self.root, self.writer, self.key)

    def change(self, edit: Callable[[WriterHead], WriterHead]) -> None:
        """Replace the head by `edit` of it, durably; its time is never set back.

        Raises:
            OSError: it cannot be written; the stored head is as before.
        """
        make_folders(folder := journal_folder(self.root))
        with _locked(folder):
            head = self.read().head or WriterHead(self.writer, self.gateway, 0)
            at = max(self.clock(), head.at)
            head = replace(
                edit(head), gateway=self.gateway, instance=self.instance, lease=self.lease, at=at
            )
            write_head(self.root, head, self.key)

    def newest(self) -> WriterHead | None:
        """Return the readable head of the instance of this gateway that wrote last.

        Raises:
            OSError: a head cannot be read.
        """
        return next(iter(newest_heads(_heads_of(self.root, self.gateway))), None)

    def set_aside(self) -> None:
        """Keep a copy of a head that its writer did not write, for the next verification.

        Raises:
            OSError: it cannot be copied.
        """
        stored = self.read()
        if not stored.fault:
            return
        path = self.root / head_path(self.writer)
        aside = path.with_suffix(DAMAGED)
        log.error("%s: %s; it was copied to %s", path, stored.fault, aside.name)
        with suppress(FileExistsError):  # the first one is the evidence
            os.link(path, aside)
            sync_folder(path.parent)


def note_end(root: Path, writer: str, link: Previous, *, stopped: bool, key: bytes | None) -> None:
    """Note in the head of `writer` that `link` is a journal without a process, unless a later is.

    A head that its writer did not write stays as it is.

    Raises:
        OSError: the head cannot be written.
    """
    with _locked(journal_folder(root)):
        stored = read_head(root, writer, key)
        head = stored.head
        if head is None or stored.fault or number_of(link) <= number_of(head.closed):
            return
        last = None if stopped else link.journal  # a head may not name it: its process ended before
        write_head(root, replace(head, closed=link, open=last), key)


def last_link(root: Path, writer: str) -> Previous | None:
    """Return the last journal of `writer`, closed or not; None when there is none.

    A journal that the head states as open and that is nowhere has no digest. Where the folder has
    no head of the gateway, the copy of that in the archive counts: it is the head of a machine
    before this one, and what that had open is `taken`.

    Raises:
        OSError: the folder cannot be read.
    """
    last = None
    for path in sorted(journals(root, writer), key=_number_in, reverse=True):
        with suppress(FileNotFoundError):  # a converter noted its end, then removed it
            last = link_of(path.stem, read_regular(path), acknowledged_size(path))
        if last is not None:
            break
    head, digest = read_head(root, writer).head, None
    if head is None and not is_replay(writer):
        head, digest = _copied_head(root, writer), TAKEN
    if head is None:
        return last
    lost = None if head.open is None else Previous(head.open, digest, head.at)
    # The head's link precedes that of the same journal, which a converter may be cutting now.
    return max(head.closed, last, lost, key=number_of)


def last_end(root: Path, gateway: str) -> int:
    """Return when the last journal of an instance of `gateway` ended, in microseconds; 0 without.

    0 as well when the folder cannot be read: opening the next journal says so.
    """
    with suppress(OSError):
        names = (parse_journal_name(path.stem) for path in journals(root))
        writers = {name.writer for name in names if name is not None}
        heads = _heads_of(root, gateway)
        links = [last_link(root, each) for each in writers if is_instance(each, gateway)]
        links += [head.closed for head in heads]
        ends = [link.closed for link in links if link is not None]
        return max([*ends, *(head.at for head in heads)], default=0)
    return 0


def _copied_head(root: Path, writer: str) -> WriterHead | None:
    path = root / HEADS / OTHERS / head_path(writer).name
    with suppress(FileNotFoundError):
        return parsed(path, read_regular(path)).head
    return None


def _heads_of(root: Path, gateway: str) -> list[WriterHead]:
    """Return the heads of the instances of `gateway` in `root`, and the copies of others there."""
    return [
        head
        for folder in (root / HEADS, root / HEADS / OTHERS)
        for path in listed(folder, ".json")
        if is_instance(path.stem, gateway)
        if (head := parsed(path, read_regular(path)).head) is not None
    ]


def number_of(link: Previous | None) -> int:
    """Return the number of a journal in its chain; -1 without one."""
    name = None if link is None else link.name
    return -1 if name is None else name.number


def _number_in(path: Path) -> int:
    name = parse_journal_name(path.name.removesuffix(OPEN))
    return -1 if name is None else name.number


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of `folder`, which a gateway and a converter take for one file at a time."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        wait_lock(file)
        yield
    finally:
        os.close(file)
