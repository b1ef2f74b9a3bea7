"""The Python processes of local tasks import from folders, not from archives."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from gateway.night.reconcile.local_python import drop_archives

ARCHIVES = ["/spark/python/lib/pyspark.zip", "/spark/jars/spark-core.jar"]


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_a_local_task_has_no_archive_on_its_path(spark: SparkSession) -> None:
    def listed(_batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        entries = {*sys.path, *sys.path_importer_cache}
        yield pa.RecordBatch.from_pydict({"entry": sorted(entries)})

    found = spark.range(0, 1, 1, 1).mapInArrow(listed, "entry string").toArrow()

    entries = found["entry"].to_pylist()
    assert entries
    assert [each for each in entries if Path(each).is_file()] == []


def test_archives_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [entry for entry in sys.path if not entry.endswith(".zip")]
    monkeypatch.setattr(sys, "path", [*ARCHIVES, *folders])
    monkeypatch.setattr(sys, "path_importer_cache", dict.fromkeys(ARCHIVES))

    drop_archives()

    assert sys.path == folders
    assert sys.path_importer_cache.keys().isdisjoint(ARCHIVES)


def test_archives_that_alone_have_spark_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "path", [*ARCHIVES, str(tmp_path)])

    drop_archives()

    assert sys.path == [*ARCHIVES, str(tmp_path)]
