from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.archive.findings import Weight
from gateway.archive.journal.records import MAGIC
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import SEALS
from gateway.night.archive.open_archive import open_archive
from gateway.night.reconcile.input.executors import batches
from gateway.night.reconcile.input.inputs import Inputs, find_inputs, verify_around
from tests.archive.journal_files import journal_path
from tests.archive.samples import DAY, NOON, QUICK, START, archive, delivered, put, received
from tests.archived import segments

HOUR = 3_600_000_000


def found(root: Path) -> Inputs:
    return find_inputs(open_archive(root), DAY)


def paths(inputs: Inputs) -> list[Path]:
    return [each.path for each in inputs.day]


def test_the_segments_of_a_sealed_day_are_proven(tmp_path: Path) -> None:
    archive(tmp_path, received([1, 2]), delivered([1, 2]))

    inputs = found(tmp_path)

    assert (inputs.rows, inputs.verified.seals, inputs.opened) == (4, 1, {})
    (segment,) = inputs.day
    assert segment.sealed
    assert segment.path == segments(tmp_path, DAY)[0].relative_to(tmp_path)


def test_a_segment_that_no_seal_proves_is_left_out_and_reported(tmp_path: Path) -> None:
    archive(tmp_path, received([1]), delivered([1]))
    (original,) = segments(tmp_path, DAY)
    copy = original.with_name(f"edge-{START}-000007-0000.parquet")
    copy.write_bytes(original.read_bytes())

    inputs = found(tmp_path)

    assert paths(inputs) == [original.relative_to(tmp_path)]
    assert "unsealed-segment" in {each.rule for each in inputs.findings}


def test_only_a_gateway_that_writes_now_has_an_open_journal(tmp_path: Path) -> None:
    archive(tmp_path, received([1]), gateway="west")
    journal_path(tmp_path, "idle", START - 1, 0).write_bytes(MAGIC)  # years old, of no process
    writer = ArchiveWriter(tmp_path, "edge", START, QUICK)
    put(writer, received([2]))

    inputs = found(tmp_path)
    writer.close()

    assert list(inputs.opened) == ["edge"]
    assert inputs.opened["edge"] > NOON  # the time of this machine


def test_the_evening_before_and_all_later_days_are_listed(tmp_path: Path) -> None:
    times = [NOON - 13 * HOUR, NOON - 20 * HOUR, NOON, NOON + 13 * HOUR, NOON + 80 * HOUR]
    archive(tmp_path, *[received([1], time=time) for time in times])

    inputs = found(tmp_path)

    days = [each.path.parts[0].removeprefix("date=") for each in inputs.around]
    assert len(inputs.day) == 1
    assert days == [str(DAY + timedelta(days=number)) for number in (-1, 1, 3)]
    assert not any(each.sealed for each in inputs.around)


def test_a_changed_segment_of_the_next_day_is_left_out(tmp_path: Path) -> None:
    archive(tmp_path, received([1]), delivered([1], time=NOON + 13 * HOUR))
    (late,) = segments(tmp_path, DAY + timedelta(days=1))
    inputs = found(tmp_path)
    near = [each.path for each in inputs.around]

    proven = verify_around(inputs, near)
    late.write_bytes(late.read_bytes()[:-1] + b"?")
    changed = verify_around(inputs, near)

    assert [each.sealed for each in proven.around] == [True]
    assert changed.around == []
    more = [each for each in changed.findings if each not in proven.findings]
    assert [(each.rule, each.weight) for each in more] == [("changed-segment", Weight.WARNING)]


def test_no_row_of_a_date_without_seals_counts(tmp_path: Path) -> None:
    archive(tmp_path, received([1]), delivered([1], time=NOON + 13 * HOUR))
    shutil.rmtree(tmp_path / SEALS)
    inputs = found(tmp_path)
    near = [each.path for each in inputs.all]

    verified = verify_around(inputs, near)

    assert (inputs.day, verified.all) == ([], [])
    assert [each.rule for each in inputs.findings] == ["missing-seal", "no-seals"]


@pytest.mark.parametrize(
    ("sizes", "number", "expected"),
    [
        pytest.param([], 4, [], id="nothing"),
        pytest.param([1, 1, 1, 1], 2, ["ab", "cd"], id="equal"),
        pytest.param([9, 1, 1, 1], 2, ["a", "bcd"], id="one-large"),
        pytest.param([0, 0], 2, ["ab"], id="empty"),
        pytest.param([1, 1], 0, ["ab"], id="one-task"),
    ],
)
def test_batches_have_about_the_same_size(
    sizes: list[int], number: int, expected: list[str]
) -> None:
    items = "abcd"[: len(sizes)]
    assert ["".join(batch) for batch in batches(items, sizes, number)] == expected


def test_each_instance_that_writes_now_has_its_own_open_journal(tmp_path: Path) -> None:
    """A standby opened its journal an hour before the instance whose rows wait."""
    standby = ArchiveWriter(tmp_path, "edge", START, QUICK, instance="a", clock=lambda: NOON - HOUR)
    holder = ArchiveWriter(tmp_path, "edge", START + 1, QUICK, instance="b", clock=lambda: NOON)
    put(holder, received([2]), delivered([2]))

    inputs = found(tmp_path)

    assert inputs.opened == {"edge@a": NOON - HOUR, "edge@b": NOON}
    standby.close()
    holder.close()
    assert sorted(path.name for path in segments(tmp_path, DAY)) == [
        f"edge@b-{START + 1}-000000-0000.parquet"
    ]
