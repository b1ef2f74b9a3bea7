"""A share of a core for a process, enforced by the kernel of the test machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.processor import (
    PATH_CORES,
    PERIOD,
    ROOT,
    per_message,
    relative,
    seconds,
    separate_cores,
    written,
)

GROUPS = ROOT / "cpu"


@pytest.fixture
def sleeper() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.kill()


@pytest.mark.skipif(not os.access(GROUPS, os.W_OK), reason="cannot limit processor time here")
def test_a_process_has_its_share_of_a_core_and_later_a_whole_core(sleeper: int) -> None:
    with separate_cores(machine=1) as limit:
        limit(sleeper, cores=2)
        (group,) = GROUPS.glob(f"bench-{os.getpid()}-*")
        assert (group / "cgroup.procs").read_text().split() == [str(sleeper)]
        assert int((group / "cpu.cfs_period_us").read_text()) == PERIOD
        assert int((group / "cpu.cfs_quota_us").read_text()) == PERIOD * 2 // PATH_CORES
        removed = group

    assert not removed.exists()
    assert str(sleeper) in (GROUPS / "cgroup.procs").read_text().split()


def test_a_missing_privilege_is_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(SystemExit, match="run as root, with cgroups"),
        separate_cores(tmp_path / "none"),
    ):
        pass


def test_processor_time_grows_with_use() -> None:
    before = seconds(os.getpid())
    while sum(os.times()[:2]) < before + 0.05:
        pass

    assert seconds(os.getpid()) >= before + 0.04


def test_processor_time_of_a_relay_is_told_by_that_of_its_brokers() -> None:
    spent = per_message((1.0, 2.0, 3.0, 0.0), (1.5, 2.7, 3.9, 1.0), messages=100_000)

    assert written(spent) == "5.0 + 7.0 + 9.0 + 10.0"
    assert relative(*spent[:3]) == 1.5  # 9 us, where the brokers have 6 as a mean
    assert not relative(0.0, 0.0, 9.0)  # too short for the clock
