"""Old days leave the archive, wherever it is, with digests and pairs; journals and reports stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from gateway.archive.layout import DIGESTS, PAIRS
from gateway.archive.location import Place
from gateway.reconcile.input.hadoop import Files, told
from gateway.reconcile.progress import Say

# Digests first: rows without their digest are still read, a digest without its rows is an alarm.
_TURNS: Final[Mapping[str, int]] = {DIGESTS: 0, PAIRS: 1, "": 2}
_FOLDERS: Final = T.StructType(
    [
        T.StructField("turn", T.IntegerType()),
        T.StructField("folder", T.StringType()),
        T.StructField("name", T.StringType()),
    ]
)
_DAY: Final = r"^date=(\d{4}-\d{2}-\d{2})$"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What is gone: the days that had rows, and files and bytes of all that belonged to any."""

    days: tuple[date, ...] = ()
    files: int = 0
    size: int = 0


def forget_days(spark: SparkSession, place: Place, oldest: date, say: Say) -> Forgotten:
    """Remove the days before `oldest`; a second call finds nothing.

    What somebody else removes meanwhile is gone, and that is all that is wanted.

    Raises:
        ReconcileError: the archive cannot be reached; what is left is removed the next time.
    """
    say(f"looking for days before {oldest}")
    with told(place, "old days were not removed"):
        files = Files(spark, place)
        listed = [
            (turn, folder, name) for folder, turn in _TURNS.items() for name in files.names(folder)
        ]
        going = outdated(spark.createDataFrame(listed, _FOLDERS), oldest).collect()
        taken = [files.remove(f"{row['folder']}/{row['name']}".lstrip("/")) for row in going]
    return Forgotten(
        tuple(row["day"] for row in going if not row["folder"]),
        sum(each.files for each in taken),
        sum(each.size for each in taken),
    )


def outdated(folders: DataFrame, oldest: date) -> DataFrame:
    """The folders of days before `oldest`, with their `day`, in the order they may go."""
    written = F.regexp_extract("name", _DAY, 1)
    day = F.try_to_timestamp(written, F.lit("yyyy-MM-dd")).cast("date")
    return folders.withColumn("day", day).where(F.col("day") < F.lit(oldest)).orderBy("turn", "day")
