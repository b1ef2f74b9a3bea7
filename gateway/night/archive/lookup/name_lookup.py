"""Lookup of a name in the archive's dictionary of shortened names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.layout import DICTIONARY
from gateway.archive.schema import DICTIONARY as COLUMNS
from gateway.archive.storage import Storage
from gateway.errors import ArchiveError
from gateway.night.archive.segments.reading import open_parquet

_BATCH_ROWS: Final = 10_000


@dataclass(frozen=True, slots=True)
class DictionaryEntry:
    """A row of the dictionary; `gateway.archive.schema` describes its columns."""

    target: str
    system: str | None
    name: str
    digest: str
    levels: list[str] | None
    whole: str | None
    sources: list[str]
    gateways: list[str]
    first_time: datetime | None
    last_time: datetime | None
    count: int


def find_name(storage: Storage, text: str) -> Iterator[DictionaryEntry]:
    """Yield the entries with `text` as short name, digest, whole name or source name.

    Raises:
        ArchiveError: the dictionary is absent, or cannot be read.
    """
    folder = Path(DICTIONARY)
    try:
        names = [name for name in storage.names(folder) if name.endswith(".parquet")]
        if not names:
            raise ArchiveError(f"{DICTIONARY}: is absent; run `gateway archive names ARCHIVE`")
        for name in names:
            with open_parquet(storage.open(folder / name)) as file:
                for batch in file.batches(_BATCH_ROWS, list(COLUMNS)):
                    yield from _matching_rows(batch, text)
    except (OSError, pa.ArrowException) as error:
        raise ArchiveError(f"{DICTIONARY}: cannot be read: {error}") from error


def _matching_rows(batch: pa.Table, text: str) -> Iterator[DictionaryEntry]:
    conditions = [pc.equal(batch[name], text) for name in ("name", "digest", "whole")]
    conditions += [pc.equal(pc.binary_join(batch["levels"], between), text) for between in "/."]
    matches = reduce(pc.or_kleene, conditions)
    is_source = pc.equal(pc.list_flatten(batch["sources"]), text)
    by_source = pc.filter(pc.list_parent_indices(batch["sources"]), is_source).to_pylist()
    positions = sorted({*pc.indices_nonzero(matches).to_pylist(), *by_source})
    for row in batch.take(pa.array(positions, pa.int64())).to_pylist():
        yield DictionaryEntry(**row)
