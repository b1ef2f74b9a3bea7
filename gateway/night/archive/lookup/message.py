"""The path of one message over all gateways, found by its id at one of them or at a source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.storage import Storage
from gateway.night.archive.lookup.row_files import Row, find_rows, row_days, row_files

_ID: Final = re.compile(r"[0-9a-f]{32}")
_DAY: Final = timedelta(days=1)
_BATCH_ROWS: Final = 1_000


def message_rows(storage: Storage, identity: str, day: date | None = None) -> Iterator[Row]:
    """Yield the rows of the messages of one trace; with `day`, of it and the dates beside it.

    `identity` is the id of a message at a gateway, its trace id, or the id that a source gave it.
    A tap archives an arrival with an id of its own, and the message's trace id.

    Raises:
        ArchiveError: the archive cannot be reached, or a segment cannot be read.
    """
    days = _days(storage, day)
    text = identity.lower().replace("-", "")
    wanted = pc.field("origin_id") == identity
    traces: set[bytes] = set()
    if _ID.fullmatch(text):
        own = bytes.fromhex(text)
        traces.add(own)
        wanted = (pc.field("id") == own) | (pc.field("origin_id") == text) | wanted
    found = _rows(storage, days, wanted, ["id", "trace", "origin_id"])
    traces.update(row["trace"] or row["id"] for row in found)
    values = pa.array(sorted(traces), pa.binary())
    of_trace = pc.field("trace").is_null() & pc.field("id").isin(values)
    yield from _rows(storage, days, pc.field("trace").isin(values) | of_trace)


def named_rows(storage: Storage, name: str, day: date | None = None) -> Iterator[Row]:
    """Yield the rows with a name at a source or a target, as the row of its leg has it.

    A row has its time, gateway, route, leg and id. Dates and errors as of `message_rows`.
    """
    columns = ["time", "gateway", "route", "leg", "target", "id", "name"]
    return _rows(storage, _days(storage, day), pc.field("name") == name, columns)


def _rows(
    storage: Storage, days: list[date], wanted: pc.Expression, columns: list[str] | None = None
) -> Iterator[Row]:
    paths = (path for day in days for path in row_files(storage, day))
    return find_rows(storage, paths, wanted, _BATCH_ROWS, columns)


def _days(storage: Storage, day: date | None) -> list[date]:
    return [each for each in row_days(storage) if day is None or abs(each - day) <= _DAY]
