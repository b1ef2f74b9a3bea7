"""The tasks of a survey: the sets that they read, and the size of their results."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gateway.archive.location import ArchiveLocation
from gateway.archive.schema import SETS
from gateway.archive.storage import LocalStorage
from gateway.night.archive.compaction.compact_day import compact_day
from gateway.night.archive.segments.sets import blocks_of
from gateway.night.archive.segments.tables import sort_rows, to_table
from gateway.night.archive.verification.contents import VerifiedSegment
from gateway.night.reconcile.classify.survey import (
    merged,
    run_blocks,
    run_evaluation,
)
from gateway.night.reconcile.input.inputs import list_inputs
from gateway.trial.synthetic.generate_archive import generate
from gateway.trial.synthetic.traffic import Traffic
from tests.archive.samples import DAY, START, archive, delivered, received
from tests.night.archive.compaction.days import merged_here


def test_the_counts_of_a_day_reach_the_driver_compressed(tmp_path: Path) -> None:
    """A billion rows of 200 gateways have a gigabyte of them, which is Spark's limit."""
    generate(tmp_path, Traffic(20_000, DAY, routes=5), {}, segment=2_000)
    location = ArchiveLocation(tmp_path)
    segments = list_inputs(LocalStorage(tmp_path), DAY).day
    blocks = pa.concat_tables(run_blocks(location, DAY, segments, (), ()))

    results = pa.concat_tables(run_evaluation(location, DAY, 300, (), blocks))

    proven = merged(results).proven
    assert pc.sum(proven["received"]).as_py() > 19_000
    assert pc.sum(pc.binary_length(results["content"])).as_py() < proven.nbytes / 3


def test_the_sets_of_a_file_without_any_are_computed_from_its_rows(tmp_path: Path) -> None:
    rows, _ = to_table([each([1, 2], gateway="edge") for each in (received, delivered)])
    rows = sort_rows(rows)
    pq.write_table(rows, tmp_path / "foreign.parquet")
    segment = VerifiedSegment(Path("foreign.parquet"), sealed=True, size=1)

    (found,) = run_blocks(ArchiveLocation(tmp_path), DAY, [segment], (), ())

    assert found.select(list(SETS)).equals(blocks_of(rows))


def test_a_part_that_two_tasks_leave_to_the_join_is_read_once(tmp_path: Path) -> None:
    """Spark divides the blocks by target, and a part of a merged file has rows of several."""
    for start in (START, START + 1):
        archive(tmp_path, received([1, 2], ("erp", "audit")), start=start)
    location = ArchiveLocation(tmp_path)
    compact_day(location, DAY, merged_here, lambda _: None)
    (segment,) = list_inputs(LocalStorage(tmp_path), DAY).day
    (blocks,) = run_blocks(location, DAY, [segment], (), ())
    tasks = [blocks.filter(pc.equal(blocks["target"], name)) for name in ("erp", "audit")]

    results = [each for task in tasks for each in run_evaluation(location, DAY, 300, (), task)]

    assert merged(pa.concat_tables(results)).files() == {segment.path: (0,)}
