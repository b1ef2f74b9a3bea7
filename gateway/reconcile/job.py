"""The nightly job: verify the files, classify the copies, write tables and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from time import monotonic
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from gateway.archive.findings import Finding, error
from gateway.archive.layout import reconciled_folder
from gateway.archive.location import ArchiveLocation, parse_location
from gateway.archive.routes import Rules
from gateway.archive.source_states import open_gaps
from gateway.archive.storage import open_storage
from gateway.clock import now
from gateway.errors import ReconcileError
from gateway.reconcile.classify import tables
from gateway.reconcile.classify.evidence import Joined, Scope, joined, survey
from gateway.reconcile.classify.output import ResultFolder, first_rows, hours_of_worst
from gateway.reconcile.classify.renames import RenameTask, renamed
from gateway.reconcile.input.executors import write_partitions
from gateway.reconcile.input.inputs import (
    Inputs,
    batches,
    day_range,
    find_inputs,
    verify_around,
)
from gateway.reconcile.input.route_history import mapping_history, read_history
from gateway.reconcile.input.route_notes import with_notes
from gateway.reconcile.input.source_gaps import RecordedGaps, gap_rows
from gateway.reconcile.input.survey import Survey
from gateway.reconcile.report.formatting import amount, counted_as
from gateway.reconcile.report.text import REPORT_PAGE, Report, Row
from gateway.reconcile.report.wording import worst_first
from gateway.reconcile.root_cause import root_cause
from gateway.reconcile.session import spark_session
from gateway.reconcile.task_shares import task_shares
from gateway.terminal.progress import ShowStep

FULL_ROWS: Final = 400_000  # of the date: 200,000 copies; with more, the sets are faster
_SHORT_JOB: Final = 64 << 20  # bytes of archive; below, Java's better compiler does not pay off
_TINY_JOB: Final = 8 << 20  # bytes of archive; below, compiling plans does not pay off
_WITHOUT_CODEGEN: Final = {"spark.sql.codegen.wholeStage": "false"}
_MAX_NAMES: Final = 100
_NO_ROUTES: Final = "the archive has no routes of this date; --mapping CONFIG gives some"
_SECOND: Final = 1_000_000  # microseconds
_DAY: Final = 86_400 * _SECOND


@dataclass(frozen=True, slots=True)
class Job:
    """The date to reconcile, and the options."""

    archive: Path | str  # a folder, or a URL
    day: date
    output: Path | None = None  # a local folder for the results; by default they are in the archive
    master: str = "local[*]"
    full: bool | None = None  # join every row; None: below `FULL_ROWS`
    strict: bool = False  # marked duplicates and late deliveries fail the verdict
    accept_gaps: bool = False  # gaps of sources do not change the exit status
    in_flight: int = 120  # seconds before an open journal in which a receipt may have no outcome
    late: int = 300  # seconds after receipt; a later delivery is late
    spooled_days: int = 7  # age of a spooled copy without an outcome, after which it is missing
    samples: int = 10  # of each class
    key: bytes | None = None  # of the seals
    mapping: Rules | None = None  # of all names; None: the archived routes of their time
    now: int | None = None  # microseconds; by default the time of this machine
    carried: Sequence[Row] = ()  # earlier nights that were reconciled again, for the report

    @property
    def location(self) -> ArchiveLocation:
        return absolute_location(self.archive)

    @property
    def results(self) -> ResultFolder:
        if self.output is None:
            return ResultFolder(self.location, reconciled_folder(Path(), self.day))
        folder = self.output.resolve()
        return ResultFolder(ArchiveLocation(folder.parent), Path(folder.name))

    @property
    def report_page(self) -> str:
        """The path or the URL of the report."""
        root = self.results.location.url.partition("?")[0] or str(self.results.location.local)
        return f"{root.rstrip('/')}/{self.results.folder.as_posix()}/{REPORT_PAGE}"

    @property
    def spooled_since(self) -> int:
        """The first receipt of a copy that may still be in the spool, in microseconds."""
        return (now() if self.now is None else self.now) - self.spooled_days * _DAY


def absolute_location(archive: Path | str) -> ArchiveLocation:
    """Return the location of an archive; executors may have another working directory.

    Raises:
        ArchiveError: the URL is malformed.
    """
    location = parse_location(str(archive))
    return location if location.url else ArchiveLocation(location.local.resolve())


def reconcile(job: Job, show_step: ShowStep) -> Report:
    """Reconcile one date; its results replace those of an earlier run at the end.

    Raises:
        ReconcileError: another run writes the same results, or Spark does not start or finish.
        ArchiveError: the URL of the archive is malformed.
        OSError: the archive cannot be read, or the results cannot be written.
    """
    with job.results.locked() as check_held:
        report = _reconcile(job, show_step)
        check_held()
        job.results.publish(report)
        return report


def _reconcile(job: Job, show_step: ShowStep) -> Report:
    began = monotonic()
    show_step(f"checking the files of {job.day}")
    inputs = find_inputs(job.location, job.day, job.key)
    full = inputs.rows < FULL_ROWS if job.full is None else job.full
    report = Report(
        str(job.archive), str(job.day), inputs.findings, strict=job.strict,
        accept_gaps=job.accept_gaps, mode="full" if full else "sets", carried=job.carried,
    )  # fmt: skip
    job.results.clear()
    if not inputs.day:
        finding = error("no-data", f"date={job.day}", "there is no readable segment of this date")
        return replace(report, findings=[*report.findings, finding], answered=False)
    show_step(f"starting Spark on {job.master} for {len(inputs.day)} files")
    checked = monotonic()
    extra = _WITHOUT_CODEGEN if inputs.size < (_TINY_JOB if full else _SHORT_JOB) else {}
    with spark_session(job.master, extra, short=not full or inputs.size < _SHORT_JOB) as spark:
        started = monotonic()
        try:
            with task_shares(spark, show_step) as shown:
                report = _run(spark, job, inputs, shown, report)
        except (PySparkException, Py4JError) as fault:
            raise ReconcileError(f"spark: the job failed: {root_cause(fault)}") from fault
    show_step("done")
    timings = {"files": checked - began, "spark": started - checked, "job": monotonic() - started}
    return replace(report, timings=timings)


def _run(
    spark: SparkSession, job: Job, inputs: Inputs, show_step: ShowStep, report: Report
) -> Report:
    scope = Scope(
        job.location,
        job.day,
        job.late,
        job.spooled_since,
        {name: at - job.in_flight * _SECOND for name, at in inputs.opened.items()},
        full=report.mode == "full",
    )
    show_step("looking for gaps" if scope.full else "evaluating the id sets")
    found = survey(spark, scope, inputs)
    inputs = verify_around(job.location, inputs, found.near, job.key)
    report = replace(report, findings=inputs.findings)
    show_step("joining the messages with their outcomes")
    copies = joined(spark, scope, inputs, found)
    try:
        report = _with_tables(job, found, copies, show_step, report)
    finally:
        spark.catalog.clearCache()
    recorded = RecordedGaps(found.gaps, open_gaps(job.location.local), inputs.not_running)
    gaps = gap_rows(recorded, job.day, now() if job.now is None else job.now)
    proof = {**report.proof, "sets": 0 if scope.full else len(inputs.all), "seals": inputs.seals,
             "keyed": job.key is not None}  # fmt: skip
    report = replace(report, gaps=gaps, proof=proof, routes=_with_notes(job, inputs, found, report))
    return _with_renames(spark, job, inputs, show_step, report)


def _with_notes(job: Job, inputs: Inputs, found: Survey, report: Report) -> Sequence[Row]:
    """Return the routes of the report, with the notes that a sample of the segments gives."""
    tapped = {(route, target) for _, route, target in found.taps}
    paths = [each.path for each in inputs.day]
    return with_notes(report.routes, open_storage(job.location), paths, tapped)


def _with_tables(
    job: Job, found: Survey, copies: Joined | None, show_step: ShowStep, report: Report
) -> Report:
    """Write all tables; return the report with their rows."""
    results = job.results
    if copies is None:
        minutes, latencies = tables.MINUTES.empty_table(), tables.LATENCIES.empty_table()
    else:
        counts = tables.counted(copies.classes).toArrow()
        minutes, latencies = tables.minutes_of(counts), tables.latencies_of(counts)
    compared = _sum(minutes, "received")
    exceptional = tables.count_exceptions(minutes)
    minutes = tables.joined_minutes([minutes, tables.proven_minutes(found.proven)])
    latencies = pa.concat_tables([latencies, tables.proven_latencies(found.proven)])
    routes = tables.summed(minutes, "route", "target")
    gateways = tables.summed(minutes, "gateway")
    hours = tables.per_hour(minutes, latencies, "route", "target")
    if copies is not None and exceptional:
        show_step(f"looking up {exceptional} exceptions")
        write_partitions(copies.exceptions(exceptional), results.write_exceptions)
    else:
        results.write("exceptions", tables.EXCEPTIONS.empty_table())
    letters = tables.dead_letters(results.exceptions())
    names = tables.worst_names(results.exceptions(), _MAX_NAMES)
    for name, table in {
        "minutes": minutes, "routes": routes, "gateways": gateways, "hours": hours,
        "dead_letters": letters, "names": names,
    }.items():  # fmt: skip
        results.write(name, table)
    worst = worst_first(routes.to_pylist(), strict=job.strict)[: tables.MAX_ROWS]
    return replace(
        report,
        totals={name: _sum(routes, name) for name in tables.TALLIES},
        routes=worst,
        gateways=first_rows(gateways),
        hours=hours_of_worst(hours, worst),
        whole_day=first_rows(tables.per_hour(minutes, latencies)),
        dead_letters=first_rows(letters),
        names=first_rows(names),
        samples=first_rows(tables.samples(results.exceptions(), job.samples)),
        proof={"copies": _sum(found.proven, "received"), "compared": compared},
    )


def _sum(table: pa.Table, *names: str) -> int:
    return sum(pc.sum(table[name]).as_py() or 0 for name in names)


def _with_renames(
    spark: SparkSession, job: Job, inputs: Inputs, show_step: ShowStep, report: Report
) -> Report:
    """Compare the names that were sent with those of the archived routes, or of the mapping."""
    if job.mapping is None:
        history, findings = read_history(open_storage(job.location), day_range(job.day)[1], job.key)
    else:
        history, findings = mapping_history(job.mapping), []
    if not history:
        return replace(report, names_unchecked=_NO_ROUTES)
    show_step("translating the names again")
    sizes = [each.size for each in inputs.day]
    tasks = [
        RenameTask(job.location, part, history)
        for part in batches(inputs.day, sizes, spark.sparkContext.defaultParallelism)
    ]
    names = renamed(spark, tasks)
    job.results.write("renamed", names.wrong)
    return replace(
        report,
        renamed=first_rows(names.wrong),
        findings=[*report.findings, *findings, *_renamed_findings(job, names.wrong)],
        names_unchecked=_unchecked(names.unchecked),
    )


def _unchecked(copies: Mapping[str, int]) -> str:
    """Return why names were not checked, by gateway; empty when all were."""
    gateways = (f"{amount(number)} copies of {name!r}" for name, number in sorted(copies.items()))
    listed = ", ".join(gateways)
    return f"the archive does not have the routes of {listed}" if copies else ""


def _renamed_findings(job: Job, names: pa.Table) -> list[Finding]:
    """Return a finding for each target with wrong names."""
    keys = ["route", "target"]
    counted = names.group_by(keys).aggregate([([], "count_all")])
    by = "the routes that the gateway ran with" if job.mapping is None else "the mapping"
    return [
        error(
            "renamed",
            f"date={job.day}",
            f"{counted_as(row['count_all'], 'name')} of route {row['route']!r} to"
            f" {row['target']!r}: not as {by} would translate; the table `renamed` has them",
        )
        for row in counted.sort_by([(name, "ascending") for name in keys]).to_pylist()
    ]
