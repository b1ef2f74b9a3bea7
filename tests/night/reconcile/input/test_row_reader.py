"""Rows for the join: one for each target, selected by receipt and by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import LocalStorage
from gateway.errors import ArchiveError
from gateway.night.archive.intervals import Intervals
from gateway.night.archive.segments.tables import sort_rows, to_table
from gateway.night.reconcile.input.inputs import day_range, hours_around
from gateway.night.reconcile.input.row_reader import (
    IdKey,
    Selection,
    TapTimes,
    read_segment,
    run_read,
    selected,
)
from tests.archive.samples import DAY, NOON, START, archive, dead, delivered, digest, received
from tests.archived import segments

SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY_OF_NOON = Selection(*day_range(DAY), hours_around(DAY))


def wanted(ids: Mapping[str, tuple[int, int]]) -> Selection:
    keys: dict[IdKey, Intervals] = {
        ("edge", "orders", target, START): Intervals(np.array([first]), np.array([last]))
        for target, (first, last) in ids.items()
    }
    return Selection(*day_range(DAY), hours_around(DAY), wanted=keys)


def read(root: Path, selection: Selection = DAY_OF_NOON) -> list[dict[str, object]]:
    files = [(path.relative_to(root), None) for path in segments(root, DAY)]
    tables = run_read(ArchiveLocation(root), selection, files)
    return [row for table in tables for row in table.to_pylist()]


def test_a_row_is_repeated_for_each_of_its_targets(tmp_path: Path) -> None:
    archive(tmp_path, received([1, 2], ("erp", "audit")), delivered([1], "audit"), dead(2))

    rows = read(tmp_path)

    assert sorted((row["leg"], row["counter"], row["target"]) for row in rows) == [
        ("dead", 2, "erp"), ("delivered", 1, "audit"),
        ("received", 1, "audit"), ("received", 1, "erp"),
        ("received", 2, "audit"), ("received", 2, "erp"),
    ]  # fmt: skip
    assert {row["run"] for row in rows} == {START}
    high, low = digest("1")[:8], digest("1")[8:]
    hashes = {(row["hash_high"], row["hash_low"]) for row in rows if row["counter"] == 1}
    assert hashes == {tuple(int.from_bytes(part, "big", signed=True) for part in (high, low))}


GAPS = [(10, 20), (12, 13), (30, 31), (40, 50)]


@pytest.mark.parametrize(
    ("receipt", "time", "tapped"),
    [
        pytest.param(-2, -1, False, id="before-its-first-row"),
        pytest.param(-2, 1, True, id="since-its-first-row"),
        pytest.param(5, 9, True, id="before-the-gap"),
        pytest.param(5, 11, False, id="on-its-way-when-the-gap-began"),
        pytest.param(12, 13, False, id="in-the-gap"),
        pytest.param(19, 25, False, id="on-its-way-when-the-gap-ended"),
        pytest.param(21, 25, True, id="after-the-gap"),
        pytest.param(21, 35, False, id="over-a-gap"),
        pytest.param(14, 29, False, id="in-a-gap-behind-a-shorter-one"),
        pytest.param(51, 60, True, id="after-all-gaps"),
    ],
)
def test_a_tap_observes_but_for_its_gaps(
    tmp_path: Path, receipt: int, time: int, *, tapped: bool
) -> None:
    gaps = [(NOON + begin * SECOND, NOON + end * SECOND) for begin, end in GAPS]
    taps = {("edge", "orders", "erp"): TapTimes(NOON, gaps)}
    times = NOON + receipt * SECOND, NOON + time * SECOND
    archive(tmp_path, delivered([1], received=times[0], time=times[1]))

    (row,) = read(tmp_path, Selection(*day_range(DAY), hours_around(DAY), taps))

    assert row["tapped"] is tapped


def test_only_wanted_ids_are_read(tmp_path: Path) -> None:
    archive(tmp_path, received(range(9), ("erp", "audit")), delivered(range(9)))

    rows = read(tmp_path, wanted({"erp": (3, 4), "audit": (8, 99)}))

    assert sorted((row["leg"], row["counter"], row["target"]) for row in rows) == [
        ("delivered", 3, "erp"), ("delivered", 4, "erp"),
        ("received", 3, "erp"), ("received", 4, "erp"), ("received", 8, "audit"),
    ]  # fmt: skip


def test_rows_of_other_dates_are_skipped(tmp_path: Path) -> None:
    earlier = delivered([1], time=NOON, received=NOON - 24 * HOUR)
    archive(tmp_path, earlier, delivered([2], time=NOON, received=NOON), received([3]))

    assert sorted(str(row["counter"]) for row in read(tmp_path)) == ["2", "3"]


def test_an_absent_hash_is_null() -> None:
    table, _ = to_table([delivered([1], gateway="edge", received=NOON)])
    place = table.schema.get_field_index("hash")
    unhashed = table.set_column(place, "hash", pa.nulls(1, pa.binary()))

    (row,) = selected(sort_rows(unhashed), DAY_OF_NOON).to_pylist()

    assert (row["hash_high"], row["hash_low"]) == (None, None)


def test_a_damaged_page_is_an_error_with_the_name_of_the_file(tmp_path: Path) -> None:
    archive(tmp_path, received(range(500)))
    (path,) = segments(tmp_path, DAY)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0xFF
    path.write_bytes(content)

    with pytest.raises(ArchiveError, match=rf"{path.name}: cannot be read: "):
        read_segment(LocalStorage(tmp_path), path.relative_to(tmp_path))


@pytest.mark.parametrize(
    ("writer", "recent"),
    [("edge@a", True), ("edge@b", False), ("edge", False), (None, True)],
    ids=["its-own", "another-instance", "a-gateway-alone", "merged"],
)
def test_a_row_is_recent_by_the_open_journal_of_its_writer(
    writer: str | None, *, recent: bool
) -> None:
    """The rows of a merged segment may be of any instance."""
    table, _ = to_table([received([1], gateway="edge", received=NOON)])
    opened = replace(DAY_OF_NOON, open_since={"edge@a": NOON, "edge@b": NOON + 1, "west": 0})

    (row,) = selected(sort_rows(table), opened, writer).to_pylist()

    assert row["recent"] is recent
