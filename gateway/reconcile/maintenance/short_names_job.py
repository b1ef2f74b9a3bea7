"""The job that builds the dictionary of shortened names, ARCHIVE/_dictionary/.

It joins the names that gateways recorded in `_names` with the name pairs of all days, replaces the
dictionary as a whole, and reports what is wrong. An unrecorded name is recovered from a pair when
its route changed none of its levels. `gateway.archive.schema` has the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from gateway.archive.archive_lock import archive_lock
from gateway.archive.compaction.current import current_files
from gateway.archive.findings import Finding, error, warning
from gateway.archive.layout import DICTIONARY, NAMES, days_in, parse_day
from gateway.archive.location import ArchiveLocation
from gateway.archive.remote_lock import CheckHeld
from gateway.archive.schema import DICTIONARY as COLUMNS
from gateway.archive.segments.tables import schema_of
from gateway.archive.storage import open_storage
from gateway.errors import ReconcileError
from gateway.reconcile.input.executors import divided, map_tables, read_tasks, write_parts
from gateway.reconcile.maintenance.short_names import (
    LINE,
    SENT,
    TORN,
    VANISHED,
    WHOLE,
    recorded_lines,
    sent_names,
    whole_names,
)
from gateway.reconcile.root_cause import SPARK_FAULTS, root_cause
from gateway.terminal.progress import ShowStep

_NEW: Final = Path("_dictionary.new")
_FILE_BYTES: Final = 256 << 10  # about, of the names in one file
_MAX_FINDINGS: Final = 100  # of one rule; the others are counted
_MAX_SOURCES: Final = 10  # source names in an entry
_KEYS: Final = ("target", "system", "name", "digest")


@dataclass(frozen=True, slots=True)
class ShortNameReport:
    """Numbers of shortened names, of sent ones among them, and of targets; with findings."""

    names: int
    sent: int
    targets: int
    findings: tuple[Finding, ...] = ()


def build_dictionary(
    spark: SparkSession, location: ArchiveLocation, oldest: date | None, show_step: ShowStep
) -> ShortNameReport:
    """Build the dictionary of the archive; the old one stays until the new one is complete.

    With `oldest`, a name that no day uses is left out when it was recorded before that day.

    Raises:
        ReconcileError: Spark failed or the archive cannot be reached; the old dictionary stays.
    """
    show_step("reading the shortened names")
    try:
        with archive_lock(location) as check_held:
            try:
                return _build(spark, location, oldest, show_step, check_held)
            finally:
                spark.catalog.clearCache()
    except (*SPARK_FAULTS, OSError) as fault:
        reason = root_cause(fault)
        text = f"archive {location}: the dictionary of shortened names was not built: {reason}"
        raise ReconcileError(text) from fault


def _build(
    spark: SparkSession,
    location: ArchiveLocation,
    oldest: date | None,
    show_step: ShowStep,
    check_held: CheckHeld,
) -> ShortNameReport:
    storage = open_storage(location)
    names = [Path(NAMES, each) for each in storage.names(Path(NAMES)) if each.endswith(".jsonl")]
    days = days_in(storage.names(Path()))
    files = [each for day in days for each in current_files(storage, day)]
    tasks = (divided(spark, each, [_FILE_BYTES] * len(each)) for each in (names, files))
    lines = read_tasks(spark, LINE, next(tasks), partial(recorded_lines, location)).persist()
    sent = read_tasks(spark, SENT, next(tasks), partial(sent_names, location)).persist()
    found = map_tables(joined(sent, lines, oldest), WHOLE, whole_names).persist()
    show_step("writing the dictionary")
    listed = entries(found)
    storage.remove(_NEW)
    write_parts(listed.orderBy("target", "name"), location, _NEW, schema_of(COLUMNS))
    findings = [finding for each in (lines, found, sent) for finding in _findings_in(each)]
    gone = sent.where(F.col("rule") == VANISHED).select("place").distinct()
    findings += _vanished(gone, oldest, show_step)
    target, digest = F.nullif("target", F.lit("")), F.col("digest")
    numbers = listed.select(
        F.count_distinct(digest).alias("names"),
        F.count_distinct(F.when(target.isNotNull(), digest)).alias("sent"),
        F.count_distinct(target).alias("targets"),
    ).collect()[0]
    check_held()
    storage.replace(Path(DICTIONARY), _NEW)
    return ShortNameReport(**numbers.asDict(), findings=tuple(findings))


def joined(sent: DataFrame, lines: DataFrame, oldest: date | None) -> DataFrame:
    """Return the sent names by target and source, with what the `lines` of their digest record.

    Names that no delivery uses are null; with `oldest`, the first kept day, those recorded before
    it are left out: the days that used them were removed. A digest with a line without a time
    stays.
    """
    has_times = F.count("noted") == F.count("*")
    recorded = lines.where("rule IS NULL").groupBy("digest").agg(
        F.any_value("levels").alias("noted_levels"),
        F.timestamp_micros(F.when(has_times, F.max("noted"))).alias("noted"),
        F.sort_array(F.collect_set("gateway")).alias("noted_by"),
    )  # fmt: skip
    by_source = sent.where("rule IS NULL").groupBy(*_KEYS, "source_name").agg(
        F.collect_set("gateway").alias("gateways"),
        F.sum("count").alias("count"),
        F.min("first_time").alias("first_time"),
        F.max("last_time").alias("last_time"),
    )  # fmt: skip
    found = by_source.join(recorded, "digest", "full")
    if oldest is None:
        return found
    recent = F.col("noted") >= F.lit(oldest).cast("timestamp")
    return found.where(F.col("name").isNotNull() | F.col("noted").isNull() | recent)


def entries(found: DataFrame) -> DataFrame:
    """Return the rows of the dictionary from rows of WHOLE, with the first sources of each."""
    rank = F.row_number().over(Window.partitionBy(*_KEYS).orderBy("source_name"))
    listed = F.when(F.col("rank") <= _MAX_SOURCES, F.col("source_name"))
    entry = found.withColumn("rank", rank).groupBy(*_KEYS).agg(
        F.any_value("levels").alias("levels"),
        F.any_value("whole").alias("whole"),
        F.sort_array(F.collect_set(listed)).alias("sources"),
        F.array_sort(F.array_distinct(F.flatten(F.collect_list("gateways")))).alias("gateways"),
        F.min("first_time").alias("first_time"),
        F.max("last_time").alias("last_time"),
        F.sum("count").alias("count"),
    )  # fmt: skip
    return entry.select(*COLUMNS)


def _vanished(gone: DataFrame, oldest: date | None, show_step: ShowStep) -> Iterator[Finding]:
    """Report files that another process removed: an error, except in a day before `oldest`."""
    folders = gone.groupBy(F.substring_index("place", "/", 1).alias("folder")).count()
    for folder, count in sorted(folders.collect()):
        day = parse_day(folder)
        if oldest is not None and day is not None and day < oldest:
            show_step(f"{count} files of {day} were removed meanwhile; no longer kept")
        else:
            yield error(VANISHED, folder, f"{count} files vanished while they were read")


def _findings_in(checked: DataFrame) -> Iterator[Finding]:
    """Yield the findings in the columns `place`, `rule` and `text`; of each rule the first."""
    wrong = checked.where(F.col("rule") != VANISHED).select("place", "rule", "text").distinct()
    for rule, total in sorted(wrong.groupBy("rule").count().collect()):
        finding = warning if rule == TORN else error
        first = wrong.where(F.col("rule") == rule).orderBy("place", "text").head(_MAX_FINDINGS)
        yield from (finding(rule, row["place"], row["text"]) for row in first)
        if total > len(first):
            text = f"{total - len(first)} more findings of this rule"
            yield finding(rule, first[-1]["place"], text)
