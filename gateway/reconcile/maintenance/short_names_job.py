"""The job that builds the dictionary of shortened names, ARCHIVE/_dictionary/.

It reads the recorded names and the name pairs of all days, replaces the dictionary as a whole, and
reports what is wrong. `gateway.archive.schema` has the columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession, Window
from pyspark.sql import functions as F

from gateway.archive.layout import DICTIONARY, NAMES, PAIRS, parse_day
from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import Storage, open_storage
from gateway.errors import ReconcileError
from gateway.reconcile.archive_lock import archive_lock
from gateway.reconcile.findings import Finding, error, warning
from gateway.reconcile.input.files import DAY_TABLES, MANIFEST, Manifest, parse_manifest
from gateway.reconcile.input.spark_paths import archive_url, configure_session, literal_path
from gateway.reconcile.maintenance import short_names, short_names_decode
from gateway.reconcile.progress import ShowStep
from gateway.reconcile.schema import DICTIONARY_ROWS, PAIR_ROWS, ROWS
from gateway.reconcile.session import spark_error_line

_NEW: Final = "_dictionary.new"
_MAX_FINDINGS: Final = 100  # of one rule; the others are counted
_SEGMENT_PARTS: Final = 3  # of a path: date, hour and file


@dataclass(frozen=True, slots=True)
class ShortNameReport:
    """Numbers of shortened names, of sent ones among them, and of targets; with findings."""

    names: int
    sent: int
    targets: int
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class _Archive:
    """An archive with its files, and its URL for Spark."""

    storage: Storage
    url: str

    def spark_path(self, path: str) -> str:
        return f"{literal_path(self.url)}/{path}"


def build_dictionary(
    spark: SparkSession, location: ArchiveLocation, oldest: date | None, show_step: ShowStep
) -> ShortNameReport:
    """Build the dictionary of the archive; the old one stays until the new one is complete.

    With `oldest`, a name that no day uses is left out when it was recorded before that day.

    Raises:
        ReconcileError: Spark failed or the archive cannot be reached; the old dictionary stays.
    """
    show_step("reading the shortened names")
    with nullcontext() if location.url else archive_lock(location.local), _one_line(location):
        configure_session(spark, location)
        archive = _Archive(open_storage(location), archive_url(location))
        try:
            return _build(spark, archive, oldest, show_step)
        except (PySparkException, Py4JError) as fault:
            show_step("Spark failed; reading again without the unreadable files")
            reason = spark_error_line(fault)
            text = f"names in unreadable files are left out; the first: {reason}"
            found = _build(spark, archive, oldest, show_step, skip_corrupt=True)
            finding = error("unreadable-file", PAIRS, text)
            return replace(found, findings=(*found.findings, finding))
        finally:
            spark.catalog.clearCache()


@contextmanager
def _one_line(location: ArchiveLocation) -> Iterator[None]:
    """Raise every error of Spark and of the storage as a ReconcileError of one line."""
    try:
        yield
    except (PySparkException, Py4JError, OSError) as fault:
        reason = spark_error_line(fault)
        text = f"archive {location}: the dictionary of shortened names was not built: {reason}"
        raise ReconcileError(text) from fault


def _build(
    spark: SparkSession,
    archive: _Archive,
    oldest: date | None,
    show_step: ShowStep,
    *,
    skip_corrupt: bool = False,
) -> ShortNameReport:
    lines = _recorded_lines(spark, archive).persist()
    recorded = short_names.recorded_names(lines).persist()
    listed, findings = _manifests(archive.storage)
    files = _counted_files(archive.storage, listed)
    reader = spark.read.option("recursiveFileLookup", "true").option("ignoreMissingFiles", "true")
    reader = reader.option("ignoreCorruptFiles", str(skip_corrupt))
    sent = short_names.sent_names(_deliveries(spark, reader, archive, files)).persist()
    decoded = short_names.decoded(sent, recorded).persist()
    show_step("writing the dictionary")
    unused = short_names.unused_entries(recorded, sent, oldest)
    ordered = short_names.entries(sent, decoded).unionByName(unused).orderBy("target", "name")
    ordered.write.mode("overwrite").parquet(f"{archive.url}/{_NEW}")
    findings += _findings_in(lines)
    findings += _findings_in(decoded.withColumn("place", F.lit(PAIRS)))
    remaining = _counted_files(archive.storage, listed)
    findings += _vanished(files.keys() - remaining.keys(), oldest, show_step)
    archive.storage.replace(Path(DICTIONARY), Path(_NEW))
    return _report(spark, archive, findings)


def _recorded_lines(spark: SparkSession, archive: _Archive) -> DataFrame:
    if not any(name.endswith(".jsonl") for name in archive.storage.names(Path(NAMES))):
        return spark.createDataFrame([], short_names_decode.LINE)
    files = spark.read.format("binaryFile").load(archive.spark_path(f"{NAMES}/*.jsonl"))
    content = files.select("path", "content").rdd.map(tuple)
    return spark.createDataFrame(
        content.mapPartitions(short_names_decode.lines), short_names_decode.LINE
    )


def _manifests(storage: Storage) -> tuple[dict[str, bool], list[Finding]]:
    """Read the manifests of all days; return their files, true for a day table, and findings."""
    listed: dict[str, bool] = {}
    findings: list[Finding] = []
    for day in filter(parse_day, storage.names(Path())):
        path = f"{day}/{MANIFEST}"
        text = storage.read(Path(path))
        try:
            manifest = Manifest() if text is None else parse_manifest(text, path)
        except ReconcileError as fault:  # then every day table counts, and every segment
            findings.append(error("damaged-manifest", path, str(fault)))
            tables = storage.names(Path(day, DAY_TABLES))
            manifest = Manifest({f"{DAY_TABLES}/{name}": 0 for name in tables})
        listed |= {f"{day}/{name}": True for name in manifest.tables}
        listed |= {f"{day}/{name}": False for name in manifest.replaced}
    return listed, findings


def _counted_files(storage: Storage, listed: Mapping[str, bool]) -> dict[str, bool]:
    """Return the files whose names count; true for those with name pairs of their own.

    Replaced segments do not count, nor do day tables that no manifest names.
    """
    paired = {path.relative_to(PAIRS).as_posix() for path in _parquet_files(storage, Path(PAIRS))}
    counted: dict[str, bool] = {}
    for day in filter(parse_day, storage.names(Path())):
        for path in _parquet_files(storage, Path(day)):
            name, is_table = path.as_posix(), path.parent.name == DAY_TABLES
            if listed.get(name, not is_table):  # a replaced segment is listed as false
                counted[name] = name in paired
    return counted


def _parquet_files(storage: Storage, folder: Path) -> list[Path]:
    return [
        path
        for path, _ in storage.files(folder)
        if path.suffix == ".parquet" and not path.name.startswith((".", "_"))
    ]


def _deliveries(
    spark: SparkSession, reader: DataFrameReader, archive: _Archive, files: Mapping[str, bool]
) -> DataFrame:
    """Read the name pairs of `files`; of a file without pairs, read its rows."""
    without = [name for name, has_pairs in files.items() if not has_pairs]
    pairs = spark.createDataFrame([], PAIR_ROWS)
    if len(without) < len(files):
        paired = [(name,) for name, has_pairs in files.items() if has_pairs]
        key = F.substring_index("_metadata.file_path", "/", -_SEGMENT_PARTS)
        stored = reader.schema(PAIR_ROWS).parquet(archive.spark_path(f"{PAIRS}/*"))
        keys = spark.createDataFrame(paired, "key string")
        pairs = stored.withColumn("key", key).join(keys, "key", "left_semi").drop("key")
    if not without:
        return pairs
    paths = [archive.spark_path(literal_path(name)) for name in without]
    rows = reader.schema(ROWS).parquet(*paths)
    times = {"first_time": F.col("time"), "last_time": F.col("time"), "count": F.lit(1)}
    return pairs.unionByName(rows.withColumns(times), allowMissingColumns=True)


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


def _report(spark: SparkSession, archive: _Archive, findings: Sequence[Finding]) -> ShortNameReport:
    files = archive.spark_path(f"{DICTIONARY}/*.parquet")
    table = spark.read.schema(DICTIONARY_ROWS).parquet(files)
    sent = F.when(F.col("target") != "", F.col("digest"))
    (row,) = table.agg(
        F.count_distinct("digest").alias("names"),
        F.count_distinct(sent).alias("sent"),
        F.count_distinct(F.when(F.col("target") != "", F.col("target"))).alias("targets"),
    ).collect()
    return ShortNameReport(row["names"], row["sent"], row["targets"], tuple(findings))
