from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Row as SparkRow

from gateway.archive.schema import COLUMNS
from gateway.reconcile import transforms
from gateway.reconcile.schema import ROWS
from gateway.reconcile.transforms import Class

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

Row = Mapping[str, object]
NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)


def row(leg: str, number: int, target: str, more: Row) -> Row:
    return {
        "gateway": "edge", "route": "orders", "leg": leg, "endpoint": "e", "system": "mqtt",
        "target": target, "name": f"n{number}", "id": bytes([number]), "attempt": 1, "mode": 1,
        "time": NOON, "size": 3, "hash": b"same", "redelivered": False, **more,
    }  # fmt: skip


def received(number: int, targets: Sequence[str] = ("erp",), **more: object) -> Row:
    return row("received", number, "", {"outcome": "received", "targets": list(targets), **more})


def delivered(number: int, target: str = "erp", **more: object) -> Row:
    return row("delivered", number, target, {"outcome": "accepted", **more})


def dead(number: int, target: str = "erp", **more: object) -> Row:
    return row("dead", number, target, {"outcome": "rejected", "rule": "too-long", **more})


def frame(spark: SparkSession, rows: Sequence[Row]) -> DataFrame:
    return spark.createDataFrame([tuple(each.get(name) for name in COLUMNS) for each in rows], ROWS)


def classes(
    spark: SparkSession,
    day: Sequence[Row],
    before: Sequence[Row] = (),
    after: Sequence[Row] = (),
    seconds: int = 0,
) -> DataFrame:
    frames = [frame(spark, rows) for rows in (day, before, after)]
    last = transforms.cut(frames[0], frames[2])
    return transforms.classified(transforms.copies(transforms.steps(*frames)), last, seconds)


def found(rows: Sequence[SparkRow]) -> dict[tuple[int, str], str]:
    return {(each["id"][0], each["target"]): each["class"] for each in rows}


class Case(NamedTuple):
    rows: Sequence[Row]
    expected: object
    id: str


def named(case: Case) -> str:
    return case.id


def apart(cases: Sequence[Case]) -> list[Row]:
    """The rows of all cases, each with a gateway of its own, so that one job answers them all."""
    return [
        {**each, "gateway": f"{each['gateway']} {case.id}"} for case in cases for each in case.rows
    ]


CASES = [
    Case([received(1), delivered(1)], {(1, "erp"): "delivered"}, id="delivered"),
    Case([received(1)], {(1, "erp"): "missing"}, id="missing"),
    Case(
        [received(1, ["erp", "audit"]), delivered(1, "audit")],
        {(1, "erp"): "missing", (1, "audit"): "delivered"},
        id="missing-at-one-target",
    ),
    Case([received(1), dead(1)], {(1, "erp"): "dead-lettered"}, id="dead"),
    Case(
        [received(1, ["erp", "audit"]), dead(1, "", targets=["erp", "audit"])],
        {(1, "erp"): "dead-lettered", (1, "audit"): "dead-lettered"},
        id="dead-for-all-targets",
    ),
    Case([dead(1, "", route="")], {(1, ""): "dead-lettered"}, id="dead-on-arrival"),
    Case([dead(1)], {(1, "erp"): "unexpected"}, id="dead-but-never-received"),
    Case([delivered(1)], {(1, "erp"): "unexpected"}, id="never-received"),
    Case(
        [received(1), delivered(1), delivered(1, attempt=2)],
        {(1, "erp"): "duplicated"},
        id="twice",
    ),
    Case([received(1), delivered(1), dead(1)], {(1, "erp"): "duplicated"}, id="delivered-and-dead"),
    Case([received(1), dead(1), dead(1)], {(1, "erp"): "dead-lettered"}, id="dead-twice"),
    Case([received(1), delivered(1, hash=b"other")], {(1, "erp"): "altered"}, id="altered"),
    Case(
        [received(1), delivered(1), delivered(1, hash=b"other")],
        {(1, "erp"): "altered"},
        id="altered-once-of-two",
    ),
    Case(
        [received(1), delivered(1, hash=b"other", outcome="converted")],
        {(1, "erp"): "delivered"},
        id="converted-on-purpose",
    ),
    Case(
        [received(1, hash=None), delivered(1)], {(1, "erp"): "delivered"}, id="no-hash-to-compare"
    ),
    Case([received(1, [])], {(1, ""): "missing"}, id="no-target-and-no-end"),
    Case(
        [received(1), delivered(1, route="copy"), received(1, route="copy")],
        {(1, "erp"): "missing"},
        id="another-route-does-not-count",
    ),
    Case(
        [received(1), delivered(1, gateway="west")],
        {(1, "erp"): "missing"},
        id="another-gateway-does-not-count",
    ),
    Case([row("observed", 1, "erp", {})], {}, id="taps-come-later"),
]


MARKED = [
    Case([received(1), delivered(1), delivered(1, attempt=2)], True, id="retry"),
    Case([received(1), delivered(1, attempt=2), delivered(1, attempt=3)], True, id="two-retries"),
    Case([received(1), delivered(1), delivered(1)], False, id="first-try-twice"),
    Case([received(1), delivered(1), dead(1)], False, id="dead-as-well"),
    Case(
        [received(1), delivered(1, mode=2), delivered(1, mode=2, attempt=2)],
        False,
        id="exactly-once",
    ),
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
def test_a_retry_that_says_so_marks_its_duplicate(classified: list[SparkRow], case: Case) -> None:
    (result,) = [each for each in classified if each["gateway"] == f"edge {case.id}"]

    assert (result["class"], result["marked"]) == ("duplicated", case.expected)


def test_what_ends_after_midnight_is_the_business_of_its_day(spark: SparkSession) -> None:
    result = classes(
        spark,
        day=[received(1), delivered(2), received(3)],
        before=[received(2), delivered(2), received(4)],
        after=[delivered(1), received(5), delivered(5)],
    )

    assert found(result.collect()) == {(1, "erp"): "delivered", (3, "erp"): "missing"}


def test_just_before_the_cut_a_copy_is_in_flight(spark: SparkSession) -> None:
    rows = [
        received(1),
        received(2, time=NOON + timedelta(seconds=50)),
        received(3, time=NOON + timedelta(seconds=100)),
    ]

    assert found(classes(spark, rows, seconds=60).collect()) == {
        (1, "erp"): "missing",
        (2, "erp"): "in flight",
        (3, "erp"): "in flight",
    }
    assert set(found(classes(spark, rows).collect()).values()) == {"missing"}


def test_the_numbers_of_a_route_add_up(spark: SparkSession) -> None:
    rows = [
        *[received(number, redelivered=number == 1) for number in range(1, 8)],
        *[delivered(number) for number in (1, 2, 3, 4)],
        delivered(2, attempt=2),
        delivered(5, hash=b"other"),
        dead(6),
        delivered(9),
    ]

    (route,) = transforms.per_route(classes(spark, rows)).collect()

    assert route.asDict() == {
        "route": "orders", "target": "erp", "received": 7, "delivered": 3, "duplicated": 1,
        "marked": 1, "altered": 1, "dead-lettered": 1, "missing": 1, "unexpected": 1,
        "in flight": 0, "redelivered": 1,
    }  # fmt: skip
    assert route["received"] == sum(
        route[one.value] for one in Class if one is not Class.UNEXPECTED
    )


def test_exceptions_can_be_looked_up(spark: SparkSession) -> None:
    rows = [
        received(1),
        dead(1, reason="256 bytes", name="sent"),
        *[received(number) for number in (2, 3, 4)],
        delivered(4),
    ]
    steps = transforms.steps(frame(spark, rows), frame(spark, []), frame(spark, []))
    listed = transforms.detailed(transforms.exceptions(classes(spark, rows)), steps).persist()

    one = listed.where("id = '01'").collect()[0]
    assert (one["class"], one["name"], one["size"]) == ("dead-lettered", "n1", 3)
    assert (one["rule"], one["reason"]) == ("too-long", "256 bytes")
    assert listed.count() == 3
    (letter,) = transforms.dead_letters(listed).collect()
    assert (letter["rule"], letter["copies"], letter["name"]) == ("too-long", 1, "n1")
    ids = [each["id"] for each in transforms.sample(listed, 1).orderBy("id").collect()]
    assert ids == ["01", "02"]
