"""Processor time: what a process has taken, and a core of its own for each where there are few.

On two cores that a load, two brokers and a gateway share, a rate is that of their sum: each that
takes longer slows all others. With a core each the slowest bounds the path, as it does between
hosts. `apart` gives every process so large a part of a core that the parts fit the machine, by
Linux's bandwidth control (cgroups 1: `cpu.cfs_quota_us`, 2: `cpu.max`, which has not been tried).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

ROOT = Path("/sys/fs/cgroup")
PERIOD = 5_000  # microseconds; who has used up his part of one waits for the next
LOAD = 1.75  # cores for a load that only sends and counts: it must not be what is measured
FULL = 3 + LOAD + 0.25  # cores for a path: two brokers, a gateway, a load, and the machine itself


class Place(Protocol):
    """Gives a process that has just started its place."""

    def __call__(self, pid: int, cores: float = 1) -> None:
        """At most so many cores for the process `pid` and all its threads."""


def together(pid: int, cores: float = 1) -> None:
    """All cores are for all."""
    del pid, cores


@contextmanager
def apart(root: Path = ROOT, machine: int | None = None) -> Iterator[Place]:
    """Places that do not take from one another; a core is `machine`/FULL of one where that is less.

    Raises:
        SystemExit: this user has no say in it here.
    """
    unit = min(1.0, (machine or os.cpu_count() or 1) / FULL)
    groups: list[Path] = []
    parent = root / "cpu" if (root / "cpu").exists() else root

    def place(pid: int, cores: float = 1) -> None:
        group = parent / f"bench-{os.getpid()}-{len(groups)}"
        with _told():
            group.mkdir()
            groups.append(group)
            _limit(group, round(PERIOD * unit * cores), first=parent != root)
            (group / "cgroup.procs").write_text(str(pid))

    if parent == root:
        with _told():
            (root / "cgroup.subtree_control").write_text("+cpu")
    try:
        yield place
    finally:
        for group in groups:
            _remove(group, parent)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SystemExit(
            f"no say over processor time: {error}; try as root, with cgroups"
        ) from error


def _limit(group: Path, microseconds: int, *, first: bool) -> None:
    if first:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD))
        (group / "cpu.cfs_quota_us").write_text(str(microseconds))
    else:
        (group / "cpu.max").write_text(f"{microseconds} {PERIOD}")


def _remove(group: Path, parent: Path) -> None:
    """Let those that are left, this process perhaps, have all again."""
    for pid in (group / "cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):
            (parent / "cgroup.procs").write_text(pid)
    group.rmdir()


def seconds(pid: int) -> float:
    """Processor seconds of all threads of a process so far (`utime` and `stime` of proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def each_message(before: Sequence[float], after: Sequence[float], messages: int) -> str:
    """Microseconds a message of every process, from its seconds before and after them."""
    spent = (end - start for start, end in zip(before, after, strict=True))
    return " + ".join(f"{1e6 * each / messages:.1f}" for each in spent)
