"""The rows of an archive as a data source of Spark: `spark.read.format("gateway").load(ARCHIVE)`.

The package `pyspark_gateway` makes it known to Spark. Executors read as the gateway's commands
do; docs/queries.md has the options.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import chain
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from gateway.archive.durable import read_regular
from gateway.archive.journal.file import acknowledged_size
from gateway.archive.layout import days_in, journal_of
from gateway.archive.location import ArchiveLocation, absolute_location
from gateway.archive.schema import COLUMNS, Leg
from gateway.archive.seal_key import read_key
from gateway.archive.signed_json import StoredDigest
from gateway.archive.storage import Storage, open_storage
from gateway.errors import ArchiveError
from gateway.night.archive.compaction.current import current_files
from gateway.night.archive.lookup.row_files import find_batches
from gateway.night.archive.seals.store import digest_of
from gateway.night.archive.segments.convert import Conversion, segment_tables
from gateway.night.archive.verification.verify import sealed_files
from gateway.night.archive.verification.waiting import waiting_journals
from gateway.night.reconcile.input.executors import batches, spark_schema

_OPTIONS: Final = ("path", "dates", "legs", "columns", "open", "key_file")
_LEGS: Final = tuple(leg.value for leg in Leg)
_PARTITION_BYTES: Final = 8 << 20
_BATCH_ROWS: Final = 10_000
_DAY: Final = timedelta(days=1)


class GatewaySource(DataSource):
    """The data source `gateway`; only batches are read."""

    @classmethod
    def name(cls) -> str:
        return "gateway"

    def schema(self) -> str:
        return spark_schema({name: COLUMNS[name] for name in reader_of(self.options).columns})

    def reader(self, schema: StructType) -> ArchiveReader:  # noqa: ARG002  # that of `schema()`
        return reader_of(self.options)


def reader_of(options: Mapping[str, str]) -> ArchiveReader:
    """Parse the options of a read.

    Raises:
        ArchiveError: an option is unknown, or has a wrong value; the text says what is allowed.
    """
    for name in options:
        _check("option", name.lower(), _OPTIONS)
    location = absolute_location(options.get("path", ""))
    legs, columns = _listed(options, "legs", _LEGS), _listed(options, "columns", tuple(COLUMNS))
    dates = options.get("dates")
    days = None if dates is None else frozenset(chain.from_iterable(map(_days, _split(dates))))
    journals = options.get("open", "false")
    _check("value of open", journals, ("true", "false"))
    if journals == "true" and location.url:
        raise ArchiveError(
            f"archive {location}: open journals lie in the folder of their gateway; leave out open"
        )
    key_file = options.get("key_file")
    key = None if key_file is None else read_key(Path(key_file))
    return ArchiveReader(location, days, legs, columns, journals == "true", key)


def _check(kind: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        raise ArchiveError(f"format gateway: unknown {kind} {value!r}; use {', '.join(known)}")


def _listed(options: Mapping[str, str], name: str, known: Sequence[str]) -> Sequence[str]:
    """Return the values of an option; all that are `known` without it."""
    found = _split(options[name]) if name in options else known
    for value in found:
        _check(name.removesuffix("s"), value, known)
    return found


def _split(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")]


def _days(text: str) -> list[date]:
    """Return the dates of YYYY-MM-DD, or of FIRST..LAST."""
    first, _, last = text.partition("..")
    try:
        begin, end = date.fromisoformat(first), date.fromisoformat(last or first)
        if end < begin:
            raise ValueError(f"{end} is before {begin}")  # noqa: TRY301  # one text for all
    except ValueError as error:
        raise ArchiveError(
            f"format gateway: dates {text!r}: {error}; write YYYY-MM-DD, FIRST..LAST, or several"
            " of them with commas"
        ) from error
    return [begin + number * _DAY for number in range((end - begin).days + 1)]


@dataclass(frozen=True)
class Part(InputPartition):
    """The files that one task reads, each with the hash that it must have; or one journal."""

    files: Sequence[tuple[Path, StoredDigest | None]] = ()
    journal: Path | None = None


@dataclass(frozen=True, slots=True)
class ArchiveReader(DataSourceReader):
    """Finds the files of a query, and reads them on executors; None for `days` is all dates.

    With a `key`, segments that no seal of this key proves are refused. With `journals`, rows that
    are not in a segment yet are also read.
    """

    location: ArchiveLocation
    days: Collection[date] | None
    legs: Sequence[str]
    columns: Sequence[str]
    journals: bool
    key: bytes | None

    def partitions(self) -> list[Part]:
        """Divide the files among tasks of about 8 MB.

        Raises:
            ArchiveError: with a key, a segment is named by no seal of it.
            OSError: the archive cannot be reached.
        """
        storage = open_storage(self.location)
        # Journals first: one that is converted meanwhile has segments, which are left out here.
        journals = waiting_journals(self.location.local) if self.journals else []
        stems = {each.path.stem for each in journals}
        files = {
            (path, digest): size
            for path, size, digest in self._files(storage)
            if journal_of(path) not in stems
        }
        number = sum(files.values()) // _PARTITION_BYTES
        parts = [Part(part) for part in batches([*files], [*files.values()], number)]
        parts += [Part(journal=each.path) for each in journals]
        return parts or [Part()]  # Spark asks for one

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part.

        Raises:
            ArchiveError: a file is damaged, or not as it was sealed; the text names it.
        """
        assert isinstance(partition, Part)  # noqa: S101  # for the type checker
        storage = open_storage(self.location)
        for path, sealed in partition.files:
            yield from self._rows(storage, path, sealed)
        if partition.journal is not None:
            yield from self._journal_rows(storage, partition.journal)

    def _files(self, storage: Storage) -> Iterator[tuple[Path, int, StoredDigest | None]]:
        for day in days_in(storage.names(Path())):
            if self.days is not None and day not in self.days:
                continue
            if self.key is None:
                yield from ((each.at, each.size, None) for each in current_files(storage, day))
            else:
                for path, digest in sealed_files(storage, day, self.key).items():
                    yield path, digest.size, digest

    def _rows(
        self, storage: Storage, path: Path, sealed: StoredDigest | None
    ) -> Iterator[pa.RecordBatch]:
        if sealed is not None and digest_of(storage, path) != sealed:
            raise ArchiveError(f"{path}: is not as it was sealed; run gateway archive verify")
        wanted = pc.field("leg").isin(list(self.legs))
        columns = list(dict.fromkeys([*self.columns, "leg"]))
        for rows in find_batches(storage, path, wanted, _BATCH_ROWS, columns):
            yield from rows.select(self.columns).to_batches()

    def _journal_rows(self, storage: Storage, path: Path) -> Iterator[pa.RecordBatch]:
        """Yield the acknowledged rows of a journal, or of its segments when it is converted."""
        try:
            data = read_regular(path)[: acknowledged_size(path)]
        except FileNotFoundError:
            for each, _, digest in self._files(storage):
                if journal_of(each) == path.stem:
                    yield from self._rows(storage, each, digest)
            return
        for rows in segment_tables(data, Conversion(path)):
            kept = pc.is_in(rows["leg"], pa.array(self.legs, pa.string()))
            if self.days is not None:
                days = pa.array(self.days, pa.date32())
                kept = pc.and_(kept, pc.is_in(rows["time"].cast(pa.date32()), days))
            yield from rows.filter(kept).select(self.columns).to_batches(_BATCH_ROWS)
