"""Compaction: the many segments of a date become few day tables, and every row counts once.

New files are written to a work folder, compared with the segments, moved to the folder of the
date, and then listed in its manifest. From that moment the day tables count and the segments do
not. The next compaction removes the remains of an interrupted one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gateway.archive.durable import replace_text, sync_folder
from gateway.archive.layout import day_folder, digest_path, pairs_path
from gateway.errors import ReconcileError
from gateway.reconcile.archive_lock import archive_lock
from gateway.reconcile.findings import Finding, error
from gateway.reconcile.input import executor_tasks
from gateway.reconcile.input.files import (
    DAY_TABLES,
    Manifest,
    ReplacedSegment,
    current_segments,
    manifest_path,
    read_manifest,
    to_json,
    unlisted_tables,
)
from gateway.reconcile.input.footers import Segment, check_file
from gateway.reconcile.input.reading import DIGEST_WITH_FILE, map_files, read
from gateway.reconcile.progress import ShowStep
from gateway.reconcile.session import spark_error_line, spark_session

_WORK_FOLDER: Final = "_compacting"  # in the archive, so that a move is a rename
_PARQUET_OPTIONS: Final[Mapping[str, str]] = {
    "compression": "zstd",
    "parquet.writer.version": "v2",  # delta encodings for ids and times
    "parquet.block.size": str(16 << 20),  # small row groups, which a query for a minute skips
    "parquet.page.row.count.limit": "10000",
    "parquet.dictionary.page.size": str(8 << 20),  # a hash is stored once for both legs
}
_SUMS: Final = ("count", *(f"{of}_{word}" for of in ("id", "content") for word in range(4)))


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """The compacted segments and rows, the new day tables, and findings about other files."""

    segments: int
    rows: int
    tables: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


def compact(
    root: Path, day: date, show_step: ShowStep, master: str = "local[*]", size: int = 200
) -> CompactionReport:
    """Put the segments of `day` into day tables of about `size` MB; a second call finds nothing.

    A segment that cannot be read stays where it is and is reported. A segment that another process
    removes meanwhile is reported, and the others are compacted.

    Raises:
        ReconcileError: another compaction is running, Spark failed, or the sums of the new files
            differ from those of the segments; the archive is unchanged.
    """
    with archive_lock(root):
        manifest = read_manifest(root, day)
        show_step("removing the remains of an interrupted compaction")
        _remove_uncounted(root, day, manifest)
        listed = current_segments(root, day, manifest)
        checked = [check_file(root, path) for path in listed]
        findings = [each for one in checked for each in one.findings if each.rule != "lost-file"]
        segments = [each.segment for each in checked if each.segment is not None]
        names: Mapping[str, int] = {}
        if segments:
            show_step(f"starting Spark on {master} for {len(segments)} segments")
            with spark_session(master) as spark:
                names, segments = _rewrite_existing(
                    spark, root, day, segments, manifest, size << 20, show_step
                )
            show_step("removing the segments")
        replaced = {each.path for each in segments}
        findings += _vanished(root, [path for path in listed if path not in replaced])
        _remove_uncounted(root, day, read_manifest(root, day))
    rows = sum(each.rows for each in segments)
    return CompactionReport(len(segments), rows, tuple(names), tuple(findings))


def _rewrite_existing(  # noqa: PLR0913, PLR0917  # the parameters of one compaction
    spark: SparkSession,
    root: Path,
    day: date,
    segments: list[Segment],
    manifest: Manifest,
    size: int,
    show_step: ShowStep,
) -> tuple[Mapping[str, int], list[Segment]]:
    """Write and commit day tables; when a segment vanishes meanwhile, repeat without it.

    Return the tables with their rows, and the segments in them. Every repetition has fewer
    segments.
    """
    while segments:
        try:
            names = _rewrite(spark, root, day, segments, manifest, size, show_step)
            show_step("committing")
            _commit(root, day, manifest, names, segments)
        except (PySparkException, Py4JError, FileNotFoundError) as fault:
            existing = [each for each in segments if each.path.exists()]
            if len(existing) == len(segments):
                reason = spark_error_line(fault)
                raise ReconcileError(f"spark: the compaction failed: {reason}") from fault
            vanished = len(segments) - len(existing)
            show_step(f"{vanished} segments vanished; compacting the others")
            segments = existing
        else:
            return names, segments
    return {}, []


def _vanished(root: Path, listed: Sequence[Path]) -> list[Finding]:
    """Return a finding for each file that another process removed."""
    text = "vanished while the date was compacted; its rows are in no day table"
    return [
        error("vanished-file", str(path.relative_to(root)), text)
        for path in listed
        if not path.exists()
    ]


def _rewrite(  # noqa: PLR0913, PLR0917  # the same parameters
    spark: SparkSession,
    root: Path,
    day: date,
    segments: Sequence[Segment],
    manifest: Manifest,
    size: int,
    show_step: ShowStep,
) -> dict[str, int]:
    """Write, check and move the day tables; return their paths below the date with their rows."""
    show_step("writing day tables")
    count = -(-sum(each.size for each in segments) // size)
    work = root / _WORK_FOLDER
    rows = read(spark, [each.path for each in segments])
    spark.conf.set("spark.sql.shuffle.partitions", max(count, 2))
    receipt_time = F.coalesce("received", "time")
    ranged = rows.repartitionByRange(count, receipt_time)
    ordered = ranged.sortWithinPartitions("route", "leg", "id")
    ordered.write.mode("overwrite").options(**_PARQUET_OPTIONS).parquet(str(work.resolve()))
    written = sorted(work.glob("part-*.parquet"))
    show_step("comparing them with the segments")
    _check(spark, [each.path for each in segments], written)
    show_step("moving them to the folder of the date")
    return _move(spark, root, day, written, _next_generation(manifest))


def _check(spark: SparkSession, old: Sequence[Path], new: Sequence[Path]) -> None:
    """Compare the sums of both.

    Raises:
        ReconcileError: they differ.
    """
    before, after = (_totals(spark, paths) for paths in (old, new))
    if before != after:
        raise ReconcileError(
            "compaction: the sums of the day tables differ from those of the segments;"
            " nothing was replaced"
        )


def _totals(spark: SparkSession, paths: Sequence[Path]) -> list[tuple[object, ...]]:
    sums: DataFrame = map_files(spark, paths, executor_tasks.digest_rows, DIGEST_WITH_FILE)
    found = sums.groupBy("leg").agg(*[F.sum(name).alias(name) for name in _SUMS])
    return sorted(tuple(row) for row in found.collect())


def _next_generation(manifest: Manifest) -> int:
    """Return the number of this compaction, which begins the names of its day tables."""
    return 1 + max((int(Path(name).name.split("-")[0]) for name in manifest.tables), default=0)


def _move(
    spark: SparkSession, root: Path, day: date, written: Sequence[Path], generation: int
) -> dict[str, int]:
    """Move the files, then write their digests and pairs; return the tables with their rows."""
    folder = day_folder(root, day) / DAY_TABLES
    folder.mkdir(parents=True, exist_ok=True)
    final = [folder / f"{generation:04}-{number:04}.parquet" for number in range(len(written))]
    for source, path in zip(written, final, strict=True):
        with source.open("rb") as file:
            os.fsync(file.fileno())
        source.rename(path)
    paths = [
        (str(path), str(digest_path(root, path)), str(pairs_path(root, path))) for path in final
    ]
    tasks = spark.sparkContext.parallelize(paths, max(len(paths), 1))
    rows = dict(tasks.mapPartitions(executor_tasks.write_sums).collect())
    for path in (folder, folder.parent):
        sync_folder(path)
    return {f"{DAY_TABLES}/{path.name}": rows[str(path)] for path in final}


def _commit(
    root: Path, day: date, manifest: Manifest, names: Mapping[str, int], segments: Sequence[Segment]
) -> None:
    folder = day_folder(root, day)
    replaced = {
        each.path.relative_to(folder).as_posix(): ReplacedSegment(each.rows, each.first, each.last)
        for each in segments
    }
    new = Manifest({**manifest.tables, **names}, {**manifest.replaced, **replaced})
    replace_text(manifest_path(root, day), to_json(new))


def _remove_uncounted(root: Path, day: date, manifest: Manifest) -> None:
    """Remove replaced segments, day tables that the manifest does not name, and the work folder."""
    folder = day_folder(root, day)
    replaced = [folder / name for name in manifest.replaced]
    for path in (*replaced, *unlisted_tables(root, day, manifest)):
        for each in (digest_path(root, path), pairs_path(root, path), path):
            each.unlink(missing_ok=True)
    for hour in folder.glob("hour=*"):
        if not any(hour.iterdir()):
            hour.rmdir()
    shutil.rmtree(root / _WORK_FOLDER, ignore_errors=True)
