"""The rows of tampered and of random archives get the classes that the list of messages gives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from gateway.archive.findings import Weight
from gateway.archive.journal.ends import Head
from gateway.archive.journal.file import Journal
from gateway.archive.journal.local_head import last_link
from gateway.archive.journal.records import Cell
from gateway.archive.layout import HOUR, JournalName, journal_folder
from gateway.archive.location import ArchiveLocation
from gateway.model.copy_class import TALLIES, CopyClass
from gateway.night.archive.compaction.compact_day import compact_day
from gateway.night.archive.open_archive import open_archive
from gateway.night.archive.segments.convert import convert
from gateway.night.reconcile.classify import result_tables
from gateway.night.reconcile.classify.copy_classes import COPY_KEYS
from gateway.night.reconcile.classify.evidence import classified
from gateway.night.reconcile.grouping import summed
from gateway.night.reconcile.input.executors import spark_schema
from gateway.night.reconcile.input.inputs import Scope
from gateway.night.reconcile.input.row_reader import JOIN_ROWS
from gateway.night.reconcile.job import Job, reconcile
from gateway.night.reconcile.report.report import Report
from tests.archive.samples import DAY
from tests.night.archive.compaction.days import merged_here
from tests.night.reconcile import row_model
from tests.night.reconcile.tampering import (
    LATE,
    MIDNIGHT,
    NEXT_MIDNIGHT,
    SECOND,
    Archive,
    Plan,
    memory_folder,
    plan_of,
    spans_of,
    write,
    write_chain,
)
from tests.night.reconcile.test_tampering import (
    NOW,
    SPOOLED_DAYS,
    NightRows,
    check_seed,
    identified,
    model_limits,
    night_rows,
    unproven_copies,
)
from tests.night.reconcile.test_tampering_cases import SPANS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

GATEWAYS, FEW_GATEWAYS = 10, 4  # of a random archive
BATCH = 250  # archives that are classified together
NIGHTLY_SEEDS = range(1_000, 11_000, BATCH)
COUNTED = (*(each.value for each in CopyClass), "marked")


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as path:
        yield path


def message(identity: int, at: int, leg: str, **more: Cell) -> dict[str, Cell]:
    row: dict[str, Cell] = {
        "route": "orders", "leg": leg, "endpoint": "plant", "system": "mqtt", "name": "a",
        "targets": ["erp"] if leg == "received" else None, "time": at, "received": at,
        "id": (MIDNIGHT - HOUR).to_bytes(8, "big") + identity.to_bytes(8, "big"),
        "target": "erp" if leg == "delivered" else None, "hash": bytes(16), "attempt": 1,
        "outcome": "accepted" if leg == "delivered" else "received", "gateway": "east", "mode": 1,
    }  # fmt: skip
    return {**row, **more}


@pytest.mark.parametrize("full", [True, False], ids=["full", "sets"])
def test_cases_1_4_and_10_are_found_in_the_rows(
    tmp_path: Path,
    *,
    full: bool,
) -> None:
    """Case 1: an idle gateway with an open journal excuses no loss of another gateway.

    Case 4: 32 ids received, and as many other ids delivered. Case 10: a delivery without a hash.
    """
    last = NEXT_MIDNIGHT - 90 * SECOND
    rows = [message(each, last + each, "received") for each in range(1_000, 1_004)]
    for each in range(32):
        rows.append(message(each, MIDNIGHT + each, "received"))
        rows.append(message(each + 32, MIDNIGHT + each, "delivered"))
    rows.append(message(2_000, MIDNIGHT + HOUR, "received"))
    rows.append(message(2_000, MIDNIGHT + HOUR, "delivered", hash=None))
    archive = Archive(tmp_path / "archive", None, Plan(), {})
    rng = random.Random(1)  # noqa: S311  # nothing is torn
    write_chain(archive, "east", SPANS, rows, rng)
    write_chain(archive, "idle", SPANS[:2], [], rng)
    for path in sorted(journal_folder(archive.root).glob("*.open")):
        convert(archive.root, path)
    previous = last_link(archive.root, "idle")
    name = JournalName("idle", SPANS[0].start, 2)
    head = Head("idle", "idle", name.start, name.number, MIDNIGHT, previous, keyed=False)
    journal = Journal(journal_folder(archive.root) / f"{name}.open", head)

    job = Job(tmp_path / "night", full=full, now=NEXT_MIDNIGHT + HOUR)
    report = reconcile(open_archive(archive.root), DAY, job, lambda *_: None)

    journal.close()
    assert report.status == 1
    assert classes(tmp_path / "night") == {"missing": 36, "unexpected": 32, "altered": 1}


def classes(folder: Path) -> Counter[str]:
    listed = pq.read_table(next(folder.rglob("exceptions")), columns=["class"], partitioning=None)
    return Counter(listed["class"].to_pylist())


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("seed", "many", "full"),
    [
        pytest.param(1, FEW_GATEWAYS, True, id="full"),
        pytest.param(2, FEW_GATEWAYS, False, id="sets-without-faults"),
        pytest.param(3, FEW_GATEWAYS, False, id="sets"),
        *(pytest.param(seed, GATEWAYS, full) for seed in range(10, 60) for full in (True, False)),
    ],
)
def test_random_faults_get_the_classes_of_the_model(
    tmp_path: Path, seed: int, many: int, *, full: bool
) -> None:
    """Many gateways at once; an even seed has no faults of messages."""
    rng = random.Random(seed)  # noqa: S311  # a test's traffic
    gateways = {f"gateway-{number}": spans_of(rng) for number in range(many)}
    plan = plan_of(rng, gateways, 30, 0.2 if seed % 2 else 0)
    archive = Archive(tmp_path / "archive", None, plan, gateways)
    write(archive, rng)
    if rng.random() < 0.5:
        compact_day(ArchiveLocation(archive.root), DAY, merged_here, lambda _: None)
    now = NEXT_MIDNIGHT + 6 * HOUR
    job = Job(tmp_path / "night", full=full, late=LATE, now=now, accept_cuts=True)

    report = reconcile(open_archive(archive.root), DAY, job, lambda *_: None)

    listed = pq.read_table(next(tmp_path.rglob("exceptions")), partitioning=None).to_pylist()
    found = {(row["gateway"], row["target"], row["id"]): row["class"] for row in listed}
    assert found == {
        (gateway, target, identity.hex()): name
        for (gateway, target, identity), name in plan.faulty.items()
    }
    assert [each for each in report.findings if each.weight is Weight.ERROR] == []
    assert report.source_gaps == plan.gaps
    assert bool(plan.faulty) == bool(seed % 2)
    rows = row_model.read_rows(row_model.segments(archive.root))
    truth = row_model.classify(rows, model_limits(archive))
    assert found == {
        (copy[0], copy[2], copy[3].hex()): name.partition(",")[0]
        for copy, name in truth.items()
        if name != "delivered"
    }
    assert {name: report.total(name) for name in COUNTED} == row_model.counts(truth, COUNTED)
    assert report.status == row_model.verdict(truth.values(), errors=0, gaps=plan.gaps)


@dataclass
class ManyNights:
    """The nights of many archives, whose rows one job of Spark classifies.

    Each night has a number, which the names of its targets begin with.
    Mutable: owned by one test.
    """

    spooled_since: int
    truths: list[Mapping[row_model.Copy, str]] = field(default_factory=list)
    nights: list[NightRows] = field(default_factory=list)

    def add(self, archive: Archive, by_sets: NightRows) -> None:
        """Add a night by its sets, and without a fault of the files also by all rows."""
        limits = replace(model_limits(archive), spooled_since=self.spooled_since)
        inputs = by_sets.inputs
        if not inputs.day:
            return  # there is no answer
        truth = row_model.classify(by_sets.rows, limits)
        nights = [by_sets]
        if all(each.weight is not Weight.ERROR for each in inputs.findings):
            nights.append(night_rows(archive, inputs, full=True))
        for each in nights:
            self.truths.append(truth)
            self.nights.append(each)

    def check(self, spark: SparkSession, folder: Path) -> int:
        """Compare classes, counts and verdicts with the model; return the number of copies."""
        joined = [numbered(night.joined, number) for number, night in enumerate(self.nights)]
        pq.write_table(pa.concat_tables(joined), folder / "rows.parquet")
        scope = Scope(ArchiveLocation(folder), DAY, LATE, self.spooled_since)
        rows = spark.read.schema(spark_schema(JOIN_ROWS)).parquet(str(folder / "rows.parquet"))
        classes = classified(rows, scope, tapped=True)
        found = classes.select(*COPY_KEYS, "class", "marked").toArrow()
        counts = result_tables.counted(classes).toArrow()
        spark.catalog.clearCache()
        proven = [numbered(each.survey.proven, number) for number, each in enumerate(self.nights)]
        minutes = result_tables.with_proven(
            result_tables.minutes_of(counts), pa.concat_tables(proven)
        )
        self._check_classes(found.to_pylist())
        self._check_counts(summed(minutes, ["target"], TALLIES).to_pylist())
        return sum(map(len, self.truths))

    def _check_classes(self, copies: Iterable[Mapping[str, Any]]) -> None:
        found: list[dict[row_model.Copy, str]] = [{} for _ in self.nights]
        for row in copies:
            number, target = split_target(row)
            marked = row["class"] == "duplicated" and row["marked"]
            (gateway, route, _, identity), _ = identified({**row, "leg": ""})
            name = row_model.MARKED if marked else row["class"]
            found[number][gateway, route, target, identity] = name
        for night, truth, classes in zip(self.nights, self.truths, found, strict=True):
            joined = truth if night.full else unproven_copies(night.survey, truth)
            assert classes == {copy: truth[copy] for copy in joined}
            assert {truth[copy] for copy in truth.keys() - joined} <= {"delivered"}

    def _check_counts(self, targets: Iterable[Mapping[str, Any]]) -> None:
        totals = [Counter[str]() for _ in self.nights]
        for row in targets:
            totals[split_target(row)[0]].update({name: row[name] for name in COUNTED})
        for night, truth, total in zip(self.nights, self.truths, totals, strict=True):
            assert {name: total[name] for name in COUNTED} == row_model.counts(truth, COUNTED)
            report = Report("", DAY, night.inputs.findings, totals=total)
            errors = sum(each.weight is Weight.ERROR for each in report.findings)
            assert report.status == row_model.verdict(truth.values(), errors, gaps=0)


def numbered(rows: pa.Table, number: int) -> pa.Table:
    place = rows.schema.get_field_index("target")
    names = pa.array([f"{number}/{name}" for name in rows["target"].to_pylist()], pa.string())
    return rows.set_column(place, "target", names)


def split_target(row: Mapping[str, Any]) -> tuple[int, str]:
    number, _, target = row["target"].partition("/")
    return int(number), target


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("first", "number"),
    [
        (0, 5),
        *((first, BATCH) for first in NIGHTLY_SEEDS),
    ],
)
def test_random_archives_get_the_verdict_of_the_model(
    spark: SparkSession, folder: Path, tmp_path: Path, first: int, number: int
) -> None:
    """Ten thousand archives, as written and with a fault, by sets and by all rows."""
    now = NOW if first % (2 * BATCH) else NEXT_MIDNIGHT + (SPOOLED_DAYS * 24 - 12) * HOUR
    together = ManyNights(now - SPOOLED_DAYS * 24 * HOUR)
    for seed in range(first, first + number):
        try:
            check_seed(folder, seed, together.add)
        except Exception as fault:
            fault.add_note(f"seed {seed}")
            raise
    assert together.check(spark, tmp_path) > number
