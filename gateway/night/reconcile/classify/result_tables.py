"""The result tables of a reconciliation, made in the driver from counts by target and minute.

`minutes` has the counts of each target and minute; all other counts are sums of them. The counts
of joined copies come from Spark, those of proven copies from their id sets.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from gateway.model.copy_class import CLASSES, EXCEPTION_CLASSES, REPEATS, TALLIES, CopyClass
from gateway.night.archive.intervals import Numbers
from gateway.night.archive.segments.latency import BUCKETS, nonzero_counts
from gateway.night.archive.segments.tables import schema_of
from gateway.night.reconcile.grouping import (
    TARGET_KEYS,
    ascending,
    filled,
    firsts,
    positions,
    summed,
)

MAX_ROWS: Final = 10_000  # of a table in the report; the table itself is complete
MINUTE_KEYS: Final = (*TARGET_KEYS, "minute")
PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "slowest": 1.0}
_BAD: Final = tuple(name for name in EXCEPTION_CLASSES if name != CopyClass.IN_FLIGHT.value)
_DEAD: Final = tuple(name for name, facts in CLASSES.items() if facts.dead_letter)
MINUTES: Final = schema_of(
    {
        **dict.fromkeys(TARGET_KEYS, "string"),
        "minute": "timestamp",
        **dict.fromkeys(TALLIES, "int64"),
    }
)
LATENCIES: Final = schema_of(
    {
        "hour": "timestamp",
        "route": "string",
        "target": "string",
        "bucket": "int64",
        "copies": "int64",
    }
)
EXCEPTIONS: Final = schema_of(
    {
        **dict.fromkeys(("class", *TARGET_KEYS, "id"), "string"),
        **dict.fromkeys(("received_time", "end_time"), "timestamp"),
        **dict.fromkeys(("latency", "deliveries", "sightings"), "int64"),
        "marked": "boolean",
        "name": "string",
        "size": "int64",
        **dict.fromkeys(("sent_name", "rule", "reason"), "string"),
    }
)


def counted(classes: DataFrame) -> DataFrame:
    """Count copies by target, minute of receipt, class, flags and latency bucket."""
    latency = F.when(F.col("was_received"), F.col("latency"))
    return classes.groupBy(
        *TARGET_KEYS,
        F.date_trunc("minute", "received_time").alias("minute"),
        "class",
        "was_received",
        (F.col("marked") & (F.col("class") == CopyClass.DUPLICATED.value)).alias("marked"),
        *REPEATS,
        bucket(latency).alias("bucket"),
    ).agg(F.count("*").alias("copies"))


def bucket(latency: Column) -> Column:
    """Return the latency bucket of microseconds, as in `gateway.night.archive.segments.latency`.

    A null latency has none: `least` leaves nulls out, and would give the last bucket.
    """
    bits = F.length(F.bin(latency)) - 1
    shift = F.greatest(F.length(F.bin(latency)) - 2, F.lit(0))
    half = F.call_function("shiftright", latency, shift).bitwiseAND(F.lit(1))
    wide = F.least(2 * bits + half, F.lit(BUCKETS - 1))
    known = F.when(latency < 2, latency).when(latency.isNotNull(), wide)  # noqa: PLR2004  # 0 and 1 have buckets of their own
    return known.cast("long")


def counting(rows: pa.Table, name: str = "copies") -> pa.Table:
    """Return `rows` with a column of ones, whose sums count them."""
    return rows.append_column(name, pa.array(np.ones(rows.num_rows, np.int64)))


def minutes_of(counts: pa.Table) -> pa.Table:
    """Return MINUTES of the counts of joined copies."""
    copies = counts["copies"]
    columns = {
        **{name: counts[name] for name in MINUTE_KEYS},
        "received": pc.if_else(counts["was_received"], copies, 0),
        **{name: pc.if_else(counts[name], copies, 0) for name in REPEATS},
        **by_class(counts, CLASSES),
    }
    return summed(pa.table(columns), MINUTE_KEYS, TALLIES).cast(MINUTES)


def by_class(counts: pa.Table, classes: Iterable[str]) -> dict[str, pa.ChunkedArray]:
    """Return the column `copies` of rows as a column for each class, and `marked`."""
    which = {name: pc.equal(counts["class"], name) for name in classes}
    which["marked"] = counts["marked"]
    return {name: pc.if_else(own, counts["copies"], 0) for name, own in which.items()}


def with_proven(minutes: pa.Table, proven: pa.Table) -> pa.Table:
    """Return the sums of MINUTES and the proven copies, sorted by their keys."""
    known = {name: proven[name] for name in (*MINUTE_KEYS, "received", "redelivered")}
    delivered = {CopyClass.DELIVERED.value: proven["received"]}
    own = filled(MINUTES, proven.num_rows, dict.fromkeys(TALLIES, 0) | known | delivered)
    return summed(pa.concat_tables([minutes, own]), MINUTE_KEYS, TALLIES).cast(MINUTES)


def latencies_of(counts: pa.Table) -> pa.Table:
    """Return LATENCIES of the counts of joined copies."""
    timed = counts.filter(pc.is_valid(counts["bucket"]))
    columns = [_hour(timed["minute"]), *(timed[name] for name in LATENCIES.names[1:])]
    return pa.table(columns, schema=LATENCIES)


def proven_latencies(proven: pa.Table) -> pa.Table:
    """Return LATENCIES of the proven copies, summed for each part that a task sent.

    All parts of a billion rows have a gigabyte of counts, and places of as many bytes.
    """
    keys, parts = LATENCIES.names[:-1], [LATENCIES.empty_table()]
    for batch in proven.to_batches():
        part = pa.Table.from_batches([batch])
        rows, buckets, copies = nonzero_counts(part["latency"])
        own = part.select(["minute", "route", "target"]).take(pa.array(rows))
        columns = [_hour(own["minute"]), own["route"], own["target"], buckets, copies]
        parts.append(summed(pa.table(columns, schema=LATENCIES), keys, ["copies"]))
    return pa.concat_tables(parts)


def per_hour(minutes: pa.Table, latencies: pa.Table, *keys: str) -> pa.Table:
    """Return counts, messages per second and latency percentiles by hour and `keys`."""
    by = ["hour", *keys]
    hours = minutes.append_column("hour", _hour(minutes["minute"]))
    counts = summed(hours, by, TALLIES)
    counts = counts.append_column("rate", pc.divide(pc.cast(counts["received"], "double"), 3600))
    return counts.join(percentiles(latencies, *by), by).sort_by(ascending(*by))


def percentiles(latencies: pa.Table, *keys: str) -> pa.Table:
    """Return latency percentiles by `keys`, in microseconds, to a half octave.

    The column `timed` is the number of copies with a known latency.
    """
    merged = summed(latencies, [*keys, "bucket"], ["copies"])
    begins = firsts(merged, keys)
    ends = np.append(begins[1:], merged.num_rows)
    copies = merged["copies"].to_numpy()
    cumulated, timed = np.cumsum(copies), np.add.reduceat(copies, begins)
    before = cumulated[begins] - copies[begins]
    bounds = upper_bounds(merged["bucket"].to_numpy())
    found = merged.select(list(keys)).take(pa.array(begins))
    found = found.append_column("timed", pa.array(timed))
    for name, share in PERCENTILES.items():
        at = np.searchsorted(cumulated, before + np.ceil(timed * share))
        found = found.append_column(name, pa.array(bounds[np.minimum(at, ends - 1)]))
    return found


def upper_bounds(buckets: Numbers) -> Numbers:
    """Return the longest latency of each bucket, in microseconds."""
    octave = np.left_shift(1, buckets // 2)
    wide: Numbers = np.where(buckets % 2 == 1, 2 * octave, octave + octave // 2) - 1
    return np.where(buckets < 2, buckets, wide)  # noqa: PLR2004  # 0 and 1 have buckets of their own


def dead_letters(parts: Iterable[pa.Table]) -> pa.Table:
    """Count dead-lettered exceptions by rule, with one example of each."""
    keys = ["class", "route", "target", "rule"]
    dead = (part.filter(pc.is_in(part["class"], pa.array(_DEAD))) for part in parts)
    groups = [_first_of(counting(each), keys) for each in dead]
    return _first_of(pa.concat_tables(groups), keys)


def _first_of(rows: pa.Table, keys: list[str]) -> pa.Table:
    """Return the first row by id of each value of `keys`, in their order, with all its copies."""
    ordered = rows.sort_by(ascending(*keys, "id"))
    begins = firsts(ordered, keys)
    copies = np.add.reduceat(ordered["copies"].to_numpy(), begins)
    found = ordered.take(pa.array(begins))
    found = found.drop_columns(["copies"]).append_column("copies", pa.array(copies))
    return found.select([*keys, "copies", "id", "name", "reason"])


def worst_names(parts: Iterable[pa.Table], limit: int) -> pa.Table:
    """Return the source names with the most exceptions, with counts by class."""
    keys = ["route", "name"]
    groups = []
    for part in parts:
        bad = pc.and_(pc.is_in(part["class"], pa.array(_BAD)), pc.is_valid(part["name"]))
        own = counting(part.filter(bad))
        groups.append(pa.table({k: own[k] for k in (*keys, "copies")} | by_class(own, _BAD)))
    found = summed(pa.concat_tables(groups), keys, ["copies", *_BAD])
    order = [("copies", "descending"), *ascending(*keys)]
    return found.sort_by(order).slice(0, limit)


def samples(parts: Iterable[pa.Table], of_each: int, schema: pa.Schema = EXCEPTIONS) -> pa.Table:
    """Return the first `of_each` exceptions of every class, by time of receipt."""
    order = ascending("class", "received_time", "gateway", "id", "target")
    found = schema.empty_table()
    for part in parts:
        rows = pa.concat_tables([found, part]).sort_by(order)
        kept = [at for _, places in positions(rows, ["class"]) for at in places[:of_each]]
        found = rows.take(pa.array(kept, pa.int64()))
    return found.sort_by(ascending("class", "received_time", "id"))


def _hour(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.floor_temporal(times, unit="hour")
