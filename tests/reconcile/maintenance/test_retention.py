"""Old days go, by Spark, wherever the archive is; the same as the gateway's converter removes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from gateway.archive.layout import oldest_kept
from gateway.archive.location import Place, parse_place
from gateway.archive.retention import forget
from gateway.archive.storage import Here
from gateway.errors import ReconcileError
from gateway.reconcile.maintenance.retention import Forgotten, forget_days
from gateway.reconcile.maintenance.short_names_job import build
from tests.archive.samples import DAY, NOON, archive, delivered
from tests.reconcile.shortening import DAY_LONG, Sender, long_name

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def silent(_: str) -> None:
    return None


def filled(root: Path) -> None:
    """Rows of four days up to DAY, with what is no day or belongs to none."""
    for number in range(4):
        archive(root, delivered([1], time=NOON - number * DAY_LONG), start=number + 1)
    shutil.rmtree(root / f"date={DAY - timedelta(days=3)}")  # digests of rows that are gone
    for name in ("date=soon", "date=2026-13-45", "_reconciled/date=2026-03-01", "date=2026-1-1"):
        (root / name).mkdir(parents=True)
    (root / ".journal").mkdir(exist_ok=True)
    (root / ".journal" / "edge-1-000000.open").write_bytes(b"rows of an old day")
    day_table = root / f"date={DAY - timedelta(days=2)}" / "day"
    day_table.mkdir()
    (day_table / "0001-0000.parquet").write_bytes(b"123")


def tree(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_it_removes_what_the_converter_removes(spark: SparkSession, tmp_path: Path) -> None:
    one, other = tmp_path / "an [odd] {name}* %20", tmp_path / "other"
    filled(one)
    filled(other)
    oldest = oldest_kept(1, DAY)
    assert oldest == DAY - timedelta(days=1)

    gone = forget_days(spark, Place(one), oldest, silent)
    forget(Here(other), 1, DAY)

    assert tree(one) == tree(other)
    assert {"date=soon", "date=2026-13-45", ".journal/edge-1-000000.open"} <= set(tree(one))
    assert gone.days == (DAY - timedelta(days=2),)
    assert gone.files == 2 + 2 + 2  # day 3: digest, pairs; day 2: both, a segment, a day table
    assert forget_days(spark, Place(one), oldest, silent) == Forgotten()


@pytest.fixture
def mounted(spark: SparkSession, tmp_path: Path) -> Iterator[Place]:
    """The folder `far` as the root of another of Hadoop's file systems."""
    (tmp_path / "far").mkdir()
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001  # as the product does
    link = "fs.viewfs.mounttable.night.link./archive"
    hadoop.set(link, f"file:{tmp_path / 'far'}")
    yield parse_place("viewfs://night/archive", str(tmp_path / "buffer"))
    hadoop.unset(link)


def test_another_file_system_is_the_same(
    spark: SparkSession, tmp_path: Path, mounted: Place
) -> None:
    far = tmp_path / "far"
    sender = Sender(far)
    sender.send(long_name(1), "erp", "ems", [NOON - DAY_LONG])
    name = sender.send(long_name(2), "erp", "ems", [NOON])
    sender.close()

    gone = forget_days(spark, mounted, DAY, silent)
    made = build(spark, mounted, DAY, silent)

    assert gone.days == (DAY - timedelta(days=1),)
    assert [path.name for path in far.glob("date=*")] == [f"date={DAY}"]
    assert (made.names, made.sent, made.findings) == (2, 1, ())
    rows = pq.read_table(far / "_dictionary", partitioning=None).to_pylist()
    assert [row["name"] for row in rows if row["target"]] == [name]


AWAY = [
    pytest.param("hdfs://127.0.0.1:1/x", "ConnectException", id="away"),
    pytest.param("s3://bucket/x", "S3AFileSystem", id="no-such-file-system"),
    pytest.param("s3://bucket/x?region=eu", "does not take 'region=eu'", id="options"),
]


@pytest.mark.parametrize(("url", "reason"), AWAY)
def test_an_archive_that_is_away_is_one_line(spark: SparkSession, url: str, reason: str) -> None:
    with pytest.raises(ReconcileError, match=reason) as caught:
        forget_days(spark, parse_place(url), date(2026, 3, 1), silent)

    assert "\n" not in str(caught.value)
