"""`gateway archive forget`: remove old days from a local or remote archive.

Exit status: 0 done, 2 not done.
"""

from __future__ import annotations

import argparse
from datetime import date
from typing import TYPE_CHECKING

from gateway.archive.layout import oldest_kept
from gateway.cli.parsers import ARCHIVE, SEAL_KEY, CommandParser, seal_key
from gateway.clock import today
from gateway.errors import ArchiveError
from gateway.night.cli.arguments import check_written, named_storage

if TYPE_CHECKING:
    from gateway.night.archive.retention import RemovedDays


def add_options(parser: CommandParser) -> None:
    parser.add(*ARCHIVE)
    parser.add("--keep-days N", "number of whole days to keep", required=True)
    parser.add(*SEAL_KEY)


def run(args: argparse.Namespace) -> int:
    """Remove the days before the last `--keep-days` whole ones."""
    removed = remove_old_days(args.archive, first_kept_day(args.keep_days), seal_key(args))
    for day in removed.days:
        print(f"{day} is removed")
    print(f"{len(removed.days)} dates were removed, {removed.files} files of {removed.size} bytes")
    return 0


def remove_old_days(archive: str, oldest: date, key: bytes | None) -> RemovedDays:
    """Remove the days before `oldest`, with statements that are signed with `key`.

    Raises:
        ArchiveError: the archive cannot be reached, and the next call removes the rest; or its
            heads are keyed, and `key` is None.
    """
    from gateway.archive.heads import read_heads  # loads PyArrow
    from gateway.night.archive.retention import remove_days

    with named_storage(archive, "old days were not removed") as storage:
        check_written(archive, storage)
        if key is None and any(each.head and each.head.keyed for each in read_heads(storage)):
            raise ArchiveError("the seals of this archive are keyed; give the key with --seal-key")
        return remove_days(storage, oldest, key)


def first_kept_day(keep_days: int) -> date:
    """Return the first day to keep.

    Raises:
        ArchiveError: `keep_days` is not positive.
    """
    if keep_days < 1:
        raise ArchiveError(f"--keep-days {keep_days}: is not 1 or more")
    return oldest_kept(keep_days, today())
