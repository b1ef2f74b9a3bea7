"""A day of an older gateway is read as it is, and compacted into the current layout."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.archive.compaction.compact_day import compact_day
from gateway.archive.compaction.current import current_files
from gateway.archive.layout import HOUR, day_folder, hour_folder
from gateway.archive.location import ArchiveLocation
from gateway.archive.seals.verify import verify_day
from gateway.archive.segments.parquet import sort_rows, to_table
from gateway.archive.storage import LocalStorage
from tests.archive.compaction.days import MIDNIGHT, merged_here, names, rows_of
from tests.archive.samples import DAY, delivered, received

FOLDER = day_folder(Path(), DAY)
NEW_COLUMNS = ("replayed",)


def table_of(hours: range) -> pa.Table:
    batches = [
        leg(range(hour * 10, hour * 10 + 10), time=MIDNIGHT + hour * HOUR + 7, gateway="edge")
        for hour in hours
        for leg in (received, delivered)
    ]
    return sort_rows(to_table(batches)[0]).drop_columns(list(NEW_COLUMNS))


def write_older(root: Path) -> int:
    """A day table of two hours, the segments in it, an unlisted table, and a later segment."""
    day = root / FOLDER / "day"
    day.mkdir(parents=True)
    pq.write_table(table_of(range(10, 12)), day / "0001-0000.parquet")
    pq.write_table(table_of(range(11, 12)), day / "0002-0000.parquet")
    replaced = root / hour_folder(Path(), MIDNIGHT + 11 * HOUR) / "edge-1-000000-0000.parquet"
    later = replaced.parent / "edge-1-000001-0000.parquet"
    replaced.parent.mkdir()
    pq.write_table(table_of(range(11, 12)), replaced)
    pq.write_table(table_of(range(11, 12)), later)
    manifest = {
        "tables": {"day/0001-0000.parquet": 40},
        "replaced": {f"hour=11/{replaced.name}": {"rows": 20}},
    }
    (root / FOLDER / "_manifest.json").write_text(json.dumps(manifest))
    digests = root / "_digests" / FOLDER / "hour=11"
    digests.mkdir(parents=True)
    (digests / later.name).write_bytes(b"sums")
    return 60


def test_an_older_day_counts_every_row_once_and_is_compacted(tmp_path: Path) -> None:
    expected = write_older(tmp_path)
    storage, location = LocalStorage(tmp_path), ArchiveLocation(tmp_path)
    before = rows_of(storage, [each.at for each in current_files(storage, DAY)])
    assert before.total() == expected
    found = verify_day(storage, DAY, today=DAY + timedelta(days=2))
    assert [each.rule for each in found.findings] == ["no-seals"]
    assert rows_of(storage, [each.path for each in found.segments]) == before

    done = compact_day(location, DAY, merged_here, lambda _: None)

    assert (done.segments, done.rows) == (2, expected)
    assert [(each.weight.value, each.rule) for each in done.findings] == [
        ("warning", "older-layout")
    ]
    assert names(storage) == ["hour=10/merged-1-0000.parquet", "hour=11/merged-1-0001.parquet"]
    after = rows_of(storage, [each.at for each in current_files(storage, DAY)])
    added = "'replayed': None, "
    assert {row.replace(added, "") for row in after} == set(before)
    assert after.total() == expected
    assert not (tmp_path / "_digests" / FOLDER).exists()
    found = verify_day(storage, DAY, today=DAY + timedelta(days=2))
    assert {each.rule for each in found.findings} == {"unsealed-segment"}
    assert compact_day(location, DAY, merged_here, lambda _: None).segments == 0


def test_a_day_table_that_cannot_be_read_stays(tmp_path: Path) -> None:
    write_older(tmp_path)
    table = tmp_path / FOLDER / "day" / "0001-0000.parquet"
    table.write_bytes(table.read_bytes()[:-10])

    done = compact_day(ArchiveLocation(tmp_path), DAY, merged_here, lambda _: None)

    assert [each.rule for each in done.findings] == ["older-layout", "unreadable-file"]
    assert names(LocalStorage(tmp_path)) == [
        "_manifest.json", "day/0001-0000.parquet", "hour=11/merged-1-0000.parquet",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["{", "[]", '{"tables": 3, "replaced": {}}', '{"tables": []}'])
def test_a_damaged_manifest_is_a_finding(tmp_path: Path, text: str) -> None:
    write_older(tmp_path)
    (tmp_path / FOLDER / "_manifest.json").write_text(text)
    before = names(LocalStorage(tmp_path))

    done = compact_day(ArchiveLocation(tmp_path), DAY, merged_here, lambda _: None)

    assert [each.rule for each in done.findings] == ["damaged-manifest"]
    assert names(LocalStorage(tmp_path)) == before
