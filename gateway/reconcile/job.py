"""The nightly job: look at the files, compose the transforms, write the tables. No rules here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from time import monotonic
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gateway.errors import ReconcileError
from gateway.reconcile import transforms
from gateway.reconcile.findings import error
from gateway.reconcile.inputs import Inputs, find_inputs
from gateway.reconcile.progress import Say
from gateway.reconcile.report import Report, to_json
from gateway.reconcile.schema import ROWS
from gateway.reconcile.session import spark_session

_GLOB: Final = re.compile(r"([\\{}\[\]*?])")
_PARTITION: Final = 8 << 20  # bytes of archive for one partition of a shuffle
_SHORT: Final = 64 << 20  # bytes of archive that are read before a better compiler would pay
_ROUTES: Final = 10_000  # rows of a table the report takes; the table has all


@dataclass(frozen=True, slots=True)
class Job:
    """What to reconcile and how."""

    root: Path
    day: date
    output: Path
    master: str = "local[*]"
    full: bool = False  # read every page of every file before Spark does
    strict: bool = False  # a marked duplicate is a breach too
    margin: int = 6  # hours of the neighbouring days that are read too
    in_flight: int = 120  # seconds before the cut
    samples: int = 10  # of each class


def reconcile(job: Job, say: Say) -> Report:
    """Reconcile one date; its tables replace those of an earlier run.

    Raises:
        ReconcileError: Spark does not start or does not finish.
    """
    began = monotonic()
    say(f"looking at the files of {job.day}")
    inputs = find_inputs(job.root, job.day, job.margin, whole=job.full)
    report = Report(str(job.root), job.day.isoformat(), inputs.findings, strict=job.strict)
    if not inputs.day:
        return _without_data(report)
    say(f"starting Spark on {job.master} for {len(inputs.day)} files")
    looked = monotonic()
    with spark_session(job.master, short=inputs.size < _SHORT) as spark:
        started = monotonic()
        try:
            report = _run(spark, job, inputs, say, report)
        except (PySparkException, Py4JError) as fault:
            say("Spark did not finish; reading every page to find out why")
            whole = find_inputs(job.root, job.day, job.margin, whole=True)
            if len(whole.findings) == len(inputs.findings):
                raise ReconcileError(f"spark: the job failed: {_first_line(fault)}") from fault
            report = replace(report, findings=whole.findings)
            if not whole.day:
                return _without_data(report)
            report = _run(spark, job, whole, say, report)
    say("done")
    timings = {"files": looked - began, "spark": started - looked, "job": monotonic() - started}
    report = replace(report, timings=timings)
    if report.answered:
        (job.output / "summary.json").write_text(to_json(report), encoding="utf-8")
    return report


def _without_data(report: Report) -> Report:
    place = f"date={report.day}"
    nothing = error("no-data", place, "there is no readable segment of this date")
    return replace(report, findings=[*report.findings, nothing], answered=False)


def _first_line(fault: Exception) -> str:
    return (str(fault).splitlines() or [type(fault).__name__])[0]


def _run(spark: SparkSession, job: Job, inputs: Inputs, say: Say, report: Report) -> Report:
    spark.conf.set("spark.sql.shuffle.partitions", _partitions(spark, inputs))
    day = _read(spark, inputs.day)
    nothing = day.where(F.lit(False))
    before = _read(spark, inputs.before) if inputs.before else nothing
    after = _read(spark, inputs.after) if inputs.after else nothing
    steps = transforms.steps(day, before, after)
    last = transforms.cut(day, after)
    open_for = job.in_flight if inputs.open_journals else 0
    classes = transforms.classified(transforms.copies(steps), last, open_for).persist()
    try:
        say("matching what was received with its ends")
        routes = _stored(transforms.per_route(classes), job.output / "routes")
        found = _stored(transforms.exceptions(classes), job.output / "copies")
    finally:
        classes.unpersist()
    say("looking up the exceptions")
    listed = _stored(transforms.detailed(found, steps), job.output / "exceptions")
    dead = _stored(transforms.dead_letters(listed), job.output / "dead_letters")
    return replace(
        report,
        routes=_rows(routes.orderBy("route", "target")),
        dead_letters=_rows(dead.orderBy("route", "target", "rule")),
        samples=_rows(transforms.sample(listed, job.samples)),
    )


def _partitions(spark: SparkSession, inputs: Inputs) -> int:
    """As many as the files need and the cores are: the default 200 costs a small night 20 s."""
    return max(spark.sparkContext.defaultParallelism, inputs.size // _PARTITION)


def _read(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    """The rows of exactly these files, whatever characters their folders have."""
    escaped = [_GLOB.sub(r"\\\1", str(path.resolve())) for path in paths]
    return spark.read.schema(ROWS).parquet(*escaped)


def _stored(frame: DataFrame, folder: Path) -> DataFrame:
    """Write the table, replacing it, and read back what was written."""
    frame.write.mode("overwrite").parquet(str(folder.resolve()))
    spark = frame.sparkSession
    return spark.read.schema(frame.schema).parquet(_GLOB.sub(r"\\\1", str(folder.resolve())))


def _rows(frame: DataFrame) -> list[dict[str, object]]:
    return [row.asDict(recursive=True) for row in frame.limit(_ROUTES).collect()]
