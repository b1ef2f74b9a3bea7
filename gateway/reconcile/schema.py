"""The archive's columns as Spark types: stated, never inferred from a file."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pyspark.sql import types as T

from gateway.archive.schema import COLUMNS

_TYPES: Final[Mapping[str, T.DataType]] = MappingProxyType(
    {
        "string": T.StringType(),
        "binary": T.BinaryType(),
        "int32": T.IntegerType(),
        "int64": T.LongType(),
        "boolean": T.BooleanType(),
        "timestamp": T.TimestampType(),
        "list": T.ArrayType(T.StringType()),
        "map": T.MapType(T.StringType(), T.StringType()),
    }
)

ROWS: Final = T.StructType([T.StructField(name, _TYPES[kind]) for name, kind in COLUMNS.items()])
