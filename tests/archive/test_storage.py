from __future__ import annotations

import logging
import os
import threading
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.archive.heads import read_head, read_heads
from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import journals
from gateway.archive.location import ArchiveLocation, parse_location
from gateway.archive.storage import LocalStorage, RemoteStorage, Storage, open_storage
from gateway.errors import ArchiveError
from gateway.night.archive.parquet import PAIRS_KEY, SETS_KEY, encoded
from gateway.night.archive.seals.store import digest_of
from gateway.night.archive.segments.convert import main
from gateway.night.archive.segments.pairs import every_pair_of
from gateway.night.archive.segments.reading import open_parquet
from gateway.night.archive.segments.sets import blocks_of
from tests.archive.bucket import Bucket
from tests.archive.samples import (
    DAY,
    QUICK,
    START,
    archive,
    delivered,
    put,
    received,
)
from tests.waiting import PATIENCE, until


def names(storage: Storage) -> list[str]:
    """The names of all delivered rows of the day."""
    found: list[str] = []
    for path, _ in storage.files(Path(f"date={DAY}")):
        with storage.open(path) as file:
            found += [
                row["name"] for row in pq.read_table(file).to_pylist() if row["leg"] == "delivered"
            ]
    return sorted(found)


def test_segments_go_to_a_bucket_with_their_sets(tmp_path: Path, bucket: Bucket) -> None:
    bucket.start()
    location = parse_location(bucket.url, str(tmp_path))
    writer = ArchiveWriter(location, "edge", START, QUICK)

    put(writer, received([1, 2]), delivered([1, 2]))
    writer.close()

    storage = open_storage(location)
    assert names(storage) == ["a.b1", "a.b2"]
    ((segment, _),) = storage.files(Path(f"date={DAY}"))
    with open_parquet(storage.open(segment)) as file:
        assert blocks_of(file.read()).equals(file.beside(SETS_KEY))
        assert every_pair_of(file.read()).equals(file.beside(PAIRS_KEY))
    assert journals(tmp_path) == []
    assert list(tmp_path.glob("date=*")) == []


def test_segments_wait_for_an_unreachable_bucket(
    tmp_path: Path, bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    options = replace(QUICK, segment_bytes=1, buffer_bytes=5_000)
    location = parse_location(bucket.url, str(tmp_path))
    writer = ArchiveWriter(location, "edge", START, options)
    durable = threading.Event()

    put(writer, delivered([1]))
    put(writer, delivered([2]))
    writer.append([delivered(range(10, 200))], durable.set)  # more than the buffer takes
    until(lambda: writer.failure is not None)
    assert "the buffer of 5000 bytes is full" in str(writer.failure)
    until(lambda: any("NETWORK_CONNECTION" in line for line in caplog.messages))
    assert not durable.is_set()
    assert len(journals(tmp_path)) >= 2
    backlog = writer.backlog
    assert backlog.journals >= 2
    assert backlog.failed >= 1
    assert 0 < backlog.buffer_share <= 1

    bucket.start()
    assert durable.wait(PATIENCE)
    writer.close()

    wanted = sorted(f"a.b{number}" for number in (1, 2, *range(10, 200)))
    assert names(open_storage(location)) == wanted
    assert journals(tmp_path) == []
    assert writer.failure is None
    assert (writer.backlog.journals, writer.backlog.buffer_share) == (0, 0)
    assert sum("converter works again" in line for line in caplog.messages) == 1


def test_the_next_start_converts_the_journals_of_an_outage(tmp_path: Path, bucket: Bucket) -> None:
    location = parse_location(bucket.url, str(tmp_path))
    writer = ArchiveWriter(location, "edge", START, replace(QUICK, close_seconds=0.5))
    put(writer, delivered([1]))
    writer.close()
    assert len(journals(tmp_path)) == 1

    bucket.start()
    again = ArchiveWriter(location, "edge", START + 1, QUICK)
    again.close()

    assert names(open_storage(location)) == ["a.b1"]
    assert journals(tmp_path) == []


def test_a_start_after_a_stop_is_stated_in_the_bucket(tmp_path: Path, bucket: Bucket) -> None:
    """Its first journal is closed much later: with the disk lost, only this head names it."""
    bucket.start()
    location = parse_location(bucket.url, str(tmp_path))
    ArchiveWriter(location, "edge", START, QUICK).close()
    storage = open_storage(location)
    (stopped,) = (each.head for each in read_heads(storage))
    assert stopped is not None
    assert stopped.open is None

    writer = ArchiveWriter(location, "edge", START + 1, QUICK)
    opened = read_head(tmp_path, "edge").head
    until(lambda: [each.head for each in read_heads(storage)] == [opened])
    writer.close()


def test_name_files_are_copied_to_the_bucket(tmp_path: Path, bucket: Bucket) -> None:
    bucket.start()
    location = parse_location(bucket.url, str(tmp_path))
    (tmp_path / "_names").mkdir()
    (tmp_path / "_names" / "edge.jsonl").write_text('{"digest": "~a", "levels": ["x"]}\n')

    assert main([str(tmp_path), "--to", location.url]) == 0

    storage = open_storage(location)
    assert storage.names(Path("_names")) == ["edge.jsonl"]
    with storage.open(Path("_names/edge.jsonl")) as file:
        assert b"~a" in file.read()


def test_old_days_are_removed_from_a_bucket(tmp_path: Path, bucket: Bucket) -> None:
    bucket.start()
    location = parse_location(bucket.url, str(tmp_path))
    writer = ArchiveWriter(location, "edge", START, QUICK)
    put(writer, delivered([1]))
    writer.close()
    storage = open_storage(location)
    assert storage.names(Path(f"date={DAY}")) == ["hour=12"]

    assert main([str(tmp_path), "--to", location.url, "--keep-days", "1"]) == 0

    assert storage.names(Path(f"date={DAY}")) == []


def test_a_file_of_another_system_is_renamed_into_place(tmp_path: Path) -> None:
    """HDFS is written by the same calls; here Arrow's file system is a local folder."""
    storage = RemoteStorage(f"file://{tmp_path}/archive")
    archive(tmp_path / "local", delivered([1]))
    (segment,) = (tmp_path / "local").glob("date=*/*/*")
    table = pq.read_table(segment, partitioning=None)
    path = Path("date=2026-03-14/hour=12/a.parquet")

    storage.put(path, encoded(table))
    written = storage.put(path, encoded(table))  # again after a crash

    (found,) = (tmp_path / "archive").rglob("*.parquet")
    assert found == tmp_path / "archive" / path
    assert written == digest_of(LocalStorage(tmp_path / "archive"), path)
    assert pq.read_table(found, partitioning=None).equals(table)


@pytest.fixture(params=["local", "arrow", "s3"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """The same operations in a folder, through Arrow's file systems, and in a bucket."""
    if request.param == "local":
        return LocalStorage(tmp_path / "archive")
    if request.param == "arrow":
        return RemoteStorage(f"file://{tmp_path}/archive")
    bucket: Bucket = request.getfixturevalue("bucket")
    bucket.start()
    return RemoteStorage(bucket.url)


def test_every_storage_lists_reads_replaces_and_removes(files: Storage) -> None:
    table = pa.table({"name": ["a"]})
    old, new = Path("_dictionary"), Path("_dictionary.new")
    assert (files.names(Path()), files.files(old)) == ([], [])
    assert files.read(old / "one.parquet") is None

    size = files.put(old / "one.parquet", encoded(table)).size
    files.put(new / "two.parquet", encoded(table))
    files.put(new / "deep" / "three.parquet", encoded(table))
    assert files.files(old) == [(old / "one.parquet", size)]
    content = files.read(old / "one.parquet")
    assert content is not None
    assert len(content) == size

    files.replace(old, new)
    assert [path for path, _ in files.files(Path())] == [
        old / "deep" / "three.parquet",
        old / "two.parquet",
    ]
    assert files.names(Path()) == [old.name]
    with files.open(old / "two.parquet") as file:
        assert pq.read_table(file).equals(table)

    content = b"{}"
    assert files.put(old / "deep" / "a.json", content).size == len(content)
    assert files.put(old / "a.json", b"[]") == digest_of(files, old / "a.json")
    files.move(old / "deep" / "a.json", old / "a.json")
    files.move(old / "deep" / "a.json", old / "a.json")  # again after a crash
    assert files.read(old / "a.json") == content
    with pytest.raises(FileNotFoundError):
        files.move(old / "absent.json", old / "b.json")
    for _ in range(2):
        files.delete(old / "a.json")
    assert digest_of(files, old / "a.json") is None

    assert [path.name for path, _ in files.remove(old)] == ["three.parquet", "two.parquet"]
    assert files.remove(old) == []
    assert files.names(Path()) == []


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / f"date={DAY}"
    folder.mkdir()
    (folder / "hour=05").symlink_to("hour=05")  # a loop
    storage = LocalStorage(tmp_path)

    with pytest.raises(OSError, match="symbolic links"):
        storage.files(Path(folder.name, "hour=05"))
    with pytest.raises(OSError, match="symbolic links"):
        storage.files(Path(folder.name))

    assert storage.files(Path("absent")) == []


@pytest.mark.parametrize(
    ("path", "location"),
    [
        pytest.param("archive", ArchiveLocation(Path("archive")), id="folder"),
        pytest.param("/var/a", ArchiveLocation(Path("/var/a")), id="absolute"),
        pytest.param("file:///var/a", ArchiveLocation(Path("/var/a")), id="file"),
        pytest.param("s3://b/p", ArchiveLocation(Path("here"), "s3://b/p"), id="bucket"),
        pytest.param(
            "hdfs://n:8020/p", ArchiveLocation(Path("here"), "hdfs://n:8020/p"), id="hdfs"
        ),
    ],
)
def test_a_path_is_a_folder_or_a_url(path: str, location: ArchiveLocation) -> None:
    assert parse_location(path, "here") == location


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        pytest.param("ftp://x/y", "ftp:// is no archive location; use file://, s3://", id="kind"),
        pytest.param("s3://", "has no bucket or host", id="no-bucket"),
        pytest.param("s3://[::1/p", "the location is no URL", id="bracket"),
        pytest.param("s3://key:secret@b/p", "s3://b: the URL contains a secret", id="secret"),
    ],
)
def test_a_wrong_location_is_refused(path: str, reason: str) -> None:
    with pytest.raises(ArchiveError, match=reason) as caught:
        parse_location(path)

    assert ":secret@" not in str(caught.value)


def test_an_unknown_option_of_a_url_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path), "--to", "s3://b/p?colour=red"]) == 1
    assert "unknown option 'colour'; use region, scheme" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []  # noqa: PTH208  # empty
