"""The tables of the messages between gateways: counts, and a row for each exception."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql import SparkSession

from gateway.archive.heads import newest_heads
from gateway.archive.layout import SECOND, safe_name
from gateway.model.copy_class import HOP_CLASSES, CopyClass
from gateway.night.reconcile.classify import hops, result_tables
from gateway.night.reconcile.classify.hop_events import HopScope
from gateway.night.reconcile.classify.survey import DateFiles
from gateway.night.reconcile.grouping import total
from gateway.night.reconcile.input.hop_routes import find_hops
from gateway.night.reconcile.input.inputs import day_range
from gateway.night.reconcile.report.result_folder import ResultFolder, first_rows
from gateway.night.reconcile.report.rows import Rows, worst_first

_EXCEPTIONS: Final = "hop_exceptions"


@dataclass(frozen=True, slots=True)
class HopResults:
    """The rows for the report, and why messages of some sources were not joined."""

    rows: Rows = ()
    samples: Rows = ()
    unchecked: str = ""


def write_hops(
    spark: SparkSession, results: ResultFolder, files: DateFiles, *, strict: bool, number: int
) -> HopResults:
    """Judge the messages between gateways, and write the tables; `number` are the samples."""
    scope, notes = _scope(files)
    segments = files.inputs.all if scope.hops.brokers else []
    late = files.scope.late * SECOND
    found = hops.judged_hops(spark, scope, segments, late, files.inputs.rows).persist()
    messages = hops.with_waiting(found, scope)
    table = hops.hop_table(hops.hop_counts(messages).toArrow())
    listed = total(table, *HOP_CLASSES) - total(table, CopyClass.DELIVERED.value)
    results.write("hops", table)
    results.write_frame(_EXCEPTIONS, hops.hop_exceptions(messages), listed, hops.HOP_EXCEPTIONS)
    found.unpersist()
    written = results.written(_EXCEPTIONS, hops.HOP_EXCEPTIONS)
    worst = worst_first(table.to_pylist(), strict=strict)[: result_tables.MAX_ROWS]
    samples = first_rows(result_tables.samples(written, number, hops.HOP_EXCEPTIONS))
    return HopResults(worst, samples, "; ".join(notes))


def _scope(files: DateFiles) -> tuple[HopScope, list[str]]:
    """Return what the hops are judged by, and notes on the sources that none of them can join."""
    scope, writers = files.scope, files.inputs.verified.writers
    retired = [each.head for each in writers.heads if each.head and each.writer in writers.retired]
    history = files.history.ended({each.writer: each.at for each in retired})
    found, notes = find_hops(scope.location, history)
    known = [*files.found.gaps, *files.lasting]
    span = day_range(scope.day)
    return HopScope(found, span, scope.spooled_since, known, _heard(files)), notes


def _heard(files: DateFiles) -> dict[str, int]:
    """Return by gateway the time from which its receipts may not be in the archive yet."""
    heard: dict[str, int] = {}
    opened = files.inputs.opened
    for head in newest_heads(files.inputs.verified.writers.expected.values()):
        closed = head.closed.closed if head.closed else 0
        known = min(opened.get(head.writer, closed), closed)
        heard[safe_name(head.gateway)] = known - files.scope.in_flight
    return heard
