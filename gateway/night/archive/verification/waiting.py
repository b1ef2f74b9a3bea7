"""The journals of an archive that are not converted yet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.archive.durable import open_regular
from gateway.archive.journal.ends import head_of
from gateway.archive.layout import JournalName, journals, parse_journal_name
from gateway.archive.signed_json import Previous
from gateway.file_lock import try_share

_HEAD_BYTES: Final = 64 << 10  # more than a head has


@dataclass(frozen=True, slots=True)
class WaitingJournal:
    """A journal without a seal; `live` when a process writes it now.

    Units: microseconds since 1970-01-01 UTC.
    """

    path: Path
    name: JournalName
    gateway: str
    opened: int
    previous: Previous | None
    live: bool


def waiting_journals(root: Path) -> list[WaitingJournal]:
    """Return the journals in the folder `root` that are not converted, by writer and number.

    Raises:
        OSError: the folder cannot be read.
    """
    return sorted(_waiting(root), key=lambda each: (each.name.writer, each.name.number))


def _waiting(root: Path) -> Iterator[WaitingJournal]:
    for path in journals(root):
        name = parse_journal_name(path.stem)
        try:
            with os.fdopen(open_regular(path), "rb") as file:
                live = not try_share(file.fileno())
                start = file.read(_HEAD_BYTES)
        except FileNotFoundError:
            continue  # converted since it was listed
        if name is not None and (live or start):
            head = head_of(name, start)
            yield WaitingJournal(path, name, head.gateway, head.opened, head.previous, live)
