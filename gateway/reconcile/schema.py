"""The archive's columns as Spark types: stated, never inferred from a file."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pyspark.sql import types as T

from gateway.archive.schema import COLUMNS, DICTIONARY, DIGESTS, PAIRS

_TYPES: Final[Mapping[str, T.DataType]] = MappingProxyType(
    {
        "string": T.StringType(),
        "binary": T.BinaryType(),
        "int32": T.IntegerType(),
        "int64": T.LongType(),
        "boolean": T.BooleanType(),
        "timestamp": T.TimestampType(),
        "list": T.ArrayType(T.StringType()),
        "counts": T.ArrayType(T.LongType()),
        "map": T.MapType(T.StringType(), T.StringType()),
    }
)


def stated(columns: Mapping[str, str]) -> T.StructType:
    """Spark's schema of columns as `gateway.archive.schema` states them."""
    return T.StructType([T.StructField(name, _TYPES[kind]) for name, kind in columns.items()])


ROWS: Final = stated(COLUMNS)
DIGEST_ROWS: Final = stated(DIGESTS)
PAIR_ROWS: Final = stated(PAIRS)
DICTIONARY_ROWS: Final = stated(DICTIONARY)
