"""Python functions that Spark executors run on the files of the dictionary of shortened names.

Executors reach the archive through `gateway.archive.storage`, local or remote, like the gateway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.location import ArchiveLocation
from gateway.archive.parquet import PAIRS_KEY
from gateway.archive.schema import DICTIONARY, Leg
from gateway.archive.segments.reading import open_parquet
from gateway.archive.segments.tables import schema_of
from gateway.archive.storage import Storage, open_storage
from gateway.errors import first_line
from gateway.reconcile.input.executors import Record
from gateway.reconcile.maintenance import short_names_decode
from gateway.translate.shorten import DIGEST

# A delivery's names and times, or the rule and text of a finding about the file at `place`.
SENT: Final = {
    **dict.fromkeys(("gateway", "target", "system", "source_name", "name"), "string"),
    **dict.fromkeys(("count", "first", "last"), "int64"),
    **dict.fromkeys(("place", "rule", "text"), "string"),
}
UNREADABLE: Final = "unreadable-file"
VANISHED: Final = "vanished-file"


class CountedFile(NamedTuple):
    """A file of rows by its name, and the place where it lies."""

    path: str
    at: str


_NAMES: Final = ("gateway", "target", "system", "source_name", "name")
_PAIR_COLUMNS: Final = ("leg", *_NAMES, "count", "first_time", "last_time")
_ROW_COLUMNS: Final = ("leg", *_NAMES, "time")
_DICTIONARY: Final = schema_of(DICTIONARY)


def recorded_lines(location: ArchiveLocation, paths: Iterable[str]) -> Iterator[Record]:
    """Parse the name files of gateways; a file that is absent by now has no lines."""
    storage = open_storage(location)
    for path in paths:
        content = storage.read(Path(path))
        yield from short_names_decode.lines([(path, content or b"")])


def sent_names(location: ArchiveLocation, files: Iterable[CountedFile]) -> Iterator[Record]:
    """Yield the deliveries under names that look shortened; a finding for an unreadable file."""
    storage = open_storage(location)
    for each in files:
        path = each.path
        try:
            found = _sent(storage, each)
        except FileNotFoundError:
            yield (*_nothing(), path, VANISHED, "vanished while it was read")
        except (pa.ArrowException, OSError) as error:
            yield (*_nothing(), path, UNREADABLE, f"cannot be read: {first_line(error)}")
        else:
            for row in found.to_pylist():
                times = (row["first_time"], row["last_time"])
                yield (*(row[name] for name in _NAMES), row["count"], *times, path, "", "")


def _nothing() -> Record:
    return (None,) * (len(_NAMES) + 3)


def _sent(storage: Storage, each: CountedFile) -> pa.Table:
    """Return the names of one file, from its pairs or its rows; times are microseconds."""
    with open_parquet(storage.open(Path(each.at))) as file:
        pairs = file.beside(PAIRS_KEY, _PAIR_COLUMNS)
        sent = _shortened(file.read(_ROW_COLUMNS) if pairs is None else pairs)
    if pairs is None:
        ones = pa.array([1] * len(sent), pa.int64())
        sent = sent.append_column("count", ones).append_column("first_time", sent["time"])
        sent = sent.rename_columns(
            ["last_time" if name == "time" else name for name in sent.column_names]
        )
    for name in ("first_time", "last_time"):
        at = sent.column_names.index(name)
        sent = sent.set_column(at, name, sent[name].cast(pa.int64()))
    return sent


def _shortened(rows: pa.Table) -> pa.Table:
    delivered = pc.equal(rows["leg"], Leg.DELIVERED.value)
    return rows.filter(pc.and_(delivered, pc.match_substring_regex(rows["name"], DIGEST.pattern)))


def write_dictionary(
    location: ArchiveLocation, folder: str, number: int, rows: Iterable[pa.RecordBatch]
) -> None:
    """Write the entries of partition `number` as a file of `folder`."""
    batches = [batch for batch in rows if batch.num_rows]
    table = pa.Table.from_batches(batches) if batches else _DICTIONARY.empty_table()
    path = Path(folder, f"part-{number:05}.parquet")
    open_storage(location).write(path, table.cast(_DICTIONARY))
