"""Archive and spool of a gateway after a fault test."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq

from gateway.archive.findings import Weight
from gateway.archive.layout import days
from gateway.archive.schema import NOT_COPIES
from gateway.archive.storage import LocalStorage
from gateway.night.archive.verification.verify import verify_archive
from gateway.runtime.delivery.rows import fingerprint
from gateway.runtime.outbound.spool_db import FILE_NAME
from tests.archive.journal_files import damaged_journals
from tests.archived import convert_journals, segments


@dataclass(frozen=True, slots=True)
class ArchivedHashes:
    """Payload hashes of an archive by message id, for each kind of row."""

    received: Mapping[bytes, bytes]
    spooled: Mapping[bytes, bytes]
    outcomes: Mapping[bytes, bytes]
    marked: frozenset[bytes]  # hashes with a row marked as a redelivery or a later attempt


def read_archive(folder: Path) -> ArchivedHashes:
    """Read all rows of a closed archive; journals that are left are converted first.

    Raises:
        AssertionError: a journal is damaged or cannot be converted, the archive is not proven, or
            the latest row of a delivered copy is not its outcome.
    """
    root = folder / "archive"
    convert_journals(root)
    assert not damaged_journals(root)
    verified = verify_archive(LocalStorage(root), journals=root)
    unproven = [each for each in verified.findings if each.weight is Weight.ERROR]
    assert {each.rule for each in unproven} <= {"open-chain"}, unproven  # it may be killed at last
    outcomes: dict[bytes, bytes] = {}
    found: dict[str, dict[bytes, bytes]] = {"received": {}, "spooled": {}}
    marked: set[bytes] = set()
    latest: dict[bytes, tuple[datetime, bool]] = {}  # time, and whether it is an outcome
    columns = ["leg", "id", "hash", "attempt", "redelivered", "time"]
    for segment in (each for day in days(root) for each in segments(root, day)):
        table = pq.read_table(segment, columns=columns, partitioning=None)
        rows = zip(*(table[name].to_pylist() for name in columns), strict=True)
        for leg, identity, digest, attempt, again, time in rows:
            if leg in NOT_COPIES:
                continue
            found.get(leg, outcomes)[identity] = digest
            row = (time, leg not in found)
            latest[identity] = max(latest.get(identity, row), row)
            if again or (leg == "delivered" and attempt > 1):
                marked.add(digest)
    assert all(latest[each][1] for each in outcomes), "a spooled row is later than the outcome"
    return ArchivedHashes(**found, outcomes=outcomes, marked=frozenset(marked))


def digest_of(number: int) -> bytes:
    """The payload hash of a number of a load without a `size`."""
    return fingerprint(b"%d " % number)[1]


def check_complete(archive: ArchivedHashes, messages: int) -> None:
    """Check that each received message has its outcome.

    Raises:
        AssertionError: an outcome or a received row is missing.
    """
    assert archive.received.keys() == archive.outcomes.keys()
    assert archive.spooled.keys() <= archive.received.keys()
    assert len(archive.received) >= messages


def check_without_gap(archive: ArchivedHashes, messages: int) -> None:
    """Check the archive of a killed gateway, where a spooled copy may lack its received row.

    The row is absent if it was not yet on disk; the source then delivers the message again.

    Raises:
        AssertionError: an outcome is missing, or has neither a received nor a spooled row.
    """
    assert archive.received.keys() | archive.spooled.keys() == archive.outcomes.keys()
    assert set(archive.outcomes.values()) == set(archive.received.values())
    assert len(set(archive.received.values())) == messages


def check_marked(archive: ArchivedHashes, duplicates: Iterable[int]) -> None:
    """Check that each number that arrived twice has a marked row.

    Raises:
        AssertionError: a duplicate is not marked.
    """
    assert {digest_of(number) for number in duplicates} <= archive.marked


def spooled(folder: Path) -> int:
    """Messages in the spool of a running gateway."""
    with closing(sqlite3.connect(f"file:{folder / 'spool' / FILE_NAME}?mode=ro", uri=True)) as file:
        (count,) = file.execute("SELECT COALESCE(SUM(messages), 0) FROM batches").fetchone()
    return int(count)
