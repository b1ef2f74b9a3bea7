"""The nightly job: check the files, classify the copies, write tables and report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from time import monotonic
from typing import Final

import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from gateway.errors import ReconcileError
from gateway.reconcile.classify.evidence import Scope, from_all_rows, from_digests
from gateway.reconcile.classify.output import TableOptions, stored, write_tables
from gateway.reconcile.classify.renames import Translator, renamed
from gateway.reconcile.findings import Finding, error
from gateway.reconcile.input import executor_tasks
from gateway.reconcile.input.inputs import Inputs, find_inputs
from gateway.reconcile.input.reading import read_pairs, set_shuffle_partitions
from gateway.reconcile.progress import ShowStep
from gateway.reconcile.report.html import write_page
from gateway.reconcile.report.text import Report, to_json
from gateway.reconcile.session import spark_error_line, spark_session

_SHORT_JOB: Final = 64 << 20  # bytes of archive; below, Java's better compiler does not pay off
_TINY_JOB: Final = 8 << 20  # bytes of archive; below, compiling plans does not pay off
_WITHOUT_CODEGEN: Final = {"spark.sql.codegen.wholeStage": "false"}


@dataclass(frozen=True, slots=True)
class Job:
    """The date to reconcile, and the options."""

    root: Path
    day: date
    output: Path
    master: str = "local[*]"
    full: bool = False  # read every page and join every row
    strict: bool = False  # marked duplicates and late deliveries fail the verdict
    margin: int = 6  # hours of the neighbouring days that are read
    in_flight: int = 120  # seconds before the last row: a copy without an outcome is in flight
    late: int = 300  # seconds after receipt; a later delivery is late
    samples: int = 10  # of each class
    translator: Translator | None = None  # translates the names again, for comparison


def reconcile(job: Job, show_step: ShowStep) -> Report:
    """Reconcile one date; its tables replace those of an earlier run.

    Raises:
        ReconcileError: Spark does not start or does not finish.
    """
    began = monotonic()
    show_step(f"checking the files of {job.day}")
    inputs = find_inputs(job.root, job.day, job.margin, every_page=job.full)
    mode = "full" if job.full else "digest-first"
    report = Report(str(job.root), str(job.day), inputs.findings, strict=job.strict, mode=mode)
    if not inputs.day:
        return _written(job, _without_data(report))
    show_step(f"starting Spark on {job.master} for {len(inputs.day)} files")
    checked = monotonic()
    extra = _WITHOUT_CODEGEN if inputs.size < (_TINY_JOB if job.full else _SHORT_JOB) else {}
    short = not job.full or inputs.size < _SHORT_JOB
    with spark_session(job.master, extra, short=short) as spark:
        started = monotonic()
        try:
            report = _run(spark, job, inputs, show_step, report)
        except (PySparkException, Py4JError) as fault:
            show_step("Spark failed; reading every page to find damaged files")
            readable = find_inputs(job.root, job.day, job.margin, every_page=True)
            if readable.findings == inputs.findings:
                raise ReconcileError(f"spark: the job failed: {spark_error_line(fault)}") from fault
            report = replace(report, findings=readable.findings)
            if not readable.day:
                return _written(job, _without_data(report))
            report = _run(spark, job, readable, show_step, report)
    show_step("done")
    timings = {"files": checked - began, "spark": started - checked, "job": monotonic() - started}
    return _written(job, replace(report, timings=timings))


def _written(job: Job, report: Report) -> Report:
    """Write the report as JSON and as a page, replacing those of an earlier run; return it."""
    job.output.mkdir(parents=True, exist_ok=True)
    summary = job.output / "summary.json"
    summary.write_text(to_json(report), encoding="utf-8")
    write_page(summary)
    return report


def _without_data(report: Report) -> Report:
    finding = error("no-data", f"date={report.day}", "there is no readable segment of this date")
    return replace(report, findings=[*report.findings, finding], answered=False)


def _run(
    spark: SparkSession, job: Job, inputs: Inputs, show_step: ShowStep, report: Report
) -> Report:
    found = list(report.findings)
    scope = Scope(job.day, job.margin, job.late)
    if job.full:
        set_shuffle_partitions(spark, inputs.size)
        show_step("comparing every segment with its digest")
        found += _wrong_digests(spark, job, inputs)
        show_step("joining every message with its outcomes")
        evidence = from_all_rows(spark, scope, inputs)
    else:
        show_step("adding up the digests")
        evidence = from_digests(spark, scope, inputs)
    in_flight = job.in_flight if inputs.open_journals else 0
    options = TableOptions(job.output, job.late, in_flight, job.samples)
    try:
        report = write_tables(spark, options, inputs.last, evidence, report, show_step)
        if job.translator is not None:
            show_step("translating the names again")
            names = renamed(read_pairs(spark, inputs.day), job.translator)
            listed = stored(names, job.output / "renamed", "route", "target", "name")
            report = replace(report, renamed=listed)
            found += _renamed_findings(job)
    finally:
        spark.catalog.clearCache()
    return replace(report, findings=found)


def _renamed_findings(job: Job) -> list[Finding]:
    """Return a finding for each target with names that the mapping now translates differently."""
    keys = ["route", "target"]
    names = pq.read_table(job.output / "renamed", columns=keys, partitioning=None)
    counted = (
        names.group_by(keys)
        .aggregate([([], "count_all")])
        .sort_by([(name, "ascending") for name in keys])
    )
    return [
        error(
            "renamed",
            f"date={job.day}",
            f"the mapping now translates {row['count_all']} names of route {row['route']!r} to"
            f" {row['target']!r} differently; the table `renamed` lists them",
        )
        for row in counted.to_pylist()
    ]


def _wrong_digests(spark: SparkSession, job: Job, inputs: Inputs) -> list[Finding]:
    """Return a finding for each digest that differs from its segment."""
    pairs = [
        (str(each.path.resolve()), str(each.digest.resolve()))
        for each in inputs.all
        if each.digest is not None
    ]
    if not pairs:
        return []
    tasks = min(len(pairs), 4 * spark.sparkContext.defaultParallelism)
    wrong = (
        spark.sparkContext.parallelize(pairs, tasks)
        .mapPartitions(executor_tasks.differences)
        .collect()
    )
    root = job.root.resolve()
    return [
        error("wrong-digest", str(Path(path).relative_to(root)), text)
        for path, text in sorted(wrong)
    ]
