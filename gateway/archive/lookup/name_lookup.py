"""Looking a name up in the archive's dictionary of shortened names; it makes none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gateway.archive.layout import DICTIONARY
from gateway.archive.schema import DICTIONARY as COLUMNS
from gateway.archive.storage import Store
from gateway.errors import ArchiveError


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the dictionary; `gateway.archive.schema` says what its columns are."""

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


def find(store: Store, text: str) -> Iterator[Entry]:
    """The entries whose name, short, whole or as it came, is `text`; the digest alone will do.

    Raises:
        ArchiveError: there is no dictionary, or it cannot be read.
    """
    folder = Path(DICTIONARY)
    try:
        names = [name for name in store.names(folder) if name.endswith(".parquet")]
        if not names:
            raise ArchiveError(f"{DICTIONARY}: is absent; `gateway archive names ARCHIVE` makes it")
        for name in names:
            with store.open(folder / name) as file, pq.ParquetFile(file) as table:
                for batch in table.iter_batches(columns=list(COLUMNS)):
                    yield from _found(batch, text)
    except (OSError, pa.ArrowException) as fault:
        raise ArchiveError(f"{DICTIONARY}: cannot be read: {fault}") from fault


def _found(batch: pa.RecordBatch, text: str) -> Iterator[Entry]:
    own = [pc.equal(batch[name], text) for name in ("name", "digest", "whole")]
    own += [pc.equal(pc.binary_join(batch["levels"], between), text) for between in "/."]
    hit = pa.array([False] * len(batch))
    for each in own:
        hit = pc.or_(hit, pc.fill_null(each, False))
    came = pc.list_flatten(batch["sources"])
    rows = pc.filter(pc.list_parent_indices(batch["sources"]), pc.equal(came, text)).to_pylist()
    places = sorted({*pc.indices_nonzero(hit).to_pylist(), *rows})
    for row in batch.take(pa.array(places, pa.int64())).to_pylist():
        yield Entry(**row)
