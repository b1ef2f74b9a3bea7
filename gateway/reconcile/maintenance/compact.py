"""Many small segments of a date become few day tables; the same rows, exactly once, at any moment.

New files are written beside the archive's own, checked against what they replace, moved to their
place and then named in the date's manifest: that is the moment they count and the segments do not.
What a crash leaves on either side of it, the next compaction removes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gateway.archive.journal.file import sync_folder
from gateway.archive.layout import day_folder, digest_path, pairs_path
from gateway.errors import ReconcileError
from gateway.reconcile.findings import Finding, error
from gateway.reconcile.input import executor_tasks
from gateway.reconcile.input.files import (
    DAY,
    Manifest,
    Replaced,
    landed,
    manifest_path,
    read_manifest,
    strays,
    to_json,
)
from gateway.reconcile.input.footers import Segment, look
from gateway.reconcile.input.reading import DIGESTED, each_file, read
from gateway.reconcile.lock import alone
from gateway.reconcile.session import spark_session

_WORK: Final = "_compacting"  # below the archive, so that a file moves by its name alone
_WRITING: Final[Mapping[str, str]] = {
    "compression": "zstd",
    "parquet.writer.version": "v2",  # deltas for ids and times
    "parquet.block.size": str(16 << 20),  # row groups that a minute can skip
    "parquet.page.row.count.limit": "10000",
    "parquet.dictionary.page.size": str(8 << 20),  # a hash is stored once for both legs
}
_SUMS: Final = ("count", *(f"{of}_{word}" for of in ("id", "content") for word in range(4)))


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did: segments and rows that are in `tables` now; what it left alone."""

    segments: int
    rows: int
    tables: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


def compact(
    root: Path, day: date, say: Callable[[str], None], master: str = "local[*]", size: int = 200
) -> Compacted:
    """Put the segments of `day` into day tables of about `size` MB; a second call finds nothing.

    Segments that cannot be read stay where they are and are reported. So are those that somebody
    else removes meanwhile, and the rest is compacted.

    Raises:
        ReconcileError: another compaction is at work, Spark failed, or the new files do not hold
            what the old ones do; the archive is as it was.
    """
    with alone(root):
        manifest = read_manifest(root, day)
        say("removing what an unfinished compaction left")
        _clear(root, day, manifest)
        listed = landed(root, day, manifest)
        looked = [look(root, path) for path in listed]
        findings = [each for one in looked for each in one.findings if each.rule != "lost-file"]
        segments = [each.segment for each in looked if each.segment is not None]
        names: Mapping[str, int] = {}
        if segments:
            say(f"starting Spark on {master} for {len(segments)} segments")
            with spark_session(master) as spark:
                names, segments = _written(spark, root, day, segments, manifest, size << 20, say)
            say("removing the segments")
        replaced = {each.path for each in segments}
        findings += _vanished(root, [path for path in listed if path not in replaced])
        _clear(root, day, read_manifest(root, day))
    rows = sum(each.rows for each in segments)
    return Compacted(len(segments), rows, tuple(names), tuple(findings))


def _written(  # noqa: PLR0913, PLR0917  # the terms of one compaction
    spark: SparkSession,
    root: Path,
    day: date,
    segments: list[Segment],
    manifest: Manifest,
    size: int,
    say: Callable[[str], None],
) -> tuple[Mapping[str, int], list[Segment]]:
    """Write and commit day tables of the segments that stay while they are read; which those are.

    Every turn has fewer segments, so there is a last.
    """
    while segments:
        try:
            names = _rewrite(spark, root, day, segments, manifest, size, say)
            say("committing")
            _commit(root, day, manifest, names, segments)
        except (PySparkException, Py4JError, FileNotFoundError) as fault:
            left = [each for each in segments if each.path.exists()]
            if len(left) == len(segments):
                reason = (str(fault).splitlines() or [type(fault).__name__])[0]
                raise ReconcileError(f"spark: the compaction failed: {reason}") from fault
            say(f"{len(segments) - len(left)} segments are gone; going on without them")
            segments = left
        else:
            return names, segments
    return {}, []


def _vanished(root: Path, listed: Sequence[Path]) -> list[Finding]:
    """A finding for each of the files that somebody else removed."""
    text = "went while the date was compacted; its rows are in no day table"
    return [
        error("vanished-file", str(path.relative_to(root)), text)
        for path in listed
        if not path.exists()
    ]


def _rewrite(  # noqa: PLR0913, PLR0917  # the same terms
    spark: SparkSession,
    root: Path,
    day: date,
    segments: Sequence[Segment],
    manifest: Manifest,
    size: int,
    say: Callable[[str], None],
) -> dict[str, int]:
    """Write, check and move the day tables; their names below the date, with their rows."""
    say("writing day tables")
    count = -(-sum(each.size for each in segments) // size)
    work = root / _WORK
    rows = read(spark, [each.path for each in segments])
    spark.conf.set("spark.sql.shuffle.partitions", max(count, 2))
    own = F.coalesce("received", "time")
    ordered = rows.repartitionByRange(count, own).sortWithinPartitions("route", "leg", "id")
    ordered.write.mode("overwrite").options(**_WRITING).parquet(str(work.resolve()))
    written = sorted(work.glob("part-*.parquet"))
    say("checking them against the segments")
    _check(spark, [each.path for each in segments], written)
    say("moving them to their place")
    return _move(spark, root, day, written, _generation(manifest))


def _check(spark: SparkSession, old: Sequence[Path], new: Sequence[Path]) -> None:
    """Compare what both add up to.

    Raises:
        ReconcileError: it is not the same.
    """
    before, after = (_totals(spark, paths) for paths in (old, new))
    if before != after:
        raise ReconcileError(
            "compaction: the day tables do not add up to the segments; nothing was replaced"
        )


def _totals(spark: SparkSession, paths: Sequence[Path]) -> list[tuple[object, ...]]:
    sums: DataFrame = each_file(spark, paths, executor_tasks.digest_rows, DIGESTED)
    found = sums.groupBy("leg").agg(*[F.sum(name).alias(name) for name in _SUMS])
    return sorted(tuple(row) for row in found.collect())


def _generation(manifest: Manifest) -> int:
    """One more than that of any day table there is."""
    return 1 + max((int(Path(name).name.split("-")[0]) for name in manifest.tables), default=0)


def _move(
    spark: SparkSession, root: Path, day: date, written: Sequence[Path], generation: int
) -> dict[str, int]:
    folder = day_folder(root, day) / DAY
    folder.mkdir(parents=True, exist_ok=True)
    final = [folder / f"{generation:04}-{number:04}.parquet" for number in range(len(written))]
    for source, path in zip(written, final, strict=True):
        with source.open("rb") as file:
            os.fsync(file.fileno())
        source.rename(path)
    places = [
        (str(path), str(digest_path(root, path)), str(pairs_path(root, path))) for path in final
    ]
    parts = max(len(places), 1)
    counted = spark.sparkContext.parallelize(places, parts).mapPartitions(executor_tasks.write_sums)
    rows = dict(counted.collect())
    for path in (folder, folder.parent):
        sync_folder(path)
    return {f"{DAY}/{path.name}": rows[str(path)] for path in final}


def _commit(
    root: Path, day: date, manifest: Manifest, names: Mapping[str, int], segments: Sequence[Segment]
) -> None:
    folder = day_folder(root, day)
    gone = {
        each.path.relative_to(folder).as_posix(): Replaced(each.rows, each.first, each.last)
        for each in segments
    }
    path = manifest_path(root, day)
    hidden = path.with_name(f".tmp-{path.name}")
    with hidden.open("w", encoding="utf-8") as file:
        file.write(to_json(Manifest({**manifest.tables, **names}, {**manifest.replaced, **gone})))
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)
    sync_folder(path.parent)


def _clear(root: Path, day: date, manifest: Manifest) -> None:
    """Remove what does not count: replaced segments, and day tables that no manifest names."""
    folder = day_folder(root, day)
    replaced = [folder / name for name in manifest.replaced]
    for path in (*replaced, *strays(root, day, manifest)):
        for each in (digest_path(root, path), pairs_path(root, path), path):
            each.unlink(missing_ok=True)
    for hour in folder.glob("hour=*"):
        if not any(hour.iterdir()):
            hour.rmdir()
    shutil.rmtree(root / _WORK, ignore_errors=True)
