"""The nightly job: look at the files, compose the transforms, write the tables. No rules here."""

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
from gateway.reconcile.classify.evidence import Question, all_rows, by_digests
from gateway.reconcile.classify.output import Terms, stored, write_tables
from gateway.reconcile.classify.renames import Translator, renamed
from gateway.reconcile.findings import Finding, error
from gateway.reconcile.input import executor_tasks
from gateway.reconcile.input.inputs import Inputs, find_inputs
from gateway.reconcile.input.reading import expect, read_pairs
from gateway.reconcile.progress import Say
from gateway.reconcile.report.html import write_page
from gateway.reconcile.report.text import Report, to_json
from gateway.reconcile.session import spark_session

_SHORT: Final = 64 << 20  # bytes of archive that are read before a better compiler would pay
_LITTLE: Final = 8 << 20  # the same, before any compiling of plans would
_PLAIN: Final = {"spark.sql.codegen.wholeStage": "false"}


@dataclass(frozen=True, slots=True)
class Job:
    """What to reconcile and how."""

    root: Path
    day: date
    output: Path
    master: str = "local[*]"
    full: bool = False  # read every page and join every row
    strict: bool = False  # marked duplicates and late deliveries are a breach too
    margin: int = 6  # hours of the neighbouring days that are read too
    in_flight: int = 120  # seconds before the cut
    late: int = 300  # seconds after receipt that a delivery is late
    samples: int = 10  # of each class
    translator: Translator | None = None  # what makes the names anew, to compare them


def reconcile(job: Job, say: Say) -> Report:
    """Reconcile one date; its tables replace those of an earlier run.

    Raises:
        ReconcileError: Spark does not start or does not finish.
    """
    began = monotonic()
    say(f"looking at the files of {job.day}")
    inputs = find_inputs(job.root, job.day, job.margin, whole=job.full)
    mode = "full" if job.full else "digest-first"
    report = Report(str(job.root), str(job.day), inputs.findings, strict=job.strict, mode=mode)
    if not inputs.day:
        return _kept(job, _without_data(report))
    say(f"starting Spark on {job.master} for {len(inputs.day)} files")
    looked = monotonic()
    extra = _PLAIN if inputs.size < (_LITTLE if job.full else _SHORT) else {}
    short = not job.full or inputs.size < _SHORT
    with spark_session(job.master, extra, short=short) as spark:
        started = monotonic()
        try:
            report = _run(spark, job, inputs, say, report)
        except (PySparkException, Py4JError) as fault:
            say("Spark did not finish; reading every page to find out why")
            whole = find_inputs(job.root, job.day, job.margin, whole=True)
            if whole.findings == inputs.findings:
                raise ReconcileError(f"spark: the job failed: {_first_line(fault)}") from fault
            report = replace(report, findings=whole.findings)
            if not whole.day:
                return _kept(job, _without_data(report))
            report = _run(spark, job, whole, say, report)
    say("done")
    timings = {"files": looked - began, "spark": started - looked, "job": monotonic() - started}
    return _kept(job, replace(report, timings=timings))


def _kept(job: Job, report: Report) -> Report:
    """The same, written as JSON and as a page; those of an earlier run never stay beside it."""
    job.output.mkdir(parents=True, exist_ok=True)
    summary = job.output / "summary.json"
    summary.write_text(to_json(report), encoding="utf-8")
    write_page(summary)
    return report


def _without_data(report: Report) -> Report:
    place = f"date={report.day}"
    nothing = error("no-data", place, "there is no readable segment of this date")
    return replace(report, findings=[*report.findings, nothing], answered=False)


def _first_line(fault: Exception) -> str:
    return (str(fault).splitlines() or [type(fault).__name__])[0]


def _run(spark: SparkSession, job: Job, inputs: Inputs, say: Say, report: Report) -> Report:
    found = list(report.findings)
    asked = Question(job.day, job.margin, job.late)
    if job.full:
        expect(spark, inputs.size)
        say("adding every segment up again, against its digest")
        found += _checked_digests(spark, job, inputs)
        say("matching every message with its ends")
        evidence = all_rows(spark, asked, inputs)
    else:
        say("adding up the digests")
        evidence = by_digests(spark, asked, inputs)
    terms = Terms(job.output, job.late, job.in_flight if inputs.open_journals else 0, job.samples)
    try:
        report = write_tables(spark, terms, inputs.last, evidence, report, say)
        if job.translator is not None:
            say("translating the names again")
            names = renamed(read_pairs(spark, inputs.day), job.translator)
            listed = stored(names, job.output / "renamed", "route", "target", "name")
            report = replace(report, renamed=listed)
            found += _renamed(job)
    finally:
        spark.catalog.clearCache()
    return replace(report, findings=found)


def _renamed(job: Job) -> list[Finding]:
    """One finding a target whose names are not what the mapping makes of them now."""
    ways = ["route", "target"]
    names = pq.read_table(job.output / "renamed", columns=ways, partitioning=None)
    counted = (
        names.group_by(ways)
        .aggregate([([], "count_all")])
        .sort_by([(name, "ascending") for name in ways])
    )
    return [
        error(
            "renamed",
            f"date={job.day}",
            f"{row['count_all']} names sent by route {row['route']!r} to {row['target']!r} are not"
            " what the mapping makes of them; the table `renamed` lists them",
        )
        for row in counted.to_pylist()
    ]


def _checked_digests(spark: SparkSession, job: Job, inputs: Inputs) -> list[Finding]:
    pairs = [
        (str(each.path.resolve()), str(each.digest.resolve()))
        for each in inputs.all
        if each.digest is not None
    ]
    if not pairs:
        return []
    parts = min(len(pairs), 4 * spark.sparkContext.defaultParallelism)
    wrong = (
        spark.sparkContext.parallelize(pairs, parts)
        .mapPartitions(executor_tasks.differences)
        .collect()
    )
    root = job.root.resolve()
    return [
        error("wrong-digest", str(Path(path).relative_to(root)), text)
        for path, text in sorted(wrong)
    ]
