from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from gateway.archive.journal.writer import ArchiveWriter
from gateway.archive.layout import DIGESTS, PAIRS, journals
from gateway.archive.location import Place, parse_place
from gateway.archive.segments.convert import main
from gateway.archive.segments.digest import digests_of
from gateway.archive.storage import Elsewhere, Store, open_store, segment_files
from gateway.errors import ArchiveError
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

BUCKET = "night"
WAIT = 0.05


@dataclass
class Bucket:
    """An S3 server with one bucket; mutable, it can be stopped and started at the same port.

    It forgets its objects when it stops, as a bucket of a new day would have none.
    """

    port: int = field(default_factory=lambda: free_port())  # noqa: PLW0108  # defined below
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        options = f"endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"
        return f"s3://{BUCKET}/gateway/archive?{options}"

    def start(self) -> None:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen(  # noqa: S603  # our own interpreter
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(self._answers)
        place = f"127.0.0.1:{self.port}"
        system = fs.S3FileSystem(
            endpoint_override=place, scheme="http", region="us-east-1", allow_bucket_creation=True
        )
        system.create_dir(BUCKET)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    pytest.importorskip("moto")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    found = Bucket()
    yield found
    found.stop()


def names(store: Store) -> list[str]:
    """The names of all delivered rows of the day."""
    found: list[str] = []
    for path in segment_files(store, f"date={DAY}"):
        with store.open(path) as file:
            found += [
                row["name"] for row in pq.read_table(file).to_pylist() if row["leg"] == "delivered"
            ]
    return sorted(found)


def test_segments_go_to_a_bucket_with_their_digests(tmp_path: Path, bucket: Bucket) -> None:
    bucket.start()
    place = parse_place(bucket.url, str(tmp_path))
    writer = ArchiveWriter(place, "edge", START, QUICK)

    put(writer, received([1, 2]), delivered([1, 2]))
    writer.close()

    store = open_store(place)
    assert names(store) == ["a.b1", "a.b2"]
    (segment,) = segment_files(store, f"date={DAY}")
    with store.open(segment) as rows, store.open(DIGESTS / segment) as digest:
        assert pq.read_table(digest).equals(digests_of(pq.read_table(rows)))
    assert store.names(PAIRS / segment.parent) == [segment.name]
    assert journals(tmp_path) == []
    assert list(tmp_path.glob("date=*")) == []


def test_a_bucket_that_is_away_gets_everything_when_it_is_back(
    tmp_path: Path, bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    options = replace(QUICK, segment_bytes=1, buffer_bytes=5_000)
    place = parse_place(bucket.url, str(tmp_path))
    writer = ArchiveWriter(place, "edge", START, options)
    durable = threading.Event()

    put(writer, delivered([1]))
    put(writer, delivered([2]))
    writer.append([delivered(range(10, 200))], durable.set)  # more than the buffer takes
    until(lambda: writer.failure is not None)
    assert "the buffer of 5000 bytes is full" in str(writer.failure)
    until(lambda: any("NETWORK_CONNECTION" in line for line in caplog.messages))
    assert not durable.is_set()
    assert len(journals(tmp_path)) >= 2

    bucket.start()
    assert durable.wait(PATIENCE)
    writer.close()

    wanted = sorted(f"a.b{number}" for number in (1, 2, *range(10, 200)))
    assert names(open_store(place)) == wanted
    assert journals(tmp_path) == []
    assert writer.failure is None
    assert sum("converter works again" in line for line in caplog.messages) == 1


def test_the_next_start_delivers_what_an_outage_left(tmp_path: Path, bucket: Bucket) -> None:
    place = parse_place(bucket.url, str(tmp_path))
    writer = ArchiveWriter(place, "edge", START, replace(QUICK, close_seconds=0.5))
    put(writer, delivered([1]))
    writer.close()
    assert len(journals(tmp_path)) == 1

    bucket.start()
    again = ArchiveWriter(place, "edge", START + 1, QUICK)
    again.close()

    assert names(open_store(place)) == ["a.b1"]
    assert journals(tmp_path) == []


def test_shortened_names_follow_to_the_bucket(tmp_path: Path, bucket: Bucket) -> None:
    bucket.start()
    place = parse_place(bucket.url, str(tmp_path))
    (tmp_path / "_names").mkdir()
    (tmp_path / "_names" / "edge.jsonl").write_text('{"digest": "~a", "levels": ["x"]}\n')

    assert main([str(tmp_path), "--to", place.url]) == 0

    store = open_store(place)
    assert store.names(Path("_names")) == ["edge.jsonl"]
    with store.open(Path("_names/edge.jsonl")) as file:
        assert b"~a" in file.read()


def test_old_days_leave_a_bucket_too(tmp_path: Path, bucket: Bucket) -> None:
    bucket.start()
    place = parse_place(bucket.url, str(tmp_path))
    writer = ArchiveWriter(place, "edge", START, QUICK)
    put(writer, delivered([1]))
    writer.close()
    store = open_store(place)
    assert store.names(Path(f"date={DAY}")) == ["hour=12"]

    assert main([str(tmp_path), "--to", place.url, "--keep-days", "1"]) == 0

    assert store.names(Path(f"date={DAY}")) == []
    assert store.names(Path(DIGESTS) / f"date={DAY}") == []


def test_a_file_of_another_system_is_renamed_into_place(tmp_path: Path) -> None:
    """HDFS is written the same way; here it is PyArrow's view of a local folder."""
    store = Elsewhere(f"file://{tmp_path}/archive")
    archive(tmp_path / "local", delivered([1]))
    (segment,) = (tmp_path / "local").glob("date=*/*/*")
    table = pq.read_table(segment, partitioning=None)
    path = Path("date=2026-03-14/hour=12/a.parquet")

    store.write(path, table)
    size = store.write(path, table)  # again after a crash

    (found,) = (tmp_path / "archive").rglob("*.parquet")
    assert found == tmp_path / "archive" / path
    assert found.stat().st_size == size
    assert pq.read_table(found, partitioning=None).equals(table)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        pytest.param("archive", Place(Path("archive")), id="folder"),
        pytest.param("/var/a", Place(Path("/var/a")), id="absolute"),
        pytest.param("file:///var/a", Place(Path("/var/a")), id="file"),
        pytest.param("s3://b/p", Place(Path("here"), "s3://b/p"), id="bucket"),
        pytest.param("hdfs://n:8020/p", Place(Path("here"), "hdfs://n:8020/p"), id="hdfs"),
    ],
)
def test_a_path_is_a_folder_or_a_url(path: str, place: Place) -> None:
    assert parse_place(path, "here") == place


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        pytest.param(
            "ftp://x/y", "ftp:// is no place to archive to; use file://, s3://", id="kind"
        ),
        pytest.param("s3://", "names no bucket or host", id="no-bucket"),
        pytest.param("s3://key:secret@b/p", "s3://b: a secret stands in the path", id="secret"),
    ],
)
def test_a_path_that_is_none_is_refused(path: str, reason: str) -> None:
    with pytest.raises(ArchiveError, match=reason) as caught:
        parse_place(path)

    assert ":secret@" not in str(caught.value)


def test_an_option_of_a_url_that_is_none_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path), "--to", "s3://b/p?colour=red"]) == 1
    assert "unknown option 'colour'; use region, scheme" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []  # noqa: PTH208  # empty
