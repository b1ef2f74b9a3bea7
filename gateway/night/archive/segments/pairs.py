"""Name pairs of archive rows: the distinct source and target names of its deliveries."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.schema import PAIRS, Leg
from gateway.night.archive.segments.tables import schema_of

MAX_PAIRS: Final = 20_000  # distinct pairs of one segment; past it readers use the rows
PAIR_SCHEMA: Final = schema_of(PAIRS)

_KEYS: Final = ("gateway", "route", "target", "leg", "system", "source_name", "name", "fields")
_LEGS: Final = pa.array([Leg.DELIVERED.value, Leg.OBSERVED.value])


def every_pair_of(rows: pa.Table) -> pa.Table:
    """Return all name pairs of `rows`."""
    ends = rows.filter(pc.is_in(rows["leg"], _LEGS)).select([*_KEYS, "id", "time"])
    grouped = ends.group_by(list(_KEYS)).aggregate(
        [([], "count_all"), ("id", "min"), ("id", "max"), ("time", "min"), ("time", "max")]
    )
    named = grouped.rename_columns(PAIR_SCHEMA.names)
    return named.cast(PAIR_SCHEMA).sort_by([(name, "ascending") for name in _KEYS])
