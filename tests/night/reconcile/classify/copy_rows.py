"""Rows of an archive, written as facts about one copy, and their classes by Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from gateway.archive.layout import HOUR, day_start
from gateway.archive.location import ArchiveLocation
from gateway.night.archive.segments.tables import SCHEMA
from gateway.night.reconcile.classify import evidence
from gateway.night.reconcile.input.inputs import Scope, day_range, hours_around
from gateway.night.reconcile.input.row_reader import (
    JOIN_SCHEMA,
    Selection,
    TapKey,
    TapTimes,
    selected,
)

Row = Mapping[str, object]
NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
DAY = NOON.date()
LATE = 60
SECOND = 1_000_000
HOUR_AGO = NOON - timedelta(hours=1)
SPOOLED_SINCE = day_start(DAY) + 12 * HOUR  # a copy received before was spooled for too long


def identity(number: int) -> bytes:
    return number.to_bytes(16, "big")


def row(leg: str, number: int, target: str, more: Row) -> Row:
    return {
        "gateway": "edge", "route": "orders", "leg": leg, "endpoint": "e", "system": "mqtt",
        "target": target, "name": f"n{number}", "id": identity(number), "attempt": 1, "mode": 1,
        "time": NOON, "size": 3, "hash": b"same", "redelivered": False, **more,
    }  # fmt: skip


def received(number: int, targets: Sequence[str] = ("erp",), **more: object) -> Row:
    return row("received", number, "", {"outcome": "received", "targets": list(targets), **more})


def messages(*numbers: int) -> list[Row]:
    return [received(number) for number in numbers]


def delivered(number: int, target: str = "erp", **more: object) -> Row:
    return row("delivered", number, target, {"outcome": "accepted", **more})


def replayed(number: int, target: str = "erp", **more: object) -> Row:
    return delivered(number, target, replayed=True, **more)


def spooled(number: int, target: str = "erp") -> Row:
    return row("spooled", number, target, {"outcome": "spooled"})


def thinned(number: int, target: str = "erp") -> Row:
    return row("cut", number, target, {"outcome": "cut", "rule": "thinned"})


def seen(number: int, target: str = "erp", **more: object) -> Row:
    """An observed row with the id of the message."""
    own = {"name": "sent", "id": bytes([0] * 15 + [77]), "origin_id": identity(number).hex()}
    return row("observed", number, target, {**own, **more})


def glimpsed(**more: object) -> Row:
    """An observed row without an id, with the name and payload of message 1."""
    return row("observed", 99, "erp", {"name": "same", **more})


def AFTER(seconds: int) -> dict[str, Any]:  # noqa: N802  # reads as a fact in the tables below
    return {"received": NOON, "time": NOON + timedelta(seconds=seconds)}


def dead(number: int, target: str = "erp", **more: object) -> Row:
    return row("dead", number, target, {"outcome": "rejected", "rule": "too-long", **more})


def taps(rows: Sequence[Row]) -> dict[TapKey, TapTimes]:
    """The minute of the first observed row of each target."""
    found: dict[TapKey, TapTimes] = {}
    for each in rows:
        if each["leg"] == "observed":
            at = each.get("received") or each["time"]
            assert isinstance(at, datetime)
            key = (str(each["gateway"]), str(each["route"]), str(each["target"]))
            minute = int(at.replace(second=0).timestamp()) * SECOND
            found[key] = TapTimes(min(minute, found[key].since if key in found else minute))
    return found


def classes(
    spark: SparkSession, rows: Sequence[Row], open_since: Mapping[str, int] | None = None
) -> DataFrame:
    """The classes of archive rows."""
    scope = Scope(ArchiveLocation(Path()), DAY, LATE, SPOOLED_SINCE)
    frame = spark.createDataFrame(joined(rows, open_since))
    return evidence.classified(frame, scope, tapped=bool(taps(rows)))


def joined(rows: Sequence[Row], open_since: Mapping[str, int] | None = None) -> pa.Table:
    """The rows for the join."""
    nullable = pa.schema([each.with_nullable(True) for each in SCHEMA])
    archived = pa.Table.from_pylist([{**each} for each in rows], schema=nullable)
    selection = Selection(
        day_start(DAY) - 24 * HOUR, day_range(DAY)[1], hours_around(DAY), taps(rows), None,
        open_since or {},
    )  # fmt: skip
    table = selected(archived, selection)
    assert table.schema == JOIN_SCHEMA
    return table
