"""A part of a core for a process, by the kernel that the test runs on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.processor import FULL, PERIOD, ROOT, apart, seconds

GROUPS = ROOT / "cpu"


@pytest.fixture
def sleeper() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.kill()


@pytest.mark.skipif(not os.access(GROUPS, os.W_OK), reason="no say over processor time here")
def test_a_process_has_its_part_of_a_core_and_later_all_again(sleeper: int) -> None:
    with apart(machine=1) as place:
        place(sleeper, cores=2)
        (group,) = GROUPS.glob(f"bench-{os.getpid()}-*")
        assert (group / "cgroup.procs").read_text().split() == [str(sleeper)]
        assert int((group / "cpu.cfs_period_us").read_text()) == PERIOD
        assert int((group / "cpu.cfs_quota_us").read_text()) == PERIOD * 2 // FULL
        again = group

    assert not again.exists()
    assert str(sleeper) in (GROUPS / "cgroup.procs").read_text().split()


def test_without_a_say_it_tells_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="try as root, with cgroups"), apart(tmp_path / "none"):
        pass


def test_processor_time_grows_by_what_was_taken() -> None:
    before = seconds(os.getpid())
    while sum(os.times()[:2]) < before + 0.05:
        pass

    assert seconds(os.getpid()) >= before + 0.04
