"""The rows of tampered and of random archives get the classes that the list of messages gives."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gateway.archive.compaction.compact_day import compact_day
from gateway.archive.findings import Weight
from gateway.archive.journal.chain import last_link
from gateway.archive.journal.ends import Head
from gateway.archive.journal.file import Journal
from gateway.archive.journal.records import Cell
from gateway.archive.layout import HOUR, JournalName, journal_folder
from gateway.archive.location import ArchiveLocation
from gateway.archive.segments.convert import convert
from gateway.reconcile.job import Job, reconcile
from tests.archive.compaction.days import merged_here
from tests.archive.samples import DAY
from tests.reconcile.tampering import (
    LATE,
    MIDNIGHT,
    NEXT_MIDNIGHT,
    SECOND,
    Archive,
    Plan,
    plan_of,
    spans_of,
    write,
    write_chain,
)
from tests.reconcile.test_tampering_cases import SPANS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

GATEWAYS = 10  # of a random archive


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

    job = Job(archive.root, DAY, output=tmp_path / "night", full=full, now=NEXT_MIDNIGHT + HOUR)
    report = reconcile(job, lambda *_: None)

    journal.close()
    assert report.status == 1
    assert classes(tmp_path / "night") == {"missing": 36, "unexpected": 32, "altered": 1}


def classes(folder: Path) -> Counter[str]:
    listed = pq.read_table(next(folder.rglob("exceptions")), columns=["class"], partitioning=None)
    return Counter(listed["class"].to_pylist())


@pytest.mark.parametrize(
    ("seed", "full"),
    [
        pytest.param(1, True, id="full"),
        pytest.param(2, False, id="sets-without-faults"),
        pytest.param(3, False, id="sets"),
        *(
            pytest.param(seed, full, marks=pytest.mark.nightly)
            for seed in range(10, 60)
            for full in (True, False)
        ),
    ],
)
def test_random_faults_get_the_classes_of_the_model(
    tmp_path: Path, seed: int, *, full: bool
) -> None:
    """Many gateways at once; an even seed has no faults of messages."""
    rng = random.Random(seed)  # noqa: S311  # a test's traffic
    gateways = {f"gateway-{number}": spans_of(rng) for number in range(GATEWAYS)}
    plan = plan_of(rng, gateways, 30, 0.2 if seed % 2 else 0)
    archive = Archive(tmp_path / "archive", None, plan, gateways)
    write(archive, rng)
    if rng.random() < 0.5:
        compact_day(ArchiveLocation(archive.root), DAY, merged_here, lambda _: None)
    now = NEXT_MIDNIGHT + 6 * HOUR
    job = Job(archive.root, DAY, output=tmp_path / "night", full=full, late=LATE, now=now)

    report = reconcile(job, lambda *_: None)

    listed = pq.read_table(next(tmp_path.rglob("exceptions")), partitioning=None).to_pylist()
    found = {(row["gateway"], row["target"], row["id"]): row["class"] for row in listed}
    assert found == {
        (gateway, target, identity.hex()): name
        for (gateway, target, identity), name in plan.faulty.items()
    }
    assert [each for each in report.findings if each.weight is Weight.ERROR] == []
    assert report.source_gaps == plan.gaps
    assert bool(plan.faulty) == bool(seed % 2)
    assert report.status == (1 if plan.faulty else 3 if plan.gaps else 0)
