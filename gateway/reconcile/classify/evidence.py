"""Selection of the rows to classify: all rows, or the rows of minutes that digests do not prove.

Both selections return `Evidence`, which the same transforms classify.
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
from gateway.reconcile.classify.tables import proven_latencies, proven_tallies, with_details
from gateway.reconcile.classify.transforms import (
    COPY_KEYS,
    TARGET_KEYS,
    copies,
    exceptions,
    explode_targets,
    in_window,
    minute,
    on_date,
)
from gateway.reconcile.input import executor_tasks
from gateway.reconcile.input.inputs import Inputs
from gateway.reconcile.input.reading import (
    distinct_minutes,
    in_minutes,
    map_files,
    read,
    read_digests,
    read_pairs,
    set_shuffle_partitions,
)

_MINUTE_KEYS: Final = [*TARGET_KEYS, "minute"]
_MAX_BROADCAST: Final = 200_000  # rows in the memory of every executor
_NO_TAPS: Final = "gateway string, route string, target string, tap_since timestamp"
_STREAMS: Final = T.StructType(
    [T.StructField(name, T.StringType()) for name in (*TARGET_KEYS, "source_name", "file")]
)
_NO_COPIES: Final = (
    "gateway string, route string, id binary, target string, received_time timestamp"
)


@dataclass(frozen=True, slots=True)
class Scope:
    """The date to reconcile, with hours of margin around it, and the seconds to a late outcome."""

    day: date
    margin: int
    late: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """Rows to classify, one for each target, and the results of proven minutes."""

    rows: DataFrame
    copies: DataFrame  # of the date
    taps: DataFrame
    disordered: DataFrame | None = None  # copies; None when they are computed from `copies`
    tapped: bool = False
    tallies: DataFrame | None = None  # of proven minutes
    latencies: DataFrame | None = None
    minutes: DataFrame | None = None  # all minutes by target, with the flag `proven`


def from_all_rows(spark: SparkSession, scope: Scope, inputs: Inputs) -> Evidence:
    """Select all rows."""
    rows = read(spark, [each.path for each in inputs.all])
    return evidence_in(in_window(rows, scope.day, scope.margin), scope.day)


def evidence_in(archived: DataFrame, day: date) -> Evidence:
    """Return the evidence in archived rows."""
    observed = archived.where(taps.is_observed())
    tapped = not observed.isEmpty()
    rows = _relevant(taps.with_message_ids(explode_targets(archived)), day, tapped=tapped)
    starts = taps.tap_starts(observed) if tapped else _empty(archived.sparkSession, _NO_TAPS)
    return Evidence(rows, _of_date(rows, day), starts, tapped=tapped)


def classify_copies(evidence: Evidence, open_since: DataFrame, late: int) -> DataFrame:
    """Return the class of every copy that is not proven; for parameters see `classified`."""
    classes = transforms.classified(evidence.copies, open_since, evidence.taps, late)
    if evidence.disordered is None:
        classes = transforms.mark_disordered(classes, order.is_out_of_order())
    else:
        flags = evidence.disordered.select(*COPY_KEYS, F.lit(True).alias("disordered"))
        joined = classes.join(broadcast_if_small(flags), on=list(COPY_KEYS), how="left")
        disordered = F.coalesce("disordered", F.lit(False))
        classes = transforms.mark_disordered(joined, disordered).drop("disordered")
    classes = classes.drop("stream", "first_time")
    if not evidence.tapped:
        return classes
    delivered = evidence.copies.where("deliveries > 0").select("route", "target", "id")
    return transforms.drop_foreign_sightings(classes, delivered)


def from_digests(spark: SparkSession, scope: Scope, inputs: Inputs) -> Evidence:
    """Select the rows of unproven minutes, and count the proven ones by their digests."""
    sidecars = [
        path for each in inputs.all for path in (each.digest, each.pairs) if path is not None
    ]
    set_shuffle_partitions(spark, _size(sidecars))
    digests = read_digests(spark, inputs.all).localCheckpoint()
    totals = sums.differences(digests)
    late = min(scope.late, scope.margin * 3600)
    minutes = sums.proven_minutes(totals, scope.day, late).localCheckpoint()
    disordered = _out_of_order(spark, scope, inputs, digests)
    also = disordered.select(*TARGET_KEYS, minute(F.col("received_time")).alias("minute"))
    unproven = sums.unproven_minutes(minutes, also).localCheckpoint()
    tapped = not minutes.where("tapped").isEmpty()
    starts = sums.tap_starts(totals).localCheckpoint() if tapped else _empty(spark, _NO_TAPS)
    proven = minutes.where(F.col("proven") & F.col("today"))
    rest = broadcast_if_small(unproven)
    proven = proven.join(rest, on=_MINUTE_KEYS, how="left_anti").localCheckpoint()
    files = _files_with(digests, unproven)
    set_shuffle_partitions(spark, _size(files))
    rows = _rows_of(spark, scope, files, unproven)
    relevant = _relevant(rows, scope.day, tapped=tapped).withColumn("proven", F.lit(False))
    with_dead = proven.where(F.col("dead_count") > 0).select(*_MINUTE_KEYS)
    if not with_dead.isEmpty():
        dead_letter = F.col("leg") == Leg.DEAD.value
        files = _files_with(digests.where(dead_letter), with_dead)
        dead = _rows_of(spark, scope, files, with_dead).where(dead_letter)
        relevant = relevant.unionByName(dead.drop("no_id").withColumn("proven", F.lit(True)))
    return Evidence(
        relevant,
        _of_date(relevant, scope.day),
        starts,
        disordered,
        tapped,
        proven_tallies(proven),
        proven_latencies(digests, proven),
        minutes,
    )


def detailed_exceptions(evidence: Evidence, classes: DataFrame) -> DataFrame:
    """Return the exceptions with their details, read from the rows of their minutes."""
    found = exceptions(classes).localCheckpoint()
    received = minute(F.col("received_time")).alias("minute")
    minutes = distinct_minutes(found.select(received), "minute")
    rows = evidence.rows.where(in_minutes(minutes)) if minutes else evidence.rows.limit(0)
    return with_details(broadcast_if_small(found), rows)


def broadcast_if_small(frame: DataFrame) -> DataFrame:
    """Broadcast a DataFrame that is already computed, unless it has too many rows."""
    return F.broadcast(frame) if frame.count() < _MAX_BROADCAST else frame


def _empty(spark: SparkSession, schema: str) -> DataFrame:
    return spark.createDataFrame([], schema)


def _relevant(rows: DataFrame, day: date, *, tapped: bool) -> DataFrame:
    """Keep the rows that may belong to copies of the date; assign observed rows by content."""
    assigned = taps.assign_by_content(rows) if tapped else rows
    kept = assigned.where(on_date(F.col("receipt_time"), day) | F.col("received").isNull())
    return kept.drop("no_id")


def _of_date(rows: DataFrame, day: date) -> DataFrame:
    return copies(rows).where(on_date(F.col("received_time"), day))


def _rows_of(
    spark: SparkSession, scope: Scope, files: Sequence[Path], wanted: DataFrame
) -> DataFrame:
    """Read the rows of the wanted minutes and targets from `files`."""
    times = distinct_minutes(wanted, "minute")
    rows = in_window(read(spark, files), scope.day, scope.margin)
    filtered = rows.where(in_minutes(times)) if times else rows
    exploded = taps.with_message_ids(explode_targets(filtered))
    keyed = exploded.withColumn("minute", minute(F.col("receipt_time")))
    return keyed.join(broadcast_if_small(wanted), on=_MINUTE_KEYS, how="left_semi").drop("minute")


def _files_with(digests: DataFrame, wanted: DataFrame) -> list[Path]:
    """Return the files whose digests have one of the wanted minutes and targets."""
    return _files(digests.join(broadcast_if_small(wanted), on=_MINUTE_KEYS, how="left_semi"))


def _size(paths: Sequence[Path]) -> int:
    """Return the bytes of the files; Spark reports one that is absent."""
    return sum(path.stat().st_size for path in paths if path.exists())


def _out_of_order(
    spark: SparkSession, scope: Scope, inputs: Inputs, digests: DataFrame
) -> DataFrame:
    """Find the copies out of order, reading only streams whose order the sums do not prove."""
    delivered = F.col("leg") == Leg.DELIVERED.value
    files = _files(digests.where(delivered & (F.col("disordered") > 0)))
    within_files = map_files(spark, files, executor_tasks.disordered_streams, _STREAMS)
    across_files = order.crossing_streams(read_pairs(spark, inputs.all))
    unproven = (
        within_files.withColumn("name", F.lit(""))
        .select(order.stream().alias("stream"), "file")
        .unionByName(across_files)
        .distinct()
        .localCheckpoint()
    )
    files = _files(unproven)
    if not files:
        return _empty(spark, _NO_COPIES)
    rows = in_window(read(spark, files), scope.day, scope.margin).where(delivered)
    keyed = explode_targets(rows).withColumn("stream", order.stream())
    streams = broadcast_if_small(unproven.select("stream").distinct())
    own = keyed.join(streams, on="stream", how="left_semi").drop("stream")
    found = order.out_of_order(copies(own.where(on_date(F.col("receipt_time"), scope.day))))
    return found.select(*COPY_KEYS, "received_time").localCheckpoint()


def _files(frame: DataFrame) -> list[Path]:
    return sorted(Path(row["file"]) for row in frame.select("file").distinct().collect())
