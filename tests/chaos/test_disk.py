"""A full disk under spool and archive: no message is settled or lost until there is room."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import product
from pathlib import Path

import pytest

from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.running import Process
from tests.chaos.archived import check_without_gap, read_archive
from tests.chaos.rig import RelayConfig, load_and_witness, running
from tests.small_disks import mounted

pytestmark = pytest.mark.broker

OVERFLOW = 4_000  # messages of SIZE, more than fit
SIZE = 1_000
DISK_BYTES = 2 << 20  # of the small disk, or of the limited file


class Quota:
    """A limit of the file size of a process, as `ulimit -f` sets it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, gateway: Process) -> None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (DISK_BYTES // 64, hard))

    def free(self, gateway: Process) -> None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        if gateway.process.poll() is None:  # a dead process has no limit
            resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (hard, hard))


class SmallDisk:
    """A file system in memory, with a file that fills it."""

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
    with mounted(folder, megabytes=32) as mount:
        yield SmallDisk(mount)


@contextmanager
def quota(folder: Path) -> Iterator[Quota]:
    yield Quota(folder)


CASES = [
    pytest.param(
        disk,
        unreachable,
        killed,
        id="-".join(
            (
                disk.__name__,
                "spool and archive" if unreachable else "archive",
                "killed meanwhile" if killed else "running",
            )
        ),
        marks=[] if unreachable and killed and disk is quota else [pytest.mark.chaos],
    )
    for disk, unreachable, killed in product((quota, small_disk), (False, True), (False, True))
]


@pytest.mark.parametrize(("disk", "unreachable", "killed"), CASES)
def test_a_full_disk_delays_settlement_and_loses_no_message(
    tmp_path: Path,
    start_mosquitto: StartMosquitto,
    disk: Callable[[Path], AbstractContextManager[Quota | SmallDisk]],
    unreachable: bool,
    killed: bool,
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    with disk(tmp_path) as small:
        config = RelayConfig(small.folder, source.port, target.port).write()
        with load_and_witness(source.port, target.port, size=SIZE) as (load, witness):
            with running(config) as gateway:
                load.publish(100)
                witness.wait_for(100)
                if unreachable:
                    target.stop()
                    gateway.wait_for("target", level="warning")
                small.fill(gateway)
                load.publish(OVERFLOW)
                gateway.wait_for("spool" if unreachable else "archive", level="error")
                if killed:
                    gateway.end(signal.SIGKILL)
                small.free(gateway)
                if unreachable:
                    target.start()
                if not killed:
                    gateway.wait_for("spool" if unreachable else "archive", level="warning")
                    witness.wait_for(OVERFLOW)
                    assert gateway.end() == 0
            with running(config) as gateway:
                sent = load.finish()
                witness.wait_for(sent)
                assert gateway.end() == 0
            witness.check_order(sent)
        check_without_gap(read_archive(small.folder), sent)
