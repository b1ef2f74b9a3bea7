"""The nightly job: verify the files, classify the copies, write tables and report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from gateway.archive.findings import error
from gateway.archive.heads import newest_heads, open_gaps
from gateway.archive.layout import (
    DAY,
    SECOND,
    SPOOLED_DAYS,
    day_folder,
    reconciled_folder,
    safe_name,
)
from gateway.archive.location import ArchiveLocation, absolute_location
from gateway.archive.routes import Rules
from gateway.archive.storage import open_storage
from gateway.clock import moment, now
from gateway.model.copy_class import EXCEPTION_CLASSES, HOP_CLASSES, TALLIES, CopyClass
from gateway.night.archive.seals.store import ReadSeal
from gateway.night.archive.verification.holders import Holder
from gateway.night.archive.verification.writers import KnownWriters, known_writers
from gateway.night.reconcile.classify import hops, result_tables
from gateway.night.reconcile.classify.evidence import Joined, joined
from gateway.night.reconcile.classify.hop_events import HopScope
from gateway.night.reconcile.classify.renames import renamed, renamed_findings
from gateway.night.reconcile.classify.survey import Survey, survey
from gateway.night.reconcile.grouping import summed, total
from gateway.night.reconcile.input.hop_routes import find_hops
from gateway.night.reconcile.input.inputs import (
    Inputs,
    Scope,
    day_range,
    find_inputs,
    hashed_by,
    verify_around,
)
from gateway.night.reconcile.input.route_history import RouteHistory, mapping_history, read_history
from gateway.night.reconcile.report.cut_results import write_cuts
from gateway.night.reconcile.report.report import REPORT_PAGE, Report
from gateway.night.reconcile.report.result_folder import ResultFolder, first_rows, hours_of_worst
from gateway.night.reconcile.report.route_notes import route_notes
from gateway.night.reconcile.report.rows import Row, worst_first
from gateway.night.reconcile.report.source_gaps import reported_gaps
from gateway.night.reconcile.report.timelines import Turn
from gateway.night.reconcile.root_cause import spark_faults
from gateway.night.reconcile.session import spark_session
from gateway.night.reconcile.task_shares import task_shares
from gateway.terminal.progress import ShowStep

FULL_ROWS: Final = 400_000  # of the date: 200,000 copies; with more, the sets are faster
_EXCEPTIONS: Final = "exceptions"
_HOP_EXCEPTIONS: Final = "hop_exceptions"
_MAX_NAMES: Final = 100
_NO_ROUTES: Final = "the archive has no routes of this date; --mapping CONFIG gives some"


@dataclass(frozen=True, slots=True)
class Job:
    """The date to reconcile, and the options."""

    archive: Path | str  # a folder, or a URL
    day: date
    output: Path | None = None  # a local folder with one for each date; by default the archive
    master: str = "local[*]"
    full: bool | None = None  # join every row; None: below `FULL_ROWS`
    hops: bool = False  # messages between gateways, too
    strict: bool = False  # marked duplicates and late deliveries fail the verdict
    accept_gaps: bool = False  # gaps of sources do not change the exit status
    accept_cuts: bool = False  # nor does what is known on another's word only
    in_flight: int = 120  # seconds before an open journal in which a receipt may have no outcome
    late: int = 300  # seconds after receipt; a later delivery is late
    spooled_days: int = SPOOLED_DAYS
    samples: int = 10  # of each class
    key: bytes | None = None  # of the seals
    mapping: Rules | None = None  # of all names; None: the archived routes of their time
    now: int | None = None  # microseconds; by default the time of this machine
    carried: Sequence[Row] = ()  # the other dates of the run, for the report
    read_seal: ReadSeal | None = None  # keeps the seals that several dates need

    @property
    def location(self) -> ArchiveLocation:
        return absolute_location(self.archive)

    @property
    def results(self) -> ResultFolder:
        if self.output is None:
            return ResultFolder(self.location, reconciled_folder(Path(), self.day))
        return ResultFolder(ArchiveLocation(self.output.resolve()), day_folder(Path(), self.day))

    @property
    def report_page(self) -> str:
        """The path or the URL of the report."""
        root = self.results.location.url.partition("?")[0] or str(self.results.location.local)
        return f"{root.rstrip('/')}/{self.results.folder.as_posix()}/{REPORT_PAGE}"

    @property
    def at(self) -> int:
        """The time of the run, in microseconds."""
        return now() if self.now is None else self.now

    @property
    def spooled_since(self) -> int:
        """The first receipt of a copy that may still be in the spool, in microseconds."""
        return self.at - self.spooled_days * DAY


def reconcile(job: Job, show_step: ShowStep) -> Report:
    """Reconcile one date; its results replace those of an earlier run at the end.

    Raises:
        ReconcileError: another run writes the same results, or Spark does not start or finish.
        ArchiveError: the URL of the archive is malformed.
        OSError: the archive cannot be read, or the results cannot be written.
    """
    with job.results.locked() as check_held:
        began = monotonic()
        show_step(f"starting Spark on {job.master}")
        job.results.clear()
        with spark_session(job.master, short=job.full is not True) as spark:
            started = monotonic()
            with spark_faults("the job"), task_shares(spark, show_step) as shown:
                report = _judged(spark, job, shown)
        show_step("done")
        files, job_ends = report.timings.get("files", 0.0), monotonic() - started
        timings = {"files": files, "spark": started - began, "job": job_ends - files}
        # Rounded here, because the page of a summary is that of its report.
        timings = {name: round(each, 3) for name, each in timings.items()}
        report = replace(report, timings=timings)
        check_held()
        job.results.publish(report)
        return report


def _judged(spark: SparkSession, job: Job, show_step: ShowStep) -> Report:
    began = monotonic()
    show_step(f"checking the files of {job.day}")
    hash_files = hashed_by(spark, job.location)
    inputs = find_inputs(job.location, job.day, job.key, hash_files, job.read_seal)
    full = inputs.rows < FULL_ROWS if job.full is None else job.full
    report = Report(
        str(job.archive), job.day, inputs.findings, strict=job.strict,
        accept_gaps=job.accept_gaps, accept_cuts=job.accept_cuts,
        mode="full" if full else "sets", carried=job.carried,
        proof={"unproven": inputs.verified.unproven},
        timings={"files": monotonic() - began}, holders=list(map(_turn, inputs.verified.holders)),
    )  # fmt: skip
    if not inputs.day:
        finding = error("no-data", f"date={job.day}", "there is no readable segment of this date")
        return replace(report, findings=[*report.findings, finding], answered=False)
    opened = {name: at - job.in_flight * SECOND for name, at in inputs.opened.items()}
    scope = Scope(job.location, job.day, job.late, job.spooled_since, opened, full=full)
    show_step("looking for gaps" if full else "evaluating the id sets")
    found = survey(spark, scope, inputs)
    inputs = verify_around(inputs, found.near)
    show_step("joining the messages with their outcomes")
    copies = joined(spark, scope, inputs, found)
    report = replace(report, findings=inputs.findings)
    try:
        report = _with_tables(job, found, copies, show_step, report)
    finally:
        spark.catalog.clearCache()
    writers = known_writers(open_storage(job.location), None, job.key)
    may_return = [each for each in writers.heads if each.writer not in writers.retired]
    lasting, verified = open_gaps(may_return), inputs.verified
    gaps = reported_gaps(found.gaps, lasting, verified.pauses, job.day, job.at)
    proof = {**report.proof, "sets": 0 if full else len(inputs.all), "seals": verified.seals,
             "keyed": job.key is not None, "unproven": verified.unproven}  # fmt: skip
    routes = route_notes(spark, job.location, inputs.day, report.routes, found.tapped)
    report = replace(report, gaps=gaps, proof=proof, routes=routes)
    show_step("translating the names again")
    end = day_range(job.day)[1]
    until = min(job.at, end + job.spooled_days * DAY)
    history, newer = read_history(open_storage(job.location), end, job.key, until)
    names = history if job.mapping is None else mapping_history(job.mapping)
    report = replace(report, findings=[*report.findings, *(() if names.mapping else newer)])
    report = _with_names(spark, job, inputs, names, report)
    show_step("looking for what was cut")
    cuts, samples = write_cuts(spark, job.results, scope, inputs, found, history, job.samples)
    report = replace(report, cuts=cuts, cut_samples=samples)
    if not job.hops:
        return report
    show_step("joining the gateways")
    retired = [each.head for each in writers.heads if each.head and each.writer in writers.retired]
    history = history.ended({each.writer: each.at for each in retired})
    found_hops, notes = find_hops(job.location, history)
    known, heard = [*found.gaps, *lasting], _heard(job, inputs, writers)
    between = HopScope(found_hops, day_range(job.day), job.spooled_since, known, heard)
    report = replace(report, hops_unchecked="; ".join(notes))
    return _with_hops(spark, job, inputs, between, report)


def _turn(holder: Holder) -> Turn:
    begin, end = moment(holder.begin), moment(holder.end)
    overlap = holder.overlap / SECOND
    return Turn(holder.gateway, holder.writer, holder.lease, begin, end, overlap)


def _heard(job: Job, inputs: Inputs, writers: KnownWriters) -> dict[str, int]:
    """Return by gateway the time from which its receipts may not be in the archive yet."""
    heard: dict[str, int] = {}
    for head in newest_heads(writers.expected.values()):
        closed = head.closed.closed if head.closed else 0
        known = min(inputs.opened.get(head.writer, closed), closed)
        heard[safe_name(head.gateway)] = known - job.in_flight * SECOND
    return heard


def _with_hops(
    spark: SparkSession, job: Job, inputs: Inputs, scope: HopScope, report: Report
) -> Report:
    """Write the tables of the messages between gateways; return the report with them."""
    segments = inputs.all if scope.hops.brokers else []
    found = hops.judged_hops(spark, scope, segments, job.late * SECOND, inputs.rows).persist()
    messages = hops.with_waiting(found, scope)
    table = hops.hop_table(hops.hop_counts(messages).toArrow())
    listed = total(table, *HOP_CLASSES) - total(table, CopyClass.DELIVERED.value)
    results = job.results
    results.write("hops", table)
    results.write_frame(_HOP_EXCEPTIONS, hops.hop_exceptions(messages), listed, hops.HOP_EXCEPTIONS)
    found.unpersist()
    written = results.written(_HOP_EXCEPTIONS, hops.HOP_EXCEPTIONS)
    worst = worst_first(table.to_pylist(), strict=job.strict)[: result_tables.MAX_ROWS]
    samples = first_rows(result_tables.samples(written, job.samples, hops.HOP_EXCEPTIONS))
    return replace(report, hops=worst, hop_samples=samples)


def _with_tables(
    job: Job, found: Survey, copies: Joined | None, show_step: ShowStep, report: Report
) -> Report:
    """Write all tables; return the report with their rows."""
    results = job.results
    if copies is None:
        minutes = result_tables.MINUTES.empty_table()
        latencies = result_tables.LATENCIES.empty_table()
    else:
        counts = result_tables.counted(copies.classes).toArrow()
        minutes, latencies = result_tables.minutes_of(counts), result_tables.latencies_of(counts)
    compared = total(minutes, "received")
    exceptional = total(minutes, *EXCEPTION_CLASSES)
    minutes = result_tables.with_proven(minutes, found.proven)
    latencies = pa.concat_tables([latencies, result_tables.proven_latencies(found.proven)])
    routes = summed(minutes, ("route", "target"), TALLIES)
    gateways = summed(minutes, ["gateway"], TALLIES)
    hours = result_tables.per_hour(minutes, latencies, "route", "target")
    if copies is not None and exceptional:
        show_step(f"looking up {exceptional} exceptions")
        listed = copies.exceptions(exceptional)
        results.write_frame(_EXCEPTIONS, listed, exceptional, result_tables.EXCEPTIONS)
    else:
        results.write(_EXCEPTIONS, result_tables.EXCEPTIONS.empty_table())
    exceptions = partial(results.written, _EXCEPTIONS, result_tables.EXCEPTIONS)
    letters = result_tables.dead_letters(exceptions())
    names = result_tables.worst_names(exceptions(), _MAX_NAMES)
    for name, table in {
        "minutes": minutes, "routes": routes, "gateways": gateways, "hours": hours,
        "dead_letters": letters, "names": names,
    }.items():  # fmt: skip
        results.write(name, table)
    worst = worst_first(routes.to_pylist(), strict=job.strict)[: result_tables.MAX_ROWS]
    return replace(
        report,
        totals={name: total(routes, name) for name in TALLIES},
        routes=worst,
        gateways=first_rows(gateways),
        hours=hours_of_worst(hours, worst),
        whole_day=first_rows(result_tables.per_hour(minutes, latencies)),
        dead_letters=first_rows(letters),
        names=first_rows(names),
        samples=first_rows(result_tables.samples(exceptions(), job.samples)),
        proof={"copies": total(found.proven, "received"), "compared": compared},
    )


def _with_names(
    spark: SparkSession, job: Job, inputs: Inputs, history: RouteHistory, report: Report
) -> Report:
    """Compare the sent names with their translation, and write the wrong ones."""
    if not history:
        return replace(report, names_unchecked=_NO_ROUTES)
    by = "the mapping" if history.mapping else "the routes that the gateway ran with"
    wrong, unchecked = renamed(spark, job.location, history, inputs.day)
    job.results.write("renamed", wrong)
    findings = [*report.findings, *renamed_findings(wrong, job.day, by)]
    return replace(report, renamed=first_rows(wrong), findings=findings, names_unchecked=unchecked)
