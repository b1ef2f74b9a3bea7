"""The tables of the copies of a date: their counts, and a row for each exception."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from gateway.model.copy_class import EXCEPTION_CLASSES, TALLIES
from gateway.night.reconcile.classify import result_tables
from gateway.night.reconcile.classify.evidence import Joined, joined
from gateway.night.reconcile.classify.survey import DateFiles
from gateway.night.reconcile.grouping import summed, total
from gateway.night.reconcile.report.result_folder import ResultFolder, first_rows, hours_of_worst
from gateway.night.reconcile.report.route_notes import route_notes
from gateway.night.reconcile.report.rows import Row, Rows, worst_first
from gateway.terminal.progress import ShowStep
from gateway.terminal.units import counted

_EXCEPTIONS: Final = "exceptions"
_MAX_NAMES: Final = 100


@dataclass(frozen=True, slots=True)
class CopyResults:
    """The rows of the copies for the report, each sequence from the table of that name.

    Of the copies, sets prove `proven`, and `compared` were compared one by one.
    """

    totals: Row | None = None
    routes: Rows = ()
    gateways: Rows = ()
    hours: Rows = ()
    whole_day: Rows = ()
    dead_letters: Rows = ()
    names: Rows = ()
    samples: Rows = ()
    proven: int = 0
    compared: int = 0


def write_copies(  # the files, the results, and what the report shows
    spark: SparkSession,
    results: ResultFolder,
    files: DateFiles,
    show_step: ShowStep,
    *,
    strict: bool,
    number: int,
) -> CopyResults:
    """Classify the copies, and write the tables; `number` are the samples of a class."""
    show_step("joining the messages with their outcomes")
    found = files.found
    try:
        copies = joined(spark, files.scope, files.inputs, found)
        minutes, latencies = _counted(copies)
        compared, exceptional = total(minutes, "received"), total(minutes, *EXCEPTION_CLASSES)
        if exceptional:
            show_step(f"looking up {counted(exceptional, 'exception')}")
        _write_exceptions(results, copies, exceptional)
    finally:
        spark.catalog.clearCache()
    minutes = result_tables.with_proven(minutes, found.proven)
    latencies = pa.concat_tables([latencies, result_tables.proven_latencies(found.proven)])
    exceptions = partial(results.written, _EXCEPTIONS, result_tables.EXCEPTIONS)
    tables = {
        "minutes": minutes,
        "routes": summed(minutes, ("route", "target"), TALLIES),
        "gateways": summed(minutes, ["gateway"], TALLIES),
        "hours": result_tables.per_hour(minutes, latencies, "route", "target"),
        "dead_letters": result_tables.dead_letters(exceptions()),
        "names": result_tables.worst_names(exceptions(), _MAX_NAMES),
    }
    for name, table in tables.items():
        results.write(name, table)
    worst = worst_first(tables["routes"].to_pylist(), strict=strict)[: result_tables.MAX_ROWS]
    return CopyResults(
        totals={name: total(tables["routes"], name) for name in TALLIES},
        routes=route_notes(
            spark,
            files.scope.location,
            files.inputs.day,
            worst,
            found.tapped,
            configured=files.history.newest_targets(),
        ),
        gateways=first_rows(tables["gateways"]),
        hours=hours_of_worst(tables["hours"], worst),
        whole_day=first_rows(result_tables.per_hour(minutes, latencies)),
        dead_letters=first_rows(tables["dead_letters"]),
        names=first_rows(tables["names"]),
        samples=first_rows(result_tables.samples(exceptions(), number)),
        proven=total(found.proven, "received"),
        compared=compared,
    )


def _counted(copies: Joined | None) -> tuple[pa.Table, pa.Table]:
    """Return the minutes and the latencies of the joined copies."""
    if copies is None:
        return result_tables.MINUTES.empty_table(), result_tables.LATENCIES.empty_table()
    counts = result_tables.counted(copies.classes).toArrow()
    return result_tables.minutes_of(counts), result_tables.latencies_of(counts)


def _write_exceptions(results: ResultFolder, copies: Joined | None, number: int) -> None:
    if copies is None or not number:
        results.write(_EXCEPTIONS, result_tables.EXCEPTIONS.empty_table())
    else:
        listed = copies.exceptions(number)
        results.write_frame(_EXCEPTIONS, listed, number, result_tables.EXCEPTIONS)
