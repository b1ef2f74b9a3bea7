"""All rows of one message, found by its id in the archive or by the id of its source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import pyarrow.compute as pc

from gateway.archive.layout import day_of, parse_day
from gateway.archive.lookup.reader import Row, find_batches, row_files
from gateway.archive.storage import Storage
from gateway.errors import ArchiveError

_ID: Final = re.compile(r"[0-9a-f]{32}")
_RUN: Final = 8  # bytes at the begin of an id: the start of the gateway in microseconds
_DAY: Final = timedelta(days=1)
_BATCH_ROWS: Final = 1_000


def message_rows(storage: Storage, identity: str, day: date | None = None) -> Iterator[Row]:
    """Yield the rows of a message, date by date; with `day`, of it and the dates beside it.

    `identity` is 32 hexadecimal digits, or the id that the source gave the message. A tap archives
    an arrival with an id of its own, and names the message as its origin.

    Raises:
        ArchiveError: the archive cannot be reached, or a segment cannot be read.
    """
    text = identity.lower().replace("-", "")
    wanted = pc.field("origin_id") == identity
    first = date.min
    if _ID.fullmatch(text):
        own = bytes.fromhex(text)
        wanted = (pc.field("id") == own) | (pc.field("origin_id") == text) | wanted
        first = day_of(int.from_bytes(own[:_RUN], "big")) - _DAY
    for each in _days(storage, first, day):
        for path in row_files(storage, each):
            for batch in find_batches(storage, path, wanted, _BATCH_ROWS):
                yield from batch.to_pylist()


def _days(storage: Storage, first: date, day: date | None) -> list[date]:
    try:
        found = [parse_day(name) for name in storage.names(Path())]
    except OSError as error:
        raise ArchiveError(f"archive: cannot be read: {error}") from error
    return sorted(
        each
        for each in found
        if each is not None and each >= first and (day is None or abs(each - day) <= _DAY)
    )
