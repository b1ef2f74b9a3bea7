"""Processor time: measures the use of a process, and limits each process to a share of a core.

When a load, two brokers and a gateway share two cores, the rate depends on the sum of their costs.
With a core for each, the slowest process limits the path, as between hosts. `separate_cores` gives
every process a share of a core such that all shares fit the machine. It uses Linux's bandwidth
control (cgroups 1: `cpu.cfs_quota_us`, tested; cgroups 2: `cpu.max`, not tested).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

ROOT = Path("/sys/fs/cgroup")
PERIOD = 5_000  # microseconds; a process that has used its share waits for the next period
LOAD_CORES = 1.75  # for a load that only sends and counts, so that it is not the limit
PATH_CORES = 3 + LOAD_CORES + 0.25  # two brokers, a gateway, a load, and the system


class Limiter(Protocol):
    """Limits the processor time of a process."""

    def __call__(self, pid: int, cores: float = 1) -> None:
        """Limit process `pid`, with all its threads, to a number of cores."""


def no_limit(pid: int, cores: float = 1) -> None:
    """Let all processes share all cores."""
    del pid, cores


@contextmanager
def separate_cores(root: Path = ROOT, machine: int | None = None) -> Iterator[Limiter]:
    """Yield a limiter; a core is `machine`/PATH_CORES of a core on smaller machines.

    Raises:
        SystemExit: this user may not control processor time.
    """
    unit = min(1.0, (machine or os.cpu_count() or 1) / PATH_CORES)
    groups: list[Path] = []
    parent = root / "cpu" if (root / "cpu").exists() else root

    def limit(pid: int, cores: float = 1) -> None:
        group = parent / f"bench-{os.getpid()}-{len(groups)}"
        with _explain():
            group.mkdir()
            groups.append(group)
            _set_quota(group, round(PERIOD * unit * cores), first=parent != root)
            (group / "cgroup.procs").write_text(str(pid))

    if parent == root:
        with _explain():
            (root / "cgroup.subtree_control").write_text("+cpu")
    try:
        yield limit
    finally:
        for group in groups:
            _remove(group, parent)


@contextmanager
def _explain() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SystemExit(
            f"cannot limit processor time: {error}; run as root, with cgroups"
        ) from error


def _set_quota(group: Path, microseconds: int, *, first: bool) -> None:
    if first:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD))
        (group / "cpu.cfs_quota_us").write_text(str(microseconds))
    else:
        (group / "cpu.max").write_text(f"{microseconds} {PERIOD}")


def _remove(group: Path, parent: Path) -> None:
    """Remove a group; its remaining processes, such as this one, get all cores again."""
    for pid in (group / "cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):
            (parent / "cgroup.procs").write_text(pid)
    group.rmdir()


def seconds(pid: int) -> float:
    """Return the processor seconds of a process so far (`utime` and `stime` of proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def per_message(
    before: Sequence[float], after: Sequence[float], messages: int
) -> tuple[float, ...]:
    """Return the microseconds per message of each process, from its seconds before and after."""
    return tuple(1e6 * (end - at) / messages for at, end in zip(before, after, strict=True))


def written(microseconds: Sequence[float]) -> str:
    """Return the microseconds of each process as a sum."""
    return " + ".join(f"{each:.1f}" for each in microseconds)


def relative(first: float, second: float, relay: float) -> float:
    """Return the processor time of a relay divided by the mean of its two brokers'.

    The machine's other load changes all three, so the figure depends on it less than a rate. It is
    0 where the brokers took less than the 10 ms that the system counts by.
    """
    brokers = first + second
    return round(2 * relay / brokers, 2) if brokers else 0.0
