"""Writes the result tables of a reconciliation, and fills the report with their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gateway.reconcile.classify import tables, transforms
from gateway.reconcile.classify.evidence import Evidence, classify_copies, detailed_exceptions
from gateway.reconcile.input.reading import read
from gateway.reconcile.progress import ShowStep
from gateway.reconcile.report.charts import HOURS
from gateway.reconcile.report.text import Report, Row
from gateway.reconcile.report.wording import worst_first

_MAX_ROWS: Final = 10_000  # of a table in the report; the table itself is complete
_MAX_NAMES: Final = 100


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The folder of the tables, and limits.

    Units: seconds.
    """

    folder: Path
    late: int
    in_flight: int  # 0 when no journal is open
    samples: int  # of each class


def write_tables(  # noqa: PLR0913, PLR0917  # the parts of one reconciliation
    spark: SparkSession,
    options: TableOptions,
    last: Mapping[str, int],
    evidence: Evidence,
    report: Report,
    show_step: ShowStep,
) -> Report:
    """Write all tables, replacing earlier ones; return the report with their rows.

    `last` is the time of each gateway's last row in microseconds.
    """
    show_step("counting")
    open_since = _open_since(spark, last, options.in_flight)
    classes = classify_copies(evidence, open_since, options.late).persist()
    tallies, latencies = tables.tallied(classes), tables.latencies(classes)
    if evidence.tallies is not None:
        tallies = tallies.unionByName(evidence.tallies)
    if evidence.latencies is not None:
        latencies = latencies.unionByName(evidence.latencies)
    minutes = options.folder / "minutes"
    _write(tallies, minutes)
    counts = read(spark, [minutes], tallies.schema)
    totals, routes = _routes(tables.per_route(counts), options.folder / "routes", report)
    gateways = stored(tables.per_gateway(counts), options.folder / "gateways", "gateway")
    by_hour = tables.per_hour(counts, latencies)
    hours = _hours_of_worst(by_hour, options.folder / "hours", routes)
    show_step("looking up the exceptions")
    exceptions = options.folder / "exceptions"
    details = detailed_exceptions(evidence, classes)
    _write(details, exceptions)
    listed = read(spark, [exceptions], details.schema)
    letters = options.folder / "dead_letters"
    return replace(
        report,
        totals=totals,
        routes=routes,
        gateways=gateways,
        hours=hours,
        whole_day=_rows(tables.whole_day(counts, latencies)),
        dead_letters=stored(tables.dead_letters(listed), letters, "route", "target", "rule"),
        names=stored(
            tables.worst_names(listed, _MAX_NAMES), options.folder / "names", "-copies", "name"
        ),
        samples=_rows(tables.sample(listed, options.samples)),
        proof=_proof(evidence),
    )


def _open_since(spark: SparkSession, last: Mapping[str, int], seconds: int) -> DataFrame:
    """Return, for each gateway with an open journal, since when a copy may be in flight."""
    times = [(gateway, datetime.fromtimestamp(at / 1_000_000, UTC)) for gateway, at in last.items()]
    frame = spark.createDataFrame(times if seconds else [], "gateway string, last timestamp")
    return transforms.in_flight_since(frame, seconds)


def _proof(evidence: Evidence) -> Row:
    """Return how much the digests prove: all minutes, proven minutes, and proven copies."""
    if evidence.minutes is None or evidence.tallies is None:
        return {}
    today = evidence.minutes.where("today")
    (proven,) = evidence.tallies.agg(
        F.count("*").alias("minutes"), F.coalesce(F.sum("received"), F.lit(0)).alias("copies")
    ).collect()
    return {"minutes": today.count(), "proven": proven["minutes"], "copies": proven["copies"]}


def _routes(frame: DataFrame, folder: Path, report: Report) -> tuple[Row, list[Row]]:
    """Write the table; return the sums of all its rows, and its worst rows."""
    _write(frame, folder)
    found = pq.read_table(folder, partitioning=None)
    totals = {name: pc.sum(found[name]).as_py() or 0 for name in transforms.TALLIES}
    return totals, worst_first(found.to_pylist(), strict=report.strict)[:_MAX_ROWS]


def stored(frame: DataFrame, folder: Path, *order: str) -> list[Row]:
    """Write the table; return its first rows in `order`, where `-` means descending."""
    _write(frame, folder)
    keys = [
        (name.removeprefix("-"), "descending" if name.startswith("-") else "ascending")
        for name in order
    ]
    found = pq.read_table(folder, partitioning=None)
    return list(found.sort_by(keys).slice(0, _MAX_ROWS).to_pylist())


def _hours_of_worst(frame: DataFrame, folder: Path, routes: Sequence[Row]) -> list[Row]:
    """Write the table; return all hours of the first of `routes`, up to the limit of rows."""
    _write(frame, folder)
    targets = {(row["route"], row["target"]) for row in routes[: _MAX_ROWS // HOURS]}
    found = pq.read_table(folder, partitioning=None)
    wanted = pa.array([route for route, _ in targets], found["route"].type)
    order = [(name, "ascending") for name in ("route", "target", "hour")]
    candidates = found.filter(pc.is_in(found["route"], wanted)).sort_by(order)
    return [row for row in candidates.to_pylist() if (row["route"], row["target"]) in targets]


def _write(frame: DataFrame, folder: Path) -> None:
    frame.write.mode("overwrite").parquet(str(folder.resolve()))


def _rows(frame: DataFrame) -> list[Row]:
    """Return the first rows through Arrow: its times are UTC, those of `collect` are local."""
    return list(frame.limit(_MAX_ROWS).toArrow().to_pylist())
