"""The job that builds the dictionary of shortened names, ARCHIVE/_dictionary/.

It reads the recorded names and the name pairs of all days, replaces the dictionary as a whole, and
reports what is wrong. `gateway.archive.schema` has the columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from gateway.archive.compaction.current import current_files
from gateway.archive.findings import Finding, error, warning
from gateway.archive.layout import DICTIONARY, NAMES, parse_day
from gateway.archive.location import ArchiveLocation
from gateway.archive.segments.reading import open_parquet
from gateway.archive.storage import Storage, open_storage
from gateway.errors import ReconcileError
from gateway.reconcile.archive_lock import archive_lock
from gateway.reconcile.input.executors import (
    Record,
    read_tasks,
    tables_of,
    tasks_of,
    write_partitions,
)
from gateway.reconcile.maintenance import short_names, short_names_decode, short_names_files
from gateway.reconcile.maintenance.short_names_files import CountedFile
from gateway.reconcile.remote_lock import CheckHeld
from gateway.reconcile.root_cause import root_cause
from gateway.terminal.progress import ShowStep

_NEW: Final = "_dictionary.new"
_FILE_BYTES: Final = 256 << 10  # about, of the names in one file
_MAX_FINDINGS: Final = 100  # of one rule; the others are counted


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
    with _one_line(location), archive_lock(location) as check_held:
        try:
            return _build(spark, location, oldest, show_step, check_held)
        finally:
            spark.catalog.clearCache()


@contextmanager
def _one_line(location: ArchiveLocation) -> Iterator[None]:
    """Raise every error of Spark and of the storage as a ReconcileError of one line."""
    try:
        yield
    except (PySparkException, Py4JError, OSError) as fault:
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
    lines = _recorded_lines(spark, location, storage).persist()
    recorded = short_names.recorded_names(lines).persist()
    files = _counted_files(storage)
    read = partial(short_names_files.sent_names, location)
    deliveries = _mapped(spark, files, read, short_names_files.SENT).persist()
    sent = short_names.sent_names(deliveries).persist()
    decoded = short_names.decoded(sent, recorded).persist()
    show_step("writing the dictionary")
    unused = short_names.unused_entries(recorded, sent, oldest)
    ordered = short_names.entries(sent, decoded).unionByName(unused).orderBy("target", "name")
    storage.remove(Path(_NEW))
    write = partial(short_names_files.write_dictionary, location, _NEW)
    write_partitions(ordered, write)
    findings = _findings_in(lines)
    findings += _findings_in(decoded.withColumn("place", F.lit("name pairs")))
    findings += _findings_in(deliveries.where(F.col("rule") == short_names_files.UNREADABLE))
    gone = deliveries.where(F.col("rule") == short_names_files.VANISHED).select("place").distinct()
    remaining = {each.path for each in _counted_files(storage)}
    vanished = {each.path for each in files} - remaining | {row["place"] for row in gone.collect()}
    findings += _vanished(vanished, oldest, show_step)
    check_held()
    storage.replace(Path(DICTIONARY), Path(_NEW))
    return _report(storage, findings)


def _recorded_lines(spark: SparkSession, location: ArchiveLocation, storage: Storage) -> DataFrame:
    names = [name for name in storage.names(Path(NAMES)) if name.endswith(".jsonl")]
    parse = partial(short_names_files.recorded_lines, location)
    return _mapped(spark, [f"{NAMES}/{name}" for name in names], parse, short_names_decode.LINE)


def _mapped(
    spark: SparkSession,
    files: Sequence[Any],
    records: Callable[[Sequence[Any]], Iterator[Record]],
    columns: Mapping[str, str],
) -> DataFrame:
    """Return the `records` of `files`, read by executors, with a few files in each task."""
    number = min(len(files), tasks_of(spark, _FILE_BYTES * len(files)))
    tasks = [files[each::number] for each in range(number)]
    return read_tasks(spark, columns, tasks, lambda task: tables_of(columns, records(task)))


def _counted_files(storage: Storage) -> list[CountedFile]:
    """Return the files whose rows count."""
    return [
        CountedFile(path.as_posix(), at.as_posix())
        for day in filter(None, map(parse_day, storage.names(Path())))
        for path, at, _ in current_files(storage, day)
    ]


def _vanished(names: set[str], oldest: date | None, show_step: ShowStep) -> list[Finding]:
    """Report files that another process removed: an error, except in a day before `oldest`."""
    findings: list[Finding] = []
    for folder, count in sorted(Counter(name.partition("/")[0] for name in names).items()):
        day = parse_day(folder)
        if oldest is not None and day is not None and day < oldest:
            show_step(f"{count} files of {day} were removed meanwhile; no longer kept")
        else:
            text = f"{count} files vanished while they were read"
            findings.append(error("vanished-file", folder, text))
    return findings


def _findings_in(checked: DataFrame) -> list[Finding]:
    """Return the findings in the columns `place`, `rule` and `text`; of each rule the first."""
    of_rule = Window.partitionBy("rule")
    wrong = checked.where(F.col("rule") != "").select("place", "rule", "text")
    ranked = wrong.withColumns(
        {
            "number": F.row_number().over(of_rule.orderBy("place", "text")),
            "total": F.count("*").over(of_rule),
        }
    )
    findings: list[Finding] = []
    for row in ranked.where(F.col("number") <= _MAX_FINDINGS).orderBy("rule", "number").collect():
        finding = warning if row["rule"] == short_names_decode.TORN else error
        findings.append(finding(row["rule"], row["place"], row["text"]))
        if row["number"] == _MAX_FINDINGS < row["total"]:
            text = f"{row['total'] - _MAX_FINDINGS} more findings of this rule"
            findings.append(finding(row["rule"], row["place"], text))
    return findings


def _report(storage: Storage, findings: Sequence[Finding]) -> ShortNameReport:
    names: set[str] = set()
    sent: set[str] = set()
    targets: set[str] = set()
    for path, _ in storage.files(Path(DICTIONARY)):
        with open_parquet(storage.open(path)) as file:
            table = file.read(["target", "digest"])
        names.update(table["digest"].to_pylist())
        of_targets = table.filter(pc.not_equal(table["target"], ""))
        sent.update(of_targets["digest"].to_pylist())
        targets.update(pc.unique(of_targets["target"]).to_pylist())
    return ShortNameReport(len(names), len(sent), len(targets), tuple(findings))
