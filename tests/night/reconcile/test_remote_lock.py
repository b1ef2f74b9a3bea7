"""One run at a time over a bucket, which has no locks; a run that is killed does not stay in it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from gateway.archive.layout import reconciled_folder
from gateway.archive.location import ArchiveLocation, parse_location
from gateway.archive.signed_json import StoredDigest
from gateway.archive.storage import RemoteStorage
from gateway.errors import ReconcileError
from gateway.night.archive.open_archive import open_archive
from gateway.night.archive.remote_lock import CheckHeld, remote_lock
from gateway.night.reconcile.job import Job, reconcile
from gateway.night.reconcile.maintenance.compact import compact
from gateway.night.reconcile.maintenance.dictionary import build_dictionary
from tests.archive.bucket import Bucket
from tests.archive.samples import DAY, archive, delivered, received
from tests.waiting import until

FOLDER: Final = Path("_reconciled/.date=2026-03-14.lock")
HOLD: Final = """
import sys
from pathlib import Path
from gateway.archive.storage import RemoteStorage
from gateway.night.archive.remote_lock import remote_lock

storage, place = RemoteStorage(sys.argv[1]), "s3://night/archive"
with remote_lock(storage, Path(sys.argv[2]), "process 1 on a", place=place, conflict="busy"):
    print("locked", flush=True)
    sys.stdin.read()
"""


def silent(_text: str, _share: float | None = None) -> None:
    return None


def locked(
    storage: RemoteStorage,
    expiry: timedelta = timedelta(minutes=15),
    holder: str = "process 2 on b",
) -> AbstractContextManager[CheckHeld]:
    place, conflict = "s3://night/archive", "another run writes; wait for its end"
    return remote_lock(storage, FOLDER, holder, place=place, conflict=conflict, expiry=expiry)


@pytest.fixture
def bucket(bucket: Bucket) -> Bucket:
    """A bucket that answers."""
    bucket.start()
    return bucket


@pytest.fixture(params=["arrow", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> RemoteStorage:
    """Arrow's file system writes as in HDFS."""
    if request.param == "arrow":
        return RemoteStorage(f"file://{tmp_path}")
    bucket: Bucket = request.getfixturevalue("bucket")
    return RemoteStorage(bucket.url)


def in_bucket(bucket: Bucket, root: Path) -> ArchiveLocation:
    """A night with one missing copy, in the bucket."""
    archive(root, received([1, 2]), delivered([1]))
    location = parse_location(bucket.url, str(root / "buffer"))
    files = RemoteStorage(location.url)
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        files.put(path.relative_to(root), path.read_bytes())
    return location


def test_a_held_lock_names_its_holder_and_the_file_to_remove(storage: RemoteStorage) -> None:
    with locked(storage, holder="process 1 on a") as check_held:
        with pytest.raises(ReconcileError) as refused, locked(storage):
            pytest.fail("two runs hold the lock")
        check_held()

    pattern = (
        rf"s3://night/archive/{FOLDER}: another run writes; wait for its end; it is process 1 on"
        r" a\. .* after 15 minutes; to start earlier, remove s3://night/archive/(\S+)"
    )
    assert re.fullmatch(pattern, str(refused.value))
    assert storage.written(FOLDER) == {}
    with locked(storage):
        pass


def test_an_earlier_file_that_was_not_removed_holds_no_lock(tmp_path: Path) -> None:
    class Unreliable(RemoteStorage):
        failures = 1

        def delete(self, path: Path) -> None:
            if self.failures:
                self.failures -= 1
                raise OSError("the service is busy")
            super().delete(path)

    storage = Unreliable(f"file://{tmp_path}")
    with pytest.raises(OSError, match="busy"), locked(storage):
        pytest.fail("the lock is not renewed")

    assert storage.written(FOLDER) == {}
    with locked(storage):
        pass


class Suspended(RemoteStorage):
    """Suspends the machine before a second file is written; another run takes the lock then."""

    def __init__(self, root: Path) -> None:
        super().__init__(f"file://{root}")
        other = RemoteStorage(f"file://{root}")
        self._folder, self.other = root / FOLDER, locked(other, holder="process 1")

    def put(self, path: Path, content: bytes | pa.Buffer) -> StoredDigest:
        if path.suffix == ".000001":
            (first,) = self._folder.iterdir()
            os.utime(first, (0, 0))
            self.other.__enter__()
        return super().put(path, content)


def test_a_contender_that_was_suspended_takes_no_lock_of_another_run(tmp_path: Path) -> None:
    storage = Suspended(tmp_path)

    with pytest.raises(ReconcileError, match="it is process 1"), locked(storage):
        pytest.fail("two runs hold the lock")

    assert len(storage.written(FOLDER)) == 1
    storage.other.__exit__(None, None, None)


def test_a_holder_that_cannot_be_read_holds_the_lock_all_the_same(tmp_path: Path) -> None:
    class Unreadable(RemoteStorage):
        def read(self, path: Path) -> bytes | None:
            raise OSError(f"{path}: the answer ends too early")

    with (
        locked(RemoteStorage(f"file://{tmp_path}")),
        pytest.raises(ReconcileError, match="it is another process"),
        locked(Unreadable(f"file://{tmp_path}")),
    ):
        pytest.fail("two runs hold the lock")


def test_of_many_contenders_one_at_a_time_has_the_lock(storage: RemoteStorage) -> None:
    number = 4
    together, holding = threading.Barrier(number), threading.Lock()

    def contend(_: int) -> bool:
        together.wait()
        try:
            with locked(storage):
                assert holding.acquire(blocking=False), "two hold the lock"
                holding.release()
                return True
        except ReconcileError:
            return False

    for _ in range(3):
        with ThreadPoolExecutor(number) as threads:
            assert any(threads.map(contend, range(number)))
    assert storage.written(FOLDER) == {}


def test_a_running_holder_renews_its_lock(storage: RemoteStorage) -> None:
    with locked(storage, timedelta(seconds=15)) as check_held:
        (first,) = storage.written(FOLDER)
        until(lambda: first not in storage.written(FOLDER))
        check_held()
        with pytest.raises(ReconcileError), locked(storage, timedelta(seconds=15)):
            pytest.fail("two runs hold the lock")


@pytest.mark.nightly
def test_the_lock_of_a_killed_process_is_removed_by_hand_or_expires(bucket: Bucket) -> None:
    storage = RemoteStorage(bucket.url)
    command = [sys.executable, "-c", HOLD, bucket.url, str(FOLDER)]
    for remove in (True, False):
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603  # our own
            assert process.stdout is not None
            assert process.stdout.readline() == b"locked\n"
            process.kill()
        with pytest.raises(ReconcileError, match="it is process 1 on a") as refused:
            locked(storage).__enter__()
        if remove:
            storage.delete(Path(str(refused.value).rpartition("s3://night/archive/")[2]))
            with locked(storage):
                continue

    def is_free() -> bool:
        try:
            with locked(storage, timedelta(seconds=1)):
                return True
        except ReconcileError:
            return False

    until(is_free)


def test_a_lock_that_was_taken_away_is_noticed(storage: RemoteStorage) -> None:
    with locked(storage) as check_held:
        storage.remove(FOLDER)

        with pytest.raises(ReconcileError, match="the lock of this run was removed, or could not"):
            check_held()


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_two_runs_of_a_date_do_not_share_a_folder_of_a_bucket(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = RemoteStorage(in_bucket(bucket, tmp_path / "archive").url)
    refused: set[str] = set()

    def second(_step: str, share: float | None = None) -> None:
        if share is None:
            with pytest.raises(ReconcileError) as found:
                reconcile(open_archive(bucket.url), DAY, Job(), silent)
            refused.add(str(found.value).partition(". ")[0])

    report = reconcile(open_archive(bucket.url), DAY, Job(), second)

    assert report.total("missing") == 1
    (text,) = refused
    assert f"s3://night/gateway/archive/{FOLDER}: another gateway reconcile" in text
    assert f"process {os.getpid()} on " in text
    night = reconciled_folder(Path(), DAY)
    assert {"exceptions", "minutes", "summary.json"} <= {*files.names(night)}
    written = files.written(night)

    def lose_the_lock(_step: str, _share: float | None = None) -> None:
        files.remove(FOLDER)

    with pytest.raises(ReconcileError, match="nothing was replaced"):
        reconcile(open_archive(bucket.url), DAY, Job(), lose_the_lock)
    assert files.written(night) == written
    summary = files.read(night / "summary.json")
    assert summary is not None
    assert json.loads(summary)["totals"]["missing"] == 1


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_one_compaction_of_a_bucket_at_a_time(
    bucket: Bucket, tmp_path: Path, spark: SparkSession
) -> None:
    location = in_bucket(bucket, tmp_path / "archive")
    refused: list[str] = []

    def show_step(_text: str, _share: float | None = None) -> None:
        for second in (
            lambda: compact(lambda: spark, location, DAY, silent),
            lambda: build_dictionary(location, None, silent),
        ):
            with pytest.raises(ReconcileError, match="another compaction is running"):
                second()
            refused.append("")

    assert compact(lambda: spark, location, DAY, show_step).merged

    assert refused
