"""The chain of a writer's journals: its last closed journal, in a file beside the journals.

The file and the journals that wait for their conversion give the predecessor of a new journal.
A converter updates the file before it removes a journal, so that one of both always knows it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from gateway.archive.durable import replace_text
from gateway.archive.journal.ends import link_of
from gateway.archive.journal.file import acknowledged_size
from gateway.archive.layout import OPEN, chain_path, journal_folder, journals, parse_journal_name
from gateway.archive.seals.seal import Previous, parse
from gateway.file_lock import wait_lock


def read_chain(root: Path, writer: str) -> Previous | None:
    """Return the last closed journal of `writer`; None when its chain file is absent or damaged.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        link: Previous = parse(Previous, json.loads(chain_path(root, writer).read_bytes()))
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    return link if parse_journal_name(link.journal) else None


def update_chain(root: Path, writer: str, link: Previous) -> None:
    """Record `link` as the last closed journal of `writer`, unless the file has a later one.

    Raises:
        OSError: the file cannot be written.
    """
    with _locked(journal_folder(root)):
        if number_of(link) > number_of(read_chain(root, writer)):
            replace_text(chain_path(root, writer), json.dumps(asdict(link)))


def last_link(root: Path, writer: str) -> Previous | None:
    """Return the last journal of `writer`, closed or not; None when there is none.

    Raises:
        OSError: the folder cannot be read.
    """
    last = None
    for path in sorted(journals(root, writer), key=_number_in, reverse=True):
        with suppress(FileNotFoundError):  # a converter updated the chain file, then removed it
            last = link_of(path.stem, path.read_bytes(), acknowledged_size(path))
        if last is not None:
            break
    # The file's link precedes that of the same journal, which a converter may be cutting now.
    return max(read_chain(root, writer), last, key=number_of)


def last_end(root: Path, writer: str) -> int:
    """Return when the last journal of `writer` ended, in microseconds; 0 without one.

    0 as well when the folder cannot be read: opening the next journal says so.
    """
    with suppress(OSError):
        link = last_link(root, writer)
        return 0 if link is None else link.closed
    return 0


def number_of(link: Previous | None) -> int:
    """Return the number of a journal in its chain; -1 without one."""
    return -1 if link is None else _number_in(Path(link.journal))


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
