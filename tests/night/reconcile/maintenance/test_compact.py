"""Compaction on Spark's executors, and readers that know nothing of the archive but its folders."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partialmethod
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from gateway.archive.findings import Weight
from gateway.archive.layout import (
    HOUR,
    NAMES,
    SCHEMA_VERSION,
    day_folder,
    hour_folder,
    staged_path,
)
from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import LocalStorage
from gateway.cli import main
from gateway.errors import ReconcileError
from gateway.night.archive.verification.verify import verify_day
from gateway.night.reconcile import session as session_module
from gateway.night.reconcile.maintenance.compact import compact
from gateway.trial.synthetic.faults import Fault
from gateway.trial.synthetic.generate_archive import generate
from gateway.trial.synthetic.traffic import Traffic
from tests.archive.samples import DAY, NOON
from tests.night.archive.compaction.days import names, write_day

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

KEY = b"a key of the archive"
Ids = Counter[tuple[Any, ...]]


def opened_files(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files of local archives that anybody opens from now on."""
    opened: list[Path] = []
    for name in ("open", "read"):

        def watched(
            storage: LocalStorage, path: Path, own: Callable[[LocalStorage, Path], object]
        ) -> object:
            opened.append(path)
            return own(storage, path)

        own = getattr(LocalStorage, name)
        monkeypatch.setattr(LocalStorage, name, partialmethod(watched, own=own))
    return opened


def silent(_text: str, _share: float | None = None) -> None:
    return None


def by_spark(spark: SparkSession, root: Path) -> Ids:
    columns = ("leg", "target", "id", "date", "hour")
    rows = spark.read.parquet(str(root)).select(*columns).collect()
    return Counter((row[0], row[1] or "", bytes(row[2]), str(row[3]), int(row[4])) for row in rows)


def by_duckdb(root: Path) -> Ids:
    query = "SELECT leg, target, id, date, hour FROM read_parquet(?, hive_partitioning = true)"
    duckdb = importlib.import_module("duckdb")
    found = duckdb.connect().execute(query, [f"{root}/date=*/hour=*/*.parquet"]).fetchall()
    return Counter((row[0], row[1] or "", row[2], str(row[3]), int(row[4])) for row in found)


def by_arrow(root: Path) -> Ids:
    rows = ds.dataset(root, format="parquet", partitioning="hive").to_table(
        columns=["leg", "target", "id", "date", "hour"]
    )
    return Counter(
        (row["leg"], row["target"] or "", row["id"], str(row["date"]), int(row["hour"]))
        for row in rows.to_pylist()
    )


@pytest.mark.nightly
def test_plain_readers_read_every_row_once_before_and_after(
    spark: SparkSession, tmp_path: Path
) -> None:
    traffic = Traffic(3_000, DAY, routes=3, names=60, gateways=2, observed=True)
    generate(tmp_path, traffic, dict.fromkeys(Fault, 1), segment=800, key=KEY)
    storage = LocalStorage(tmp_path)
    before = by_arrow(tmp_path)
    assert before == by_spark(spark, tmp_path) == by_duckdb(tmp_path)
    assert set(before.values()) == {1, 2}  # one is duplicated

    done = compact(lambda: spark, ArchiveLocation(tmp_path), DAY, silent, key=KEY)

    assert (done.findings, len(done.merged)) == ((), 24)
    assert done.rows == sum(count for key, count in before.items() if key[3] == str(DAY))
    merged = [name for name in names(storage) if "merged-1-" in name]
    assert merged == names(storage)
    assert by_arrow(tmp_path) == by_spark(spark, tmp_path) == by_duckdb(tmp_path) == before
    verified = verify_day(storage, DAY, KEY)
    assert [each for each in verified.findings if each.weight is Weight.ERROR] == []
    with storage.open(day_folder(Path(), DAY) / merged[0]) as file:
        metadata = ds.ParquetFileFormat().inspect(file).metadata
    assert metadata[b"gateway.schema"] == str(SCHEMA_VERSION).encode()


def test_a_failure_on_an_executor_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    location = ArchiveLocation(tmp_path)
    write_day(location)
    before = names(LocalStorage(tmp_path))
    merged = hour_folder(NOON - HOUR) / "merged-1-0000.parquet"
    obstacle = tmp_path / staged_path(merged) / "foreign"
    obstacle.parent.mkdir(parents=True)
    obstacle.touch()

    with pytest.raises(ReconcileError, match=r"^spark: the compaction failed: .*merged-1-0000"):
        compact(lambda: spark, location, DAY, silent)

    assert names(LocalStorage(tmp_path)) == before


def test_one_compaction_at_a_time(spark: SparkSession, tmp_path: Path) -> None:
    location = ArchiveLocation(tmp_path)
    refused: list[str] = []

    def show_step(_text: str, _share: float | None = None) -> None:
        with pytest.raises(ReconcileError, match="another compaction is running"):
            compact(lambda: spark, location, DAY, silent)
        refused.append("")

    compact(lambda: spark, location, DAY, show_step)

    assert refused


def test_a_compaction_with_nothing_to_merge_starts_no_spark(
    spark: SparkSession,  # noqa: ARG001  # the session is running
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_day(ArchiveLocation(tmp_path))
    names_file = tmp_path / NAMES / "edge.jsonl"
    names_file.parent.mkdir()
    names_file.write_text("no line\n")
    command = ["archive", "compact", str(tmp_path), "--date", str(DAY), "--json"]
    assert main(command) == 1  # the bad line
    first = json.loads(capsys.readouterr().out)
    started: list[str] = []
    session = session_module.spark_session

    def watched(master: str) -> AbstractContextManager[SparkSession]:
        started.append(master)
        return session(master)

    monkeypatch.setattr(session_module, "spark_session", watched)
    opened = opened_files(monkeypatch)

    assert main(command) == 1
    second = json.loads(capsys.readouterr().out)
    assert not started
    assert not {path.suffix for path in opened} & {".parquet", ".jsonl"}, "no row and no name"
    assert first["segments"] > 0
    assert (second["segments"], second["names"], second["findings"]) == (
        0, first["names"], first["findings"],
    )  # fmt: skip

    opened.clear()
    with names_file.open("a") as file:
        file.write("no line either\n")
    assert main(command) == 1
    assert not started  # the names are read without it
    names_and_rows = [path for path in opened if path.suffix in {".parquet", ".jsonl"}]
    assert len(names_and_rows) == len(set(names_and_rows)), "each once, whatever it has"
    assert len(json.loads(capsys.readouterr().out)["findings"]) == 2
