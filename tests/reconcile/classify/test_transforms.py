from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

from gateway.archive.location import ArchiveLocation
from gateway.archive.segments.latency import buckets
from gateway.archive.segments.tables import SCHEMA
from gateway.model.copy_class import CopyClass
from gateway.reconcile.classify import evidence, tables, transforms
from gateway.reconcile.classify.evidence import Scope
from gateway.reconcile.input.inputs import day_range, hours_around, microseconds
from gateway.reconcile.input.row_reader import JOIN_SCHEMA, Selection, TapKey, TapTimes, selected

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

Row = Mapping[str, object]
NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
DAY = NOON.date()
LATE = 60
SECOND = 1_000_000
HOUR_AGO = NOON - timedelta(hours=1)
SPOOLED_SINCE = microseconds(DAY, 12)  # a copy received before was spooled for too long


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
        microseconds(DAY, -24), day_range(DAY)[1], hours_around(DAY), taps(rows), None,
        open_since or {},
    )  # fmt: skip
    table = selected(archived, selection)
    assert table.schema == JOIN_SCHEMA
    return table


def found(rows: Sequence[SparkRow]) -> dict[tuple[int, str], str]:
    return {(each["counter"], each["target"]): each["class"] for each in rows}


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
        [received(1), delivered(1, name="same"), glimpsed(), glimpsed(redelivered=True)],
        {(1, "erp"): "delivered"},
        id="seen-again-after-the-tap-died",
    ),
    Case(
        [received(1), delivered(1, name="same"), glimpsed(redelivered=True), glimpsed()],
        {(1, "erp"): "delivered"},
        id="seen-again-and-recorded-in-another-order",
    ),
    Case(
        [
            *messages(1, 2),
            *[delivered(n, name="same") for n in (1, 2)],
            glimpsed(redelivered=True),
            glimpsed(redelivered=True),
        ],
        {(1, "erp"): "delivered", (2, "erp"): "delivered"},
        id="seen-first-in-rows-that-were-lost",
    ),
    Case(
        [
            received(1),
            delivered(1, name="same"),
            glimpsed(),
            glimpsed(),
            glimpsed(redelivered=True),
        ],
        {(1, "erp"): "delivered", (99, "erp"): "unexpected"},
        id="seen-more-often-than-delivered",
    ),
    Case(
        [received(1), delivered(1, name="same", attempt=2), glimpsed(), glimpsed()],
        {(1, "erp"): "delivered"},
        id="both-attempts-seen",
    ),
    Case(
        [received(1), delivered(1, name="same", attempt=2), glimpsed(), glimpsed(), glimpsed()],
        {(1, "erp"): "delivered", (99, "erp"): "unexpected"},
        id="seen-more-often-than-attempted",
    ),
    Case(
        [
            *messages(1, 2),
            delivered(1, name="same", attempt=2),
            delivered(2, name="same"),
            glimpsed(),
            glimpsed(),
        ],
        {(1, "erp"): "delivered", (2, "erp"): "delivered"},
        id="each-of-two-alike-seen-before-a-second-attempt",
    ),
    Case(
        [received(1, redelivered=True), delivered(1, name="sent"), seen(1), seen(7)],
        {(1, "erp"): "delivered"},
        id="sent-before-the-process-died",
    ),
    Case(
        [received(1, redelivered=True), delivered(1, name="same"), glimpsed(), glimpsed()],
        {(1, "erp"): "delivered"},
        id="sent-without-identity-before-the-process-died",
    ),
    Case(
        [received(1, redelivered=True), delivered(1, name="sent"), seen(1), seen(7), seen(8)],
        {(1, "erp"): "delivered"},
        id="sent-before-several-processes-died",
    ),
    Case(
        [received(1, redelivered=True), delivered(1, name="sent"), seen(1), seen(7, hash=b"new")],
        {(1, "erp"): "delivered", (7, "erp"): "unexpected"},
        id="another-payload-beside-a-redelivery",
    ),
    Case(
        [received(1, redelivered=True), delivered(1, name="sent"), seen(1), seen(7, name="new")],
        {(1, "erp"): "delivered", (7, "erp"): "unexpected"},
        id="another-name-beside-a-redelivery",
    ),
    Case(
        [received(1), delivered(1), glimpsed(name="foreign", redelivered=True)],
        {(1, "erp"): "lost in target", (99, "erp"): "unexpected"},
        id="never-bridged-and-seen-in-a-redelivery-only",
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
    Case([received(1, hash=None), delivered(1)], {(1, "erp"): "altered"}, id="received-no-hash"),
    Case([received(1), delivered(1, hash=None)], {(1, "erp"): "altered"}, id="delivered-no-hash"),
    Case([received(1, hash=None), delivered(1, hash=None)], {(1, "erp"): "altered"}, id="no-hash"),
    Case(
        [received(1), delivered(1, hash=None, outcome="converted")],
        {(1, "erp"): "altered"},
        id="converted-without-a-hash",
    ),
    Case([received(1), delivered(1), seen(1, hash=None)], {(1, "erp"): "altered"}, id="seen-none"),
    Case([received(1), replayed(1)], {(1, "erp"): "recovered"}, id="missing-and-replayed"),
    Case([received(1), dead(1), replayed(1)], {(1, "erp"): "recovered"}, id="dead-and-replayed"),
    Case([received(1), replayed(1, **AFTER(90))], {(1, "erp"): "recovered"}, id="replayed-late"),
    Case([received(1), replayed(1, hash=b"other")], {(1, "erp"): "altered"}, id="replayed-altered"),
    Case([replayed(1)], {(1, "erp"): "unexpected"}, id="replayed-and-never-received"),
    Case(
        [
            *messages(1, 2),
            replayed(1, source_name="n", **AFTER(9)),
            delivered(2, source_name="n", **AFTER(1)),
        ],
        {(1, "erp"): "recovered", (2, "erp"): "delivered"},
        id="a-replay-is-in-no-order",
    ),
    Case([received(1, [])], {(1, ""): "missing"}, id="no-target-and-no-end"),
    Case(
        [received(1), delivered(1), delivered(1, rule="repeat")],
        {(1, "erp"): "delivered"},
        id="the-target-knew-the-second-one",
    ),
    Case(
        [received(1), delivered(1, rule="repeat")],
        {(1, "erp"): "delivered"},
        id="the-target-knew-one-whose-answer-was-lost",
    ),
    Case(
        [received(1), delivered(1), delivered(1), delivered(1, rule="repeat")],
        {(1, "erp"): "duplicated"},
        id="the-target-knew-the-third-one-alone",
    ),
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
    Case([received(1), delivered(1), replayed(1)], True, id="replay-of-a-delivered-one"),
    Case([received(1), replayed(1), replayed(1)], True, id="replayed-twice"),
    Case([received(1), delivered(1, mode=2), replayed(1, mode=2)], True, id="replay-at-once"),
    Case([received(1), delivered(1), delivered(1), replayed(1)], False, id="twice-and-replayed"),
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
        *[delivered(number) for number in (1, 2, 3, 4)],
        delivered(2, attempt=2),
        delivered(5, hash=b"other"),
        dead(6, reason="256 bytes", name="sent"),
        delivered(9),
        replayed(8),
    ]
    classified = classes(spark, rows).persist()
    counts = tables.counted(classified).toArrow()
    detailed = transforms.details(spark.createDataFrame(joined(rows)))
    read_again = transforms.exceptions(classified).join(detailed, list(transforms.COPY_KEYS))
    listed = transforms.described(read_again).toArrow().cast(tables.EXCEPTIONS)

    (route,) = tables.summed(tables.minutes_of(counts), "route", "target").to_pylist()

    in_one = evidence.classified(
        spark.createDataFrame(joined(rows)),
        Scope(ArchiveLocation(Path()), DAY, LATE, SPOOLED_SINCE),
        tapped=False,
        detailed=True,
    )
    carried = transforms.described(transforms.exceptions(in_one)).toArrow()
    order = [("id", "ascending"), ("class", "ascending")]
    assert carried.cast(tables.EXCEPTIONS).sort_by(order) == listed.sort_by(order)
    assert route == {
        "route": "orders", "target": "erp", "received": 8, "delivered": 3, "duplicated": 1,
        "marked": 1, "altered": 1, "refused": 1, "dead-lettered": 0, "missing": 1, "unexpected": 1,
        "in flight": 0, "redelivered": 1, "delivered late": 0, "out of order": 0,
        "lost in target": 0, "recovered": 1,
    }  # fmt: skip
    assert route["received"] == sum(
        route[one.value] for one in CopyClass if one is not CopyClass.UNEXPECTED
    )
    (one,) = [each for each in listed.to_pylist() if each["class"] == "refused"]
    assert (one["id"], one["name"], one["size"]) == (identity(6).hex(), "n6", 3)
    assert (one["rule"], one["reason"]) == ("too-long", "256 bytes")
    assert listed.num_rows == 6
    (letter,) = tables.dead_letters([listed]).to_pylist()
    assert (letter["rule"], letter["copies"], letter["name"]) == ("too-long", 1, "n6")
    ids = [each["id"] for each in tables.samples([listed, listed], 1).to_pylist()]
    assert len(ids) == 6
    worst = tables.worst_names([listed], 2).to_pylist()
    assert [(each["name"], each["copies"]) for each in worst] == [("n2", 1), ("n5", 1)]


LATENCIES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 1_000_000, (1 << 39) + 5, (1 << 40) - 1]


def test_a_bucket_holds_half_an_octave(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(each,) for each in LATENCIES], "latency long")
    rows = frame.select(tables.bucket(F.col("latency")).alias("bucket")).collect()
    numbers = np.array([each["bucket"] for each in rows])

    assert list(numbers) == list(buckets(np.array(LATENCIES)))
    assert list(numbers[:11]) == [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 7]
    for latency, most in zip(LATENCIES, tables.upper_bounds(numbers), strict=True):
        assert latency <= most <= latency * 1.5 + 1


def test_a_copy_without_a_latency_has_no_bucket(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(None,), (7,)], "latency long")

    rows = frame.select(tables.bucket(F.col("latency")).alias("bucket")).collect()

    assert [each["bucket"] for each in rows] == [None, int(buckets(np.array([7]))[0])]
