"""The data source `gateway` of Spark: the rows of an archive, by date, leg and column."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import HOUR
from gateway.archive.location import ArchiveLocation
from gateway.archive.schema import COLUMNS
from gateway.errors import ArchiveError
from gateway.night.archive.compaction.compact_day import compact_day
from gateway.night.archive.compaction.merge import merge
from gateway.night.archive.open_archive import open_archive
from gateway.night.archive.seals.store import seal_path
from gateway.night.archive.segments.convert import convert_abandoned
from gateway.night.archive.segments.tables import SCHEMA
from gateway.night.reconcile.spark_source import ArchiveReader, reader_of
from tests.archive.samples import DAY, NOON, QUICK, START, delivered, noon, put, received
from tests.archived import segments
from tests.night.archive.verification.chained import KEY, sealed_day

NEXT = DAY + timedelta(days=1)
WRONG = [
    ({"leg": "dead"}, "unknown option 'leg'; use path, dates, legs"),
    ({"legs": "lost"}, "unknown leg 'lost'; use received, delivered"),
    ({"columns": "id,names"}, "unknown column 'names'; use gateway, route"),
    ({"dates": "14.3.2026"}, "write YYYY-MM-DD, FIRST..LAST"),
    ({"dates": "2026-03-14..2026-03-13"}, "2026-03-13 is before 2026-03-14"),
    ({"open": "yes"}, "unknown value of open 'yes'; use true, false"),
    ({"path": "s3://bucket/a", "open": "true"}, "leave out open"),
    ({"key_file": "/absent"}, "/absent: cannot be read"),
]


def reader(root: Path, **options: str) -> ArchiveReader:
    return reader_of({"path": str(root), **options})


def read(source: ArchiveReader) -> pa.Table:
    batches = [batch for part in source.partitions() for batch in source.read(part)]
    return pa.Table.from_batches(batches) if batches else SCHEMA.empty_table()


def stored(root: Path, *days: date) -> pa.Table:
    files = [str(path) for day in days for path in segments(root, day)]
    return ds.dataset(files, schema=SCHEMA).to_table()


def ids(rows: pa.Table) -> list[tuple[str, str, bytes]]:
    columns = [rows[name].to_pylist() for name in ("gateway", "leg", "id")]
    return sorted(zip(*columns, strict=True))


@pytest.mark.parametrize(("options", "text"), WRONG)
def test_a_wrong_option_is_refused(options: dict[str, str], text: str) -> None:
    with pytest.raises(ArchiveError, match=text):
        reader_of(options)


@pytest.mark.parametrize(
    ("dates", "days"),
    [
        ("2026-03-14", [DAY]),
        ("2026-03-14..2026-03-15", [DAY, NEXT]),
        (f"{NEXT}, {DAY}", [DAY, NEXT]),
    ],
)
def test_dates_legs_and_columns_are_selected(
    tmp_path: Path, dates: str, days: Sequence[date]
) -> None:
    sealed_day(tmp_path)

    every = read(reader(tmp_path, dates=dates))
    some = read(reader(tmp_path, dates=dates, legs="received", columns="id,leg"))

    assert ids(every) == ids(stored(tmp_path, *days))
    assert every.column_names == list(COLUMNS)
    assert some.column_names == ["id", "leg"]
    assert sorted(some["id"].to_pylist()) == [
        found for _, leg, found in sorted(ids(every), key=lambda row: row[2]) if leg == "received"
    ]


def test_rows_count_once_after_a_compaction(tmp_path: Path) -> None:
    sealed_day(tmp_path)
    before = ids(read(reader(tmp_path)))

    location = ArchiveLocation(tmp_path)
    compact_day(location, DAY, lambda tasks: [merge(task) for task in tasks], lambda _text: None)

    assert any(path.name.startswith("merged-") for path in segments(tmp_path, DAY))
    assert ids(read(reader(tmp_path))) == before


def test_a_key_refuses_what_its_seals_do_not_prove(tmp_path: Path) -> None:
    key_file = tmp_path / "key"
    key_file.write_bytes(KEY)
    root = tmp_path / "archive"
    made = sealed_day(root, KEY)
    keyed = reader(root, dates=str(DAY), key_file=str(key_file))
    assert ids(read(keyed)) == ids(stored(root, DAY))
    parts = keyed.partitions()

    changed = segments(root, DAY)[0]
    changed.write_bytes(changed.read_bytes() + b"!")
    with pytest.raises(ArchiveError, match="is not as it was sealed"):
        [*(batch for part in parts for batch in keyed.read(part))]

    changed.with_name(f"stranger-{START:016d}-00000001-0000.parquet").write_bytes(b"rows")
    with pytest.raises(ArchiveError, match=r"stranger.*no seal of this key names it"):
        keyed.partitions()

    (root / seal_path(made.seals[1])).write_bytes(b"{}")
    key_file.write_bytes(b"another key")
    with pytest.raises(ArchiveError, match="no seal of this key names it"):
        reader(root, dates=str(DAY), key_file=str(key_file)).partitions()


def test_an_open_journal_is_read_and_found_again_after_its_conversion(tmp_path: Path) -> None:
    writer = ArchiveWriter(tmp_path, "edge", START, QUICK, clock=noon)
    put(writer, received([1, 2]), delivered([1]), received([3], time=NOON + 24 * HOUR))
    source = reader(tmp_path, dates=str(DAY), open="true", columns="gateway,leg,id")

    assert read(reader(tmp_path)).num_rows == 0
    rows = read(source)
    assert [leg for _, leg, _ in ids(rows)] == ["delivered", "received", "received"]

    parts = source.partitions()
    assert [bool(part.journal) for part in parts] == [True]
    writer.close()
    convert_abandoned(open_archive(tmp_path))
    assert not [part for part in source.partitions() if part.journal]
    again = [batch for part in parts for batch in source.read(part)]
    assert ids(pa.Table.from_batches(again)) == ids(rows) == ids(read(source))


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_spark_finds_the_source_and_its_executors_read_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    sealed_day(tmp_path)
    source = spark.read.format("gateway")

    rows = source.load(str(tmp_path))
    assert rows.toArrow().cast(SCHEMA).sort_by("id") == read(reader(tmp_path)).sort_by("id")
    assert source.option("dates", "2000-01-01").load(str(tmp_path)).count() == 0
    counted = source.options(dates=str(DAY), columns="leg").load(str(tmp_path)).groupBy("leg")
    expected = stored(tmp_path, DAY)["leg"].to_pylist()
    assert {row["leg"]: row["count"] for row in counted.count().collect()} == {
        leg: expected.count(leg) for leg in set(expected)
    }
