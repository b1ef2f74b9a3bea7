"""Which rows a night is judged by: all of them, or those that the digests do not prove.

Both ways end in the same kind of evidence, which the same transforms make classes of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from gateway.archive.schema import Leg
from gateway.reconcile.classify import digests as sums
from gateway.reconcile.classify import order, taps, transforms
from gateway.reconcile.classify.tables import detailed, proven_latencies, proven_tallies
from gateway.reconcile.classify.transforms import (
    KEY,
    WAY,
    copies,
    exceptions,
    in_window,
    minute,
    on_date,
    spread,
)
from gateway.reconcile.input import executor_tasks
from gateway.reconcile.input.inputs import Inputs
from gateway.reconcile.input.reading import (
    distinct_minutes,
    each_file,
    expect,
    near,
    read,
    read_digests,
    read_pairs,
)

_MINUTE_OF_WAY: Final = [*WAY, "minute"]
_FEW: Final = 200_000  # rows that every executor may hold
_NO_TAPS: Final = "gateway string, route string, target string, tap_since timestamp"
_STREAMS: Final = T.StructType(
    [T.StructField(name, T.StringType()) for name in (*WAY, "source_name", "file")]
)
_NO_COPIES: Final = (
    "gateway string, route string, id binary, target string, received_time timestamp"
)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of an archive; hours of margin on either side, patience in seconds."""

    day: date
    margin: int
    patience: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """Rows to judge by, spread over their targets, and what is proven without them."""

    rows: DataFrame
    copies: DataFrame  # of the date
    taps: DataFrame
    overtakers: DataFrame | None = None  # found already; else they are among `copies`
    tapped: bool = False
    tallies: DataFrame | None = None  # of proven minutes
    latencies: DataFrame | None = None
    minutes: DataFrame | None = None  # every minute of a way: its sums, and whether it is proven


def all_rows(spark: SparkSession, asked: Question, inputs: Inputs) -> Evidence:
    """Every row there is."""
    rows = read(spark, [each.path for each in inputs.all])
    return judge(in_window(rows, asked.day, asked.margin), asked.day)


def judge(raw: DataFrame, day: date) -> Evidence:
    """The evidence in rows as they were archived."""
    observed = raw.where(taps.is_observed())
    tapped = not observed.isEmpty()
    rows = _relevant(taps.named(spread(raw)), day, tapped=tapped)
    starts = taps.since(observed) if tapped else _empty(raw.sparkSession, _NO_TAPS)
    return Evidence(rows, _of_date(rows, day), starts, tapped=tapped)


def told(evidence: Evidence, open_since: DataFrame, late: int) -> DataFrame:
    """The class of every copy that is not proven; the terms are those of `classified`."""
    classes = transforms.classified(evidence.copies, open_since, evidence.taps, late)
    if evidence.overtakers is None:
        classes = transforms.ordered(classes, order.overtaking())
    else:
        flags = evidence.overtakers.select(*KEY, F.lit(True).alias("overtook"))
        joined = classes.join(small(flags), on=list(KEY), how="left")
        overtook = F.coalesce("overtook", F.lit(False))
        classes = transforms.ordered(joined, overtook).drop("overtook")
    classes = classes.drop("stream", "first_time")
    if not evidence.tapped:
        return classes
    delivered = evidence.copies.where("deliveries > 0").select("route", "target", "id")
    return transforms.strangers(classes, delivered)


def by_digests(spark: SparkSession, asked: Question, inputs: Inputs) -> Evidence:
    """What the digests prove, and the rows of the minutes they do not."""
    beside = [path for each in inputs.all for path in (each.digest, each.pairs) if path is not None]
    expect(spark, _size(beside))
    digests = read_digests(spark, inputs.all).localCheckpoint()
    totals = sums.added_up(digests)
    patience = min(asked.patience, asked.margin * 3600)
    minutes = sums.judged(totals, asked.day, patience).localCheckpoint()
    overtook = _overtakers(spark, asked, inputs, digests)
    also = overtook.select(*WAY, minute(F.col("received_time")).alias("minute"))
    suspects = sums.suspects(minutes, also).localCheckpoint()
    tapped = not minutes.where("tapped").isEmpty()
    starts = sums.tap_starts(totals).localCheckpoint() if tapped else _empty(spark, _NO_TAPS)
    proven = minutes.where(F.col("proven") & F.col("today"))
    proven = proven.join(small(suspects), on=_MINUTE_OF_WAY, how="left_anti").localCheckpoint()
    files = _files_of(digests, suspects)
    expect(spark, _size(files))
    rows = _rows_of(spark, asked, files, suspects)
    judged = _relevant(rows, asked.day, tapped=tapped).withColumn("proven", F.lit(False))
    with_dead = proven.where(F.col("dead_count") > 0).select(*_MINUTE_OF_WAY)
    if not with_dead.isEmpty():
        dead_letter = F.col("leg") == Leg.DEAD.value
        files = _files_of(digests.where(dead_letter), with_dead)
        dead = _rows_of(spark, asked, files, with_dead).where(dead_letter)
        judged = judged.unionByName(dead.drop("blind").withColumn("proven", F.lit(True)))
    return Evidence(
        judged,
        _of_date(judged, asked.day),
        starts,
        overtook,
        tapped,
        proven_tallies(proven),
        proven_latencies(digests, proven),
        minutes,
    )


def exceptions_of(evidence: Evidence, classes: DataFrame) -> DataFrame:
    """The exceptions with their details, from the rows of their minutes alone."""
    found = exceptions(classes).localCheckpoint()
    received = minute(F.col("received_time")).alias("minute")
    minutes = distinct_minutes(found.select(received), "minute")
    rows = evidence.rows.where(near(minutes)) if minutes else evidence.rows.limit(0)
    return detailed(small(found), rows)


def small(frame: DataFrame) -> DataFrame:
    """A frame that is in memory, sent to every executor where it is small enough for that."""
    return F.broadcast(frame) if frame.count() < _FEW else frame


def _empty(spark: SparkSession, schema: str) -> DataFrame:
    return spark.createDataFrame([], schema)


def _relevant(rows: DataFrame, day: date, *, tapped: bool) -> DataFrame:
    """The rows that can say something of the date's copies; blind sightings tied to theirs."""
    tied = taps.matched(rows) if tapped else rows
    kept = tied.where(on_date(F.col("own"), day) | F.col("received").isNull())
    return kept.drop("blind")


def _of_date(rows: DataFrame, day: date) -> DataFrame:
    return copies(rows).where(on_date(F.col("received_time"), day))


def _rows_of(
    spark: SparkSession, asked: Question, files: Sequence[Path], wanted: DataFrame
) -> DataFrame:
    """The rows of these minutes of these ways, from the files that have them."""
    times = distinct_minutes(wanted, "minute")
    rows = in_window(read(spark, files), asked.day, asked.margin)
    near_them = taps.named(spread(rows.where(near(times)) if times else rows))
    keyed = near_them.withColumn("minute", minute(F.col("own")))
    return keyed.join(small(wanted), on=_MINUTE_OF_WAY, how="left_semi").drop("minute")


def _files_of(digests: DataFrame, wanted: DataFrame) -> list[Path]:
    """The files whose digests have one of these minutes of these ways."""
    return _files(digests.join(small(wanted), on=_MINUTE_OF_WAY, how="left_semi"))


def _size(paths: Sequence[Path]) -> int:
    """Bytes of these files; one that is gone is Spark's to miss."""
    return sum(path.stat().st_size for path in paths if path.exists())


def _overtakers(
    spark: SparkSession, asked: Question, inputs: Inputs, digests: DataFrame
) -> DataFrame:
    """Copies out of order, from the rows of those streams whose bounds do not prove their order."""
    delivered = F.col("leg") == Leg.DELIVERED.value
    disordered = _files(digests.where(delivered & (F.col("disordered") > 0)))
    inside = each_file(spark, disordered, executor_tasks.disordered_streams, _STREAMS)
    across = order.crossing(read_pairs(spark, inputs.all))
    doubtful = (
        inside.withColumn("name", F.lit(""))
        .select(order.stream().alias("stream"), "file")
        .unionByName(across)
        .distinct()
        .localCheckpoint()
    )
    files = _files(doubtful)
    if not files:
        return _empty(spark, _NO_COPIES)
    rows = in_window(read(spark, files), asked.day, asked.margin).where(delivered)
    keyed = spread(rows).withColumn("stream", order.stream())
    streams = small(doubtful.select("stream").distinct())
    own = keyed.join(streams, on="stream", how="left_semi").drop("stream")
    found = order.overtakers(copies(own.where(on_date(F.col("own"), asked.day))))
    return found.select(*KEY, "received_time").localCheckpoint()


def _files(frame: DataFrame) -> list[Path]:
    return sorted(Path(row["file"]) for row in frame.select("file").distinct().collect())
