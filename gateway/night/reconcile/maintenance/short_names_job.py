"""The job that builds the dictionary of shortened names, ARCHIVE/_dictionary/.

It joins the names that gateways recorded in `_names` with the name pairs of all days, replaces the
dictionary as a whole, and reports what is wrong. An unrecorded name is recovered from a pair when
its route changed none of its levels. `gateway.archive.schema` has the columns.

Beside the dictionary lies its report, with the digest of the list of files that it was built from:
name files only grow, and a segment never changes. While the list is the same, so is the dictionary.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from gateway.archive.findings import Finding, error, warning
from gateway.archive.layout import DICTIONARY, NAMES, days_in, parse_day
from gateway.archive.location import ArchiveLocation
from gateway.archive.schema import DICTIONARY as COLUMNS
from gateway.archive.signed_json import document_of, parse
from gateway.archive.storage import Storage, open_storage
from gateway.errors import ReconcileError
from gateway.night.archive.archive_lock import archive_lock
from gateway.night.archive.compaction.current import CurrentFile, current_files
from gateway.night.archive.remote_lock import CheckHeld
from gateway.night.archive.segments.tables import schema_of
from gateway.night.reconcile.input.executors import divided, map_tables, read_tasks, write_parts
from gateway.night.reconcile.input.short_names import (
    LINE,
    SENT,
    TORN,
    VANISHED,
    WHOLE,
    recorded_lines,
    sent_names,
    whole_names,
)
from gateway.night.reconcile.root_cause import SPARK_FAULTS, root_cause
from gateway.terminal.progress import ShowStep

_NEW: Final = Path("_dictionary.new")
_REPORT: Final = "_built.json"  # readers of a folder of Parquet pass over names with this begin
_VERSION: Final = 1
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


class _Sources(NamedTuple):
    """The name files and the segments of a dictionary, and the digest of their list."""

    names: Sequence[Path]
    segments: Sequence[CurrentFile]
    digest: str


def report_of_current(location: ArchiveLocation, oldest: date | None) -> ShortNameReport | None:
    """Return the report of the dictionary; None when it is absent, or other files are there now.

    Raises:
        ReconcileError: the archive cannot be reached.
    """
    storage = open_storage(location)
    try:
        content = storage.read(Path(DICTIONARY, _REPORT))
        if content is None:
            return None
        with suppress(ValueError):
            found = document_of(content, _VERSION)
            if found.pop("sources", None) == _sources(storage, oldest).digest:
                report: ShortNameReport = parse(ShortNameReport, found, _REPORT)
                return report
    except OSError as fault:
        raise ReconcileError(f"archive {location}: {fault}") from fault
    return None


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
    sources = _sources(storage, oldest)
    names, segments = (divided(spark, each, [_FILE_BYTES] * len(each)) for each in sources[:2])
    lines = read_tasks(spark, LINE, names, partial(recorded_lines, location)).persist()
    sent = read_tasks(spark, SENT, segments, partial(sent_names, location)).persist()
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
    report = ShortNameReport(**numbers.asDict(), findings=tuple(findings))
    if all(each.rule != VANISHED for each in findings):
        facts = {"version": _VERSION, "sources": sources.digest, **asdict(report)}
        storage.put(_NEW / _REPORT, json.dumps(facts).encode())
    check_held()
    storage.replace(Path(DICTIONARY), _NEW)
    return report


def _sources(storage: Storage, oldest: date | None) -> _Sources:
    names = sorted(each for each in storage.files(Path(NAMES)) if each[0].suffix == ".jsonl")
    days = days_in(storage.names(Path()))
    segments = [each for day in days for each in current_files(storage, day)]
    listed = [(path.as_posix(), size) for path, size in names]
    listed += [(each.path.as_posix(), each.size) for each in segments]
    digest = hashlib.sha256(json.dumps([str(oldest), listed]).encode()).hexdigest()
    return _Sources([path for path, _ in names], segments, digest)


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
