"""The archive's schemas as Spark types, so that Spark infers none from a file."""

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


def spark_schema(columns: Mapping[str, str]) -> T.StructType:
    """Return the Spark schema of columns of `gateway.archive.schema`."""
    return T.StructType([T.StructField(name, _TYPES[kind]) for name, kind in columns.items()])


ROWS: Final = spark_schema(COLUMNS)
DIGEST_ROWS: Final = spark_schema(DIGESTS)
PAIR_ROWS: Final = spark_schema(PAIRS)
DICTIONARY_ROWS: Final = spark_schema(DICTIONARY)
