"""No fault in an archive is called clean, and none is invented: compared with a model of its own.

A random archive has random faults of messages. The list of messages and a model that reads the rows
give each copy one class, and the copies that the night does not join must all be delivered. Then
one random fault of the files is planted, and must be found by its rule.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gateway.archive.findings import Finding, Weight
from gateway.archive.layout import HOUR
from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import LocalStorage
from gateway.night.archive.compaction.compact_day import compact_day
from gateway.night.archive.open_archive import open_archive
from gateway.night.archive.verification.verify import Verified, verify_day
from gateway.night.reconcile.classify.evidence import files_to_join, selection_of
from gateway.night.reconcile.classify.survey import (
    Survey,
    merged,
    run_blocks,
    run_evaluation,
    run_survey,
)
from gateway.night.reconcile.input.inputs import Inputs, Scope, find_inputs, verify_around
from gateway.night.reconcile.input.row_reader import JOIN_SCHEMA, run_read
from tests.archive.samples import DAY
from tests.night.archive.compaction.days import merged_here
from tests.night.reconcile import row_model
from tests.night.reconcile.archive_faults import FAULTS, JOURNAL_FAULTS, JOURNAL_RULES, Fault
from tests.night.reconcile.tampering import (
    LATE,
    MIDNIGHT,
    NEXT_MIDNIGHT,
    SECOND,
    Archive,
    memory_folder,
    plan_of,
    spans_of,
    with_open_end,
    write,
)

KEY = b"a key of the archive"
DAY_AFTER = DAY + timedelta(days=2)
SEEDS = range(4)
IN_FLIGHT = 120  # seconds
SPOOLED_DAYS = 7
NOW = NEXT_MIDNIGHT + 6 * HOUR


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as path:
        yield path


def archive_of(root: Path, rng: random.Random, journal_fault: str = "") -> Archive:
    """A random archive; half of them are keyed, and a third of them compacted."""
    gateways = {name: spans_of(rng) for name in ("east", "mid", "west")[: rng.randrange(1, 4)]}
    if not journal_fault and rng.random() < 0.1:
        running = rng.choice([*gateways])
        gateways[running] = with_open_end(rng, gateways[running])
    plan = plan_of(rng, gateways, messages=14, faults=0.3)
    archive = Archive(root, rng.choice((None, KEY)), plan, gateways)
    write(archive, rng, JOURNAL_FAULTS[journal_fault] if journal_fault else None)
    if not journal_fault and not archive.opened and rng.random() < 0.34:
        location = ArchiveLocation(root)
        done = compact_day(location, DAY, merged_here, lambda _: None, key=archive.key)
        assert done.findings == ()
        archive.compacted = bool(done.merged)
    return archive


def verified(archive: Archive) -> Verified:
    storage = LocalStorage(archive.root)
    return verify_day(storage, DAY, archive.key, journals=archive.root, today=DAY_AFTER)


def errors(findings: Iterable[Finding]) -> set[str]:
    return {each.rule for each in findings if each.weight is Weight.ERROR}


def model_limits(archive: Archive, now: int = NOW) -> row_model.Limits:
    """The limits of the night for the model."""
    opened = {each.head.gateway: each.head.opened for each in archive.opened}
    return row_model.Limits(
        MIDNIGHT,
        LATE * SECOND,
        now - SPOOLED_DAYS * 24 * HOUR,
        {name: at - IN_FLIGHT * SECOND for name, at in opened.items()},
    )


def survey_here(scope: Scope, inputs: Inputs) -> Survey:
    """Survey as the night does, in this process."""
    location, day = scope.location, scope.day
    seen = list(run_survey(location, day, inputs.all))
    found = merged(pa.concat_tables(seen)) if seen else Survey()
    blocks = [] if scope.full else list(run_blocks(location, day, inputs.all, (), ()))
    if not blocks:
        return found
    proven = run_evaluation(location, day, scope.late, found.tapped, pa.concat_tables(blocks))
    return merged(pa.concat_tables([*seen, *proven]))


@dataclass(frozen=True)
class NightRows:
    """The part of a night before Spark's: the rows to join, and the copies proven by sets."""

    inputs: Inputs
    survey: Survey
    joined: pa.Table
    rows: Sequence[row_model.Row]  # of all files, for the model
    full: bool


def inputs_of(archive: Archive) -> Inputs:
    return find_inputs(open_archive(archive.root, archive.key), DAY)


def night_rows(archive: Archive, inputs: Inputs, *, full: bool) -> NightRows:
    location = ArchiveLocation(archive.root)
    opened = {name: at - IN_FLIGHT * SECOND for name, at in inputs.opened.items()}
    scope = Scope(location, DAY, LATE, 0, opened, full=full)
    found = survey_here(scope, inputs)
    inputs = verify_around(inputs, found.near)
    files = list(files_to_join(scope, inputs, found))
    selection = selection_of(scope, found)
    tables = [JOIN_SCHEMA.empty_table(), *run_read(location, selection, files)]
    rows = row_model.read_rows(archive.root / each.path for each in inputs.all)
    return NightRows(inputs, found, pa.concat_tables(tables), rows, full)


def check_rows(archive: Archive, found: NightRows) -> None:
    """Compare the plan, the model of the rows, and the sets of the night."""
    files = [archive.root / each.path for each in found.inputs.all]
    assert sorted(files) == row_model.segments(archive.root)  # any reader reads the same rows
    truth = row_model.classify(found.rows, model_limits(archive))
    if not archive.opened:  # the rows of an open journal are in the plan, and in no segment
        names = {(copy[0], *copy[2:]): name.partition(",")[0] for copy, name in truth.items()}
        assert names == archive.plan.classes
    check_proof(found, truth)


def check_proof(found: NightRows, truth: Mapping[row_model.Copy, str]) -> None:
    """All proven copies are delivered, and every row of the others is in the join, once."""
    unproven = unproven_copies(found.survey, truth)
    proven = {copy: truth[copy] for copy in truth.keys() - unproven}
    assert {*proven.values()} <= {"delivered"}
    counts = Counter[tuple[str, ...]]()
    for row in found.survey.proven.to_pylist():
        counts[row["gateway"], row["route"], row["target"]] += row["received"]
    assert counts == Counter(copy[:3] for copy in proven)
    joined = Counter(map(identified, found.joined.to_pylist()))
    assert {each: n for each, n in joined.items() if each[0] in unproven} == Counter(
        (copy, row["leg"]) for copy, row in row_model.by_target(found.rows) if copy in unproven
    )


def unproven_copies(found: Survey, copies: Iterable[row_model.Copy]) -> set[row_model.Copy]:
    """Return the copies among the ids to join."""
    wanted = found.wanted()
    return {
        copy
        for copy in copies
        for run, counter in [words(copy[3])]
        for ids in [wanted.get((*copy[:3], run))]
        if ids is not None and np.any((ids.first <= counter) & (counter <= ids.last))
    }


def identified(row: Mapping[str, Any]) -> tuple[row_model.Copy, str]:
    """The copy and the leg of a row of the join."""
    identity = b"".join(row[name].to_bytes(8, "big", signed=True) for name in ("run", "counter"))
    return (row["gateway"], row["route"], row["target"], identity), row["leg"]


def words(identity: bytes) -> tuple[int, int]:
    run, counter = (int.from_bytes(identity[at : at + 8], "big", signed=True) for at in (0, 8))
    return run, counter


def check_seed(
    folder: Path, seed: int, see: Callable[[Archive, NightRows], None] = lambda *_: None
) -> None:
    """One archive: as it was written, then with one fault; `see` gets it each time."""
    rng = random.Random(seed)  # noqa: S311  # a test's traffic
    root = folder / str(seed)
    journal_fault = rng.choice([*JOURNAL_FAULTS, *[""] * 9])
    try:
        archive = archive_of(root, rng, journal_fault)
    except IndexError:  # no journal of the day has rows: there is nothing to damage
        shutil.rmtree(root)
        return
    try:
        inputs = inputs_of(archive)
        found = errors(inputs.findings)
        night = night_rows(archive, inputs, full=False)
        see(archive, night)
        if journal_fault:
            assert found & JOURNAL_RULES, (journal_fault, found)
            assert found <= JOURNAL_RULES | {"forked-chain"}, (journal_fault, found)
            return
        assert found == set()
        check_rows(archive, night)
        if not archive.opened:
            tampered = check_fault(archive, rng, rng.choice([*FAULTS]))
            if tampered is not None:
                see(archive, night_rows(archive, tampered, full=False))
    finally:
        archive.close()
        shutil.rmtree(root)


def check_fault(archive: Archive, rng: random.Random, name: str) -> Inputs | None:
    """Plant one fault, and verify that it is found; return None when it cannot be planted."""
    fault: Fault = FAULTS[name]
    try:
        planted = fault.plant(archive, rng)
    except IndexError:  # an archive without a segment
        return None
    if not planted:
        return None
    inputs = inputs_of(archive)
    found = errors(inputs.findings)
    assert found & fault.found, (name, found)
    assert found <= fault.found | fault.beside, (name, found)
    return inputs


@pytest.mark.parametrize("seed", SEEDS)
def test_no_random_fault_is_called_clean_and_none_is_invented(folder: Path, seed: int) -> None:
    check_seed(folder, seed)


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_found(folder: Path, name: str) -> None:
    """Each kind is planted in the first random archive that has a place for it."""
    for seed in range(100):
        rng = random.Random(f"{name} {seed}")  # noqa: S311  # a test's traffic
        archive = archive_of(folder / str(seed), rng)
        if check_fault(archive, rng, name) is not None:
            return
    pytest.fail(f"{name}: no archive has a place for it")
