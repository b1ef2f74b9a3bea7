"""The schemas of the reconciliation as Spark types, so that Spark infers none from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Rows for the join: one for each row of the archive and each target that it names.
JOIN_ROWS: Final[Mapping[str, str]] = {
    "gateway": "string",
    "route": "string",
    "target": "string",
    "run": "int64",  # of the id: its first 8 bytes, and the last 8
    "counter": "int64",
    "leg": "string",
    "no_id": "boolean",  # an observed row that does not know the message's id
    "time": "timestamp",
    "receipt_time": "timestamp",  # time of the row when an older gateway did not record it
    "hash_high": "int64",
    "hash_low": "int64",
    "attempt": "int32",
    "mode": "int32",
    "redelivered": "boolean",
    "replayed": "boolean",
    "converted": "boolean",  # the route converted the payload
    "recent": "boolean",  # the outcome may be in an open journal
    "tapped": "boolean",  # the tap of the target was observing at this time
    "size": "int64",
    "name": "string",
    "source_name": "string",
    "rule": "string",
    "reason": "string",
}

_TYPES: Final[Mapping[str, str]] = {
    "int32": "int", "int64": "bigint", "list": "array<string>", "counts": "array<bigint>",
    "map": "map<string,string>",
}  # fmt: skip  # Spark's names of types, where they differ


def spark_schema(columns: Mapping[str, str]) -> str:
    """Return the Spark schema of columns of `gateway.archive.schema`, as DDL."""
    return ", ".join(f"`{name}` {_TYPES.get(kind, kind)}" for name, kind in columns.items())
