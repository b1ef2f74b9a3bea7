"""Locks between processes: one holder at a time, and none that outlives its process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway import file_lock
from gateway.file_lock import FileLock, FileLockedError, try_lock, try_share, wait_lock

HOLD = """
import sys
from pathlib import Path
from gateway.file_lock import FileLock

lock = FileLock(Path(sys.argv[1]), "")
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_held_lock_refuses_another_holder_and_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "lock"

    with (
        FileLock(path, "unused"),
        pytest.raises(FileLockedError, match=r"lock: a job is running; wait for it"),
    ):
        FileLock(path, "a job is running; wait for it")


def test_a_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    FileLock(path, "in use").close()

    with FileLock(path, "in use"):
        assert path.exists()


def test_a_killed_process_holds_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603  # our own
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(FileLockedError):
            FileLock(path, "in use")
        process.kill()

    FileLock(path, "in use").close()


def test_a_lock_file_that_its_holder_removes_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder ends after the next one has opened the file."""
    path = tmp_path / "lock"
    ends = iter([FileLock(path, "in use").remove])

    def lock_late(file: int) -> bool:
        next(ends, lambda: None)()
        return try_lock(file)

    monkeypatch.setattr(file_lock, "try_lock", lock_late)
    with FileLock(path, "in use"), pytest.raises(FileLockedError):
        FileLock(path, "in use")


def test_a_lock_file_that_cannot_be_opened_raises_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileLock(tmp_path / "absent" / "lock", "in use")


@pytest.mark.parametrize("lock", [try_lock, try_share, wait_lock])
def test_a_file_system_without_locks_is_named(
    tmp_path: Path, lock: Callable[[int], object]
) -> None:
    """NFS refuses as the kernel does for a descriptor that names a file without opening it."""
    path = tmp_path / "lock"
    path.touch()
    file = os.open(path, os.O_PATH)

    with pytest.raises(OSError, match="the file system has no locks") as refused:
        lock(file)

    os.close(file)
    assert refused.value.strerror is not None  # the text that callers show
    assert "use a disk of this machine" in refused.value.strerror
