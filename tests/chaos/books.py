"""What archive and spool of a gateway say after a test has broken something."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from gateway.archive.layout import damaged_journals, days, journals, segments
from gateway.runtime.outbound.spool_db import FILE
from gateway.runtime.record.rows import fingerprint


@dataclass(frozen=True, slots=True)
class Books:
    """What an archive says: the payload's hash by the id of its message."""

    received: Mapping[bytes, bytes]
    spooled: Mapping[bytes, bytes]
    ended: Mapping[bytes, bytes]
    marked: frozenset[bytes]  # hashes that have a row which says "perhaps seen before"


def read_books(folder: Path) -> Books:
    """Every row of a closed archive.

    What a stop did not have the time to convert is converted here, as the next start would.

    Raises:
        AssertionError: it has half a file, or a journal that cannot be turned into one.
    """
    root = folder / "archive"
    if left := journals(root):
        command = [sys.executable, "-m", "gateway.archive.segments", *map(str, (root, *left))]
        subprocess.run(command, check=True, timeout=300)  # noqa: S603  # our own
    assert not journals(root)
    assert not damaged_journals(root)
    ends: dict[bytes, bytes] = {}
    found: dict[str, dict[bytes, bytes]] = {"received": {}, "spooled": {}}
    marked: set[bytes] = set()
    columns = ["leg", "id", "hash", "attempt", "redelivered"]
    for segment in (each for day in days(root) for each in segments(root, day)):
        table = pq.read_table(segment, columns=columns, partitioning=None)
        rows = zip(*(table[name].to_pylist() for name in columns), strict=True)
        for leg, identity, digest, attempt, again in rows:
            found.get(leg, ends)[identity] = digest
            if again or (leg == "delivered" and attempt > 1):
                marked.add(digest)
    return Books(**found, ended=ends, marked=frozenset(marked))


def digest_of(number: int) -> bytes:
    """The hash that the archive has for a number of a load without a `size`."""
    return fingerprint(b"%d " % number)[1]


def are_whole(books: Books, messages: int) -> None:
    """Each message that was received has its end.

    Raises:
        AssertionError: there is a gap.
    """
    assert books.received.keys() == books.ended.keys()
    assert books.spooled.keys() <= books.received.keys()
    assert len(books.received) >= messages


def have_no_gap(books: Books, messages: int) -> None:
    """The same of a gateway that was killed: a copy may have been spooled without its receipt.

    It was when the rows did not get to the disk: then its source has it still, and gives it again.

    Raises:
        AssertionError: a message has no end, or has an end and no beginning.
    """
    assert books.received.keys() | books.spooled.keys() == books.ended.keys()
    assert set(books.ended.values()) == set(books.received.values())
    assert len(set(books.received.values())) == messages


def spooled(folder: Path) -> int:
    """Messages in the spool of a running gateway."""
    with closing(sqlite3.connect(f"file:{folder / 'spool' / FILE}?mode=ro", uri=True)) as file:
        (count,) = file.execute("SELECT COALESCE(SUM(messages), 0) FROM parcels").fetchone()
    return int(count)
