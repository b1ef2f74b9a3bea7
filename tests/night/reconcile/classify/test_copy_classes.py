"""The class of every copy of a date, by Spark, from rows of an archive."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import Row as SparkRow
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from gateway.archive.location import ArchiveLocation
from gateway.model.copy_class import TALLIES, CopyClass
from gateway.night.archive.segments.latency import buckets
from gateway.night.reconcile.classify import copy_classes, evidence, result_tables
from gateway.night.reconcile.grouping import summed
from gateway.night.reconcile.input.inputs import Scope
from tests.night.reconcile.classify.copy_cases import CASES, MARKED, Case
from tests.night.reconcile.classify.copy_rows import (
    DAY,
    HOUR_AGO,
    LATE,
    NOON,
    SECOND,
    SPOOLED_SINCE,
    Row,
    classes,
    dead,
    delivered,
    glimpsed,
    identity,
    joined,
    received,
    replayed,
    seen,
    spooled,
)

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def found(rows: Sequence[SparkRow]) -> dict[tuple[int, str], str]:
    return {(each["counter"], each["target"]): each["class"] for each in rows}


def named(case: Case) -> str:
    return case.id


def apart(cases: Sequence[Case]) -> list[Row]:
    """The rows of all cases, each with its own gateway, so that one job classifies them all."""
    return [
        {**each, "gateway": f"{each['gateway']} {case.id}"} for case in cases for each in case.rows
    ]


@pytest.fixture(scope="module")
def classified(spark: SparkSession) -> list[SparkRow]:
    return classes(spark, apart([*CASES, *MARKED])).collect()


@pytest.mark.parametrize("case", CASES, ids=named)
def test_every_copy_is_in_one_class(classified: list[SparkRow], case: Case) -> None:
    orders = [
        each
        for each in classified
        if each["gateway"] == f"edge {case.id}" and each["route"] in ("orders", "")
    ]

    assert found(orders) == case.expected


@pytest.mark.parametrize("case", MARKED, ids=named)
def test_a_recorded_retry_marks_its_duplicate(classified: list[SparkRow], case: Case) -> None:
    (result,) = [each for each in classified if each["gateway"] == f"edge {case.id}"]

    assert (result["class"], result["marked"]) == ("duplicated", case.expected)


def test_classes_by_date_grace_and_age(spark: SparkSession) -> None:
    """One job for all rules about times; each case has its own gateway."""
    yesterday = {"time": NOON - timedelta(hours=13)}
    tomorrow = {"time": NOON + timedelta(hours=13)}
    rows = [
        received(1), {**delivered(1), **tomorrow, "received": NOON},
        {**received(2), **yesterday}, {**delivered(2), **yesterday},
        {**delivered(2), "received": yesterday["time"]},
        received(3),
        {**received(4), **yesterday},
        *[{**received(5), **tomorrow}, {**delivered(5), **tomorrow}],
        *of("older", [received(1), {**delivered(1), **tomorrow}, received(3)]),
        *of("older", [{**received(2), **yesterday}, {**delivered(2), **yesterday}]),
        *of("open", [received(n, time=NOON + timedelta(seconds=50 * n)) for n in (0, 1, 2)]),
        *of("spool", [received(1), spooled(1), received(2, time=HOUR_AGO)]),
        {**spooled(2), "gateway": "spool", "time": NOON, "received": HOUR_AGO},
        *of("busy", [received(n, time=NOON + timedelta(seconds=50 * n)) for n in (0, 1, 2)]),
    ]  # fmt: skip
    since = int(NOON.timestamp() + 40) * SECOND

    classified = classes(spark, rows, {"open": since}).collect()

    def of_gateway(name: str) -> dict[tuple[int, str], str]:
        return found([each for each in classified if each["gateway"] == name])

    assert of_gateway("edge") == {(1, "erp"): "delivered late", (3, "erp"): "missing"}
    assert of_gateway("older") == {(1, "erp"): "delivered late", (3, "erp"): "missing"}
    assert of_gateway("open") == {
        (0, "erp"): "missing", (1, "erp"): "in flight", (2, "erp"): "in flight",
    }  # fmt: skip
    assert of_gateway("spool") == {(1, "erp"): "in flight", (2, "erp"): "missing"}  # too old
    assert set(of_gateway("busy").values()) == {"missing"}  # an open journal excuses its gateway


@pytest.mark.nightly
def test_a_late_sighting_makes_no_older_copy_recent(spark: SparkSession) -> None:
    at = NOON + timedelta(seconds=50)
    unarchived = {**seen(3, time=at), "origin_id": identity(3).hex()}
    rows = [
        *[received(1), delivered(1, name="same"), glimpsed(time=at)],  # by its content
        *[received(2), seen(2, time=at), unarchived],  # by its id
    ]
    since = int(NOON.timestamp() + 40) * SECOND

    classified = classes(spark, rows, {"edge": since}).collect()

    assert {each["counter"]: each["recent"] for each in classified} == {1: False, 2: False, 3: True}


def of(gateway: str, rows: Sequence[Row]) -> list[Row]:
    return [{**each, "gateway": gateway} for each in rows]


def test_the_numbers_of_a_route_add_up(spark: SparkSession) -> None:
    rows = [
        *[received(number, redelivered=number == 1) for number in range(1, 9)],
        *[delivered(number) for number in (1, 2, 3)],
        *[delivered(number, attempt=2) for number in (2, 4)],
        delivered(5, hash=b"other"),
        dead(6, reason="256 bytes", name="sent"),
        delivered(9),
        replayed(8),
    ]
    classified = classes(spark, rows).persist()
    counts = result_tables.counted(classified).toArrow()
    detailed = copy_classes.details(spark.createDataFrame(joined(rows)))
    read_again = copy_classes.exceptions(classified).join(detailed, list(copy_classes.COPY_KEYS))
    listed = copy_classes.described(read_again).toArrow().cast(result_tables.EXCEPTIONS)

    (route,) = summed(result_tables.minutes_of(counts), ("route", "target"), TALLIES).to_pylist()

    in_one = evidence.classified(
        spark.createDataFrame(joined(rows)),
        Scope(ArchiveLocation(Path()), DAY, LATE, SPOOLED_SINCE),
        tapped=False,
        detailed=True,
    )
    carried = copy_classes.described(copy_classes.exceptions(in_one)).toArrow()
    order = [("id", "ascending"), ("class", "ascending")]
    assert carried.cast(result_tables.EXCEPTIONS).sort_by(order) == listed.sort_by(order)
    assert route == {
        "route": "orders", "target": "erp", "received": 8, "delivered": 3, "duplicated": 1,
        "marked": 1, "altered": 1, "refused": 1, "dead-lettered": 0, "missing": 1, "unexpected": 1,
        "in flight": 0, "redelivered": 1, "resent": 2, "delivered late": 0, "out of order": 0,
        "lost in target": 0, "recovered": 1,
    }  # fmt: skip
    assert route["received"] == sum(
        route[one.value] for one in CopyClass if one is not CopyClass.UNEXPECTED
    )
    (one,) = [each for each in listed.to_pylist() if each["class"] == "refused"]
    assert (one["id"], one["name"], one["size"]) == (identity(6).hex(), "n6", 3)
    assert (one["rule"], one["reason"]) == ("too-long", "256 bytes")
    assert listed.num_rows == 6
    (letter,) = result_tables.dead_letters([listed]).to_pylist()
    assert (letter["rule"], letter["copies"], letter["name"]) == ("too-long", 1, "n6")
    ids = [each["id"] for each in result_tables.samples([listed, listed], 1).to_pylist()]
    assert len(ids) == 6
    worst = result_tables.worst_names([listed], 2).to_pylist()
    assert [(each["name"], each["copies"]) for each in worst] == [("n2", 1), ("n5", 1)]


LATENCIES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 1_000_000, (1 << 39) + 5, (1 << 40) - 1]


def test_a_bucket_holds_half_an_octave(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(each,) for each in LATENCIES], "latency long")
    rows = frame.select(result_tables.bucket(F.col("latency")).alias("bucket")).collect()
    numbers = np.array([each["bucket"] for each in rows])

    assert list(numbers) == list(buckets(np.array(LATENCIES)))
    assert list(numbers[:11]) == [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 7]
    for latency, most in zip(LATENCIES, result_tables.upper_bounds(numbers), strict=True):
        assert latency <= most <= latency * 1.5 + 1


def test_a_copy_without_a_latency_has_no_bucket(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(None,), (7,)], "latency long")

    rows = frame.select(result_tables.bucket(F.col("latency")).alias("bucket")).collect()

    assert [each["bucket"] for each in rows] == [None, int(buckets(np.array([7]))[0])]
