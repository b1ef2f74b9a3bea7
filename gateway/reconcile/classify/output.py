"""From evidence to the tables of a night and the report's rows; no rules live here."""

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
from gateway.reconcile.classify.evidence import Evidence, exceptions_of, told
from gateway.reconcile.input.reading import read
from gateway.reconcile.progress import Say
from gateway.reconcile.report.charts import HOURS
from gateway.reconcile.report.text import Report, Row
from gateway.reconcile.report.wording import worst_first

_ROWS: Final = 10_000  # rows of a table the report takes; the table has all
_WORST: Final = 100  # names


@dataclass(frozen=True, slots=True)
class Terms:
    """Where the tables go, and what is late or may still be under way, in seconds."""

    folder: Path
    late: int
    in_flight: int  # 0 when no journal is open
    samples: int


def write_tables(  # noqa: PLR0913, PLR0917  # what a night is made of
    spark: SparkSession,
    terms: Terms,
    last: Mapping[str, int],
    evidence: Evidence,
    report: Report,
    say: Say,
) -> Report:
    """Write every table, replacing it; the report with their rows. `last` is in microseconds."""
    say("counting")
    classes = told(evidence, _open_since(spark, last, terms.in_flight), terms.late).persist()
    tallies, latencies = tables.tallied(classes), tables.latencies(classes)
    if evidence.tallies is not None:
        tallies = tallies.unionByName(evidence.tallies)
    if evidence.latencies is not None:
        latencies = latencies.unionByName(evidence.latencies)
    minutes = terms.folder / "minutes"
    _write(tallies, minutes)
    counts = read(spark, [minutes], tallies.schema)
    totals, routes = _routes(tables.per_route(counts), terms.folder / "routes", report)
    gateways = stored(tables.per_gateway(counts), terms.folder / "gateways", "gateway")
    by_hour = tables.per_hour(counts, latencies)
    hours = _hours_of_worst(by_hour, terms.folder / "hours", routes)
    say("looking up the exceptions")
    exceptions = terms.folder / "exceptions"
    details = exceptions_of(evidence, classes)
    _write(details, exceptions)
    listed = read(spark, [exceptions], details.schema)
    letters = terms.folder / "dead_letters"
    return replace(
        report,
        totals=totals,
        routes=routes,
        gateways=gateways,
        hours=hours,
        whole_day=_rows(tables.whole_day(counts, latencies)),
        dead_letters=stored(tables.dead_letters(listed), letters, "route", "target", "rule"),
        names=stored(tables.worst_names(listed, _WORST), terms.folder / "names", "-copies", "name"),
        samples=_rows(tables.sample(listed, terms.samples)),
        proof=_proof(evidence),
    )


def _open_since(spark: SparkSession, last: Mapping[str, int], seconds: int) -> DataFrame:
    """For each gateway with an open journal, since when its copies may be under way."""
    times = [(gateway, datetime.fromtimestamp(at / 1_000_000, UTC)) for gateway, at in last.items()]
    frame = spark.createDataFrame(times if seconds else [], "gateway string, last timestamp")
    return transforms.cut(frame, seconds)


def _proof(evidence: Evidence) -> Row:
    """How much was proven by digest: minutes of ways, and messages."""
    if evidence.minutes is None or evidence.tallies is None:
        return {}
    today = evidence.minutes.where("today")
    (proven,) = evidence.tallies.agg(
        F.count("*").alias("minutes"), F.coalesce(F.sum("received"), F.lit(0)).alias("copies")
    ).collect()
    return {"minutes": today.count(), "proven": proven["minutes"], "copies": proven["copies"]}


def _routes(frame: DataFrame, folder: Path, report: Report) -> tuple[Row, list[Row]]:
    """Write the table, replacing it; the sums of all its rows, and the worst of them."""
    _write(frame, folder)
    found = pq.read_table(folder, partitioning=None)
    totals = {name: pc.sum(found[name]).as_py() or 0 for name in transforms.TALLIES}
    return totals, worst_first(found.to_pylist(), strict=report.strict)[:_ROWS]


def stored(frame: DataFrame, folder: Path, *order: str) -> list[Row]:
    """Write the table, replacing it; its first rows in `order`, a `-` before what falls."""
    _write(frame, folder)
    keys = [
        (name.removeprefix("-"), "descending" if name.startswith("-") else "ascending")
        for name in order
    ]
    found = pq.read_table(folder, partitioning=None)
    return list(found.sort_by(keys).slice(0, _ROWS).to_pylist())


def _hours_of_worst(frame: DataFrame, folder: Path, routes: Sequence[Row]) -> list[Row]:
    """Write the table, replacing it; the whole day of the first of `routes`, as many as fit."""
    _write(frame, folder)
    ways = {(row["route"], row["target"]) for row in routes[: _ROWS // HOURS]}
    found = pq.read_table(folder, partitioning=None)
    routes_of = pa.array([route for route, _ in ways], found["route"].type)
    order = [(name, "ascending") for name in ("route", "target", "hour")]
    near = found.filter(pc.is_in(found["route"], routes_of)).sort_by(order)
    return [row for row in near.to_pylist() if (row["route"], row["target"]) in ways]


def _write(frame: DataFrame, folder: Path) -> None:
    frame.write.mode("overwrite").parquet(str(folder.resolve()))


def _rows(frame: DataFrame) -> list[Row]:
    """The first rows; by Arrow, whose times are UTC where a collected row's are local."""
    return list(frame.limit(_ROWS).toArrow().to_pylist())
