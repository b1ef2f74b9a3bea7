"""The tables of the messages that routes left out: counts, and a row for each unproven one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gateway.model.cut_class import CUT_CLASSES, CutClass
from gateway.model.dead_letter_rule import LOOP
from gateway.night.reconcile.classify.cut_events import CutScope
from gateway.night.reconcile.classify.cuts import CUT_EXCEPTIONS, judged_cuts
from gateway.night.reconcile.classify.result_tables import samples
from gateway.night.reconcile.classify.survey import DateFiles, Survey
from gateway.night.reconcile.grouping import ascending, summed, total
from gateway.night.reconcile.input.broker_places import broker_places
from gateway.night.reconcile.input.cut_rows import SEEN, endpoints_of
from gateway.night.reconcile.input.inputs import Scope, day_range, hours_around
from gateway.night.reconcile.input.route_history import RouteHistory
from gateway.night.reconcile.report.result_folder import ResultFolder, first_rows
from gateway.night.reconcile.report.rows import Rows

_EXCEPTIONS: Final = "cut_exceptions"
_KEYS: Final = tuple(SEEN.names[:-1])
_MAX_HASHES: Final = 200_000  # of the cuts; with more, all rows at their brokers are compared
_LISTED: Final = pa.array([name for name, facts in CUT_CLASSES.items() if facts.listed])


@dataclass(frozen=True, slots=True)
class CutResults:
    """The rows for the report: the counts, the gravest first, and some messages."""

    rows: Rows = ()
    samples: Rows = ()


def write_cuts(
    spark: SparkSession, results: ResultFolder, files: DateFiles, *, number: int
) -> CutResults:
    """Judge the cuts, and write the tables; `number` are the samples of a class."""
    inputs, cuts = files.inputs, files.found.cuts
    own = cut_scope(files.scope, files.found, files.history)
    if not own.at:
        table = cut_table(cuts)
        results.write("cuts", table)
        results.write(_EXCEPTIONS, CUT_EXCEPTIONS.empty_table())
        return CutResults(first_rows(table))
    judged = judged_cuts(spark, own, inputs.all, inputs.rows).persist()
    counts = judged.groupBy(*_KEYS).agg(F.sum("copies").alias("copies"))
    table = cut_table(cuts, counts.toArrow())
    results.write("cuts", table)
    _write_exceptions(results, judged, table)
    judged.unpersist()
    written = results.written(_EXCEPTIONS, CUT_EXCEPTIONS)
    return CutResults(first_rows(table), first_rows(samples(written, number, CUT_EXCEPTIONS)))


def cut_scope(scope: Scope, found: Survey, history: RouteHistory) -> CutScope:
    """Return what the cuts of a date are judged by."""
    since, open_since = hours_around(scope.day)[0], min(scope.open_since.values(), default=None)
    hashes = found.hashes["hash"]
    listed = hashes.null_count == 0 and len(hashes) <= _MAX_HASHES
    places = CutScope(
        scope.location, day_range(scope.day), since, open_since, broker_places(history)
    )
    judged = found.cuts.filter(pc.equal(found.cuts["class"], ""))
    return replace(
        places,
        at=frozenset(places.place(*end) for end in _ends(judged)),
        hashes=frozenset(hashes.to_pylist()) if listed else None,
    )


def _ends(cuts: pa.Table) -> Iterator[tuple[str, str]]:
    """Yield gateway and endpoint of each source; of a loop also of the target, which may see it.

    A row of an earlier version has no target.
    """
    loops = cuts.filter(pc.and_(pc.equal(cuts["rule"], LOOP), pc.is_valid(cuts["target"])))
    for own, ends in ((cuts, cuts["endpoint"]), (loops, endpoints_of(loops["target"]))):
        yield from zip(own["gateway"].to_pylist(), ends.to_pylist(), strict=True)


def cut_table(seen: pa.Table, judged: pa.Table | None = None) -> pa.Table:
    """Return the table `cuts`: the number of cuts of each class by gateway, route and target.

    `seen` are the cuts of the survey; `judged` those of them that have no class there.
    """
    known = seen.filter(pc.not_equal(seen["class"], ""))
    rows = [known] if judged is None else [known, judged.select(SEEN.names).cast(SEEN)]
    found = summed(pa.concat_tables(rows), _KEYS, ["copies"])
    order = {each.value: place for place, each in enumerate(CutClass)}
    rank = pa.array([order[name] for name in found["class"].to_pylist()], pa.int64())
    by = [("rank", "ascending"), ("copies", "descending"), *ascending(*_KEYS)]
    return found.append_column("rank", rank).sort_by(by).drop_columns(["rank"])


def _write_exceptions(results: ResultFolder, judged: DataFrame, table: pa.Table) -> None:
    listed = total(table.filter(pc.is_in(table["class"], _LISTED)), "copies")
    frame = judged.where("id IS NOT NULL").select(*CUT_EXCEPTIONS.names)
    results.write_frame(_EXCEPTIONS, frame, listed, CUT_EXCEPTIONS)
