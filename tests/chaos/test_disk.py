"""A disk that is full, under the spool and under the archive: nothing is settled, nothing lost."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.running import Process
from tests.chaos.books import have_no_gap, read_books
from tests.chaos.rig import Setting, load_and_witness, running

pytestmark = pytest.mark.broker

FULL = 4_000  # messages of SIZE that do not fit any more
SIZE = 1_000
ROOM = 2 << 20  # bytes of the small disk, or of a file that has a limit


class Quota:
    """A limit to the size of each file of a process: what `ulimit -f` does. Mutable: it is set."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, gateway: Process) -> None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (ROOM // 64, hard))

    def free(self, gateway: Process) -> None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        if gateway.process.poll() is None:  # else the limit is gone with it
            resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (hard, hard))


class SmallDisk:
    """A file system in memory with a file that fills it. Mutable: the file is there or is not."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self, gateway: Process) -> None:
        del gateway
        with self._ballast.open("wb", buffering=0) as file:
            for size in (1 << 16, 1 << 12):
                while _fits(file.fileno(), size):
                    pass

    def free(self, gateway: Process) -> None:
        del gateway
        self._ballast.unlink()


def _fits(file: int, size: int) -> bool:
    try:
        return os.write(file, bytes(size)) == size
    except OSError:
        return False


@contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    mount = folder / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(mount)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    try:
        yield SmallDisk(mount)
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)  # noqa: S603, S607  # a tool of the system


@contextmanager
def quota(folder: Path) -> Iterator[Quota]:
    yield Quota(folder)


@pytest.mark.parametrize("killed", [False, True], ids=["goes on", "killed meanwhile"])
@pytest.mark.parametrize("away", [False, True], ids=["archive", "spool and archive"])
@pytest.mark.parametrize("disk", [quota, small_disk])
def test_a_full_disk_settles_nothing_and_all_goes_on_when_there_is_room(
    tmp_path: Path,
    start_mosquitto: StartMosquitto,
    disk: Callable[[Path], AbstractContextManager[Quota | SmallDisk]],
    away: bool,
    killed: bool,
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    with disk(tmp_path) as small:
        config = Setting(small.folder, source.port, target.port).write()
        with load_and_witness(source.port, target.port, size=SIZE) as (load, witness):
            with running(config) as gateway:
                load.publish(100)
                witness.wait_for(100)
                if away:
                    target.stop()
                    gateway.wait_for("target", level="warning")
                small.fill(gateway)
                load.publish(FULL)
                gateway.wait_for("spool" if away else "archive", level="error")
                if killed:
                    gateway.end(signal.SIGKILL)
                small.free(gateway)
                if away:
                    target.start()
                if not killed:
                    gateway.wait_for("spool" if away else "archive", level="warning")
                    witness.wait_for(FULL)
                    assert gateway.end() == 0
            with running(config) as gateway:
                sent = load.finish()
                witness.wait_for(sent)
                assert gateway.end() == 0
            witness.has_all_in_order(sent)
        have_no_gap(read_books(small.folder), sent)
