"""The cut rows of a date: counted in a first look, with the payloads of those to judge.

What the mapping left out, and what a key proves, is known from its row. Any other cut is judged by
the rows that it may repeat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gateway.archive.schema import COLUMNS, Leg, RowOutcome
from gateway.archive.storage import Storage
from gateway.model.cut_class import LEFT_OUT_RULES, CutClass
from gateway.night.archive.segments.tables import schema_of
from gateway.night.reconcile.grouping import TARGET_KEYS
from gateway.night.reconcile.input.row_reader import row_groups, statistics

CUT_KEYS: Final = (*TARGET_KEYS, "endpoint", "rule")
READ: Final = (*CUT_KEYS, "leg", "outcome", "received", "time", "hash")
# The number of cuts by their keys; those to judge have an empty class.
SEEN: Final = schema_of({**dict.fromkeys((*CUT_KEYS, "class"), "string"), "copies": "int64"})
# The payloads of the cuts to judge, a null where they are too many to be listed.
HASHES: Final = schema_of({"hash": COLUMNS["hash"]})
_MAX_HASHES: Final = 20_000  # of one row group


def read_cuts(
    storage: Storage, path: Path, groups: Sequence[pq.RowGroupMetaData], day: tuple[int, int]
) -> Iterator[tuple[str, pa.Table]]:
    """Yield SEEN and HASHES of the cuts of a segment that were received on `day`, by their kind.

    Raises:
        ArchiveError: the file cannot be read; the text names it.
    """
    parts = tuple(number for number, group in enumerate(groups) if may_have_cuts(group))
    for rows in row_groups(storage, path, READ, parts) if parts else ():
        own = cuts_of(rows, *day)
        if own.num_rows:
            yield "cuts", _counted(own)
            yield "hashes", _hashes(own)


def may_have_cuts(group: pq.RowGroupMetaData) -> bool:
    """Return whether the statistics of `leg` allow cut rows; `cut` is the first of all legs."""
    stats = statistics(group, "leg")
    return stats is None or not stats.has_min_max or stats.min <= Leg.CUT.value


def _counted(cuts: pa.Table) -> pa.Table:
    keys = cuts.select(CUT_KEYS).append_column("class", classes_of(cuts))
    counted = keys.group_by(keys.column_names).aggregate([([], "count_all")])
    return counted.rename_columns(SEEN.names).cast(SEEN)


def _hashes(cuts: pa.Table) -> pa.Table:
    judged = cuts.filter(pc.equal(classes_of(cuts), ""))
    found = pc.unique(judged["hash"].drop_null())
    if len(found) > _MAX_HASHES:
        found = pa.nulls(1, HASHES.field("hash").type)
    return pa.table([found], schema=HASHES)


def cuts_of(rows: pa.Table, begin: int, end: int) -> pa.Table:
    """Return the cut rows that were received from `begin` up to `end`, excluded."""
    own = rows.filter(pc.equal(rows["leg"], Leg.CUT.value))
    at = receipts(own)
    return own.filter(pc.and_(pc.greater_equal(at, begin), pc.less(at, end)))


def receipts(rows: pa.Table) -> pa.ChunkedArray:
    """Return the receipt of each row, in microseconds."""
    return pc.coalesce(rows["received"], rows["time"]).cast(pa.int64())


def endpoints_of(labels: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the name of the endpoint that each label of a target begins with."""
    return pc.replace_substring_regex(labels, "[:#].*", "")


def classes_of(cuts: pa.Table) -> pa.ChunkedArray:
    """Return the class of each cut; empty where the rows that it may repeat decide."""
    left_out = pc.is_in(cuts["rule"], pa.array(LEFT_OUT_RULES))
    signed = pc.fill_null(pc.equal(cuts["outcome"], RowOutcome.SIGNED.value), False)
    proven = pc.if_else(signed, CutClass.PROVEN.value, "")
    return pc.if_else(left_out, CutClass.LEFT_OUT.value, proven)
