from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

from gateway.archive.schema import COLUMNS
from gateway.reconcile.classes import CopyClass
from gateway.reconcile.classify import tables, transforms
from gateway.reconcile.classify.evidence import Evidence, classify_copies, evidence_in
from gateway.reconcile.schema import ROWS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

Row = Mapping[str, object]
NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
DAY = NOON.date()
LATE = 60


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


def spooled(number: int, target: str = "erp") -> Row:
    return row("spooled", number, target, {"outcome": "spooled"})


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


def frame(spark: SparkSession, rows: Sequence[Row]) -> DataFrame:
    return spark.createDataFrame([tuple(each.get(name) for name in COLUMNS) for each in rows], ROWS)


def evidence(spark: SparkSession, rows: Sequence[Row]) -> Evidence:
    return evidence_in(transforms.in_window(frame(spark, rows), DAY, 6), DAY)


def classes(
    spark: SparkSession,
    rows: Sequence[Row],
    seconds: int = 0,
) -> DataFrame:
    last = frame(spark, rows).groupBy("gateway").agg(F.max("time").alias("last"))
    since = transforms.in_flight_since(last.limit(10**6 if seconds else 0), seconds)
    return classify_copies(evidence(spark, rows), since, LATE)


def found(rows: Sequence[SparkRow]) -> dict[tuple[int, str], str]:
    return {(each["id"][-1], each["target"]): each["class"] for each in rows}


class Case(NamedTuple):
    rows: Sequence[Row]
    expected: object
    id: str


def named(case: Case) -> str:
    return case.id


def apart(cases: Sequence[Case]) -> list[Row]:
    """The rows of all cases, each with its own gateway, so that one job classifies them all."""
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
    Case([received(1), dead(1)], {(1, "erp"): "refused"}, id="refused-by-a-rule"),
    Case(
        [received(1), dead(1, rule="spool-full")], {(1, "erp"): "dead-lettered"}, id="dead-lettered"
    ),
    Case([received(1), dead(1, rule=None)], {(1, "erp"): "refused"}, id="dead-without-a-rule"),
    Case([received(1), spooled(1)], {(1, "erp"): "in flight"}, id="spooled"),
    Case([received(1), spooled(1), delivered(1)], {(1, "erp"): "delivered"}, id="was-spooled"),
    Case([spooled(1), delivered(1)], {(1, "erp"): "delivered"}, id="receipt-died-with-the-process"),
    Case([received(1), delivered(1, **AFTER(61))], {(1, "erp"): "delivered late"}, id="late"),
    Case([received(1), delivered(1, **AFTER(60))], {(1, "erp"): "delivered"}, id="just-in-time"),
    Case([received(1), delivered(1, **AFTER(-9))], {(1, "erp"): "delivered"}, id="clock-set-back"),
    Case(
        [*messages(1, 2), delivered(1, source_name="n", **AFTER(2)), delivered(2, source_name="n")],
        {(1, "erp"): "delivered", (2, "erp"): "out of order"},
        id="overtaken",
    ),
    Case(
        [received(1), received(2), delivered(1, **AFTER(2)), delivered(2, source_name="other")],
        {(1, "erp"): "delivered", (2, "erp"): "delivered"},
        id="another-name-may-overtake",
    ),
    Case(
        [
            *messages(1, 2),
            delivered(1, source_name="n"),
            delivered(2, source_name="n", **AFTER(1)),
            delivered(1, source_name="n", attempt=2, **AFTER(2)),
        ],
        {(1, "erp"): "duplicated", (2, "erp"): "delivered"},
        id="a-second-delivery-is-not-overtaken",
    ),
    Case([received(1), delivered(1), seen(1)], {(1, "erp"): "delivered"}, id="seen"),
    Case(
        [received(1), received(2), delivered(1), delivered(2), seen(1)],
        {(1, "erp"): "delivered", (2, "erp"): "lost in target"},
        id="lost-in-the-target",
    ),
    Case([received(1), delivered(1), seen(1, hash=b"other")], {(1, "erp"): "altered"}, id="spoilt"),
    Case(
        [received(1), delivered(1), seen(1), seen(7)],
        {(1, "erp"): "delivered", (7, "erp"): "unexpected"},
        id="seen-but-never-bridged",
    ),
    Case(
        [*messages(1, 2), *[delivered(n, name="same") for n in (1, 2)], glimpsed(), glimpsed()],
        {(1, "erp"): "delivered", (2, "erp"): "delivered"},
        id="seen-without-identity",
    ),
    Case(
        [*messages(1, 2), *[delivered(n, name="same") for n in (1, 2)], glimpsed()],
        {(1, "erp"): "delivered", (2, "erp"): "lost in target"},
        id="one-of-two-alike-lost",
    ),
    Case(
        [received(1), delivered(1, name="sent"), glimpsed(), seen(1)],
        {(1, "erp"): "delivered", (99, "erp"): "unexpected"},
        id="a-stranger-without-identity",
    ),
    Case(
        [received(1, ["erp", "audit"]), dead(1, "", targets=["erp", "audit"])],
        {(1, "erp"): "refused", (1, "audit"): "refused"},
        id="dead-for-all-targets",
    ),
    Case([dead(1, "", route="")], {(1, ""): "refused"}, id="dead-on-arrival"),
    Case([dead(1)], {(1, "erp"): "unexpected"}, id="dead-but-never-received"),
    Case([delivered(1)], {(1, "erp"): "unexpected"}, id="never-received"),
    Case(
        [received(1), delivered(1), delivered(1, attempt=2)],
        {(1, "erp"): "duplicated"},
        id="twice",
    ),
    Case([received(1), delivered(1), dead(1)], {(1, "erp"): "duplicated"}, id="delivered-and-dead"),
    Case([received(1), dead(1), dead(1)], {(1, "erp"): "refused"}, id="dead-twice"),
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
def test_a_recorded_retry_marks_its_duplicate(classified: list[SparkRow], case: Case) -> None:
    (result,) = [each for each in classified if each["gateway"] == f"edge {case.id}"]

    assert (result["class"], result["marked"]) == ("duplicated", case.expected)


YESTERDAY, TOMORROW = {"time": NOON - timedelta(hours=13)}, {"time": NOON + timedelta(hours=13)}


@pytest.mark.parametrize("gateways", ["that say when they received", "older"])
def test_an_outcome_after_midnight_belongs_to_the_day_of_its_receipt(
    spark: SparkSession, gateways: str
) -> None:
    has_receipt = gateways != "older"
    rows = [
        *[received(1), {**delivered(1), **TOMORROW, "received": NOON if has_receipt else None}],
        *[{**received(2), **YESTERDAY}, {**delivered(2), **YESTERDAY}],
        {**delivered(2), "received": YESTERDAY["time"] if has_receipt else None},
        received(3),
        {**received(4), **YESTERDAY},
        *[{**received(5), **TOMORROW}, {**delivered(5), **TOMORROW}],
    ]

    classified = classes(spark, rows)

    assert {
        key: each for key, each in found(classified.collect()).items() if each != "delivered late"
    } == {(3, "erp"): "missing"}
    assert {(1, "erp")} == set(found(classified.where("class like 'delivered%'").collect()))


def test_a_copy_received_just_before_the_last_row_is_in_flight(spark: SparkSession) -> None:
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

    (route,) = tables.per_route(tables.tallied(classes(spark, rows))).collect()

    assert route.asDict() == {
        "route": "orders", "target": "erp", "received": 7, "delivered": 3, "duplicated": 1,
        "marked": 1, "altered": 1, "refused": 1, "dead-lettered": 0, "missing": 1, "unexpected": 1,
        "in flight": 0, "redelivered": 1, "delivered late": 0, "out of order": 0,
        "lost in target": 0,
    }  # fmt: skip
    assert route["received"] == sum(
        route[one.value] for one in CopyClass if one is not CopyClass.UNEXPECTED
    )


def test_exceptions_have_their_details(spark: SparkSession) -> None:
    rows = [
        received(1),
        dead(1, reason="256 bytes", name="sent"),
        *[received(number) for number in (2, 3, 4)],
        delivered(4),
    ]
    exceptions = transforms.exceptions(classes(spark, rows))
    listed = tables.with_details(exceptions, evidence(spark, rows).rows).persist()

    one = listed.where(F.col("id") == identity(1).hex()).collect()[0]
    assert (one["class"], one["name"], one["size"]) == ("refused", "n1", 3)
    assert (one["rule"], one["reason"]) == ("too-long", "256 bytes")
    assert listed.count() == 3
    (letter,) = tables.dead_letters(listed).collect()
    assert (letter["rule"], letter["copies"], letter["name"]) == ("too-long", 1, "n1")
    ids = [each["id"] for each in tables.sample(listed, 1).orderBy("id").collect()]
    assert ids == [identity(1).hex(), identity(2).hex()]
    worst = tables.worst_names(listed, 2).collect()
    assert [(each["name"], each["copies"]) for each in worst] == [("n1", 1), ("n2", 1)]


LATENCIES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 1_000_000, (1 << 39) + 5, (1 << 40) - 1]


def test_a_bucket_holds_half_an_octave(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(each,) for each in LATENCIES], "latency long")
    placed = frame.withColumn("bucket", tables.bucket(F.col("latency")))

    rows = placed.withColumn("most", tables.upper_bound(F.col("bucket"))).collect()

    assert [each["bucket"] for each in rows][:11] == [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 7]
    for each in rows:
        assert each["latency"] <= each["most"] <= each["latency"] * 1.5 + 1
