"""No fault in an archive is called clean, and none is invented: compared with a model of its own.

A random archive has random faults of messages; its proven copies must all be delivered by the list
of messages. Then one random fault of the files is planted, and must be found by its rule.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from gateway.archive.compaction.compact_day import compact_day
from gateway.archive.findings import Weight
from gateway.archive.layout import PAIRS, SETS
from gateway.archive.location import ArchiveLocation
from gateway.archive.seals.verify import Verified, verify_day
from gateway.archive.storage import LocalStorage
from gateway.reconcile.classify.sets import Evaluation, crossing_parts, evaluate
from tests.archive.compaction.days import merged_here
from tests.archive.samples import DAY
from tests.reconcile.archive_faults import FAULTS, JOURNAL_FAULTS, JOURNAL_RULES, Fault
from tests.reconcile.tampering import (
    LATE,
    Archive,
    Copy,
    Plan,
    memory_folder,
    plan_of,
    spans_of,
    write,
)  # fmt: skip

KEY = b"a key of the archive"
DAY_AFTER = DAY + timedelta(days=2)
SEEDS = range(30)
NIGHTLY_SEEDS = range(1_000, 11_000)
BATCH = 250  # archives in one nightly test


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as path:
        yield path


def archive_of(root: Path, rng: random.Random, journal_fault: str = "") -> Archive:
    """A random archive; half of them are keyed, and a third of them compacted."""
    gateways = {name: spans_of(rng) for name in ("east", "mid", "west")[: rng.randrange(1, 4)]}
    plan = plan_of(rng, gateways, messages=10, faults=0.3)
    archive = Archive(root, rng.choice((None, KEY)), plan, gateways)
    write(archive, rng, JOURNAL_FAULTS[journal_fault] if journal_fault else None)
    if not journal_fault and rng.random() < 0.34:
        location = ArchiveLocation(root)
        done = compact_day(location, DAY, merged_here, lambda _: None, key=archive.key)
        assert done.findings == ()
        archive.compacted = bool(done.merged)
    return archive


def verified(archive: Archive) -> Verified:
    storage = LocalStorage(archive.root)
    return verify_day(storage, DAY, archive.key, journals=archive.root, today=DAY_AFTER)


def errors(found: Verified) -> set[str]:
    return {each.rule for each in found.findings if each.weight is Weight.ERROR}


def evaluated(archive: Archive, gateway: str) -> Evaluation:
    """The evaluation of the sets of all files; the pairs are those that it asks for."""
    blocks = [
        with_file(archive, path, SETS) for path in sorted((archive.root / SETS).rglob("*.parquet"))
    ]
    table = pa.concat_tables(blocks)
    own = table.filter(pc.equal(table["gateway"], gateway))
    wanted = crossing_parts(own, DAY)
    files = sorted({*wanted["file"].to_pylist()})
    pairs = [with_file(archive, archive.root / PAIRS / file, PAIRS) for file in files]
    return evaluate(own, DAY, LATE, pa.concat_tables(pairs) if pairs else None)


def with_file(archive: Archive, path: Path, folder: str) -> pa.Table:
    table = pq.read_table(path, partitioning=None).replace_schema_metadata(None)
    if "part" not in table.column_names:
        table = table.append_column("part", pa.array([0] * len(table), pa.int32()))
    name = path.relative_to(archive.root / folder).as_posix()
    return table.add_column(0, "file", pa.array([name] * len(table), pa.string()))


def unproven_copies(found: Evaluation, gateway: str, plan: Plan) -> set[Copy]:
    """The copies of the plan in the intervals that the evaluation could not prove."""
    ranges: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for row in found.unproven.to_pylist():
        own = zip(row["first"], row["last"], strict=True)
        ranges.setdefault((row["target"], row["run"]), []).extend(own)
    return {
        copy
        for copy in plan.classes
        if copy[0] == gateway
        and any(
            first <= int.from_bytes(copy[2][8:], "big", signed=True) <= last
            for first, last in ranges.get(
                (copy[1], int.from_bytes(copy[2][:8], "big", signed=True)), ()
            )
        )
    }


def check_sets(archive: Archive) -> None:
    """Every copy with a fault is among the unproven, and each copy counts once."""
    if not (archive.root / SETS).exists():
        assert not archive.plan.classes
        return
    for gateway in archive.gateways:
        found = evaluated(archive, gateway)
        unproven = unproven_copies(found, gateway, archive.plan)
        own = {copy for copy in archive.plan.classes if copy[0] == gateway}
        faulty = {copy for copy in archive.plan.faulty if copy[0] == gateway}
        assert faulty <= unproven, {copy: archive.plan.classes[copy] for copy in faulty - unproven}
        assert (pc.sum(found.proven["received"]).as_py() or 0) == len(own - unproven)


def check_seed(folder: Path, seed: int) -> None:
    """One archive: as it was written, then with one fault."""
    rng = random.Random(seed)  # noqa: S311  # a test's traffic
    root = folder / str(seed)
    journal_fault = rng.choice([*JOURNAL_FAULTS, *[""] * 9])
    try:
        archive = archive_of(root, rng, journal_fault)
    except IndexError:  # no journal of the day has rows: there is nothing to damage
        shutil.rmtree(root)
        return
    try:
        if journal_fault:
            found = errors(verified(archive))
            assert found & JOURNAL_RULES, (journal_fault, found)
            assert found <= JOURNAL_RULES | {"forked-chain"}, (journal_fault, found)
            return
        assert errors(verified(archive)) == set()
        check_sets(archive)
        check_fault(archive, rng, rng.choice([*FAULTS]))
    finally:
        shutil.rmtree(root)


def check_fault(archive: Archive, rng: random.Random, name: str) -> bool:
    """Plant one fault, and verify that it is found; return whether it could be planted."""
    fault: Fault = FAULTS[name]
    try:
        planted = fault.plant(archive, rng)
    except IndexError:  # an archive without a segment
        return False
    if planted:
        found = errors(verified(archive))
        assert found & fault.found, (name, found)
        assert found <= fault.found | fault.beside, (name, found)
    return planted


@pytest.mark.parametrize("seed", SEEDS)
def test_no_random_fault_is_called_clean_and_none_is_invented(folder: Path, seed: int) -> None:
    check_seed(folder, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(NIGHTLY_SEEDS.start, NIGHTLY_SEEDS.stop, BATCH))
def test_ten_thousand_archives(folder: Path, first: int) -> None:
    for seed in range(first, first + BATCH):
        try:
            check_seed(folder, seed)
        except Exception as fault:
            fault.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_found(folder: Path, name: str) -> None:
    """Each kind is planted in the first random archive that has a place for it."""
    for seed in range(100):
        rng = random.Random(f"{name} {seed}")  # noqa: S311  # a test's traffic
        archive = archive_of(folder / str(seed), rng)
        if check_fault(archive, rng, name):
            return
    pytest.fail(f"{name}: no archive has a place for it")
