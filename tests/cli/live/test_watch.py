"""A watch of files: one reload for each change, also of links as Kubernetes swaps them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.live.signals import INTERVAL, FileWatch
from tests.runtime.one_route import ONE_ROUTE
from tests.waiting import PATIENCE


class Rig:
    """A watch with a clock that moves by one look at a time."""

    def __init__(self, *paths: Path) -> None:
        self.now = 0.0
        self.watch = FileWatch(paths, lambda: self.now)

    def looks(self, count: int = 3) -> list[bool]:
        found = []
        for _ in range(count):
            self.now += INTERVAL
            found.append(self.watch.changed())
        return found


def mounted(folder: Path, number: int) -> None:
    """Write the files as the kubelet does: a new folder, and a link that is replaced."""
    data = folder / f"..{number}"
    data.mkdir()
    (data / "gateway.yaml").write_text(f"# {number}")
    (folder / "..new").symlink_to(data.name)
    (folder / "..new").rename(folder / "..data")
    if number == 1:
        (folder / "gateway.yaml").symlink_to("..data/gateway.yaml")


def test_a_replaced_mount_is_one_change(tmp_path: Path) -> None:
    mounted(tmp_path, 1)
    rig = Rig(tmp_path)
    assert rig.looks() == [False] * 3

    mounted(tmp_path, 2)
    assert rig.looks(4) == [False, True, False, False]


def test_a_file_that_is_still_written_waits(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a")
    rig = Rig(file)
    for size in range(2, 5):
        file.write_text("a" * size)
        assert rig.looks(1) == [False]

    assert rig.looks(2) == [True, False]


@pytest.mark.parametrize("paths", [[], ["absent"]])
def test_nothing_to_watch_is_no_change(paths: list[str], tmp_path: Path) -> None:
    assert Rig(*(tmp_path / each for each in paths)).looks() == [False] * 3


def test_a_gateway_reloads_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(ONE_ROUTE)
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "gateway", "run", file.name, "--watch", file.name],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if '"running"' in line:
                file.write_text(ONE_ROUTE + "\n# changed\n")
            if '"reloaded"' in line:
                break
        else:
            pytest.fail("it ended without a reload")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
